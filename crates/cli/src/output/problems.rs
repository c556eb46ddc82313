//! What `check` prints.

use std::fmt::Write as _;
use std::path::Path;

use brig_plan::{Problem, Severity};
use serde::Serialize;

use crate::error::{Error, Kind};

#[derive(Serialize)]
struct Document<'a> {
    bundle: String,
    problems: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    path: &'a str,
    severity: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

fn severity(problem: &Problem) -> &'static str {
    match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// One line for each problem, and another for its hint; nothing where there is none.
pub fn text(problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        // Neither fails for a String.
        let _ = writeln!(out, "{}: {problem}", severity(problem));
        if let Some(hint) = &problem.hint {
            let _ = writeln!(out, "    hint: {hint}");
        }
    }
    out
}

/// One document, on one line.
///
/// # Errors
///
/// None that is known.
pub fn json(bundle: &Path, problems: &[Problem]) -> Result<String, Error> {
    let entries = problems.iter().map(|problem| Entry {
        path: &problem.path,
        severity: severity(problem),
        message: &problem.message,
        hint: problem.hint.as_deref(),
    });
    let document = Document { bundle: bundle.display().to_string(), problems: entries.collect() };
    let mut text = serde_json::to_string(&document)
        .map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(severity: Severity, hint: Option<&str>) -> Problem {
        Problem {
            path: "root.path".to_owned(),
            severity,
            message: "is not there".to_owned(),
            hint: hint.map(str::to_owned),
        }
    }

    #[test]
    fn problems_are_printed() {
        let problems = [problem(Severity::Error, Some("make it")), problem(Severity::Warning, None)];
        let expected =
            "error: root.path: is not there\n    hint: make it\nwarning: root.path: is not there\n";
        assert_eq!(text(&problems), expected);
        let expected = concat!(
            r#"{"bundle":"/b","problems":[{"path":"root.path","severity":"error","message":"is not there","hint":"make it"},"#,
            r#"{"path":"root.path","severity":"warning","message":"is not there"}]}"#,
            "\n"
        );
        assert_eq!(json(Path::new("/b"), &problems), Ok(expected.to_owned()));
        assert_eq!(text(&[]), "");
    }
}
