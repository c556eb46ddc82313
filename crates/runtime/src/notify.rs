//! sd_notify(3) through the wall: a service manager that waits for `READY=1` of its service gets it from the container.
//!
//! The container cannot reach the manager's socket, so it gets one of its own, bind-mounted from the record's directory.
//! `create` makes the directory, `start` and `run` the socket; what comes out of it is passed on.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, bind, connect, recv, sendmsg, socket_with,
};
use rustix::pipe::{PipeFlags, pipe_with};

use brig_plan::{
    MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, Mount, MountAttrs, MountKind,
};
use brig_sys::{Context, SysError};

use crate::deadline::after;
use crate::delete::wait_ended;
use crate::error::{Doing, Result};
use crate::store::{ContainerDir, Store};

/// Directory beside the record.
pub const DIRECTORY: &str = "notify";
const SOCKET: &str = "notify.sock";
/// Where the container sees the directory.
const INSIDE: &str = "/run/notify";
/// How long the manager may take for its barrier.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(30);

/// The manager's socket, when there is one that exists.
pub fn manager() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())?);
    let is_abstract = path.as_os_str().as_bytes().starts_with(b"@");
    (is_abstract || path.exists()).then_some(path)
}

/// What the container gets: a mount of the directory, and the variable that names the socket in it.
pub fn provisions(store: &Store, id: &crate::id::ContainerId, index: usize) -> (Mount, String) {
    let mount = Mount {
        index,
        target: PathBuf::from(INSIDE),
        kind: MountKind::Bind { source: store.root().join(id.as_str()).join(DIRECTORY), recursive: false },
        exact: true,
        attrs: MountAttrs {
            set: MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV,
            clear: 0,
        },
        recursive_attrs: MountAttrs::default(),
        propagation: Vec::new(),
        idmap: None,
    };
    (mount, format!("NOTIFY_SOCKET={INSIDE}/{SOCKET}"))
}

/// Makes the directory; the record is there already, and its removal takes this along.
///
/// # Errors
///
/// Those of mkdirat(2).
pub fn make_directory(dir: &ContainerDir) -> Result<()> {
    match rustix::fs::mkdirat(dir, DIRECTORY, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(e) => Err(SysError::path("mkdirat", dir.file(DIRECTORY), e).into()),
    }
}

/// The container's socket, bound.
#[derive(Debug)]
pub struct Proxy {
    socket: OwnedFd,
    manager: PathBuf,
}

impl Proxy {
    /// Binds the socket, when a manager waits and the container was made for it.
    ///
    /// # Errors
    ///
    /// Those of bind(2).
    pub fn bind(dir: &ContainerDir) -> Result<Option<Self>> {
        let Some(manager) = manager() else { return Ok(None) };
        let directory = dir.file(DIRECTORY);
        if !directory.exists() {
            return Ok(None);
        }
        let path = directory.join(SOCKET);
        // Left by a start that was killed.
        let _ = rustix::fs::unlink(&path);
        let socket = datagram_socket()?;
        let address = SocketAddrUnix::new(&path).on_path("bind", &path)?;
        bind(&socket, &address).on_path("bind", &path)?;
        rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(0o777), rustix::fs::AtFlags::empty())
            .on_path("chmod", &path)?;
        Ok(Some(Self { socket, manager }))
    }

    /// Waits until the container says that it is ready, or has ended, and tells the manager. `main_pid` is the process that
    /// the manager is to watch.
    ///
    /// # Errors
    ///
    /// The manager does not take the message.
    pub fn pass_on(&self, pidfd: &OwnedFd, main_pid: i32) -> Result<()> {
        let mut datagram = [0_u8; 4096];
        loop {
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(pidfd, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(e) => return Err(SysError::new("poll", "the container's notifications", e).into()),
            }
            let [said, ended] = fds.map(|fd| !fd.revents().is_empty());
            if said {
                let Ok((n, _)) = recv(&self.socket, &mut datagram, rustix::net::RecvFlags::DONTWAIT) else {
                    continue;
                };
                if let Some(line) = ready_line(datagram.get(..n).unwrap_or_default()) {
                    return self
                        .tell(line, main_pid)
                        .doing(|| format!("notifying {}", self.manager.display()));
                }
            } else if ended {
                return Ok(());
            }
        }
    }

    fn tell(&self, ready: &[u8], main_pid: i32) -> Result<()> {
        let socket = datagram_socket()?;
        let name = self.manager.as_os_str().as_bytes();
        let address = match name.strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name),
            None => SocketAddrUnix::new(&self.manager),
        }
        .on_path("connect", &self.manager)?;
        connect(&socket, &address).on_path("connect", &self.manager)?;
        let mut line = ready.to_vec();
        line.push(b'\n');
        rustix::io::write(&socket, &line).on("write", "READY")?;
        rustix::io::write(&socket, format!("MAINPID={main_pid}\n").as_bytes()).on("write", "MAINPID")?;
        barrier(&socket)
    }
}

/// Waits until the manager has read all before it: it closes the pipe that comes with the word.
fn barrier(socket: &OwnedFd) -> Result<()> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).on("pipe2", "")?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [write.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(b"BARRIER=1")], &mut control, SendFlags::NOSIGNAL)
        .on("sendmsg", "BARRIER")?;
    drop(write);
    // A pipe without writers is readable as an ended process is.
    if !wait_ended(&read, after(BARRIER_TIMEOUT))? {
        log::warn!("Timeout after waiting 30s for barrier. Ignored.");
    }
    Ok(())
}

fn datagram_socket() -> Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).on("socket", "")?)
}

/// The line that says so, wherever in the datagram it stands.
fn ready_line(datagram: &[u8]) -> Option<&[u8]> {
    datagram.split(|b| *b == b'\n').find(|line| line.starts_with(b"READY="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_found_in_any_line() {
        assert_eq!(ready_line(b"READY=1"), Some(&b"READY=1"[..]));
        assert_eq!(ready_line(b"STATUS=up\nREADY=1\nX=y"), Some(&b"READY=1"[..]));
        assert_eq!(ready_line(b"STATUS=READY=1"), None);
    }
}
