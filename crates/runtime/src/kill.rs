//! `kill`.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;

use brig_sys::errno_text;
use brig_sys::process::signal;

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::id::ContainerId;
use crate::store::Store;

const SIGKILL: i32 = 9;

/// Sends a signal to the container's first process; SIGKILL goes to all of a container that has no pid namespace of its own.
///
/// `all` is an old flag of callers: with it, a stopped container is no error.
///
/// # Errors
///
/// The phrases by which callers learn that there is nothing to signal any more.
pub fn kill(store: &Store, id: &ContainerId, number: i32, all: bool) -> Result<()> {
    let container = Container::load(store, id)?;
    let own_pid_namespace = container.record.own_pid_namespace;
    let init = container.init()?;
    if number == SIGKILL && !own_pid_namespace {
        return kill_all(&container, init.is_some());
    }
    let Some(init) = init else {
        return if all {
            Ok(())
        } else {
            Err(Error::state("container not running"))
        };
    };
    match signal(init.as_fd(), number) {
        Ok(()) => {}
        Err(Errno::SRCH) => {
            return Err(Error::state(
                "unable to signal init: os: process already finished",
            ));
        }
        Err(e) => return Err(Error::host(format!("unable to signal init: {}", errno_text(e))).with_errno(e)),
    }
    if number == SIGKILL {
        // Frozen, it would die when somebody resumes it only.
        container.cgroup()?.thaw().doing(|| "thawing the cgroup")?;
    }
    Ok(())
}

fn kill_all(container: &Container, has_init: bool) -> Result<()> {
    let cgroup = container.cgroup()?;
    if !has_init && !cgroup.exists()? {
        return Err(Error::state(
            "unable to kill all processes: container not running",
        ));
    }
    if let Some(init) = container.init()? {
        let _ = signal(init.as_fd(), SIGKILL);
    }
    cgroup
        .kill_all(after(Duration::from_secs(10)))
        .doing(|| "killing all processes")?;
    Ok(())
}
