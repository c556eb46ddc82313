//! Resolving and making paths within a root.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use brig_sys::{Context, SysError};

use super::steps;
use crate::error::{Doing, Result};

/// As many links as the kernel follows.
pub(super) const MAX_LINKS: u32 = 40;

/// A directory out of which no path leads.
#[derive(Debug)]
pub struct RootDir {
    root: OwnedFd,
}

impl AsFd for RootDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

impl RootDir {
    /// Takes an open directory as the root.
    pub fn new(dir: OwnedFd) -> Self {
        Self { root: dir }
    }

    /// Opens what the path leads to (O_PATH), links followed within the root.
    ///
    /// # Errors
    ///
    /// ENOENT and its like; the error carries the errno.
    pub fn resolve(&self, path: &Path) -> Result<OwnedFd> {
        Ok(self.look_up(path, OFlags::empty(), ResolveFlags::empty()).on_path("openat2", path)?)
    }

    /// Opens what the path leads to, but the last component itself even if it is a link.
    ///
    /// # Errors
    ///
    /// As [`RootDir::resolve`].
    pub fn resolve_nofollow(&self, path: &Path) -> Result<OwnedFd> {
        Ok(self.look_up(path, OFlags::NOFOLLOW, ResolveFlags::empty()).on_path("openat2", path)?)
    }

    fn look_up(&self, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        self.open_within(path, flags | OFlags::PATH, resolve)
    }

    /// One openat2(2) that cannot leave the root. A component that is renamed meanwhile makes the kernel answer EAGAIN; where
    /// it will not do (a filter that does not know the call), the path is walked name by name.
    fn open_within(&self, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let at_once = resolve | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MAX_LINKS {
            match openat2(&self.root, path, flags, Mode::empty(), at_once) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => {
                    return steps::open(self.root.as_fd(), path, flags, resolve);
                }
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens a file for use.
    ///
    /// # Errors
    ///
    /// As [`RootDir::resolve`].
    pub fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        Ok(self.open_within(path, flags, ResolveFlags::empty()).on_path("openat2", path)?)
    }

    /// As [`RootDir::resolve`], with `None` for what is not there.
    ///
    /// # Errors
    ///
    /// Others than ENOENT.
    pub fn find(&self, path: &Path) -> Result<Option<OwnedFd>> {
        match self.look_up(path, OFlags::empty(), ResolveFlags::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(SysError::path("openat2", path, e).into()),
        }
    }

    /// Opens a directory, making what is missing of it. A link that leads nowhere is followed within the root, and where it
    /// leads is made: images have `/var/run -> /run` and expect it.
    ///
    /// # Errors
    ///
    /// Something in the way is no directory; the file system is read-only.
    pub fn ensure_dir(&self, path: &Path, mode: u32) -> Result<OwnedFd> {
        self.ensure(path, &New::Dir(mode), MAX_LINKS).doing(|| format!("making directory {}", path.display()))
    }

    /// Opens a directory that is reached without any link, making it if it is missing.
    ///
    /// # Errors
    ///
    /// ELOOP when a component is a link; others as [`RootDir::ensure_dir`].
    pub fn ensure_plain_dir(&self, path: &Path) -> Result<OwnedFd> {
        let strict = || self.look_up(path, OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS);
        let found = match strict() {
            Err(Errno::NOENT) => {
                self.ensure_dir(path, 0o755)?;
                strict()
            }
            other => other,
        };
        Ok(found.on_path("openat2", path)?)
    }

    /// Opens a file of any type, making an empty regular one if there is none.
    ///
    /// # Errors
    ///
    /// As [`RootDir::ensure_dir`].
    pub fn ensure_file(&self, path: &Path, mode: u32) -> Result<OwnedFd> {
        self.ensure(path, &New::File(mode), MAX_LINKS).doing(|| format!("making file {}", path.display()))
    }

    fn ensure(&self, path: &Path, new: &New, links: u32) -> Result<OwnedFd> {
        match self.look_up(path, new.kind(), ResolveFlags::empty()) {
            Err(Errno::NOENT) => {}
            other => return Ok(other.on_path(new.call(), path)?),
        }
        let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back())
        else {
            return Err(SysError::path("openat2", path, Errno::NOENT).into());
        };
        let dir = self.ensure(parent, &New::Dir(0o755), links)?;
        match new.make(&dir, Path::new(name)) {
            Ok(fd) => Ok(fd),
            // Somebody else made it, or it is a link that leads nowhere: where it leads is to be made.
            Err(Errno::EXIST) if links > 0 => match rustix::fs::readlinkat(&dir, name, Vec::new()) {
                Ok(target) => {
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    self.ensure(&follow(parent, &target), new, links - 1)
                }
                Err(Errno::INVAL) => self.ensure(path, new, links - 1),
                Err(e) => Err(SysError::path("readlink", path, e).into()),
            },
            Err(Errno::EXIST) => Err(SysError::path("openat2", path, Errno::LOOP).into()),
            Err(e) => Err(SysError::path(new.call(), path, e).into()),
        }
    }
}

/// Where a link in `parent` leads. The kernel resolves the result within the root again, `..` included.
fn follow(parent: &Path, target: &Path) -> PathBuf {
    if target.is_absolute() { target.to_owned() } else { parent.join(target) }
}

/// What is to be there.
enum New {
    Dir(u32),
    File(u32),
}

impl New {
    fn call(&self) -> &'static str {
        match self {
            Self::Dir(_) => "mkdirat",
            Self::File(_) => "openat",
        }
    }

    fn make(&self, dir: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
        match self {
            Self::Dir(mode) => {
                rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(*mode))?;
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(dir, name, flags, Mode::empty())
            }
            Self::File(mode) => {
                let flags =
                    OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
                drop(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(*mode))?);
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(dir, name, flags, Mode::empty())
            }
        }
    }

    /// Flag with which only that is opened.
    fn kind(&self) -> OFlags {
        match self {
            Self::Dir(_) => OFlags::DIRECTORY,
            Self::File(_) => OFlags::empty(),
        }
    }
}

/// The type of an open file.
///
/// # Errors
///
/// Those of fstat(2).
pub fn file_type(fd: BorrowedFd<'_>) -> Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd).on("fstat", "")?.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, RootDir) {
        let dir = tempfile::tempdir().unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        (dir, RootDir::new(fd))
    }

    #[test]
    fn missing_directories_and_files_are_made() {
        let (dir, root) = root();
        root.ensure_dir(Path::new("/a/b/c"), 0o755).unwrap();
        root.ensure_file(Path::new("/a/x/file"), 0o644).unwrap();
        root.ensure_file(Path::new("/a/x/file"), 0o644).unwrap();
        assert!(dir.path().join("a/b/c").is_dir());
        assert!(dir.path().join("a/x/file").is_file());
        assert_eq!(
            root.ensure_dir(Path::new("/a/x/file/y"), 0o755).unwrap_err().errno(),
            Some(Errno::NOTDIR)
        );
        assert_eq!(root.ensure_dir(Path::new("/a/x/file"), 0o755).unwrap_err().errno(), Some(Errno::NOTDIR));
    }

    #[test]
    fn links_lead_within_the_root_only() {
        let outside = tempfile::tempdir().unwrap();
        let (dir, root) = root();
        symlink(outside.path(), dir.path().join("absolute")).unwrap();
        symlink("../../../../../up", dir.path().join("relative")).unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        symlink("../run/x", dir.path().join("d/dangling")).unwrap();
        root.ensure_dir(Path::new("/absolute/new"), 0o755).unwrap();
        root.ensure_dir(Path::new("/relative"), 0o755).unwrap();
        root.ensure_file(Path::new("/d/dangling"), 0o644).unwrap();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let inside = dir.path().join(outside.path().strip_prefix("/").unwrap());
        assert!(inside.join("new").is_dir());
        assert!(dir.path().join("up").is_dir());
        assert!(dir.path().join("run/x").is_file());
    }

    #[test]
    fn a_loop_of_links_ends() {
        let (dir, root) = root();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert!(root.ensure_dir(Path::new("/a"), 0o755).is_err());
        assert!(root.ensure_dir(Path::new("/a/x"), 0o755).is_err());
    }
}
