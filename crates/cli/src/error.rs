//! Errors at the border of the program.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Who has to act for the command to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller: arguments, or a command that does not fit the container's status.
    Caller,
    /// Whoever wrote `config.json`, `process.json` or the resources.
    Config,
    /// Whoever looks after the state directory: a record is missing or broken.
    State,
    /// The host's administrator: permissions, kernel, cgroups, systemd.
    Host,
    /// The host's administrator, quickly: something in the container tried to reach out of it.
    Attack,
    /// The authors of this program.
    Bug,
}

impl Kind {
    /// A word for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Config => "config",
            Self::State => "state",
            Self::Host => "host",
            Self::Attack => "attack",
            Self::Bug => "bug",
        }
    }
}

/// Why a command failed, in the words that the user gets.
///
/// The message is one sentence, the cause last, because clients look for phrases in it. Advice goes into the hint,
/// which clients do not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Who has to act.
    pub kind: Kind,
    /// What was being done, to what, and what came in the way.
    pub message: String,
    /// What to look at.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Arguments that cannot be meant.
    pub fn caller(message: impl Into<String>) -> Self {
        Self::new(Kind::Caller, message)
    }

    /// A system call on `path` that failed, worded as Go does: `open /x: no such file or directory`.
    pub fn path(call: &str, path: &std::path::Path, error: &io::Error) -> Self {
        let message = format!("{call} {}: {}", path.display(), os_text(error));
        Self::new(Kind::Host, message)
    }

    /// The command exists and its arguments are right, but this build cannot do it.
    pub fn unsupported(command: &str) -> Self {
        Self::new(Kind::Host, format!("{command} is not supported by this build"))
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with `prefix` in front of the message.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.message.insert_str(0, prefix);
        self
    }
}

impl From<brig_runtime::Error> for Error {
    fn from(error: brig_runtime::Error) -> Self {
        let kind = match error.kind() {
            brig_runtime::Kind::NotFound | brig_runtime::Kind::State => Kind::State,
            brig_runtime::Kind::Config => Kind::Config,
            brig_runtime::Kind::Host => Kind::Host,
            brig_runtime::Kind::Attack => Kind::Attack,
            brig_runtime::Kind::Internal => Kind::Bug,
        };
        Self { kind, message: error.message(), hint: error.hint_text().map(str::to_owned) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The text of an error in the style that clients compare with: lower case, without a number.
pub fn os_text(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(errno) => brig_sys::errno_text(errno),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::Error;

    #[test]
    fn parts_are_put_together() {
        let error = Error::path("open", Path::new("/x"), &io::Error::from_raw_os_error(2))
            .with_prefix("exec failed: ")
            .with_hint("look");
        assert_eq!(error.to_string(), "exec failed: open /x: no such file or directory");
        assert_eq!(error.hint.as_deref(), Some("look"));
    }
}
