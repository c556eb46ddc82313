//! Resolving a path name by name, where the kernel does not do it at once: a filter around brig refuses openat2(2).
//!
//! Needs nothing but openat(2): no procfs, which may be missing or the image's. Every name is opened in the descriptor of the directory
//! before it, without following; links are read and followed here. `..` goes back to the descriptor that one came from, never up by the
//! file system's own entry, so a directory that is moved meanwhile is no way out of the root.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat};
use rustix::io::Errno;

use super::resolve::MAX_LINKS;

/// As long as the kernel takes a path, with the NUL at its end.
const PATH_MAX: usize = 4096;

/// As openat2(2) with RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS does it; of `resolve`, RESOLVE_NO_SYMLINKS counts. Nothing is made.
///
/// # Errors
///
/// Those of openat2(2). EMFILE for a path through more directories than a process may have descriptors.
pub fn open(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    if path.as_os_str().len() >= PATH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let mut walk = Walk { root, dirs: Vec::new(), rest: Vec::new(), links: MAX_LINKS };
    walk.push(path.as_os_str().as_bytes());
    while let Some(name) = walk.rest.pop() {
        match &name[..] {
            b"." => {}
            b".." => drop(walk.dirs.pop()),
            name => {
                if let Some(found) = walk.enter(OsStr::from_bytes(name), flags, resolve)? {
                    return Ok(found);
                }
            }
        }
    }
    // It ends at a directory that has been walked to, or at the root.
    openat(walk.here(), ".", flags | OFlags::CLOEXEC, Mode::empty())
}

/// A path on its way.
struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories that were entered, below the root.
    dirs: Vec<OwnedFd>,
    /// The names to come, the next one last.
    rest: Vec<Vec<u8>>,
    /// How many links may still be followed.
    links: u32,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.dirs.last().map_or(self.root, AsFd::as_fd)
    }

    /// Puts a path before what is to come.
    fn push(&mut self, path: &[u8]) {
        if path.first() == Some(&b'/') {
            self.dirs.clear();
        }
        // What ends with a slash has to be a directory, as the directory's own entry says.
        if path.last() == Some(&b'/') {
            self.rest.push(b".".to_vec());
        }
        self.rest
            .extend(path.split(|b| *b == b'/').rev().filter(|name| !name.is_empty()).map(<[u8]>::to_vec));
    }

    /// Goes on to a name: a directory is entered, a link followed; what else is there is the result if nothing comes after it.
    fn enter(
        &mut self,
        name: &OsStr,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<Option<OwnedFd>, Errno> {
        let plain = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_last = self.rest.is_empty();
        let fd = openat(self.here(), name, plain, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Symlink if is_last && flags.contains(OFlags::NOFOLLOW) => {
                // What it does with a link itself is for the kernel to say.
                openat(self.here(), name, flags | OFlags::CLOEXEC, Mode::empty()).map(Some)
            }
            FileType::Symlink if resolve.contains(ResolveFlags::NO_SYMLINKS) => Err(Errno::LOOP),
            FileType::Symlink => self.follow(&fd).map(|()| None),
            FileType::Directory if !is_last => {
                self.dirs.push(fd);
                Ok(None)
            }
            _ if !is_last => Err(Errno::NOTDIR),
            _ if flags.contains(OFlags::PATH) && !flags.contains(OFlags::DIRECTORY) => Ok(Some(fd)),
            // A link may have come in its place; it is not followed.
            _ => {
                openat(self.here(), name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map(Some)
            }
        }
    }

    fn follow(&mut self, link: &OwnedFd) -> Result<(), Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
        let target = rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes();
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        // The kernel's own links lead to things, not to what they say: `/proc/PID/root`, or `pipe:[1]`. Others there are relative.
        if is_procfs(link.as_fd())? && (target.starts_with(b"/") || target.contains(&b':')) {
            return Err(Errno::LOOP);
        }
        self.push(&target);
        Ok(())
    }
}

/// Opens a file of a procfs: without links, and without entering what is mounted in it.
///
/// # Errors
///
/// Those of openat(2); ELOOP for a link or a `..`, EXDEV where something is mounted.
pub fn open_in_proc(proc: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mount = mount_of(proc)?;
    let mut dir = None::<OwnedFd>;
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        let std::path::Component::Normal(name) = name else { return Err(Errno::LOOP) };
        let here = dir.as_ref().map_or(proc, AsFd::as_fd);
        let plain = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Looked at before it is opened, which has effects on some files.
        let fd = openat(here, name, plain, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        let inside = |fd: BorrowedFd<'_>| match mount_of(fd)? == mount && is_procfs(fd)? {
            true => Ok(()),
            false => Err(Errno::XDEV),
        };
        inside(fd.as_fd())?;
        if names.peek().is_none() {
            let fd = openat(here, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            inside(fd.as_fd())?;
            return Ok(fd);
        }
        dir = Some(fd);
    }
    Err(Errno::NOENT)
}

fn is_procfs(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    Ok(u64::try_from(rustix::fs::fstatfs(fd)?.f_type).is_ok_and(|kind| kind == PROC_SUPER_MAGIC))
}

/// The id of the mount that it is in (statx, Linux 5.8).
fn mount_of(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests work with files and threads by std")]
mod tests;
