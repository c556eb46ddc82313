//! Descriptors on their way through execve(2).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use super::check;
use crate::error::{Context, Result};

/// Marks every descriptor from `first` on close-on-exec (close_range(2), CLOSE_RANGE_CLOEXEC, Linux 5.11; before that
/// kernel they are listed in `self/fd` of `proc`, or of `/proc` if that is `None`).
///
/// A procfs of one's own is for those who have left it: in the container's, a process that is on its way in is not to be found.
///
/// # Errors
///
/// When the list has to be read and cannot be.
pub fn cloexec_from(first: RawFd, proc: Option<BorrowedFd<'_>>) -> Result<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: integers only; the descriptors stay open in this process.
    let ret =
        unsafe { libc::syscall(libc::SYS_close_range, first.unsigned_abs(), u32::MAX, CLOSE_RANGE_CLOEXEC) };
    if ret == 0 {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = match proc {
        Some(proc) => rustix::fs::openat(proc, "self/fd", flags, Mode::empty()),
        None => rustix::fs::open("/proc/self/fd", flags, Mode::empty()),
    };
    let list = list.on("open", "/proc/self/fd")?;
    for entry in Dir::new(list).on("open", "/proc/self/fd")? {
        // Half a list would leave the rest open.
        let entry = entry.on("getdents", "/proc/self/fd")?;
        if let Some(fd) = entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok())
            && fd >= first
        {
            // SAFETY: a flag of a descriptor that is open.
            let set = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
            check(libc::c_long::from(set)).on("fcntl(F_SETFD)", fd.to_string())?;
        }
    }
    Ok(())
}

/// Clears close-on-exec.
///
/// # Errors
///
/// EBADF when the descriptor is not open.
pub fn inherit(fd: RawFd) -> std::result::Result<(), Errno> {
    // SAFETY: a flag of a descriptor; EBADF if it is not open.
    check(libc::c_long::from(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })).map(drop)
}

/// Takes over a descriptor that the caller of this program opened for it (stdio, `--preserve-fds`, `LISTEN_FDS`).
///
/// # Errors
///
/// EBADF when it is not open.
pub fn borrow_inherited(fd: RawFd) -> std::result::Result<BorrowedFd<'static>, Errno> {
    // SAFETY: asks for a flag only.
    check(libc::c_long::from(unsafe { libc::fcntl(fd, libc::F_GETFD) }))?;
    // SAFETY: it is open, and brig never closes a descriptor that it did not open itself.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Duplicates onto a fixed descriptor (dup2 semantic, not close-on-exec), as stdio needs it.
///
/// # Errors
///
/// EBADF.
pub fn place_fd(from: impl AsFd, to: RawFd) -> Result<()> {
    let from = from.as_fd().as_raw_fd();
    if from == to {
        return inherit(to).on("fcntl(F_SETFD)", to.to_string());
    }
    // SAFETY: integers only; `to` is 0, 1 or 2, or a number that the caller has kept free.
    let ret = unsafe { libc::dup2(from, to) };
    check(libc::c_long::from(ret)).map(drop).on("dup2", to.to_string())
}
