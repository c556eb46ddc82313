//! `wait`: for the end of a process that is not a child of this one.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use brig_sys::SysError;
use brig_sys::process::{ExitStatus, pidfd_info};

use crate::container::Container;
use crate::deadline::{after, timespec_until};
use crate::error::{Error, Result};
use crate::execs;
use crate::id::ContainerId;
use crate::record::Stage;
use crate::store::Store;

/// The kernel tells a status once the process's parent has asked for it. Parents that care do so at once.
const REAPED_WITHIN: Duration = Duration::from_secs(5);

/// Waits for the end of a container's first process, or of one that `exec` started under a name. Its status, where the kernel tells
/// it (PIDFD_GET_INFO, Linux 6.15) and its parent has asked for it.
///
/// # Errors
///
/// There is no such process; it has ended before, and nobody knows how.
pub fn wait(store: &Store, id: &ContainerId, exec: Option<&str>) -> Result<Option<ExitStatus>> {
    let container = Container::load(store, id)?;
    let pidfd = match exec {
        None if container.record.stage == Stage::Creating && container.creator()?.is_some() => {
            return Err(Error::state(format!("container {id} is being created")));
        }
        None => container.record.find(container.record.init.as_ref())?,
        Some(exec) => {
            let record = execs::find(&container.dir, exec)?;
            let record = record.ok_or_else(|| Error::state(format!("exec {exec} does not exist")))?;
            if record.is_starting(&container)? {
                return Err(Error::state(format!("exec {exec} has not started yet")));
            }
            container.record.find(record.process.as_ref())?
        }
    };
    let Some(pidfd) = pidfd else { return Ok(None) };
    wait_for(&pidfd, PollFlags::IN, None)?;
    // Hung up: there is not even a zombie left.
    wait_for(&pidfd, PollFlags::HUP, Some(REAPED_WITHIN))?;
    Ok(pidfd_info(pidfd.as_fd()).and_then(|info| info.exit))
}

fn wait_for(pidfd: &OwnedFd, wanted: PollFlags, within: Option<Duration>) -> Result<()> {
    let deadline = within.map(after);
    loop {
        let left = match deadline {
            None => None,
            Some(at) => match timespec_until(at) {
                None => return Ok(()),
                left => left,
            },
        };
        // A hang-up is told unasked; asking for input too would return at once.
        let asked = if wanted == PollFlags::HUP { PollFlags::empty() } else { wanted };
        let mut fds = [PollFd::new(pidfd, asked)];
        match poll(&mut fds, left.as_ref()) {
            Ok(n) if n > 0 && fds.iter().any(|fd| fd.revents().intersects(wanted | PollFlags::HUP)) => {
                return Ok(());
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(SysError::new("poll", "a pidfd", e).into()),
        }
    }
}
