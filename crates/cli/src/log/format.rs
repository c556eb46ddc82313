//! How a record looks.

use std::fmt::Write as _;

use ::log::Level;

use crate::quote::{quote, visible, visible_json};
use brig_runtime::timestamp::Timestamp;

/// The three looks. Keys, their order and the words for levels are those of the library that runc logs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One object for each line, keys in alphabetical order.
    Json,
    /// `key=value`.
    Text,
    /// The same for eyes: `ERRO[0000] message  key=value`, in colour.
    Terminal,
}

/// A record.
#[derive(Debug)]
pub struct Entry<'a> {
    pub level: Level,
    pub message: &'a str,
    /// Where it comes from, where that is wanted.
    pub place: Option<Place<'a>>,
    /// Seconds since the program began.
    pub elapsed: u64,
    pub extra: Vec<(&'static str, String)>,
}

/// A place in the source.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub module: &'a str,
    pub file: &'a str,
    pub line: u32,
}

impl Layout {
    /// The whole record, newline included.
    pub fn record(self, entry: &Entry<'_>) -> String {
        let mut record = match self {
            Self::Json => json(entry),
            Self::Text => text(entry),
            Self::Terminal => terminal(entry),
        };
        record.push('\n');
        record
    }
}

fn json(entry: &Entry<'_>) -> String {
    let mut members = vec![
        ("level", level(entry.level).to_owned()),
        ("msg", entry.message.to_owned()),
        ("time", Timestamp::now().to_seconds()),
    ];
    members.extend(entry.extra.iter().cloned());
    if let Some(Place { module, file, line }) = entry.place {
        members.push(("func", module.to_owned()));
        members.push(("file", format!("{file}:{line}")));
    }
    members.sort_unstable_by_key(|&(key, _)| key);

    let mut out = String::with_capacity(128 + entry.message.len());
    let mut separator = '{';
    for (key, value) in members {
        // A string always serializes.
        let value = visible_json(serde_json::to_string(&value).unwrap_or_default());
        let _ = write!(out, "{separator}\"{key}\":{value}");
        separator = ',';
    }
    out.push('}');
    out
}

fn text(entry: &Entry<'_>) -> String {
    let time = Timestamp::now().to_seconds();
    let mut out = format!("time=\"{time}\" level={} msg={}", level(entry.level), value(entry.message));
    if let Some(Place { module, file, line }) = entry.place {
        let _ = write!(out, " func={}", value(module));
        let _ = write!(out, " file={}", value(&format!("{file}:{line}")));
    }
    for (key, extra) in &entry.extra {
        let _ = write!(out, " {key}={}", value(extra));
    }
    out
}

fn terminal(entry: &Entry<'_>) -> String {
    let (colour, word) = match entry.level {
        Level::Error => (31, "ERRO"),
        Level::Warn => (33, "WARN"),
        Level::Info => (36, "INFO"),
        Level::Debug => (37, "DEBU"),
        Level::Trace => (37, "TRAC"),
    };
    let mut out = format!("\x1b[{colour}m{word}\x1b[0m[{:04}]", entry.elapsed);
    if let Some(Place { module, file, line }) = entry.place {
        let _ = write!(out, "{file}:{line} {module}");
    }
    let _ = write!(out, " {:<44} ", visible(entry.message));
    for (key, extra) in &entry.extra {
        let _ = write!(out, " \x1b[{colour}m{key}\x1b[0m={}", value(extra));
    }
    out
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

/// As it is where it is a plain word, else quoted.
fn value(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/@^+".contains(&byte);
    if text.bytes().all(plain) { text.to_owned() } else { quote(text.as_bytes()) }
}
