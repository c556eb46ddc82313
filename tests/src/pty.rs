//! A terminal for tests.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;

/// A pseudo-terminal, seen from its master.
#[derive(Debug)]
pub struct Pty {
    master: File,
    slave: OwnedFd,
    /// All that was read.
    pub seen: String,
}

impl Default for Pty {
    fn default() -> Self {
        Self::new()
    }
}

impl Pty {
    pub fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
        Self { master: File::from(master), slave, seen: String::new() }
    }

    /// Takes over a master that somebody sent.
    pub fn from_master(master: OwnedFd) -> Self {
        let slave = master.try_clone().unwrap();
        Self { master: File::from(master), slave, seen: String::new() }
    }

    /// The slave, for a process's standard input and output.
    pub fn slave(&self) -> OwnedFd {
        self.slave.try_clone().unwrap()
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.master.as_fd(), size).unwrap();
    }

    pub fn write(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until the text has been seen.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.seen.contains(text) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{text:?} is not in {:?}", self.seen);
            self.read();
        }
    }

    /// Reads what is there by now; false when that is nothing.
    pub fn read_now(&mut self) -> bool {
        let before = self.seen.len();
        self.read() && self.seen.len() > before
    }

    /// Reads what comes within a moment; false at the end.
    pub fn read(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        let moment = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if !matches!(poll(&mut fds, Some(&moment)), Ok(n) if n > 0) {
            return true;
        }
        let mut buf = [0; 4096];
        match self.master.read(&mut buf) {
            Ok(n) if n > 0 => {
                self.seen.push_str(&String::from_utf8_lossy(&buf[..n]));
                true
            }
            _ => false,
        }
    }
}
