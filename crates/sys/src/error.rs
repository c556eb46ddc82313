//! Errors of system calls: which call, on what, and why.

use std::fmt;
use std::path::Path;

use rustix::io::Errno;

/// A system call that failed.
///
/// Its text reads `openat /proc/self/exe: permission denied`: the call, its object, and the reason in the form that
/// clients of container runtimes compare with, case included (Go's: lower case, no number).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysError {
    /// Name of the call.
    pub call: &'static str,
    /// What it was applied to.
    pub object: String,
    /// Why it failed.
    pub errno: Errno,
}

/// A result whose error is a [`SysError`].
pub type Result<T> = std::result::Result<T, SysError>;

impl SysError {
    /// Describes a failed call.
    pub fn new(call: &'static str, object: impl Into<String>, errno: Errno) -> Self {
        Self { call, object: object.into(), errno }
    }

    /// Describes a failed call on a path.
    pub fn path(call: &'static str, path: impl AsRef<Path>, errno: Errno) -> Self {
        Self { call, object: path.as_ref().display().to_string(), errno }
    }
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object.is_empty() {
            write!(f, "{}: {}", self.call, errno_text(self.errno))
        } else {
            write!(f, "{} {}: {}", self.call, self.object, errno_text(self.errno))
        }
    }
}

impl std::error::Error for SysError {}

/// Adds call and object to a bare errno.
pub trait Context<T> {
    /// Names the call and its object.
    ///
    /// # Errors
    ///
    /// The errno of `self`, with its context.
    fn on(self, call: &'static str, object: impl Into<String>) -> Result<T>;

    /// Names the call and the path it was applied to; the path becomes text only when there is an error.
    ///
    /// # Errors
    ///
    /// The errno of `self`, with its context.
    fn on_path(self, call: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> Context<T> for std::result::Result<T, Errno> {
    fn on(self, call: &'static str, object: impl Into<String>) -> Result<T> {
        self.map_err(|errno| SysError::new(call, object, errno))
    }

    fn on_path(self, call: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|errno| SysError::path(call, path, errno))
    }
}

/// What an errno says, in lower case: `no such file or directory`.
///
/// The C library's text with its first letter lowered, which is what Go's table holds but for the few that start with
/// an acronym.
pub fn errno_text(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.raw_os_error()).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_that_clients_compare_with() {
        for (errno, text) in [
            (Errno::NOENT, "no such file or directory"),
            (Errno::ACCESS, "permission denied"),
            (Errno::ISDIR, "is a directory"),
            (Errno::NOTDIR, "not a directory"),
            (Errno::SRCH, "no such process"),
            (Errno::PERM, "operation not permitted"),
            (Errno::NOEXEC, "exec format error"),
            (Errno::IO, "input/output error"),
        ] {
            assert_eq!(errno_text(errno), text);
        }
    }

    #[test]
    fn an_error_names_call_and_object() {
        let e = SysError::path("openat", "/x", Errno::NOENT);
        assert_eq!(e.to_string(), "openat /x: no such file or directory");
    }
}
