//! Processes named by pidfd: signalled, waited for, asked how they ended.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::check;
use crate::error::{Context, Result};

/// What an ended child left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It called exit with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl ExitStatus {
    /// As a shell gives it: the status, or 128 + the signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Signaled(signal) => 128 + signal,
        }
    }

    /// From wait(2)'s status word.
    pub fn from_wait_status(status: i32) -> Self {
        let signal = status & 0x7f;
        if signal == 0 { Self::Exited((status >> 8) & 0xff) } else { Self::Signaled(signal) }
    }
}

/// waitid(2) on a child's pidfd (Linux 5.4): reaps it. `None` when it has not ended and `block` is false.
///
/// # Errors
///
/// ECHILD when the process is not a child of the caller.
pub fn reap(pidfd: BorrowedFd<'_>, block: bool) -> Result<Option<ExitStatus>> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = if block { WaitIdOptions::EXITED } else { WaitIdOptions::EXITED | WaitIdOptions::NOHANG };
    let status = loop {
        match waitid(WaitId::PidFd(pidfd), options) {
            Err(Errno::INTR) => {}
            other => break other.on("waitid", "a container process")?,
        }
    };
    Ok(status.map(|s| match (s.exit_status(), s.terminating_signal()) {
        (Some(status), _) => ExitStatus::Exited(status),
        (_, signal) => ExitStatus::Signaled(signal.unwrap_or(libc::SIGKILL)),
    }))
}

/// Asks who a child of this process is; `None` when the pidfd names somebody else's child, or none at all.
///
/// The pid is the kernel's word (`Pid:` in the pidfd's fdinfo, proc_pid_fdinfo(5)), as seen from the mounted `/proc`.
pub fn child_pid(pidfd: BorrowedFd<'_>) -> Option<rustix::process::Pid> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while let Err(errno) = waitid(WaitId::PidFd(pidfd), options) {
        if errno != Errno::INTR {
            return None;
        }
    }
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    // -1 for one that has ended and been reaped, 0 for one that is not in the namespace.
    if pid > 0 { Pid::from_raw(pid) } else { None }
}

/// Sends a signal by number to the process that `pidfd` names; 0 only asks whether it may.
///
/// # Errors
///
/// ESRCH when it has ended, EINVAL for a number that is no signal.
pub fn signal(pidfd: BorrowedFd<'_>, signal: i32) -> std::result::Result<(), Errno> {
    // SAFETY: integers and a null siginfo.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    check(ret).map(drop)
}

/// What PIDFD_GET_INFO (Linux 6.13, exit status 6.15) says about a process, also one that is not the caller's child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PidfdInfo {
    /// How it ended, once it was reaped.
    pub exit: Option<ExitStatus>,
}

/// struct pidfd_info, first 72 bytes (Linux 6.15).
#[repr(C)]
#[derive(Default)]
struct RawPidfdInfo {
    mask: u64,
    cgroupid: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

/// Asks the kernel how the process ended; `None` where it does not say (an older kernel, or the process is not reaped yet).
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> Option<PidfdInfo> {
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    const SIZE: libc::c_ulong = 64;
    // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
    const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (SIZE << 16) | (0xff << 8) | 11;
    const _: () = assert!(size_of::<RawPidfdInfo>() == 64);
    let mut info = RawPidfdInfo { mask: PIDFD_INFO_EXIT, ..RawPidfdInfo::default() };
    // SAFETY: the request names the size of `info`, which the kernel fills at most.
    let ret = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    if ret == -1 {
        return None;
    }
    let exit = (info.mask & PIDFD_INFO_EXIT != 0).then(|| ExitStatus::from_wait_status(info.exit_code));
    Some(PidfdInfo { exit })
}
