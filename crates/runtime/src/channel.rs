//! The socket between a command and the process that it makes: small typed messages, one packet each.
//!
//! The other end may be a process inside a container, so what comes in is data from a stranger: lengths are bounded,
//! unknown tags are errors, and nothing in a message is used as a path on the host.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use brig_sys::init::abi::{self, GO, HEAD_LEN, Head};
use brig_sys::process::{Child, child_pid};
use brig_sys::{Context, SysError};

use crate::error::{Error, Kind, Result};

/// Longest text in a message.
const TEXT_MAX: usize = 4096;

/// What the made process says.
#[derive(Debug)]
pub enum FromChild {
    /// It needs its user namespace's id mappings.
    NeedIdMaps,
    /// The file systems are in place; it waits while the host side works (limits, filter, hooks).
    RootfsReady,
    /// Its network namespace is there; it waits for interfaces to be moved in.
    NeedDevices,
    /// It may not open the source of `mounts[index]` itself.
    NeedSource(usize),
    /// It was cloned once more: pid and pidfd of the process that goes on.
    Cloned(i32, OwnedFd),
    /// Its seccomp listener is this descriptor of its own.
    Listener(i32),
    /// A procfs context of the pid namespace it is in.
    ProcContext(OwnedFd),
    /// It is set up and waits for the word to go on.
    Ready,
    /// One of brig's own steps failed.
    Failed(Error),
    /// A step of the init program failed.
    InitFailed(InitFault),
    /// A line for the log.
    Log(log::Level, String),
}

/// A failed step of the init program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitFault {
    /// The step.
    pub step: abi::Step,
    /// errno, 0 if it is not about a call.
    pub errno: i32,
    /// See [`Head::value`].
    pub value: i64,
    /// What a hook printed, see `init::hooks`.
    pub text: Vec<u8>,
}

/// What the command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ToChild {
    /// It is in its cgroups.
    Attached = b'A',
    /// The id mappings are written.
    Mapped = b'M',
    /// An answer to [`FromChild::NeedSource`]; a mount descriptor is attached unless it cannot be had.
    Source = b'S',
    /// Go on.
    Go = GO,
}

mod tag {
    pub const NEED_ID_MAPS: u16 = 100;
    pub const ROOTFS_READY: u16 = 101;
    pub const NEED_SOURCE: u16 = 102;
    pub const FAILED: u16 = 103;
    pub const LOG: u16 = 104;
    pub const NEED_DEVICES: u16 = 105;
}

impl InitFault {
    /// The fault as an error.
    pub fn into_error(self, program: &str) -> Error {
        crate::explain::init_fault(&self, program)
    }
}

/// One end.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Channel {
    /// Both ends, close-on-exec.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn pair() -> Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .on("socketpair", "")?;
        Ok((Self { socket: a }, Self { socket: b }))
    }

    /// Says something to the made process. Should it be gone, the next message from it says so.
    ///
    /// # Errors
    ///
    /// Others than that.
    pub fn tell(&self, what: ToChild, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        match self.send(&[IoSlice::new(&[what as u8])], fd) {
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            other => Ok(other.on("sendmsg", "the container's process")?),
        }
    }

    /// Waits for the command to say something; `None` when it is gone.
    ///
    /// # Errors
    ///
    /// A message that is none.
    pub fn hear(&self) -> Result<Option<(ToChild, Option<OwnedFd>)>> {
        let mut byte = [0_u8; 1];
        let (n, fd) = self.receive(&mut byte)?;
        let [byte] = byte;
        let what = match byte {
            _ if n == 0 => return Ok(None),
            b'A' => ToChild::Attached,
            b'M' => ToChild::Mapped,
            b'S' => ToChild::Source,
            GO => ToChild::Go,
            other => {
                return Err(Error::new(Kind::Internal, format!("unknown message {other} from the command")));
            }
        };
        Ok(Some((what, fd)))
    }

    /// Says something to the command, from the made process. Failure is ignored: without a command there is nobody to tell.
    pub fn report(&self, what: &FromChild) {
        let plain = |tag, value| (Head { tag, value, ..Head::default() }, Vec::new(), None);
        let (head, text, fd) = match what {
            FromChild::NeedIdMaps => plain(tag::NEED_ID_MAPS, 0),
            FromChild::RootfsReady => plain(tag::ROOTFS_READY, 0),
            FromChild::NeedDevices => plain(tag::NEED_DEVICES, 0),
            FromChild::NeedSource(index) => plain(tag::NEED_SOURCE, i64::try_from(*index).unwrap_or(-1)),
            FromChild::Cloned(pid, fd) => (
                Head { tag: abi::Tag::Cloned as u16, value: i64::from(*pid), ..Head::default() },
                Vec::new(),
                Some(fd.as_fd()),
            ),
            FromChild::Failed(e) => {
                let head = Head {
                    tag: tag::FAILED,
                    errno: e.errno().map_or(0, Errno::raw_os_error),
                    value: kind_number(e.kind()),
                    ..Head::default()
                };
                (head, two_texts(&e.message(), e.hint_text().unwrap_or_default()), None)
            }
            FromChild::Log(level, line) => {
                let head = Head { tag: tag::LOG, value: *level as i64, ..Head::default() };
                (head, truncated(line, TEXT_MAX).as_bytes().to_vec(), None)
            }
            // The init program says these itself.
            FromChild::Listener(_)
            | FromChild::Ready
            | FromChild::InitFailed(_)
            | FromChild::ProcContext(_) => return,
        };
        let _ = self.send(&[IoSlice::new(&head.encode()), IoSlice::new(&text)], fd);
    }

    /// Waits for the made process to say something; `None` when all that could say something is gone.
    ///
    /// # Errors
    ///
    /// A message that is none.
    pub fn next(&self) -> Result<Option<FromChild>> {
        let mut buf = [0_u8; HEAD_LEN + TEXT_MAX];
        let (n, fd) = self.receive(&mut buf)?;
        if n == 0 {
            return Ok(None);
        }
        decode(buf.get(..n).unwrap_or_default(), fd).map(Some).ok_or_else(|| {
            Error::new(Kind::Internal, "a message from the container's process makes no sense")
        })
    }

    /// A failed execve is told twice, the second time with the beginning of the program.
    pub fn last_words(&self, fault: InitFault) -> InitFault {
        if fault.step != abi::Step::Exec {
            return fault;
        }
        match self.next() {
            Ok(Some(FromChild::InitFailed(more))) if more.step == abi::Step::Exec => more,
            _ => fault,
        }
    }

    fn send(&self, parts: &[IoSlice<'_>], fd: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let Some(fds) = &fds {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        loop {
            match sendmsg(&self.socket, parts, &mut control, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                other => return other.map(drop),
            }
        }
    }

    fn receive(&self, buf: &mut [u8]) -> Result<(usize, Option<OwnedFd>), SysError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let n = loop {
            match recvmsg(&self.socket, &mut [IoSliceMut::new(buf)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                // A peer that died with messages unread is told first, and once; what it said before comes after that.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(e) => return Err(SysError::new("recvmsg", "the container's process", e)),
            }
        };
        let fd = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Ok((n, fd))
    }
}

/// Takes on a process that was cloned on the way to the container's, given the pidfd that came with the message.
///
/// Who sent it may be under the eyes of the container's other processes by then, so nothing of it is believed: it has to be a child
/// of this command (they are cloned as siblings of the sender), and its pid is what the kernel says.
///
/// # Errors
///
/// It is somebody else's child.
pub fn adopt(pidfd: OwnedFd) -> Result<Child> {
    match child_pid(pidfd.as_fd()) {
        Some(pid) => Ok(Child { pid, pidfd }),
        None => Err(Error::attack(
            "the process that was announced as the container's is not a child of this command",
        )),
    }
}

/// Reads a message; `None` for one that makes no sense.
pub fn decode(raw: &[u8], fd: Option<OwnedFd>) -> Option<FromChild> {
    let head = Head::decode(raw)?;
    let text = raw.get(HEAD_LEN..).unwrap_or_default();
    Some(match head.tag {
        tag::NEED_ID_MAPS => FromChild::NeedIdMaps,
        tag::ROOTFS_READY => FromChild::RootfsReady,
        tag::NEED_DEVICES => FromChild::NeedDevices,
        tag::NEED_SOURCE => FromChild::NeedSource(usize::try_from(head.value).ok()?),
        tag::FAILED => {
            let (message, hint) = split_texts(text);
            let mut e = Error::new(kind_from(head.value), message);
            if head.errno > 0 && head.errno < 4096 {
                e = e.with_errno(Errno::from_raw_os_error(head.errno));
            }
            FromChild::Failed(if hint.is_empty() { e } else { e.hint(hint) })
        }
        tag::LOG => FromChild::Log(level_from(head.value), String::from_utf8_lossy(text).into_owned()),
        t if t == abi::Tag::Cloned as u16 => FromChild::Cloned(i32::try_from(head.value).ok()?, fd?),
        t if t == abi::Tag::Listener as u16 => FromChild::Listener(i32::try_from(head.value).ok()?),
        t if t == abi::Tag::Ready as u16 => FromChild::Ready,
        t if t == abi::Tag::ProcContext as u16 => FromChild::ProcContext(fd?),
        t if t == abi::Tag::Failed as u16 => FromChild::InitFailed(decode_fault(raw)?),
        _ => return None,
    })
}

/// Reads a failure message of the init program, from the channel or from the fifo.
pub fn decode_fault(raw: &[u8]) -> Option<InitFault> {
    let head = Head::decode(raw)?;
    if head.tag != abi::Tag::Failed as u16 {
        return None;
    }
    Some(InitFault {
        step: abi::Step::from_number(head.step)?,
        errno: head.errno,
        value: head.value,
        text: raw.get(HEAD_LEN..).unwrap_or_default().to_vec(),
    })
}

const KINDS: [Kind; 6] =
    [Kind::NotFound, Kind::State, Kind::Config, Kind::Host, Kind::Attack, Kind::Internal];

fn kind_number(kind: Kind) -> i64 {
    (0..).zip(KINDS).find(|(_, k)| *k == kind).map_or(0, |(n, _)| n)
}

fn kind_from(number: i64) -> Kind {
    usize::try_from(number).ok().and_then(|n| KINDS.get(n).copied()).unwrap_or(Kind::Internal)
}

fn level_from(number: i64) -> log::Level {
    log::Level::iter().find(|level| *level as i64 == number).unwrap_or(log::Level::Info)
}

fn two_texts(first: &str, second: &str) -> Vec<u8> {
    let first = truncated(first, TEXT_MAX - 512);
    let second = truncated(second, 500);
    [first.as_bytes(), b"\0", second.as_bytes()].concat()
}

fn split_texts(text: &[u8]) -> (String, String) {
    let mut parts = text.splitn(2, |b| *b == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn truncated(s: &str, most: usize) -> &str {
    s.get(..s.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_crosses_with_kind_errno_and_hint() {
        let (ours, theirs) = Channel::pair().unwrap();
        let e =
            Error::attack("x is a link").context("mounting proc").hint("look at x").with_errno(Errno::LOOP);
        theirs.report(&FromChild::Failed(e.clone()));
        let Some(FromChild::Failed(back)) = ours.next().unwrap() else { panic!("not a failure") };
        assert_eq!((back.to_string(), back.kind(), back.errno()), (e.to_string(), e.kind(), e.errno()));
    }

    #[test]
    fn texts_are_cut_and_the_end_is_seen() {
        let (ours, theirs) = Channel::pair().unwrap();
        theirs.report(&FromChild::Log(log::Level::Warn, "ä".repeat(10_000)));
        let Some(FromChild::Log(log::Level::Warn, line)) = ours.next().unwrap() else { panic!("not a line") };
        assert_eq!(line.len(), TEXT_MAX);
        drop(theirs);
        assert!(ours.next().unwrap().is_none());
        ours.tell(ToChild::Go, None).unwrap();
    }

    #[test]
    fn the_last_words_of_a_peer_that_did_not_listen_are_heard() {
        let (ours, theirs) = Channel::pair().unwrap();
        ours.tell(ToChild::Attached, None).unwrap();
        theirs.report(&FromChild::RootfsReady);
        drop(theirs);
        assert!(matches!(ours.next().unwrap(), Some(FromChild::RootfsReady)));
        assert!(ours.next().unwrap().is_none());
    }

    #[test]
    fn only_a_child_is_taken_on() {
        use rustix::process::{PidfdFlags, getpid, getppid, pidfd_open};
        for stranger in [getpid(), getppid().unwrap()] {
            let pidfd = pidfd_open(stranger, PidfdFlags::empty()).unwrap();
            assert_eq!(adopt(pidfd).unwrap_err().kind(), Kind::Attack);
        }
        let (no_pidfd, _other) = rustix::pipe::pipe().unwrap();
        assert!(adopt(no_pidfd).is_err());
        #[allow(clippy::disallowed_methods, reason = "a test")]
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let adopted = adopt(pidfd_open(pid, PidfdFlags::empty()).unwrap()).unwrap();
        assert_eq!(adopted.pid, pid);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic() {
        for raw in [&[][..], &[1], &[0xff; HEAD_LEN], &[0; 4000]] {
            assert!(decode(raw, None).is_none());
        }
        let mut fault = Head { tag: abi::Tag::Failed as u16, step: 9999, ..Head::default() };
        assert!(decode_fault(&fault.encode()).is_none());
        fault.step = abi::Step::Exec as u16;
        assert_eq!(decode_fault(&fault.encode()).unwrap().step, abi::Step::Exec);
    }
}
