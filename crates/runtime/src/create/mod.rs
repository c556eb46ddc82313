//! `create`, and the first half of `run`.

mod host_side;
mod making;
mod plan;
mod unit;

use std::path::PathBuf;

use crate::error::Result;
use crate::id::ContainerId;
use crate::pidfile;
use crate::store::Store;

pub(crate) use making::{Made, Making};
pub(crate) use plan::{from_problem, tell};

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// The new container's id.
    pub id: ContainerId,
    /// Where its record goes.
    pub store: Store,
    /// `--bundle`; `None` is the working directory.
    pub bundle: Option<PathBuf>,
    /// `--console-socket`, relative to the bundle.
    pub console_socket: Option<PathBuf>,
    /// `--pidfd-socket`, relative to the bundle.
    pub pidfd_socket: Option<PathBuf>,
    /// `--pid-file`, absolute.
    pub pid_file: Option<PathBuf>,
    /// `--no-pivot`.
    pub no_pivot: bool,
    /// `--no-new-keyring`.
    pub no_new_keyring: bool,
    /// `--preserve-fds`.
    pub preserve_fds: u32,
    /// `--systemd-cgroup`.
    pub systemd_cgroup: bool,
    /// `--rootless`; `None` is `auto`.
    pub rootless: Option<bool>,
    /// What brig was called as.
    pub called_as: String,
}

/// Makes a container whose process waits for `start`.
///
/// # Errors
///
/// What is wrong with the request, the bundle or the host. Nothing is left then.
pub fn create(request: &CreateRequest) -> Result<()> {
    let mut making = Making::begin(request, None)?;
    let made = making
        .until_ready()
        .and_then(|()| match &request.pid_file {
            Some(path) => pidfile::write(path, making.pid()?),
            None => Ok(()),
        })
        .and_then(|()| making.commit());
    match made {
        Ok(()) => Ok(()),
        Err(e) => {
            making.undo();
            Err(e)
        }
    }
}
