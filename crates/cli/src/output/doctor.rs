//! What `doctor` prints.

use std::fmt::Write as _;

use brig_runtime::doctor::Finding;
use serde::Serialize;

use crate::error::{Error, Kind};

#[derive(Serialize)]
struct Document<'a> {
    usable: bool,
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    topic: &'a str,
    name: &'a str,
    good: bool,
    vital: bool,
    found: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    means: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    mend: &'a str,
}

/// Whether containers can run at all.
pub fn is_usable(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.good || !finding.vital)
}

/// A table by topic: a mark, what was looked at, what was found; below what is missing, what that means and how to mend it.
pub fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0) + 3;
    let mut out = String::new();
    let mut topic = "";
    for finding in findings {
        if finding.topic != topic {
            topic = finding.topic;
            // Neither fails for a String.
            let _ = writeln!(out, "{}{}", if out.is_empty() { "" } else { "\n" }, topic.to_uppercase());
        }
        let mark = if finding.good { '✓' } else { '✗' };
        let _ = writeln!(out, "{mark} {:width$}{}", finding.name, finding.found);
        let vital = if finding.vital && !finding.good { "no container runs without it: " } else { "" };
        for (word, text) in [("means", format!("{vital}{}", finding.means)), ("mend", finding.mend.clone())] {
            if !finding.good && !text.is_empty() {
                let _ = writeln!(out, "    {word}: {text}");
            }
        }
    }
    let verdict =
        if is_usable(findings) { "Containers can run here." } else { "Containers cannot run here." };
    let _ = writeln!(out, "\n{verdict}");
    out
}

/// One document, on one line.
///
/// # Errors
///
/// None that is known.
pub fn json(findings: &[Finding]) -> Result<String, Error> {
    let entries = findings.iter().map(|finding| Entry {
        topic: finding.topic,
        name: &finding.name,
        good: finding.good,
        vital: finding.vital,
        found: &finding.found,
        means: &finding.means,
        mend: &finding.mend,
    });
    let document = Document { usable: is_usable(findings), findings: entries.collect() };
    let mut text = serde_json::to_string(&document)
        .map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str, good: bool, vital: bool) -> Finding {
        Finding {
            topic: "kernel",
            name: name.to_owned(),
            good,
            vital,
            found: "so".to_owned(),
            means: if good { String::new() } else { "a".to_owned() },
            mend: if good { String::new() } else { "b".to_owned() },
        }
    }

    #[test]
    fn the_table_tells_what_is_missing() {
        let text = text(&[finding("one", true, true), finding("three", false, true)]);
        let expected = "KERNEL\n✓ one     so\n✗ three   so\n    means: no container runs without it: a\n    mend: b\n\nContainers cannot run here.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn only_what_is_vital_decides() {
        assert!(is_usable(&[finding("one", true, true), finding("two", false, false)]));
        assert!(!is_usable(&[finding("one", false, true)]));
        let json = json(&[finding("one", false, false)]).unwrap();
        assert_eq!(
            json,
            "{\"usable\":true,\"findings\":[{\"topic\":\"kernel\",\"name\":\"one\",\"good\":false,\"vital\":false,\"found\":\"so\",\"means\":\"a\",\"mend\":\"b\"}]}\n"
        );
    }
}
