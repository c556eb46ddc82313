//! The four requests of rtnetlink(7) that moving an interface takes, over a socket of the network namespace that they are about.
//!
//! Addresses and routes are copied from one namespace to another, so what the kernel says of one is handed back to it with
//! a few attributes changed; nothing here has to know them all.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use brig_sys::{Context, SysError};

type Result<T> = std::result::Result<T, SysError>;

/// Types of messages, linux/rtnetlink.h.
pub mod kind {
    pub const NEWLINK: u16 = 16;
    pub const GETLINK: u16 = 18;
    pub const NEWADDR: u16 = 20;
    pub const GETADDR: u16 = 22;
    pub const NEWROUTE: u16 = 24;
    pub const GETROUTE: u16 = 26;
}

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_DUMP_INTR: u16 = 0x10;

const HEADER: usize = 16;

/// A message: a fixed part, whose layout depends on the type, and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// See [`kind`].
    pub kind: u16,
    /// `ifinfomsg`, `ifaddrmsg` or `rtmsg`.
    pub fixed: Vec<u8>,
    /// Type and value of each.
    pub attributes: Vec<(u16, Vec<u8>)>,
}

impl Message {
    /// A message about a link, which the index or, if that is 0, a name attribute chooses.
    pub fn link(kind: u16, index: i32, flags: u32, change: u32) -> Self {
        let mut fixed = vec![0; 4];
        fixed.extend_from_slice(&index.to_ne_bytes());
        fixed.extend_from_slice(&flags.to_ne_bytes());
        fixed.extend_from_slice(&change.to_ne_bytes());
        Self { kind, fixed, attributes: Vec::new() }
    }

    /// A request for all objects of a kind; `size` is that of the fixed part.
    pub fn dump(kind: u16, size: usize) -> Self {
        Self { kind, fixed: vec![0; size], attributes: Vec::new() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: u16, value: &[u8]) -> Self {
        self.attributes.push((attribute, value.to_vec()));
        self
    }

    /// The value of an attribute.
    pub fn get(&self, attribute: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(kind, _)| *kind == attribute).map(|(_, value)| value.as_slice())
    }

    /// The value of an attribute that is a number.
    pub fn number(&self, attribute: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(self.get(attribute)?.try_into().ok()?))
    }

    /// A byte of the fixed part.
    pub fn byte(&self, at: usize) -> u8 {
        self.fixed.get(at).copied().unwrap_or(0)
    }

    /// The four bytes of the fixed part from `at` on.
    pub fn word(&self, at: usize) -> u32 {
        let bytes = self.fixed.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    /// Changes the four bytes of the fixed part from `at` on.
    pub fn set_word(&mut self, at: usize, value: u32) {
        if let Some(bytes) = self.fixed.get_mut(at..at + 4) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
    }

    fn encode(&self, flags: u16, sequence: u32) -> Vec<u8> {
        let mut body = self.fixed.clone();
        for (attribute, value) in &self.attributes {
            body.resize(body.len().next_multiple_of(4), 0);
            let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
            body.extend_from_slice(&length.to_ne_bytes());
            body.extend_from_slice(&attribute.to_ne_bytes());
            body.extend_from_slice(value);
        }
        body.resize(body.len().next_multiple_of(4), 0);
        let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend_from_slice(&length.to_ne_bytes());
        message.extend_from_slice(&self.kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&sequence.to_ne_bytes());
        message.extend_from_slice(&[0; 4]);
        message.extend(body);
        message
    }
}

/// Bytes of the fixed part of a message.
fn fixed_size(kind: u16) -> usize {
    match kind {
        kind::NEWLINK => 16,
        kind::NEWADDR => 8,
        _ => 12,
    }
}

/// One message out of what was received.
struct Raw<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Takes the first message off; `None` at the end, or when what follows is none.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<Raw<'a>> {
    let header: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
    let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
    let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
    let body = bytes.get(HEADER..length)?;
    *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some(Raw {
        kind: u16::from_ne_bytes([k0, k1]),
        flags: u16::from_ne_bytes([f0, f1]),
        sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
        body,
    })
}

fn decode(raw: &Raw<'_>) -> Option<Message> {
    let (fixed, mut rest) = raw.body.split_at_checked(fixed_size(raw.kind))?;
    let mut attributes = Vec::new();
    while let Some((&[l0, l1, k0, k1], _)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        // The upper bits say how the value is made up.
        attributes.push((u16::from_ne_bytes([k0, k1]) & 0x3fff, value.to_vec()));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Message { kind: raw.kind, fixed: fixed.to_vec(), attributes })
}

/// The errno of an NLMSG_ERROR; `None` for an acknowledgement.
fn errno(body: &[u8]) -> Option<Errno> {
    let code = body.first_chunk::<4>().map_or(-Errno::PROTO.raw_os_error(), |code| i32::from_ne_bytes(*code));
    (code != 0).then(|| Errno::from_raw_os_error(code.saturating_neg()))
}

/// A socket for requests about one network namespace: the one that this process was in when it was opened.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// The kernel has no rtnetlink.
    pub fn open() -> Result<Self> {
        // Protocol 0 is NETLINK_ROUTE.
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .on("socket", "netlink")?;
        Ok(Self { fd })
    }

    /// Asks for a change.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn change(&self, message: &Message) -> std::result::Result<(), Errno> {
        let answers = self.request(message, NLM_F_ACK)?;
        drop(answers);
        Ok(())
    }

    /// Asks for a new object, or for the replacement of one of the same name.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn create(&self, message: &Message) -> std::result::Result<(), Errno> {
        self.request(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Asks for one object.
    ///
    /// # Errors
    ///
    /// The kernel's answer; ENODATA when there is none.
    pub fn get(&self, message: &Message) -> std::result::Result<Message, Errno> {
        self.request(message, NLM_F_ACK)?.into_iter().next().ok_or(Errno::NODATA)
    }

    /// Asks for all objects.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn all(&self, message: &Message) -> std::result::Result<Vec<Message>, Errno> {
        // While the list changes, the kernel says so, and it has to be read again.
        for _ in 0..10 {
            match self.request(message, NLM_F_DUMP) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
        Err(Errno::INTR)
    }

    fn request(&self, message: &Message, flags: u16) -> std::result::Result<Vec<Message>, Errno> {
        // Each request is answered before the next is made; the descriptor's number tells sockets apart in a trace.
        let sequence = self.fd.as_raw_fd().unsigned_abs();
        send(&self.fd, &message.encode(flags | NLM_F_REQUEST, sequence), SendFlags::empty())?;
        let mut found = Vec::new();
        let mut interrupted = false;
        let mut buffer = vec![0_u8; 64 << 10];
        loop {
            let (n, _) = recv(&self.fd, buffer.as_mut_slice(), RecvFlags::empty())?;
            let mut bytes = buffer.get(..n).unwrap_or_default();
            if bytes.is_empty() {
                return Err(Errno::PROTO);
            }
            while let Some(raw) = take(&mut bytes) {
                if raw.sequence != sequence {
                    continue;
                }
                interrupted |= raw.flags & NLM_F_DUMP_INTR != 0;
                match raw.kind {
                    NLMSG_ERROR => return errno(raw.body).map_or(Ok(found), Err),
                    NLMSG_DONE if interrupted => return Err(Errno::INTR),
                    NLMSG_DONE => return Ok(found),
                    _ => found.extend(decode(&raw)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_back() {
        let sent = Message::link(kind::NEWLINK, 7, 1, 1).with(3, b"eth0\0").with(28, &5_u32.to_ne_bytes());
        let bytes = sent.encode(NLM_F_ACK, 9);
        assert_eq!(bytes.len() % 4, 0);
        let mut rest = bytes.as_slice();
        let raw = take(&mut rest).unwrap();
        assert_eq!((raw.kind, raw.flags, raw.sequence, rest.len()), (kind::NEWLINK, NLM_F_ACK, 9, 0));
        let read = decode(&raw).unwrap();
        assert_eq!(read, sent);
        assert_eq!((read.word(4), read.number(28), read.get(3)), (7, Some(5), Some(b"eth0\0".as_slice())));
    }

    #[test]
    fn nonsense_ends_the_reading() {
        for bytes in [&[][..], &[1; 10], &[0xff; 40]] {
            assert!(take(&mut &*bytes).is_none());
        }
        let body = [0_u8; 16].into_iter().chain([200, 0, 3, 0]).collect::<Vec<_>>();
        assert!(decode(&Raw { kind: kind::NEWLINK, flags: 0, sequence: 0, body: &body }).is_none());
    }

    #[test]
    fn errors_are_told_from_acknowledgements() {
        assert_eq!(errno(&0_i32.to_ne_bytes()), None);
        assert_eq!(errno(&(-19_i32).to_ne_bytes()), Some(Errno::NODEV));
        assert_eq!(errno(&[]), Some(Errno::PROTO));
    }

    #[test]
    fn the_loopback_interface_is_there() {
        let socket = Socket::open().unwrap();
        let lo = socket.get(&Message::link(kind::GETLINK, 0, 0, 0).with(3, b"lo\0")).unwrap();
        assert_eq!(lo.word(4), 1);
        assert_eq!(
            socket.get(&Message::link(kind::GETLINK, 0, 0, 0).with(3, b"no-such-link\0")),
            Err(Errno::NODEV)
        );
        let all = socket.all(&Message::dump(kind::GETLINK, 16)).unwrap();
        assert!(all.iter().any(|link| link.get(3) == Some(b"lo\0")));
    }
}
