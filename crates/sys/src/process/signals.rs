//! Dispositions, masks and signalfd.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;
use crate::error::{Context, Result};

/// Gives every signal its default disposition and unblocks all: what a program is started with must not depend on the caller.
pub fn reset_signals() {
    // SAFETY: all-zero is a sigaction with SIG_DFL and no flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    for number in 1..=64 {
        // Fails for KILL, STOP and the two that the C library keeps for itself: those cannot be ignored or blocked either.
        // SAFETY: `default` is a live sigaction; the old one is not asked for.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, number, &raw const default, std::ptr::null::<()>(), 8)
        };
    }
    set_signal_mask(0);
}

/// Blocks exactly the signals of this mask (bit N-1 is signal N); the mask before.
pub fn set_signal_mask(mask: u64) -> u64 {
    let mut old = 0_u64;
    // SAFETY: two live words of eight bytes, the size of the kernel's sigset_t. The raw call also reaches the signals that
    // the C library reserves.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut old, 8) };
    old
}

/// A descriptor from which the signals of `mask` are read (signalfd4(2)); they must be blocked.
///
/// # Errors
///
/// Those of signalfd(2).
pub fn signal_fd(mask: u64) -> Result<OwnedFd> {
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: -1 makes a new descriptor; `mask` is a live word of eight bytes.
    let ret = unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8, flags) };
    let fd = check(ret).on("signalfd", "")?;
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)) })
}

/// The number of the next signal in a [`signal_fd`]; `None` when there is none.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<i32> {
    // struct signalfd_siginfo: 128 bytes, ssi_signo first.
    let mut info = [0_u8; 128];
    match rustix::io::read(fd, &mut info) {
        Ok(128) => {
            let [a, b, c, d, ..] = info;
            i32::try_from(u32::from_ne_bytes([a, b, c, d])).ok()
        }
        _ => None,
    }
}
