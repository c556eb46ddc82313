//! What went wrong, in one line, and what to look at.

use std::fmt;

use brig_sys::SysError;
use rustix::io::Errno;

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The container does not exist, or not any more.
    NotFound,
    /// The container's state does not allow it.
    State,
    /// The bundle, a flag or a file given to brig is wrong.
    Config,
    /// The host refuses or lacks something.
    Host,
    /// The root file system tries to lead brig astray.
    Attack,
    /// A bug in brig.
    Internal,
}

/// An error: what was being done, to what, and why it failed.
///
/// Its text is one line, `context: …: cause (hint)`. The cause comes last but for the hint, since clients compare the
/// end of what they read.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    context: Vec<String>,
    cause: String,
    hint: Option<String>,
    errno: Option<Errno>,
}

/// A result whose error is an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of that kind.
    pub fn new(kind: Kind, cause: impl Into<String>) -> Self {
        Self { kind, context: Vec::new(), cause: cause.into(), hint: None, errno: None }
    }

    /// See [`Kind::State`].
    pub fn state(cause: impl Into<String>) -> Self {
        Self::new(Kind::State, cause)
    }

    /// See [`Kind::Config`].
    pub fn config(cause: impl Into<String>) -> Self {
        Self::new(Kind::Config, cause)
    }

    /// See [`Kind::Host`].
    pub fn host(cause: impl Into<String>) -> Self {
        Self::new(Kind::Host, cause)
    }

    /// See [`Kind::Attack`].
    pub fn attack(cause: impl Into<String>) -> Self {
        Self::new(Kind::Attack, cause)
    }

    /// The phrase that all clients know.
    pub fn not_found() -> Self {
        Self::new(Kind::NotFound, "container does not exist")
    }

    /// Says what was being done when it happened; goes in front.
    #[must_use]
    pub fn context(mut self, doing: impl Into<String>) -> Self {
        self.context.push(doing.into());
        self
    }

    /// Says what to look at, unless a deeper layer knew better.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Who has to act.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The OS error at the bottom, if there is one.
    pub fn errno(&self) -> Option<Errno> {
        self.errno
    }

    /// Remembers the OS error at the bottom.
    #[must_use]
    pub fn with_errno(mut self, errno: Errno) -> Self {
        self.errno = Some(errno);
        self
    }

    /// The hint.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The line without the hint.
    pub fn message(&self) -> String {
        let mut text = String::new();
        for doing in self.context.iter().rev() {
            text.push_str(doing);
            text.push_str(": ");
        }
        text.push_str(&self.cause);
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<SysError> for Error {
    fn from(e: SysError) -> Self {
        Self { errno: Some(e.errno), ..Self::host(e.to_string()) }
    }
}

impl From<brig_cgroup::Error> for Error {
    fn from(e: brig_cgroup::Error) -> Self {
        let error = Self { errno: e.errno(), ..Self::host(e.to_string()) };
        match cgroup_hint(&e) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// What to do about it.
fn cgroup_hint(e: &brig_cgroup::Error) -> Option<&'static str> {
    use brig_cgroup::Error as E;
    Some(match e {
        E::NoHierarchy => "mount -t cgroup2 cgroup2 /sys/fs/cgroup; brig doctor shows what else is missing",
        E::Io { errno: Errno::ACCESS | Errno::PERM | Errno::ROFS, .. } => {
            "the cgroup is not the caller's: have one delegated (a session of systemd with --systemd-cgroup, or a cgroup that belongs to the user); brig doctor shows what there is"
        }
        E::NoDevices => "mount the devices hierarchy below /sys/fs/cgroup",
        E::NotEmpty { .. } => {
            "another container, or what one left, lives there: end it, or choose another linux.cgroupsPath"
        }
        E::Frozen { .. } => {
            "somebody has paused it, or a cgroup above it: thaw that, or choose another linux.cgroupsPath"
        }
        E::RootlessLimits(_) => {
            "leave the limits out, or have cgroups delegated: a session of systemd with --systemd-cgroup, or a cgroup that belongs to the user"
        }
        E::NotJoined { .. } => {
            "the limit needs a cgroup that the caller may make: see brig doctor, delegation"
        }
        E::NoController { .. } | E::NoUnifiedController { .. } => {
            "enable the controller in cgroup.subtree_control of the cgroups above, or leave the limit out"
        }
        E::NoFile { .. } => "a newer kernel, or one that was built with it; otherwise leave the limit out",
        E::Bus { .. } => {
            "is systemd running? For a user, log in by a session of systemd and set XDG_RUNTIME_DIR; or leave --systemd-cgroup out"
        }
        E::Systemd { .. } => {
            "systemd does not let the caller do this: see its log, journalctl -u dbus -u systemd-logind"
        }
        E::Job { .. } | E::JobTimeout { .. } => "see what systemd says: systemctl status, journalctl",
        E::MemoryBusy { .. } => {
            "memory limit too low: a container takes 512 KB to start, and what its program needs"
        }
        _ => return None,
    })
}

/// Adds what was being done to whatever error comes up.
pub trait Doing<T> {
    /// Says what was being done; the text is made only when there is an error.
    ///
    /// # Errors
    ///
    /// The error of `self`, with its context.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<Error>> Doing<T> for std::result::Result<T, E> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|e| e.into().context(what()))
    }
}

/// An io::Error of the standard library as a [`SysError`].
pub(crate) fn io_error(call: &'static str, path: &std::path::Path, e: &std::io::Error) -> SysError {
    SysError::path(call, path, Errno::from_io_error(e).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_reads_from_the_outside_in_with_the_hint_last() {
        let e = Error::from(SysError::new("open_tree", "/data", Errno::NOENT))
            .context("mounting /data")
            .context("creating c1")
            .hint("the source of the mount is missing")
            .hint("a later layer knows less");
        assert_eq!(
            e.to_string(),
            "creating c1: mounting /data: open_tree /data: no such file or directory (the source of the mount is missing)"
        );
        assert_eq!(e.errno(), Some(Errno::NOENT));
    }
}
