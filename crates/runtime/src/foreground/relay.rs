//! Copies between the container's terminal and the command's standard input and output.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use brig_sys::Context;
use brig_sys::process::borrow_inherited;

use super::terminal::HostTerminal;
use crate::error::Result;

const CHUNK: usize = 32 * 1024;

/// Bytes that are read and not written yet.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    written: usize,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Reads when there is room; false at the end.
    fn read(&mut self, from: BorrowedFd<'_>) -> bool {
        if !self.is_empty() {
            return true;
        }
        self.bytes.resize(CHUNK, 0);
        self.written = 0;
        match rustix::io::read(from, self.bytes.as_mut_slice()) {
            Ok(n) => {
                self.bytes.truncate(n);
                n > 0
            }
            Err(Errno::INTR | Errno::AGAIN) => {
                self.bytes.clear();
                true
            }
            // A terminal's master answers EIO once nobody has the other side open.
            Err(_) => {
                self.bytes.clear();
                false
            }
        }
    }

    /// Writes what it can; false when nobody takes it any more.
    fn write(&mut self, to: BorrowedFd<'_>) -> bool {
        while !self.is_empty() {
            match rustix::io::write(to, self.bytes.get(self.written..).unwrap_or_default()) {
                Ok(n) => self.written += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// The two directions.
#[derive(Debug)]
pub(super) struct Relay {
    terminal: HostTerminal,
    master: OwnedFd,
    stdin: Option<BorrowedFd<'static>>,
    stdout: Option<BorrowedFd<'static>>,
    inward: Pending,
    outward: Pending,
    master_open: bool,
}

impl Relay {
    /// Connects the container's terminal, whose master this is, with the host's.
    pub fn begin(master: OwnedFd, terminal: HostTerminal) -> Result<Self> {
        terminal.copy_size(master.as_fd());
        // Of all descriptors only the master is ours alone: the mode of the others is shared with whoever passed them.
        let flags = fcntl_getfl(&master).on("fcntl(F_GETFL)", "the terminal")?;
        fcntl_setfl(&master, flags | OFlags::NONBLOCK).on("fcntl(F_SETFL)", "the terminal")?;
        Ok(Self {
            terminal,
            master,
            stdin: borrow_inherited(0).ok(),
            stdout: borrow_inherited(1).ok(),
            inward: Pending::default(),
            outward: Pending::default(),
            master_open: true,
        })
    }

    pub fn copy_size(&self) {
        self.terminal.copy_size(self.master.as_fd());
    }

    /// What is to be waited for.
    pub fn interest<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if self.master_open {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.outward.is_empty());
            flags.set(PollFlags::OUT, !self.inward.is_empty());
            fds.push(PollFd::new(&self.master, flags));
        }
        if let (Some(stdin), true) = (self.stdin, self.inward.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
        }
        if let (Some(stdout), false) = (self.stdout, self.outward.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(stdout, PollFlags::OUT));
        }
    }

    /// Copies what is there, without waiting for more.
    pub fn copy(&mut self) {
        if let Some(stdin) = self.stdin
            && ready(stdin, PollFlags::IN)
            && !self.inward.read(stdin)
        {
            self.stdin = None;
        }
        if self.master_open {
            self.master_open =
                self.inward.write(self.master.as_fd()) && self.outward.read(self.master.as_fd());
        }
        match self.stdout {
            Some(stdout) if !self.outward.is_empty() && ready(stdout, PollFlags::OUT) => {
                if !self.outward.write(stdout) {
                    self.stdout = None;
                }
            }
            Some(_) => {}
            // Nobody looks: what comes is dropped, so that the container does not block.
            None => self.outward.written = self.outward.bytes.len(),
        }
    }

    /// The process has ended: what it wrote last is still in its terminal.
    pub fn drain(&mut self) {
        while self.master_open {
            if let Some(stdout) = self.stdout {
                if !self.outward.write(stdout) {
                    return;
                }
            } else {
                return;
            }
            if !ready(self.master.as_fd(), PollFlags::IN) {
                return;
            }
            self.master_open = self.outward.read(self.master.as_fd());
        }
        if let Some(stdout) = self.stdout {
            self.outward.write(stdout);
        }
    }
}

fn ready(fd: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(n) if n > 0)
}
