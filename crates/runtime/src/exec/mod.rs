//! `exec`.

mod joining;
mod process;

use std::path::PathBuf;

use brig_sys::process::ExitStatus;

use crate::error::{Doing, Error, Result};
use crate::foreground::Foreground;
use crate::id::ContainerId;
use crate::store::Store;

pub use process::{Changes, Program};

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    /// The container.
    pub id: ContainerId,
    /// Where its record is.
    pub store: Store,
    /// What to run.
    pub program: Program,
    /// `--console-socket`.
    pub console_socket: Option<PathBuf>,
    /// `--pidfd-socket`.
    pub pidfd_socket: Option<PathBuf>,
    /// `--pid-file`, absolute.
    pub pid_file: Option<PathBuf>,
    /// `--detach`.
    pub detach: bool,
    /// `--preserve-fds`.
    pub preserve_fds: u32,
    /// `--cgroup`, as given.
    pub cgroup: Vec<String>,
    /// `--ignore-paused`.
    pub ignore_paused: bool,
    /// What brig was called as.
    pub called_as: String,
}

/// Runs a process in a container. The exit status of the process, or `None` when it goes on alone (`--detach`).
///
/// # Errors
///
/// Whatever kept the process from running. Nothing is left of it then.
pub fn exec(request: &ExecRequest) -> Result<Option<ExitStatus>> {
    let mut foreground = if request.detach {
        None
    } else {
        Some(Foreground::begin()?)
    };
    let mut joining = joining::Joining::begin(request, foreground.as_mut())?;
    let joined = joining
        .until_ready()
        .and_then(|()| joining.let_go())
        .doing(|| "unable to start container process");
    if let Err(e) = joined {
        joining.undo();
        return Err(e);
    }
    match foreground {
        None => Ok(None),
        Some(mut foreground) => {
            let (pidfd, master) = joining.into_process()?;
            foreground.wait(&pidfd, master).map(Some)
        }
    }
}

/// The words for a process that is not there.
pub(crate) fn stopped() -> Error {
    Error::state("cannot exec in a stopped container")
}
