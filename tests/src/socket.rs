//! Sockets that a runtime sends descriptors to.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, accept_with, bind, connect, listen, recvmsg, socket_with,
};

/// Nothing takes this long unless it hangs.
const LIMIT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// A listening Unix socket.
#[derive(Debug)]
pub struct Socket {
    listener: OwnedFd,
    /// Where it is.
    pub path: PathBuf,
}

/// What came in one message.
#[derive(Debug)]
pub struct Message {
    pub data: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    /// The connection it came over.
    pub connection: OwnedFd,
}

impl Socket {
    /// Listens on a stream socket.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        // Through the directory: addresses are short, paths need not be.
        let dir = std::fs::File::open(path.parent().unwrap()).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&dir);
        let short = Path::new("/proc/self/fd").join(fd.to_string()).join(path.file_name().unwrap());
        bind(&listener, &SocketAddrUnix::new(&short).unwrap()).unwrap();
        listen(&listener, 8).unwrap();
        Self { listener, path }
    }

    /// The next message, over a new connection.
    #[track_caller]
    pub fn receive(&self) -> Message {
        wait(&self.listener);
        let connection = accept_with(&self.listener, SocketFlags::CLOEXEC).unwrap();
        wait(&connection);
        let mut data = vec![0; 65536];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut data)];
        let got = recvmsg(&connection, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        data.truncate(got.bytes);
        Message { data, fds, connection }
    }

    /// Takes a connection over which nothing may have come, and forgets it.
    pub fn accept(&self) {
        wait(&self.listener);
        drop(accept_with(&self.listener, SocketFlags::CLOEXEC).unwrap());
    }

    /// Connects until there is room for no more connections.
    pub fn fill(&self) -> Vec<OwnedFd> {
        let address = SocketAddrUnix::new(&self.path).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connection = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        std::iter::repeat_with(connection).take_while(|socket| connect(socket, &address).is_ok()).collect()
    }

    /// Whether a connection waits.
    pub fn has_connection(&self) -> bool {
        is_readable(&self.listener, Timespec::default())
    }
}

#[track_caller]
fn wait(fd: impl AsFd) {
    assert!(is_readable(fd, LIMIT), "nothing came in time");
}

fn is_readable(fd: impl AsFd, limit: Timespec) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&limit)), Ok(n) if n > 0)
}
