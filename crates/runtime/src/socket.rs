//! Sockets that callers name: the console's, the pidfd's, a seccomp agent's, systemd's for notifications.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, sendmsg, socket_with,
};

use brig_sys::{Context, SysError, errno_text};

use crate::error::{Error, Result};

/// How long a peer may take to accept or to make room. It is there already and only has to be scheduled.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects to a stream socket, by path or with a leading `@` by abstract name.
///
/// # Errors
///
/// `dial unix PATH: connect: …`, the form in which callers of container runtimes know it.
pub fn dial(path: &Path) -> Result<OwnedFd> {
    let failed = |e: Errno| {
        Error::host(format!("dial unix {}: connect: {}", path.display(), errno_text(e)))
            .with_errno(e)
            .hint("whoever calls must listen on the socket before")
    };
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).on("socket", "")?;
    // connect(2) to a full backlog waits as long as a send would, and so does a send to a full buffer.
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE)).on("setsockopt(SO_SNDTIMEO)", "")?;
    let (address, _file) = address(path).map_err(failed)?;
    connect(&socket, &address).map_err(failed)?;
    Ok(socket)
}

/// The address for a path of any length: one that does not fit is named by a descriptor of the socket file, which is kept open
/// meanwhile.
fn address(path: &Path) -> Result<(SocketAddrUnix, Option<OwnedFd>), Errno> {
    if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"@") {
        return Ok((SocketAddrUnix::new_abstract_name(name)?, None));
    }
    match SocketAddrUnix::new(path) {
        Err(Errno::NAMETOOLONG) => {
            let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let short = Path::new("/proc/self/fd").join(file.as_raw_fd().to_string());
            Ok((SocketAddrUnix::new(&short)?, Some(file)))
        }
        other => Ok((other?, None)),
    }
}

/// Sends a short message with one descriptor.
///
/// # Errors
///
/// The peer is gone or does not read.
pub fn send_fd(socket: BorrowedFd<'_>, message: &[u8], fd: BorrowedFd<'_>) -> Result<(), SysError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)
        .on("sendmsg", "a socket")?;
    // The descriptor goes with the first byte; what a small buffer left over follows.
    brig_sys::write_all(socket, message.get(sent..).unwrap_or_default()).on("write", "a socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_the_one_that_callers_know() {
        let e = dial(Path::new("/nowhere/sock")).unwrap_err();
        let text = e.to_string();
        assert!(text.starts_with("dial unix /nowhere/sock: connect: no such file or directory"), "{text}");
    }

    #[test]
    fn a_path_longer_than_an_address_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("s".repeat(120));
        let short = dir.path().join("sock");
        let _listener = std::os::unix::net::UnixListener::bind(&short).unwrap();
        std::fs::rename(short, &path).unwrap();
        dial(&path).unwrap();
        let e = dial(&deep.join("s".repeat(121))).unwrap_err();
        assert!(e.to_string().contains(": connect: no such file or directory"), "{e}");
    }
}
