//! `exec`.

mod joining;
mod process;

use std::path::PathBuf;
use std::time::Duration;

use brig_sys::process::ExitStatus;

use crate::deadline::after;
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
    /// `--exec-id`.
    pub exec_id: Option<String>,
    /// `--exec-cgroup`.
    pub exec_cgroup: bool,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// What brig was called as.
    pub called_as: String,
}

/// What became of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// It goes on alone (`--detach`).
    Detached,
    /// It ended.
    Ended(ExitStatus),
    /// Its time was over (`--timeout`), and it was killed with all that it had started.
    TimedOut,
}

/// Runs a process in a container.
///
/// # Errors
///
/// Whatever kept the process from running. Nothing is left of it then.
pub fn exec(request: &ExecRequest) -> Result<ExecEnd> {
    let mut foreground = if request.detach { None } else { Some(Foreground::begin()?) };
    if request.timeout.is_some() && request.detach {
        return Err(Error::config("--timeout needs a command that stays in the foreground")
            .hint("leave --detach out"));
    }
    let deadline = request.timeout.map(after);
    let mut joining = joining::Joining::begin(request, foreground.as_mut())?;
    let joined = joining.until_ready(foreground.as_mut(), deadline).and_then(|early| match early {
        None => joining.let_go(foreground.as_mut()).map(|()| None),
        early => Ok(early),
    });
    match joined.doing(|| "unable to start container process") {
        Ok(None) => {}
        Ok(Some(end)) => {
            joining.undo();
            return Ok(end);
        }
        Err(e) => {
            joining.undo();
            return Err(e);
        }
    }
    let Some(mut foreground) = foreground else { return Ok(ExecEnd::Detached) };
    let running = joining.into_running()?;
    let ended = foreground.wait(running.pidfd(), deadline)?;
    if ended.is_none() {
        running.kill_tree()?;
    }
    running.forget();
    Ok(ended.map_or(ExecEnd::TimedOut, ExecEnd::Ended))
}

/// The words for a process that is not there.
pub(crate) fn stopped() -> Error {
    Error::state("cannot exec in a stopped container")
}
