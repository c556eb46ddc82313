//! Signals to processes that are found by number: to one of a container's, or to one and all that descend from it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use brig_cgroup::Cgroup;
use brig_sys::SysError;
use brig_sys::process::signal;

use crate::error::{Error, Result};

/// SIGKILL.
pub const SIGKILL: i32 = 9;

/// Opens a process of a cgroup: listed before and after its pidfd is opened, so that it is the one that was meant.
///
/// # Errors
///
/// It is not in the cgroup.
pub fn member(cgroup: &Cgroup, pid: i32) -> Result<OwnedFd> {
    let stranger = || Error::state(format!("process {pid} is not in the container: no such process"));
    let listed = || -> Result<bool> { Ok(cgroup.pids(true)?.contains(&pid)) };
    if !listed()? {
        return Err(stranger());
    }
    let pidfd =
        Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).ok_or_else(stranger)?;
    if listed()? { Ok(pidfd) } else { Err(stranger()) }
}

/// Signals all processes of a cgroup and below it.
///
/// # Errors
///
/// The cgroup cannot be read; the signal is none.
pub fn signal_cgroup(cgroup: &Cgroup, number: i32) -> Result<()> {
    for pid in cgroup.pids(true)? {
        if let Ok(pidfd) = member(cgroup, pid) {
            send(pidfd.as_fd(), number)?;
        }
    }
    Ok(())
}

/// Signals a process and all that descend from it. With SIGKILL it is repeated until nobody new turns up; a process whose parent
/// has ended is not found this way, which is what cgroups are for.
///
/// # Errors
///
/// The signal is none.
pub fn kill(pid: i32, pidfd: BorrowedFd<'_>, number: i32) -> Result<()> {
    let mut struck: BTreeMap<i32, OwnedFd> = BTreeMap::new();
    loop {
        let mut found = Vec::new();
        descendants(pid, &mut found);
        found.retain(|(pid, _)| !struck.contains_key(pid));
        if found.is_empty() {
            break;
        }
        for (pid, pidfd) in found {
            send(pidfd.as_fd(), number)?;
            struck.insert(pid, pidfd);
        }
        if number != SIGKILL {
            break;
        }
    }
    send(pidfd, number)
}

/// A child's number is its own for as long as its parent, whose list it is in, has not been waited for.
fn descendants(pid: i32, found: &mut Vec<(i32, OwnedFd)>) {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for task in tasks.flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_ascii_whitespace().filter_map(|c| c.parse::<i32>().ok()) {
            let pidfd = Pid::from_raw(child).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            if let Some(pidfd) = pidfd {
                found.push((child, pidfd));
                descendants(child, found);
            }
        }
    }
}

fn send(pidfd: BorrowedFd<'_>, number: i32) -> Result<()> {
    match signal(pidfd, number) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(e) => Err(SysError::new("pidfd_send_signal", number.to_string(), e).into()),
    }
}
