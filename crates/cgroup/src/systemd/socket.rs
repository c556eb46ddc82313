//! A connection to a bus, or to systemd itself: authentication, and whole messages. No call here outlasts its deadline.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use brig_sys::errno_text;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};

use super::address::{Name, Socket};
use super::wire::{self, Message};
use crate::deadline::wait;

/// What is read at once.
const CHUNK: usize = 8192;

/// The longest answer to our authentication. The specification allows 16 KiB for a line; servers send some fifty bytes.
const AUTH_MAX: usize = 4096;

/// EXTERNAL with an identity that is left to the kernel: the server sees who we are, by whatever number it knows us.
const AUTH: &[u8] = b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";

/// Why a connection is of no use (any more).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A system call failed.
    Os(&'static str, Errno),
    /// The peer closed it.
    Closed,
    /// Nothing came in time.
    TimedOut,
    /// The peer does not let us in. In its words.
    Rejected(String),
    /// The peer does not speak the protocol.
    Garbage(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(call, errno) => write!(f, "{call}: {}", errno_text(*errno)),
            Self::Closed => f.write_str("the connection was closed"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Rejected(words) => write!(f, "authentication: the peer says {words:?}"),
            Self::Garbage(what) => write!(f, "not D-Bus: {what}"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// Received, and not used yet.
    buffer: Vec<u8>,
    serial: u32,
    /// What it is connected to, for messages.
    pub name: Name,
    /// See [`Socket::private`].
    pub private: bool,
}

impl Connection {
    /// Connects and authenticates.
    pub(super) fn open(to: &Socket, deadline: Instant) -> Result<Self, Fault> {
        let address = match &to.name {
            Name::Path(path) => SocketAddrUnix::new(path),
            Name::Abstract(name) => SocketAddrUnix::new_abstract_name(name),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| Fault::Os("socket", errno))?;
        let address = address.map_err(|errno| Fault::Os("connect", errno))?;
        let mut backoff = crate::deadline::Backoff::until(deadline);
        loop {
            match connect(&socket, &address) {
                Ok(()) => break,
                // The queue of a busy server is full. Unix sockets have no event for room in it.
                Err(Errno::AGAIN) => {
                    if !backoff.pause() {
                        return Err(Fault::TimedOut);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::Os("connect", errno)),
            }
        }
        let mut connection =
            Self { socket, buffer: Vec::new(), serial: 0, name: to.name.clone(), private: to.private };
        connection.authenticate(deadline)?;
        Ok(connection)
    }

    fn authenticate(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.send(AUTH, deadline)?;
        loop {
            while let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                match line.split(' ').next() {
                    // It asks for the identity, which it has in DATA.
                    Some("DATA") => {}
                    Some("OK") => return Ok(()),
                    Some("REJECTED" | "ERROR") => return Err(Fault::Rejected(line)),
                    _ => return Err(Fault::Garbage(format!("{line:?} as an answer to AUTH"))),
                }
            }
            if self.buffer.len() > AUTH_MAX {
                return Err(Fault::Garbage(format!("an answer to AUTH of more than {AUTH_MAX} bytes")));
            }
            self.receive(deadline)?;
        }
    }

    /// The number for the next message.
    pub(super) fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1).max(1);
        self.serial
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&self, mut bytes: &[u8], deadline: Instant) -> Result<(), Fault> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Fault::Closed),
                Err(errno) => return Err(Fault::Os("send", errno)),
            }
        }
        Ok(())
    }

    /// The next message. What was sent before the peer closed the connection is still received.
    pub(super) fn next(&mut self, deadline: Instant) -> Result<Message, Fault> {
        loop {
            if self.buffer.len() >= wire::FIXED {
                let length = wire::length(&self.buffer).map_err(Fault::Garbage)?;
                if let Some(bytes) = self.buffer.get(..length) {
                    let message = Message::decode(bytes).map_err(Fault::Garbage);
                    self.buffer.drain(..length);
                    return message;
                }
            }
            self.receive(deadline)?;
        }
    }

    /// Receives something.
    fn receive(&mut self, deadline: Instant) -> Result<(), Fault> {
        let mut chunk = [0; CHUNK];
        loop {
            // Somebody who sends without end must not keep us for ever.
            if Instant::now() >= deadline {
                return Err(Fault::TimedOut);
            }
            match recv(&self.socket, &mut chunk, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Fault::Closed),
                Ok((received, _)) => {
                    self.buffer.extend(chunk.get(..received).unwrap_or_default());
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, deadline)?,
                Err(Errno::CONNRESET) => return Err(Fault::Closed),
                Err(errno) => return Err(Fault::Os("recv", errno)),
            }
        }
    }

    fn wait(&self, events: PollFlags, deadline: Instant) -> Result<(), Fault> {
        match wait(self.socket.as_fd(), events, deadline) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fault::TimedOut),
            Err(errno) => Err(Fault::Os("poll", errno)),
        }
    }

    /// The user that listens at the other end, as this process's user namespace numbers users.
    pub(super) fn peer(&self) -> Result<u32, Fault> {
        rustix::net::sockopt::socket_peercred(&self.socket)
            .map(|credentials| credentials.uid.as_raw())
            .map_err(|errno| Fault::Os("getsockopt", errno))
    }
}
