//! The container's terminal, made inside of it.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use brig_plan::Process;
use brig_sys::Context;
use brig_sys::process::place_fd;

use super::create::Creation;
use crate::error::{Doing, Error, Result};
use crate::rootfs::RootDir;

const PTMX: &str = "/dev/pts/ptmx";

/// Makes the terminal, sends its master away and becomes the session that it controls.
pub(super) fn set_up(c: &mut Creation<'_>) -> Result<()> {
    let process = &c.job.plan.process;
    let (true, Some(socket)) = (process.terminal, c.job.console) else {
        return Ok(());
    };
    let terminal = open(c.root()?, process)?;
    mount_on_dev_console(c, terminal.as_fd())?;
    terminal.hand_over(socket, c.pid_namespace.is_none())
}

/// A new pseudo-terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.slave.as_fd()
    }
}

/// Opens a terminal of the container's devpts, which must be one (CVE-2025-52565).
pub(super) fn open(root: &RootDir, process: &Process) -> Result<Terminal> {
    let path = Path::new(PTMX);
    let found =
        root.resolve_nofollow(path).map_err(|e| e.hint("a terminal needs a devpts mounted on /dev/pts"))?;
    check_ptmx(found.as_fd())?;
    let master = root.open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::NOFOLLOW)?;
    check_ptmx(master.as_fd())?;
    rustix::pty::unlockpt(&master).on_path("unlockpt", path)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).on_path("ioctl(TIOCGPTPEER)", path)?;
    if let Some((columns, rows)) = process.console_size {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&slave, size).on("ioctl(TIOCSWINSZ)", "the terminal")?;
    }
    let uid = rustix::fs::Uid::from_raw(process.user.uid);
    rustix::fs::fchown(&slave, Some(uid), None).on("fchown", "the terminal")?;
    Ok(Terminal { master, slave })
}

fn check_ptmx(fd: BorrowedFd<'_>) -> Result<()> {
    const DEVPTS_SUPER_MAGIC: u64 = 0x1cd1;
    const PTMX_INODE: u64 = 2;
    let stat = rustix::fs::fstat(fd).on("fstat", PTMX)?;
    let fs = rustix::fs::fstatfs(fd).on("fstatfs", PTMX)?;
    let is_ptmx = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && stat.st_rdev == rustix::fs::makedev(5, 2)
        && stat.st_ino == PTMX_INODE
        && u64::try_from(fs.f_type).ok() == Some(DEVPTS_SUPER_MAGIC);
    if is_ptmx {
        return Ok(());
    }
    Err(Error::attack(format!("{PTMX} is not a terminal multiplexer (character device 5:2 on devpts)")))
}

impl Terminal {
    /// Sends the master to whoever is behind the socket and puts the terminal in place of standard input, output and error.
    ///
    /// The session, which must be new, gets it as its controlling terminal; not so where the session is only that of a process
    /// that leads to the container's: with its end the terminal would be hung up.
    pub(super) fn hand_over(&self, socket: BorrowedFd<'_>, lasting_session: bool) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [self.master.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        // Receivers have little room for the name and expect exactly one message with one descriptor.
        sendmsg(socket, &[IoSlice::new(PTMX.as_bytes())], &mut control, SendFlags::NOSIGNAL)
            .on("sendmsg", "the console socket")?;
        if lasting_session {
            rustix::process::ioctl_tiocsctty(&self.slave).on("ioctl(TIOCSCTTY)", "the terminal")?;
        }
        for number in 0..=2 {
            place_fd(&self.slave, number)?;
        }
        Ok(())
    }
}

/// `/dev/console` is the terminal. A link in its place is not followed.
fn mount_on_dev_console(c: &Creation<'_>, slave: BorrowedFd<'_>) -> Result<()> {
    let path = Path::new("/dev/console");
    let dev = c.root()?.ensure_dir(Path::new("/dev"), 0o755)?;
    let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&dev, "console", create, Mode::from_raw_mode(0o666)) {
        Ok(_) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e).on_path("openat", path).doing(|| "the terminal's place"),
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(&dev, "console", flags, Mode::empty()).on_path("openat", path)?;
    if crate::rootfs::file_type(place.as_fd())? == FileType::Symlink {
        return Err(Error::attack("/dev/console is a link"));
    }
    let target = c.target(place, path);
    c.api.bind(c.root()?, slave, Path::new("the terminal"), &target, false).map(drop)
}
