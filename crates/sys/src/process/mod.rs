//! Processes: making them, naming them by pidfd, signals, and what a process may change about itself.

mod attributes;
mod clone;
mod fds;
mod pidfd;
mod signals;

use rustix::io::Errno;

pub use attributes::{
    SchedAttr, affinity, die_with_parent, last_capability, set_affinity, set_io_priority, set_memory_policy,
    set_personality, set_rlimit_of, set_scheduler,
};
pub use clone::{
    Child, CloneFlags, Cloned, clone_process, execute, execute_fd, exit_now, namespace_type, unshare,
};
pub use fds::{borrow_inherited, cloexec_from, inherit, place_fd};
pub use pidfd::{ExitStatus, PidfdInfo, child_pid, pidfd_info, reap, signal};
pub use signals::{next_signal, reset_signals, set_signal_mask, signal_fd};

/// The errno of the libc call that has just failed.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Turns libc's -1 into an errno.
pub(crate) fn check(ret: libc::c_long) -> Result<libc::c_long, Errno> {
    if ret == -1 { Err(last_errno()) } else { Ok(ret) }
}
