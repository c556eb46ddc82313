//! The host's terminal that the container's is connected to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    OptionalActions, OutputModes, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use brig_sys::Context;
use brig_sys::process::borrow_inherited;

use crate::error::Result;

/// In raw mode until dropped.
#[derive(Debug)]
pub(super) struct HostTerminal {
    fd: OwnedFd,
    before: Termios,
}

impl HostTerminal {
    /// Takes the first of standard error, output and input that is a terminal, else the controlling one.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn take() -> Result<Self> {
        let fd = [2, 1, 0]
            .into_iter()
            .filter_map(|n| borrow_inherited(n).ok())
            .find(|fd| rustix::termios::isatty(fd))
            .and_then(|fd| fd.try_clone_to_owned().ok());
        let fd = match fd {
            Some(fd) => fd,
            None => rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
                .on("open", "/dev/tty")?,
        };
        let before = tcgetattr(&fd).on("tcgetattr", "the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        // What the container's terminal sends is finished output.
        raw.output_modes.remove(OutputModes::OPOST);
        tcsetattr(&fd, OptionalActions::Now, &raw).on("tcsetattr", "the terminal")?;
        Ok(Self { fd, before })
    }

    /// Gives the container's terminal this one's size.
    pub fn copy_size(&self, master: BorrowedFd<'_>) {
        if let Ok(size) = tcgetwinsize(&self.fd) {
            let _ = tcsetwinsize(master, size);
        }
    }
}

impl AsFd for HostTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for HostTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.fd, OptionalActions::Now, &self.before);
    }
}
