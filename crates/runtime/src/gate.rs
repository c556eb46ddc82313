//! `exec.fifo`: the gate between created and running.
//!
//! The init program holds the fifo open for reading and writing from its birth, and loses it with its execve or its end.
//! So the kernel itself answers the three questions there are:
//!
//! - Does it wait for `start`? Opening for writing fails with ENXIO when there is no reader.
//! - Has it gone on? Whoever reads gets POLLHUP once the last writer is gone; what it then finds in the fifo is why it did
//!   not, or nothing.
//! - Is anybody of a creation that was killed still alive? The creator and its child hold the fifo too.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use brig_sys::init::abi::{HEAD_LEN, START, Step, TEXT_MAX};
use brig_sys::{Context, SysError};

use crate::channel::{InitFault, decode_fault};
use crate::deadline::timespec_until;
use crate::error::{Error, Result};
use crate::store::{ContainerDir, names};

/// Makes the fifo and opens it as its holders do.
///
/// # Errors
///
/// Those of mknodat(2) and openat(2).
pub fn make(dir: &ContainerDir) -> Result<OwnedFd> {
    let path = || dir.file(names::FIFO);
    rustix::fs::mknodat(dir, names::FIFO, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .on_path("mknodat", path())?;
    Ok(dir.open_file(names::FIFO, OFlags::RDWR).on_path("open", path())?)
}

/// Whether somebody waits behind the gate.
///
/// # Errors
///
/// Others than that there is no fifo or nobody.
pub fn is_closed(dir: &ContainerDir) -> Result<bool> {
    match dir.open_file(names::FIFO, OFlags::WRONLY | OFlags::NONBLOCK) {
        Ok(_) => Ok(true),
        Err(Errno::NXIO | Errno::NOENT) => Ok(false),
        Err(e) => Err(SysError::path("open", dir.file(names::FIFO), e).into()),
    }
}

/// Whether the gate is there: with a container of runc's, whose `start` removes it, the only difference between created and
/// running.
///
/// # Errors
///
/// Others than that there is none.
pub fn is_there(dir: &ContainerDir) -> Result<bool> {
    match rustix::fs::statat(dir, names::FIFO, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(SysError::path("stat", dir.file(names::FIFO), e).into()),
    }
}

/// What came of opening the gate.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program was executed, or the process was killed by somebody.
    Passed,
    /// The process ended before it went on.
    Gone,
    /// The process said why it could not.
    Failed(InitFault),
}

/// Opens the gate and waits until whoever was behind it has gone on. The caller holds the container's lock.
///
/// # Errors
///
/// Nobody waits there.
pub fn open(dir: &ContainerDir) -> Result<Outcome> {
    let path = || dir.file(names::FIFO);
    let write = match dir.open_file(names::FIFO, OFlags::WRONLY | OFlags::NONBLOCK) {
        Ok(fd) => fd,
        Err(Errno::NXIO | Errno::NOENT) => {
            return Err(Error::state("cannot start an already running container"));
        }
        Err(e) => return Err(SysError::path("open", path(), e).into()),
    };
    let read = dir.open_file(names::FIFO, OFlags::RDONLY | OFlags::NONBLOCK).on_path("open", path())?;
    rustix::io::write(&write, &[START]).on_path("write", path())?;
    drop(write);
    wait_for_hangup(&read, None)?;
    let mut raw = [0_u8; 1 + HEAD_LEN + TEXT_MAX];
    let n = match rustix::io::read(&read, &mut raw) {
        Ok(n) => n,
        Err(Errno::AGAIN) => 0,
        Err(e) => return Err(SysError::path("read", path(), e).into()),
    };
    Ok(match raw.get(..n) {
        None | Some([]) => Outcome::Passed,
        Some([START, ..]) => Outcome::Gone,
        Some(raw) => decode_fault(raw).map_or(Outcome::Gone, |fault| Outcome::Failed(last_words(fault))),
    })
}

/// A failed execve is told twice, the second time with the beginning of the program; both are in the fifo.
fn last_words(fault: InitFault) -> InitFault {
    match decode_fault(&fault.text) {
        Some(more) if fault.step == Step::Exec && more.step == Step::Exec => more,
        _ => fault,
    }
}

/// Opens the gate of a container that runc made: its init waits for a reader and writes one byte to it, and of what becomes of
/// its execve nobody learns.
///
/// # Errors
///
/// Nobody waits there.
pub fn open_adopted(dir: &ContainerDir, init: &OwnedFd) -> Result<Outcome> {
    let path = || dir.file(names::FIFO);
    let read = dir.open_file(names::FIFO, OFlags::RDONLY | OFlags::NONBLOCK).on_path("open", path())?;
    let mut byte = [0_u8; 1];
    loop {
        let mut fds = [PollFd::new(&read, PollFlags::IN), PollFd::new(init, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(SysError::new("poll", "exec.fifo", e).into()),
        }
        let ended = fds[1].revents().contains(PollFlags::IN);
        match rustix::io::read(&read, &mut byte) {
            Ok(1) => break,
            Ok(_) | Err(Errno::AGAIN) if ended => return Ok(Outcome::Gone),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(e) => return Err(SysError::path("read", path(), e).into()),
        }
    }
    match rustix::fs::unlinkat(dir, names::FIFO, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(Outcome::Passed),
        Err(e) => Err(SysError::path("unlink", path(), e).into()),
    }
}

/// Waits until all who took part in making the container have ended or gone on; false when the deadline passed first.
///
/// # Errors
///
/// Others than that there is no fifo.
pub fn wait_abandoned(dir: &ContainerDir, deadline: Instant) -> Result<bool> {
    let read = match dir.open_file(names::FIFO, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(true),
        Err(e) => return Err(SysError::path("open", dir.file(names::FIFO), e).into()),
    };
    // Without any writer there has been no hang-up to wait for, but reading gives the end at once.
    let mut byte = [0_u8; 1];
    match rustix::io::read(&read, &mut byte) {
        Ok(0) => Ok(true),
        _ => wait_for_hangup(&read, Some(deadline)),
    }
}

fn wait_for_hangup(read: &OwnedFd, deadline: Option<Instant>) -> Result<bool> {
    loop {
        let left = match deadline {
            None => None,
            Some(at) => match timespec_until(at) {
                None => return Ok(false),
                left => left,
            },
        };
        // POLLHUP is reported unasked; asking for input would return at once with the byte just written.
        let mut fds = [PollFd::new(read, PollFlags::empty())];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(SysError::new("poll", "exec.fifo", e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ContainerId;
    use crate::store::Store;
    use std::time::Duration;

    fn container() -> (tempfile::TempDir, ContainerDir) {
        let root = tempfile::tempdir().unwrap();
        let (dir, _lock) = Store::new(root.path()).reserve(&ContainerId::parse("x").unwrap()).unwrap();
        (root, dir)
    }

    #[test]
    fn the_kernel_knows_whether_somebody_waits() {
        let (_root, dir) = container();
        assert!(!is_closed(&dir).unwrap());
        let held = make(&dir).unwrap();
        assert!(is_closed(&dir).unwrap());
        assert!(!wait_abandoned(&dir, Instant::now() + Duration::from_millis(1)).unwrap());
        drop(held);
        assert!(!is_closed(&dir).unwrap());
        assert!(wait_abandoned(&dir, Instant::now()).unwrap());
        assert_eq!(open(&dir).unwrap_err().to_string(), "cannot start an already running container");
    }
}
