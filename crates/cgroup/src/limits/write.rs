//! What is to be written where.

use std::borrow::Cow;

/// One value for one file, and what to know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The controller that has the file.
    pub controller: Cow<'static, str>,
    /// The file.
    pub file: Cow<'static, str>,
    /// The value.
    pub value: String,
    /// The JSON path that asks for it.
    pub source: String,
    /// What the file says in a new cgroup, when that can be known: a value equal to it need not be written there.
    pub default: Option<&'static str>,
    /// Writes next to each other with the same link depend on each other: the kernel may refuse one with EINVAL
    /// before another is done.
    pub link: Option<Link>,
    /// What to do if there is no such file.
    pub missing: Missing,
    /// How the file reads, to put an old value back.
    pub shape: Shape,
}

/// Values that have to fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Quota, period and burst.
    Bandwidth,
    /// Real-time runtime and period.
    RealTime,
    /// v1: memory, and memory with swap.
    Memory,
    /// Shares, which an idle cgroup refuses.
    Idle,
}

/// What to do if there is no such file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    Fail,
    /// The kernel does what is asked for without it.
    Ignore,
    /// Another file will do.
    Instead(Box<Write>),
}

/// How a file reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// As it is written.
    Whole,
    /// One line for each key, the first word; writing changes one line.
    Keyed {
        /// The key.
        key: String,
        /// What to write if there was no line.
        reset: String,
    },
    /// memory.oom_control: its first line's value is what can be written.
    OomControl,
}

impl Write {
    /// A write that must succeed, to a file that reads as it is written.
    pub(super) fn new(
        controller: &'static str,
        file: impl Into<Cow<'static, str>>,
        value: impl ToString,
        source: impl Into<String>,
    ) -> Self {
        Self {
            controller: Cow::Borrowed(controller),
            file: file.into(),
            value: value.to_string(),
            source: source.into(),
            default: None,
            link: None,
            missing: Missing::Fail,
            shape: Shape::Whole,
        }
    }

    pub(super) fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) fn link(self, link: Link) -> Self {
        Self { link: Some(link), ..self }
    }

    pub(super) fn missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    pub(super) fn keyed(self, key: impl Into<String>, reset: impl Into<String>) -> Self {
        let shape = Shape::Keyed { key: key.into(), reset: reset.into() };
        Self { shape, ..self }
    }

    /// What has to be written to get back to `old`, the file's content.
    pub(super) fn undo(&self, old: &str) -> Vec<String> {
        match &self.shape {
            // An empty cpuset; a write of nothing at all does not reach the kernel's parser.
            Shape::Whole if old.trim().is_empty() => vec!["\n".to_owned()],
            Shape::Whole => old.lines().map(str::to_owned).collect(),
            Shape::OomControl => crate::parse::flat_keyed(old, "oom_kill_disable")
                .map(|value| value.to_string())
                .into_iter()
                .collect(),
            Shape::Keyed { key, reset } => {
                let line = old.lines().find(|line| line.split(' ').next() == Some(key));
                vec![line.unwrap_or(reset).to_owned()]
            }
        }
    }

    /// Whether `old`, the file's content, says what is to be written already.
    pub(super) fn is_in_effect(&self, old: &str) -> bool {
        match &self.shape {
            Shape::Whole => old.trim() == self.value,
            Shape::OomControl => self.undo(old).first().is_some_and(|value| *value == self.value),
            Shape::Keyed { .. } => old.lines().any(|line| line == self.value),
        }
    }
}

/// What a conversion yields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Converted {
    /// In the order in which to write.
    pub writes: Vec<Write>,
    /// What this version of cgroups has nothing for.
    pub skipped: Vec<Skipped>,
}

impl Converted {
    pub(super) fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    pub(super) fn skip(&mut self, source: impl Into<String>, why: &str) {
        self.skipped.push(Skipped { source: source.into(), why: why.to_owned() });
    }
}

/// A setting that cannot be honoured, and that clients set all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its JSON path.
    pub source: String,
    /// Why it has no effect.
    pub why: String,
}

/// A value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_path}: {message}")]
pub struct Invalid {
    /// Its JSON path.
    pub source_path: String,
    /// What is wrong with it.
    pub message: String,
}

impl Invalid {
    pub(crate) fn new(source: impl Into<String>, message: impl Into<String>) -> Self {
        Self { source_path: source.into(), message: message.into() }
    }
}

/// `linux.resources.` and the rest of a JSON path.
pub(super) fn at(rest: impl std::fmt::Display) -> String {
    format!("linux.resources.{rest}")
}

/// `Some` unless absent or 0, which both mean "leave it".
pub(super) fn given<T: Default + PartialEq + Copy>(value: Option<T>) -> Option<T> {
    value.filter(|value| *value != T::default())
}

/// Checks a number of bytes: −1 is unlimited, nothing is below.
pub(super) fn bytes(value: Option<i64>, source: &str) -> Result<Option<i64>, Invalid> {
    match given(value) {
        Some(value) if value < -1 => Err(Invalid::new(at(source), format!("invalid memory value: {value}"))),
        value => Ok(value),
    }
}
