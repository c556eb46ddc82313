//! `cgroup.events` of cgroup v2: the kernel says when a cgroup empties or freezes.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::deadline::wait;
use crate::dir::Dir;
use crate::parse;

/// The file's name.
pub(crate) const FILE: &str = "cgroup.events";

/// What `cgroup.events` says, see cgroup-v2.rst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// There are live processes in the cgroup or below.
    pub(crate) populated: bool,
    /// All of them are frozen, by this cgroup's freezer or one above.
    pub(crate) frozen: bool,
}

impl Counts {
    fn parse(text: &str) -> Self {
        Self {
            populated: parse::flat_keyed(text, "populated") == Some(1),
            frozen: parse::flat_keyed(text, "frozen") == Some(1),
        }
    }

    /// Reads the file once.
    pub(crate) fn read(dir: &Dir) -> Result<Self, Errno> {
        Ok(Self::parse(&dir.read(FILE)?))
    }
}

/// An open `cgroup.events`.
#[derive(Debug)]
pub(crate) struct Watch {
    file: OwnedFd,
}

impl Watch {
    pub(crate) fn open(dir: &Dir) -> Result<Self, Errno> {
        Ok(Self { file: dir.open_file(FILE, OFlags::RDONLY)? })
    }

    /// Waits until `reached` holds; `false` when the deadline comes first. A cgroup that has been removed is empty
    /// and thawed.
    pub(crate) fn until(&self, reached: impl Fn(Counts) -> bool, deadline: Instant) -> Result<bool, Errno> {
        loop {
            // Reading arms the notification, so nothing is missed between here and poll.
            let mut buffer = [0; 256];
            let text = match rustix::io::pread(&self.file, &mut buffer, 0) {
                Ok(length) => String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned(),
                Err(Errno::NODEV) => String::new(),
                Err(errno) => return Err(errno),
            };
            if reached(Counts::parse(&text)) {
                return Ok(true);
            }
            if text.is_empty() {
                return Ok(false);
            }
            // kernfs answers with POLLERR and POLLPRI when the file has changed since it was read.
            if !wait(self.file.as_fd(), PollFlags::PRI, deadline)? {
                return Ok(false);
            }
        }
    }
}
