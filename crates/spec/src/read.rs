//! Turns a document into the types of the specification; the rules are those in the crate's documentation.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::node::{Node, Num};

/// Why a document could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// It is not JSON, or nested deeper than 127 levels.
    Syntax(serde_json::Error),
    /// A value has the wrong type or is out of range.
    Value {
        /// JSON path such as `process.user.uid`; empty for the whole document.
        path: String,
        /// What should be there, e.g. `an array`.
        expected: String,
        /// What is there instead, shortened.
        found: String,
    },
    /// `config.json` holds `null`.
    Null,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(f, "invalid JSON: {error}"),
            Self::Value { path, expected, found } if path.is_empty() => {
                write!(f, "expected {expected}, found {found}")
            }
            Self::Value { path, expected, found } => write!(f, "{path}: expected {expected}, found {found}"),
            Self::Null => f.write_str("config cannot be null"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Syntax(error) => Some(error),
            Self::Value { .. } | Self::Null => None,
        }
    }
}

/// A member that the specification does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// JSON path, e.g. `process.cmd`.
    pub path: String,
    /// The member's name as written.
    pub key: String,
    /// The names that would have been known in its place.
    pub known: &'static [&'static str],
}

/// Reads the first JSON value of `bytes`, and lists the members that nothing was made of.
///
/// # Errors
///
/// [`ReadError::Syntax`] and [`ReadError::Value`].
pub fn from_slice<T: Read>(bytes: &[u8]) -> Result<(T, Vec<UnknownKey>), ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let node = Node::deserialize(&mut deserializer).map_err(ReadError::Syntax)?;
    let mut value = T::default();
    let mut unknown = Unknown::default();
    value.read(node, &mut unknown).map_err(|fault| fault.into_error())?;
    Ok((value, unknown.finish()))
}

/// A document read as far as it goes: what [`from_slice`] would have stopped at is left as if it were absent.
#[derive(Debug)]
pub struct Survey<T> {
    /// What could be read.
    pub value: T,
    /// Members that nothing was made of.
    pub unknown: Vec<UnknownKey>,
    /// What could not be read, each a [`ReadError::Value`].
    pub misfits: Vec<ReadError>,
}

/// As [`from_slice`], but goes on behind a value that does not fit.
///
/// # Errors
///
/// [`ReadError::Syntax`].
pub fn survey<T: Read>(bytes: &[u8]) -> Result<Survey<T>, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let node = Node::deserialize(&mut deserializer).map_err(ReadError::Syntax)?;
    let mut value = T::default();
    let mut unknown = Unknown { faults: Some(Vec::new()), ..Unknown::default() };
    let outcome = value.read(node, &mut unknown);
    let mut faults = unknown.faults.take().unwrap_or_default();
    // The document itself is not what it should be: nothing within it was looked at.
    faults.extend(outcome.err().map(|fault| *fault));
    Ok(Survey {
        value,
        unknown: unknown.finish(),
        misfits: faults.into_iter().map(|fault| fault.into_error()).collect(),
    })
}

/// The JSON paths of all members that are known below `T`: of a struct `a.b`, of each item of a list `a[].b`, of each
/// value of a map `a[*].b`.
pub fn fields<T: Read>() -> Vec<String> {
    let mut out = Vec::new();
    T::fields("", &mut out);
    out
}

/// Adds a member and what is below it.
pub(crate) fn field<T: Read>(path: &str, key: &str, out: &mut Vec<String>) {
    let path = member_path(path, key);
    out.push(path.clone());
    T::fields(&path, out);
}

pub(crate) fn member_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What the derived-looking `Deserialize` of every object does.
pub(crate) fn deserialize<'de, T: Read, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let node = Node::deserialize(deserializer)?;
    let mut value = T::default();
    value.read(node, &mut Unknown::default()).map_err(|fault| D::Error::custom(fault.into_error()))?;
    Ok(value)
}

/// A type that can be read from JSON.
pub trait Read: Default {
    /// Reads `node` into a value that may have been read before, since duplicates merge.
    fn read(&mut self, node: Node<'_>, unknown: &mut Unknown) -> Outcome;

    /// Whether the value is what an absent member leaves, and so need not be written.
    fn is_absent(&self) -> bool;

    /// Adds the paths of the members that are known below `path`, see [`fields`].
    fn fields(_path: &str, _out: &mut Vec<String>) {}
}

/// A struct made by `object!`.
pub(crate) trait Object {
    /// The names of the members, as the specification writes them.
    const KEYS: &'static [&'static str];

    /// Reads the member `key`, which is one of `KEYS`.
    fn read_member(&mut self, key: &'static str, node: Node<'_>, unknown: &mut Unknown) -> Outcome;
}

pub type Outcome = Result<(), Box<Fault>>;

/// A misfit, and the way from the document's root to it, innermost step first: it is written down only while the
/// error is on its way out.
#[derive(Debug)]
pub struct Fault {
    expected: String,
    found: String,
    path: Vec<Step>,
}

impl Fault {
    fn new(expected: impl Into<String>, found: &Node<'_>) -> Box<Self> {
        Box::new(Self { expected: expected.into(), found: describe(found), path: Vec::new() })
    }

    fn into_error(self) -> ReadError {
        ReadError::Value { path: path(&self.path), expected: self.expected, found: self.found }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Member(&'static str),
    Key(String),
    Index(usize),
}

/// What was met on the way so far.
#[derive(Debug, Default)]
pub struct Unknown {
    /// Unknown members, each with its path, innermost step first.
    keys: Vec<(Vec<Step>, String, &'static [&'static str])>,
    /// Misfits that were passed over; `None` where the first one ends the reading.
    faults: Option<Vec<Fault>>,
}

impl Unknown {
    fn finish(self) -> Vec<UnknownKey> {
        self.keys
            .into_iter()
            .map(|(steps, key, known)| UnknownKey { path: path(&steps), key, known })
            .collect()
    }
}

/// Does `read` one step further down, and adds that step to whatever comes back up.
fn within(
    unknown: &mut Unknown,
    step: impl Fn() -> Step,
    read: impl FnOnce(&mut Unknown) -> Outcome,
) -> Outcome {
    let keys_before = unknown.keys.len();
    let faults_before = unknown.faults.as_ref().map_or(0, Vec::len);
    let outcome = read(unknown);
    for (steps, _, _) in unknown.keys.iter_mut().skip(keys_before) {
        steps.push(step());
    }
    for fault in unknown.faults.iter_mut().flatten().skip(faults_before) {
        fault.path.push(step());
    }
    let Err(mut fault) = outcome else { return Ok(()) };
    fault.path.push(step());
    match &mut unknown.faults {
        Some(faults) => {
            faults.push(*fault);
            Ok(())
        }
        None => Err(fault),
    }
}

pub(crate) fn read_object<T: Object>(object: &mut T, node: Node<'_>, unknown: &mut Unknown) -> Outcome {
    let members = match node {
        Node::Obj(members) => members,
        Node::Null => return Ok(()),
        other => return Err(Fault::new("an object", &other)),
    };
    for (key, value) in members {
        let known = T::KEYS.iter().find(|known| ***known == *key);
        match known.or_else(|| T::KEYS.iter().find(|known| known.eq_ignore_ascii_case(&key))) {
            Some(known) => {
                within(unknown, || Step::Member(known), |unknown| object.read_member(known, value, unknown))?;
            }
            None => unknown.keys.push((vec![Step::Key(key.to_string())], key.into_owned(), T::KEYS)),
        }
    }
    Ok(())
}

impl<T: Read> Read for Option<T> {
    fn read(&mut self, node: Node<'_>, unknown: &mut Unknown) -> Outcome {
        if matches!(node, Node::Null) {
            *self = None;
            return Ok(());
        }
        let outcome = self.get_or_insert_default().read(node, unknown);
        if outcome.is_err() {
            *self = None;
        }
        outcome
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn fields(path: &str, out: &mut Vec<String>) {
        T::fields(path, out);
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(&mut self, node: Node<'_>, unknown: &mut Unknown) -> Outcome {
        let items = match node {
            Node::Arr(items) => items,
            Node::Null => Vec::new(),
            other => return Err(Fault::new("an array", &other)),
        };
        self.clear();
        self.reserve(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut value = T::default();
            within(unknown, || Step::Index(index), |unknown| value.read(item, unknown))?;
            self.push(value);
        }
        Ok(())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn fields(path: &str, out: &mut Vec<String>) {
        T::fields(&format!("{path}[]"), out);
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(&mut self, node: Node<'_>, unknown: &mut Unknown) -> Outcome {
        let members = match node {
            Node::Obj(members) => members,
            Node::Null => {
                self.clear();
                return Ok(());
            }
            other => return Err(Fault::new("an object", &other)),
        };
        for (key, item) in members {
            let mut value = T::default();
            within(unknown, || Step::Key(key.to_string()), |unknown| value.read(item, unknown))?;
            self.insert(key.into_owned(), value);
        }
        Ok(())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn fields(path: &str, out: &mut Vec<String>) {
        T::fields(&format!("{path}[*]"), out);
    }
}

impl Read for String {
    fn read(&mut self, node: Node<'_>, _: &mut Unknown) -> Outcome {
        match node {
            Node::Str(text) => *self = text.into_owned(),
            Node::Null => {}
            other => return Err(Fault::new("a string", &other)),
        }
        Ok(())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Read for bool {
    fn read(&mut self, node: Node<'_>, _: &mut Unknown) -> Outcome {
        match node {
            Node::Bool(value) => *self = value,
            Node::Null => {}
            other => return Err(Fault::new("true or false", &other)),
        }
        Ok(())
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Read for $type {
            fn read(&mut self, node: Node<'_>, _: &mut Unknown) -> Outcome {
                let value = match node {
                    Node::Num(Num::Unsigned(value)) => Self::try_from(value).ok(),
                    Node::Num(Num::Negative(value)) => Self::try_from(value).ok(),
                    Node::Null => return Ok(()),
                    _ => None,
                };
                *self = value.ok_or_else(|| {
                    let expected = format!("an integer between {} and {}", Self::MIN, Self::MAX);
                    Fault::new(expected, &node)
                })?;
                Ok(())
            }

            fn is_absent(&self) -> bool {
                *self == 0
            }
        }
    )+};
}

integers!(u16, u32, u64, i32, i64);

/// Writes a path down: `linux.namespaces[2].type`, `annotations["a.b"]`.
fn path(innermost_first: &[Step]) -> String {
    let mut out = String::new();
    for step in innermost_first.iter().rev() {
        match step {
            Step::Member(name) => push_name(&mut out, name),
            Step::Key(key) if is_plain(key) => push_name(&mut out, key),
            Step::Key(key) => out.push_str(&format!("[{key:?}]")),
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Names what was found, short enough for one line.
fn describe(node: &Node<'_>) -> String {
    const LONGEST: usize = 40;
    match node {
        Node::Null => "null".to_owned(),
        Node::Bool(value) => value.to_string(),
        Node::Num(number) => number.to_string(),
        Node::Str(text) if text.chars().nth(LONGEST).is_some() => {
            format!("{:?}…", text.chars().take(LONGEST).collect::<String>())
        }
        Node::Str(text) => format!("{text:?}"),
        Node::Arr(_) => "an array".to_owned(),
        Node::Obj(_) => "an object".to_owned(),
    }
}
