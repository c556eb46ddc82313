//! The values of flags.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Flag, Kind};
use crate::error::Error;
use crate::quote::quote;
use crate::value::{duration, number};

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of a switch.
    Switch(bool),
    /// A text or a path.
    Text(OsString),
    /// An integer.
    Int(i64),
    /// Nanoseconds.
    Duration(i64),
}

impl Value {
    /// Reads `text` as the kind of flag wants it. The error is the reason only.
    pub(super) fn read(kind: Kind, text: &OsStr) -> Result<Self, String> {
        // Go's parsers see the bytes; anything but UTF-8 is wrong for all of them, and quoted in what they say.
        let lossy = text.to_string_lossy();
        match kind {
            Kind::Text | Kind::Path => Ok(Self::Text(text.to_owned())),
            // An empty value counts as none, that is as true.
            Kind::Switch if text.is_empty() => Ok(Self::Switch(true)),
            Kind::Switch => number::boolean(&lossy).map(Self::Switch).ok_or_else(|| "parse error".to_owned()),
            Kind::Int => number::any_base(&lossy).map(Self::Int).map_err(|error| error.to_string()),
            Kind::Duration => {
                duration::nanoseconds(&lossy).map(Self::Duration).map_err(|error| error.to_string())
            }
        }
    }
}

/// The flags that were given, in their order, and the table they belong to.
#[derive(Debug, Clone)]
pub struct Values {
    table: &'static [Flag],
    given: Vec<(&'static str, Value)>,
}

impl Values {
    /// None given.
    pub(super) fn new(table: &'static [Flag]) -> Self {
        Self { table, given: Vec::new() }
    }

    pub(super) fn push(&mut self, flag: &'static Flag, value: Value) {
        self.given.push((flag.name, value));
    }

    /// All names given, each as often as it was.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.given.iter().map(|&(name, _)| name)
    }

    /// Whether the flag was given, be it with its default.
    pub fn is_set(&self, name: &str) -> bool {
        self.names().any(|given| given == name)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &Value> {
        debug_assert!(self.table.iter().any(|flag| flag.name == name), "no flag {name}");
        self.given.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value)
    }

    /// The last value, or else the table's default.
    fn last(&self, name: &str) -> Option<Value> {
        self.all(name).last().cloned().or_else(|| {
            let flag = self.table.iter().find(|flag| flag.name == name)?;
            Value::read(flag.kind, OsStr::new(flag.default?)).ok()
        })
    }

    /// Whether a switch is on.
    pub fn switch(&self, name: &str) -> bool {
        self.last(name) == Some(Value::Switch(true))
    }

    /// An integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.last(name) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// All integers of a repeated flag.
    pub fn ints(&self, name: &str) -> impl Iterator<Item = i64> {
        self.all(name).filter_map(|value| match value {
            Value::Int(number) => Some(*number),
            _ => None,
        })
    }

    /// A duration in nanoseconds.
    pub fn duration(&self, name: &str) -> Option<i64> {
        match self.last(name) {
            Some(Value::Duration(nanoseconds)) => Some(nanoseconds),
            _ => None,
        }
    }

    /// A text or path as it was given, the empty one too.
    pub fn raw(&self, name: &str) -> Option<OsString> {
        match self.last(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A path. The empty one is the same as none.
    pub fn path(&self, name: &str) -> Option<OsString> {
        self.raw(name).filter(|path| !path.is_empty())
    }

    /// A text. The empty one is the same as none.
    ///
    /// # Errors
    ///
    /// It is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<String>, Error> {
        self.path(name).map(|text| utf8(name, &text)).transpose()
    }

    /// All texts of a repeated flag.
    ///
    /// # Errors
    ///
    /// One is not UTF-8.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, Error> {
        self.all(name)
            .filter_map(|value| match value {
                Value::Text(text) => Some(utf8(name, text)),
                _ => None,
            })
            .collect()
    }

    /// A path below `directory`, unless it is absolute.
    pub fn path_in(&self, directory: &Path, name: &str) -> Option<std::path::PathBuf> {
        self.path(name).map(|path| directory.join(path))
    }
}

fn utf8(name: &str, text: &OsStr) -> Result<String, Error> {
    text.to_str().map(str::to_owned).ok_or_else(|| {
        let text = quote(text.as_bytes());
        Error::caller(format!("invalid value {text} for flag -{name}: not UTF-8"))
    })
}
