//! Trying things in a child, which takes what it made with it.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use brig_sys::process::{CloneFlags, Cloned, ExitStatus, clone_process, exit_now, reap};

/// Runs `attempt` in a child with these new namespaces, born in `cgroup` if one is given.
///
/// The child is a copy of this process that only makes system calls and ends.
pub fn in_child(
    flags: CloneFlags,
    cgroup: Option<BorrowedFd<'_>>,
    attempt: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let child = match clone_process(flags, cgroup) {
        Ok(Cloned::Parent(child)) => child,
        Ok(Cloned::Child) => exit_now(attempt().err().map_or(0, |errno| errno.raw_os_error().clamp(1, 255))),
        Err(error) => return Err(error.errno),
    };
    match reap(child.pidfd.as_fd(), true) {
        Ok(Some(ExitStatus::Exited(0))) => Ok(()),
        Ok(Some(ExitStatus::Exited(errno))) => Err(Errno::from_raw_os_error(errno)),
        Ok(Some(ExitStatus::Signaled(_)) | None) => Err(Errno::INTR),
        Err(error) => Err(error.errno),
    }
}

/// The user namespace that whoever is not root needs in front of all others.
pub fn own_user_namespace() -> CloneFlags {
    if rustix::process::geteuid().is_root() { CloneFlags::empty() } else { CloneFlags::NEWUSER }
}
