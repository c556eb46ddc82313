//! `tmpcopyup`: what a directory held is copied into the tmpfs that covers it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};

use brig_sys::Context;

use crate::error::Result;

/// Copies the content of one directory into another: types, modes, owners and contents; links as links.
///
/// # Errors
///
/// The first file that cannot be copied.
pub(super) fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<()> {
    let from = open_dir(from, c".")?;
    for entry in Dir::read_from(&from).on("read", "a directory")? {
        let entry = entry.on("read", "a directory")?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let shown = || name.to_string_lossy().into_owned();
        let stat = rustix::fs::statat(&from, name, AtFlags::SYMLINK_NOFOLLOW).on("fstatat", shown())?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                rustix::fs::mkdirat(to, name, mode).on("mkdirat", shown())?;
                let (below, above) = (open_dir(from.as_fd(), name)?, open_dir(to, name)?);
                copy(below.as_fd(), above.as_fd())?;
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&from, name, Vec::new()).on("readlinkat", shown())?;
                rustix::fs::symlinkat(target, to, name).on("symlinkat", shown())?;
            }
            FileType::RegularFile => {
                // It may be a fifo or a device by now: neither is to be waited for.
                let flags =
                    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let source = rustix::fs::openat(&from, name, flags, Mode::empty()).on("openat", shown())?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let target = rustix::fs::openat(to, name, flags, mode).on("openat", shown())?;
                copy_bytes(source, target, &shown())?;
            }
            // Sockets mean nothing without the process behind them.
            FileType::Socket => continue,
            other => rustix::fs::mknodat(to, name, other, mode, stat.st_rdev).on("mknodat", shown())?,
        }
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::chownat(to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
            .on("fchownat", shown())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            // The umask had its say above, and chown clears set-id bits.
            rustix::fs::chmodat(to, name, mode, AtFlags::empty()).on("fchmodat", shown())?;
        }
    }
    Ok(())
}

fn open_dir(at: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty()).on("openat", name.to_string_lossy())?)
}

fn copy_bytes(from: OwnedFd, to: OwnedFd, shown: &str) -> Result<()> {
    let (mut from, mut to) = (std::fs::File::from(from), std::fs::File::from(to));
    std::io::copy(&mut from, &mut to)
        .map(drop)
        .map_err(|e| crate::error::io_error("copying", shown.as_ref(), &e).into())
}
