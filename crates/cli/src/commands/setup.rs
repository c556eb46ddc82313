//! What `create` and `run` have in common.

use std::path::PathBuf;

use brig_runtime::CreateRequest;

use crate::error::Error;
use crate::flags::{Flag, Parsed};
use crate::global::Global;
use crate::paths;
use crate::value::ContainerId;

pub(super) const BUNDLE: Flag =
    Flag::path("bundle", "the bundle's directory (default: the current directory)").short("b");
pub(super) const CONSOLE_SOCKET: Flag =
    Flag::path("console-socket", "send the master end of the terminal to this AF_UNIX socket");
pub(super) const PIDFD_SOCKET: Flag =
    Flag::path("pidfd-socket", "send a pidfd of the process to this AF_UNIX socket");
pub(super) const PID_FILE: Flag = Flag::path("pid-file", "write the pid of the process to this file");
pub(super) const NO_PIVOT: Flag = Flag::switch(
    "no-pivot",
    "move the root file system over / instead of pivoting to it; for roots on a ramdisk",
);
pub(super) const NO_NEW_KEYRING: Flag =
    Flag::switch("no-new-keyring", "let the container share the caller's session keyring");
pub(super) const PRESERVE_FDS: Flag = Flag::int(
    "preserve-fds",
    "pass this many more descriptors to the process, from 3 on (after those of $LISTEN_FDS)",
)
.default("0");
pub(super) const DETACH: Flag =
    Flag::switch("detach", "return as soon as the process was executed").short("d");
pub(super) const NO_SUBREAPER: Flag = Flag::switch("no-subreaper", "do not reap orphans of the container");

/// How a container is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupArgs {
    /// `--bundle`, absolute.
    pub bundle: PathBuf,
    /// `--console-socket`, absolute; relative ones are relative to the bundle.
    pub console_socket: Option<PathBuf>,
    /// `--pidfd-socket`, as the former.
    pub pidfd_socket: Option<PathBuf>,
    /// `--pid-file`, absolute; relative ones are relative to where the command was started.
    pub pid_file: Option<PathBuf>,
    /// `--no-pivot`.
    pub no_pivot: bool,
    /// `--no-new-keyring`.
    pub no_new_keyring: bool,
    /// `--preserve-fds`.
    pub preserve_fds: u32,
}

impl SetupArgs {
    pub(super) fn new(parsed: &Parsed) -> Result<Self, Error> {
        let flags = &parsed.flags;
        let bundle = flags.path("bundle").unwrap_or_default();
        let bundle = paths::absolute(bundle.as_ref())?;
        Ok(Self {
            console_socket: flags.path("console-socket").map(|path| bundle.join(path)),
            pidfd_socket: flags.path("pidfd-socket").map(|path| bundle.join(path)),
            pid_file: absolute(parsed, "pid-file")?,
            no_pivot: flags.switch("no-pivot"),
            no_new_keyring: flags.switch("no-new-keyring"),
            preserve_fds: preserve_fds(parsed)?,
            bundle,
        })
    }
}

impl SetupArgs {
    /// What the runtime is asked for.
    pub(super) fn request(&self, id: &ContainerId, global: &Global) -> Result<CreateRequest, Error> {
        Ok(CreateRequest {
            id: id.clone(),
            store: super::store(global)?,
            bundle: Some(self.bundle.clone()),
            console_socket: self.console_socket.clone(),
            pidfd_socket: self.pidfd_socket.clone(),
            pid_file: self.pid_file.clone(),
            no_pivot: self.no_pivot,
            no_new_keyring: self.no_new_keyring,
            preserve_fds: self.preserve_fds,
            systemd_cgroup: global.systemd_cgroup,
            rootless: global.rootless()?,
            called_as: global.program.clone(),
        })
    }
}

/// A path relative to where the command was started.
pub(super) fn absolute(parsed: &Parsed, flag: &'static str) -> Result<Option<PathBuf>, Error> {
    let path = parsed.flags.path(flag);
    path.map(|path| paths::absolute(path.as_ref())).transpose()
}

pub(super) fn preserve_fds(parsed: &Parsed) -> Result<u32, Error> {
    let number = parsed.flags.int("preserve-fds").unwrap_or_default();
    u32::try_from(number)
        .map_err(|_| Error::caller(format!("--preserve-fds: {number} is not a number of descriptors")))
}
