//! A command that stays while its process runs: signals and, with a terminal, bytes pass through it.
//!
//! Without a terminal the process has the command's own standard input, output and error, so there is nothing to copy.

mod relay;
mod terminal;

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use brig_sys::process::{ExitStatus, next_signal, reap, set_signal_mask, signal, signal_fd};
use brig_sys::trace::span;
use brig_sys::{Context, SysError};

use crate::deadline::timespec_until;
use crate::error::{Error, Result};
use relay::Relay;
use terminal::HostTerminal;

const SIGCHLD: i32 = 17;
const SIGURG: i32 = 23;
const SIGWINCH: i32 = 28;
/// Signals that mean the command itself: those of its own faults, and those that cannot be caught or are about stopping it.
const OWN: [i32; 11] = [4, 5, 6, 7, 8, 9, 11, 19, 20, 21, 22];

/// The mask of all signals that are taken here.
fn mask() -> u64 {
    (1..=64).filter(|n| !OWN.contains(n)).fold(0, |mask, n| mask | 1 << (n - 1))
}

/// The foreground, before there is a process: signals wait from here on, so that none is lost or ends the command halfway.
#[derive(Debug)]
pub(crate) struct Foreground {
    signals: OwnedFd,
    mask_before: u64,
    terminal: Option<HostTerminal>,
    relay: Option<Relay>,
    /// Signals that came before there was a process to pass them to.
    kept: Vec<i32>,
}

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// There is something to read.
    Readable,
    /// A signal for the process.
    Signal(i32),
    /// The deadline.
    TimedOut,
}

impl Drop for Foreground {
    fn drop(&mut self) {
        set_signal_mask(self.mask_before);
    }
}

impl Foreground {
    /// Begins to hold signals back.
    ///
    /// # Errors
    ///
    /// Those of signalfd(2).
    pub fn begin() -> Result<Self> {
        let mask_before = set_signal_mask(mask());
        let signals = signal_fd(mask())?;
        Ok(Self { signals, mask_before, terminal: None, relay: None, kept: Vec::new() })
    }

    /// Takes the terminal that the container's will be connected with. Before there is a process, so that a missing one ends the
    /// command while nothing is running.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn take_terminal(&mut self) -> Result<()> {
        self.terminal = Some(HostTerminal::take()?);
        Ok(())
    }

    /// Connects the terminal taken before with that of the process, whose master has been sent to this socket. Before the process
    /// executes its program, which is to find the size and the modes that it will keep.
    ///
    /// # Errors
    ///
    /// None was sent.
    pub fn connect(&mut self, console: &OwnedFd) -> Result<()> {
        let master = receive_master(console)?;
        self.relay = self.terminal.take().map(|terminal| Relay::begin(master, terminal)).transpose()?;
        Ok(())
    }

    /// Waits until any of these can be read, or for a signal, which is kept for the process.
    ///
    /// # Errors
    ///
    /// Those of poll(2).
    pub fn wait_readable(&mut self, any: [BorrowedFd<'_>; 2], deadline: Option<Instant>) -> Result<Awaited> {
        loop {
            let left = match deadline {
                None => None,
                Some(at) => match timespec_until(at) {
                    None => return Ok(Awaited::TimedOut),
                    left => left,
                },
            };
            let [first, second] = any.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let mut fds = [first, second, PollFd::new(&self.signals, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(SysError::new("poll", "the container's process", e).into()),
            }
            if fds.iter().take(2).any(|fd| !fd.revents().is_empty()) {
                return Ok(Awaited::Readable);
            }
            match next_signal(self.signals.as_fd()) {
                None | Some(SIGCHLD | SIGURG | SIGWINCH) => {}
                Some(number) => {
                    self.kept.push(number);
                    return Ok(Awaited::Signal(number));
                }
            }
        }
    }

    /// Waits for the end of the process, or until the deadline (`None`), passing signals on and, with a terminal, copying between it and
    /// standard input and output.
    ///
    /// # Errors
    ///
    /// The process cannot be waited for.
    pub fn wait(&mut self, pidfd: &OwnedFd, deadline: Option<Instant>) -> Result<Option<ExitStatus>> {
        let _span = span("waiting for the end");
        let mut relay = self.relay.take();
        for number in self.kept.drain(..) {
            let _ = signal(pidfd.as_fd(), number);
        }
        let status = loop {
            self.turn(pidfd, relay.as_mut(), deadline)?;
            if let Some(status) = reap(pidfd.as_fd(), false)? {
                break status;
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                return Ok(None);
            }
        };
        if let Some(relay) = &mut relay {
            relay.drain();
        }
        Ok(Some(status))
    }

    /// Waits for the next event and deals with it.
    fn turn(&self, pidfd: &OwnedFd, mut relay: Option<&mut Relay>, deadline: Option<Instant>) -> Result<()> {
        let mut fds = vec![PollFd::new(pidfd, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(relay) = &relay {
            relay.interest(&mut fds);
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let left = deadline.map(|at| timespec_until(at).unwrap_or(now));
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(SysError::new("poll", "the container's process", e).into()),
        }
        drop(fds);
        while let Some(number) = next_signal(self.signals.as_fd()) {
            match number {
                SIGCHLD => reap_others(pidfd),
                SIGURG => {}
                SIGWINCH => {
                    if let Some(relay) = &relay {
                        relay.copy_size();
                    }
                }
                number => {
                    let _ = signal(pidfd.as_fd(), number);
                }
            }
        }
        if let Some(relay) = &mut relay {
            relay.copy();
        }
        Ok(())
    }
}

/// As a subreaper the command inherits processes whose parents ended; nobody asks for their status.
fn reap_others(pidfd: &OwnedFd) {
    // Looks without taking: the container's process is left to whoever waits for its status.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while let Ok(Some(_)) = waitid(WaitId::All, look) {
        if matches!(waitid(WaitId::PidFd(pidfd.as_fd()), look), Ok(Some(_))) {
            return;
        }
        if waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_err() {
            return;
        }
    }
}

/// Our end and the process's end of what a terminal goes through.
pub(crate) type Console = (Option<OwnedFd>, Option<OwnedFd>);

/// Connects to where the terminal of a process goes: the caller's socket, or in the foreground this process itself.
///
/// # Errors
///
/// Nobody listens at the socket; there is no terminal to connect the container's to.
pub(crate) fn connect_console(
    terminal: bool,
    socket: Option<&Path>,
    foreground: Option<&mut Foreground>,
) -> Result<Console> {
    match (terminal, socket, foreground) {
        (true, Some(path), _) => Ok((None, Some(crate::socket::dial(path)?))),
        (true, None, Some(foreground)) => {
            foreground.take_terminal()?;
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                    .on("socketpair", "")?;
            Ok((Some(ours), Some(theirs)))
        }
        _ => Ok((None, None)),
    }
}

/// Takes the master of the container's terminal out of the socket that it was sent through.
///
/// # Errors
///
/// It was not sent.
fn receive_master(socket: &OwnedFd) -> Result<OwnedFd> {
    let mut name = [0_u8; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket, &mut [IoSliceMut::new(&mut name)], &mut control, flags)
        .on("recvmsg", "the terminal's socket")?;
    let mut messages = control.drain();
    let master = messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let master = master.ok_or_else(|| Error::host("the container's process sent no terminal"))?;
    // The caller's terminal, if it is one, turns newlines into what it needs itself.
    let mut modes = rustix::termios::tcgetattr(&master).on("ioctl(TCGETS)", "the container's terminal")?;
    modes.output_modes.remove(rustix::termios::OutputModes::ONLCR);
    rustix::termios::tcsetattr(&master, rustix::termios::OptionalActions::Now, &modes)
        .on("ioctl(TCSETS)", "the container's terminal")?;
    Ok(master)
}
