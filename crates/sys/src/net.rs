//! The one thing that every network namespace needs.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::{Context, Result};
use crate::process::check;

/// Brings `lo` up (netdevice(7)); in a new network namespace it is down.
///
/// # Errors
///
/// The kernel has no IPv4 sockets, or this process no CAP_NET_ADMIN in the namespace.
pub fn set_loopback_up() -> Result<()> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).on("socket", "")?;
    // SAFETY: all-zero is a valid ifreq: integers, an array and a union of such.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).unwrap_or(0);
    }
    let up = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    request.ifr_ifru.ifru_flags = up;
    // SAFETY: SIOCSIFFLAGS reads an ifreq with a name and flags, which `request` is.
    let ret = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(libc::c_long::from(ret)).map(drop).on("ioctl(SIOCSIFFLAGS)", "lo")
}
