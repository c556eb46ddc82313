//! Who a recorded process is: a pid alone is not enough, since the kernel gives it to somebody else one day.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use brig_sys::{Context, SysError};

use crate::error::Result;

/// `PIDFS_MAGIC` of linux/magic.h: since Linux 6.9 a pidfd is an inode of its own, whose number is never used twice in one boot.
const PIDFS_MAGIC: u64 = 0x5049_4446;

/// A process, in a form that can be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ident {
    /// Pid in the pid namespace of the runtime.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`); 0 where `inode` says more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u64,
    /// Inode of the pidfd; 0 on a kernel without pidfs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inode: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Ident {
    /// Identifies the process that a pidfd names.
    ///
    /// # Errors
    ///
    /// Without pidfs, when `/proc/PID/stat` cannot be read: the process is gone and reaped.
    pub fn of(pid: Pid, pidfd: BorrowedFd<'_>) -> Result<Self> {
        let pid = pid.as_raw_nonzero().get();
        let inode = pidfs_inode(pidfd)?;
        let start = if inode == 0 { start_time(pid)? } else { 0 };
        Ok(Self { pid, start, inode })
    }

    /// Identifies this process.
    ///
    /// # Errors
    ///
    /// When a pidfd cannot be opened.
    pub fn own() -> Result<Self> {
        let pid = rustix::process::getpid();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).on("pidfd_open", "brig itself")?;
        Self::of(pid, pidfd.as_fd())
    }

    /// Opens a pidfd, if the process is still there and still the same. A zombie is there.
    ///
    /// # Errors
    ///
    /// EMFILE, ENOMEM and their like.
    pub fn open(&self) -> Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(e) => return Err(SysError::new("pidfd_open", self.pid.to_string(), e).into()),
        };
        let inode = pidfs_inode(pidfd.as_fd())?;
        let same = if self.inode != 0 && inode != 0 {
            self.inode == inode
        } else {
            // A record from before a change of kernel, or a kernel without pidfs.
            matches!(start_time(self.pid), Ok(start) if start == self.start)
        };
        Ok(same.then_some(pidfd))
    }

    /// Whether the process is there and has not ended.
    ///
    /// # Errors
    ///
    /// As [`Ident::open`].
    pub fn is_alive(&self) -> Result<bool> {
        Ok(match self.open()? {
            Some(pidfd) => !has_ended(pidfd.as_fd()),
            None => false,
        })
    }
}

/// Whether the process that the pidfd names has ended (a zombie has).
pub fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(n) if n > 0)
}

fn pidfs_inode(pidfd: BorrowedFd<'_>) -> Result<u64> {
    let fs = rustix::fs::fstatfs(pidfd).on("fstatfs", "a pidfd")?;
    if u64::try_from(fs.f_type).ok() != Some(PIDFS_MAGIC) {
        return Ok(0);
    }
    Ok(rustix::fs::fstat(pidfd).on("fstat", "a pidfd")?.st_ino)
}

fn start_time(pid: i32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read(&path).map_err(|e| crate::error::io_error("read", path.as_ref(), &e))?;
    Ok(parse_start_time(&text).ok_or(Errno::INVAL).on("read", path)?)
}

/// Field 22 of `/proc/PID/stat`, see proc_pid_stat(5). The name in field 2 may hold blanks and parentheses.
pub fn parse_start_time(stat: &[u8]) -> Option<u64> {
    let after_name = stat.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let stat = b"12 (a) b (c)) S 1 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        assert_eq!(parse_start_time(stat), Some(98765));
        assert_eq!(parse_start_time(b""), None);
        assert_eq!(parse_start_time(b"1 (x) S 1"), None);
    }

    #[test]
    fn a_process_is_recognised_and_a_stranger_with_its_pid_is_not() {
        let me = Ident::own().unwrap();
        assert!(me.is_alive().unwrap());
        let stranger = Ident { start: me.start + 1, inode: me.inode + 1, ..me };
        assert!(stranger.open().unwrap().is_none());
        let nobody = Ident { pid: 0, ..me };
        assert!(nobody.open().unwrap().is_none());
    }
}
