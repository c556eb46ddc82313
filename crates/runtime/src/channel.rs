//! The socket between a command and the process that it makes: small typed messages, one packet each.
//!
//! The other end may be a process inside a container, so what comes in is data from a stranger: lengths are bounded,
//! unknown tags are errors, and nothing in a message is used as a path on the host.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::Pid;

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

/// The command's end, which hears several processes: the one it has made, one that was cloned from that, and so on.
///
/// What a clone says may arrive before the word of the process that cloned it. It is kept back until then, so that whoever hears a
/// message knows the process that it is from.
#[derive(Debug)]
pub struct Hearing {
    channel: Channel,
    /// Processes that are known, the newest last.
    known: Vec<i32>,
    /// What others said.
    early: VecDeque<(i32, FromChild)>,
}

impl Hearing {
    /// Begins with the process that the command has made.
    pub fn begin(channel: Channel, first: Pid) -> Self {
        Self { channel, known: vec![first.as_raw_nonzero().get()], early: VecDeque::new() }
    }

    /// See [`Channel::tell`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn tell(&self, what: ToChild, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        self.channel.tell(what, fd)
    }

    /// See [`Channel::last_words`].
    pub fn last_words(&self, fault: InitFault) -> InitFault {
        self.channel.last_words(fault)
    }

    /// Whether a message can be had without waiting for one.
    pub fn has_next(&self) -> bool {
        self.early.iter().any(|(sender, _)| self.known.contains(sender))
    }

    /// Waits for the next message of a known process; `None` when all that could say something is gone, or when the newest process,
    /// whose pidfd this is, has ended without having named the one that goes on.
    ///
    /// # Errors
    ///
    /// A message that is none.
    pub fn next(&mut self, newest: BorrowedFd<'_>) -> Result<Option<FromChild>> {
        loop {
            let known = |(sender, _): &(i32, FromChild)| self.known.contains(sender);
            let message = match self.early.iter().position(known).and_then(|at| self.early.remove(at)) {
                Some((_, message)) => message,
                None => {
                    // Its end comes after all that it has said. One that only led to the next says so before it ends.
                    if !self.early.is_empty() && !is_readable(&[self.channel.as_fd(), newest])? {
                        return Ok(None);
                    }
                    let Some((sender, message)) = self.channel.receive_message()? else { return Ok(None) };
                    if sender.is_some_and(|sender| !self.known.contains(&sender)) {
                        self.early.extend(sender.map(|sender| (sender, message)));
                        continue;
                    }
                    message
                }
            };
            if let FromChild::Cloned(_, pidfd) = &message {
                // Of what the message says the kernel's word is taken only, see [`adopt`].
                self.known.extend(child_pid(pidfd.as_fd()).map(|pid| pid.as_raw_nonzero().get()));
            }
            return Ok(Some(message));
        }
    }
}

impl AsFd for Hearing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// Waits for any of these; says whether it is the first, perhaps among others.
fn is_readable(fds: &[BorrowedFd<'_>]) -> Result<bool> {
    loop {
        let mut polled: Vec<PollFd<'_>> =
            fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(e) => return Err(SysError::new("poll", "the container's process", e).into()),
        }
        // Asked once more: what the process said before it ended may have come after the first look.
        let (first, others) = (polled.first(), polled.get(1..).unwrap_or_default());
        let ended = others.iter().any(|fd| !fd.revents().is_empty());
        if first.is_some_and(|fd| !fd.revents().is_empty()) {
            return Ok(true);
        }
        if ended && let [first, ..] = fds {
            let mut first = [PollFd::from_borrowed_fd(*first, PollFlags::IN)];
            let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 };
            return Ok(matches!(poll(&mut first, Some(&now)), Ok(n) if n > 0));
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Channel {
    /// Both ends, close-on-exec: the command's, where the kernel says who sent a message, and the process's.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn pair() -> Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .on("socketpair", "")?;
        // Before anything is sent: what was sent before has no sender.
        set_socket_passcred(&a, true).on("setsockopt(SO_PASSCRED)", "")?;
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
        let Received { length, fd, .. } = self.receive(&mut byte)?;
        let [byte] = byte;
        let what = match byte {
            _ if length == 0 => return Ok(None),
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

    /// Says something to the command, from the made process. What cannot be said ends the talk: both sides would wait for ever.
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
        if self.send(&[IoSlice::new(&head.encode()), IoSlice::new(&text)], fd).is_err() {
            let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        }
    }

    /// Waits for the made process to say something; `None` when all that could say something is gone.
    ///
    /// # Errors
    ///
    /// A message that is none.
    pub fn next(&self) -> Result<Option<FromChild>> {
        Ok(self.receive_message()?.map(|(_, message)| message))
    }

    /// The next message, with the pid of the process that sent it where the kernel was asked to tell.
    fn receive_message(&self) -> Result<Option<(Option<i32>, FromChild)>> {
        let mut buf = [0_u8; HEAD_LEN + TEXT_MAX];
        let Received { length, fd, sender } = self.receive(&mut buf)?;
        if length == 0 {
            return Ok(None);
        }
        let message = decode(buf.get(..length).unwrap_or_default(), fd).ok_or_else(|| {
            Error::new(Kind::Internal, "a message from the container's process makes no sense")
        })?;
        Ok(Some((sender, message)))
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

    fn receive(&self, buf: &mut [u8]) -> Result<Received, SysError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let length = loop {
            match recvmsg(&self.socket, &mut [IoSliceMut::new(buf)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                // A peer that died with messages unread is told first, and once; what it said before comes after that.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(e) => return Err(SysError::new("recvmsg", "the container's process", e)),
            }
        };
        let mut received = Received { length, fd: None, sender: None };
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmRights(mut fds) => received.fd = fds.next(),
                RecvAncillaryMessage::ScmCredentials(sender) => {
                    received.sender = Some(sender.pid.as_raw_nonzero().get());
                }
                _ => {}
            }
        }
        Ok(received)
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

/// A packet.
struct Received {
    length: usize,
    fd: Option<OwnedFd>,
    sender: Option<i32>,
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
        let pid = Pid::from_child(&child);
        let adopted = adopt(pidfd_open(pid, PidfdFlags::empty()).unwrap()).unwrap();
        assert_eq!(adopted.pid, pid);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_a_clone_says_waits_for_the_word_of_who_cloned_it() {
        let (ours, theirs) = Channel::pair().unwrap();
        let own = rustix::process::getpid();
        let pidfd = || rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()).unwrap();
        let mut hearing = Hearing::begin(ours, Pid::INIT);
        theirs.report(&FromChild::RootfsReady);
        theirs.report(&FromChild::NeedIdMaps);
        let (sender, message) = hearing.channel.receive_message().unwrap().unwrap();
        assert_eq!(sender, Some(own.as_raw_nonzero().get()));
        hearing.early.push_back((own.as_raw_nonzero().get(), message));
        assert!(!hearing.has_next());
        // The word comes.
        hearing.known.push(own.as_raw_nonzero().get());
        assert!(hearing.has_next());
        assert!(matches!(hearing.next(pidfd().as_fd()).unwrap(), Some(FromChild::RootfsReady)));
        assert!(matches!(hearing.next(pidfd().as_fd()).unwrap(), Some(FromChild::NeedIdMaps)));
        drop(theirs);
        assert!(hearing.next(pidfd().as_fd()).unwrap().is_none());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test")]
    fn who_ends_without_naming_the_next_is_not_waited_for() {
        let (ours, theirs) = Channel::pair().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let mut hearing = Hearing::begin(ours, pid);
        // From a stranger to it, who keeps his end.
        theirs.report(&FromChild::RootfsReady);
        assert!(hearing.next(pidfd.as_fd()).unwrap().is_none());
        child.wait().unwrap();
        drop(theirs);
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
