//! A cgroup directory, held open. All files are reached through it, so no path is resolved twice.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, RawDir, fstat, openat};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// An open cgroup directory, and its path for messages.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

/// cgroup file systems have no symbolic links: O_NOFOLLOW costs nothing and guards against a stray mount over one.
const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Dir {
    /// Opens a directory by its absolute path.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let fd = openat(rustix::fs::CWD, path, DIR, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Opens a directory below this one.
    pub(crate) fn open_below(&self, below: &Path) -> Result<Self, Errno> {
        let fd = openat(&self.fd, below, DIR, Mode::empty())?;
        Ok(Self { fd, path: self.path.join(below) })
    }

    /// Opens the directory that this one is in.
    pub(crate) fn open_parent(&self) -> Result<Self, Errno> {
        let fd = openat(&self.fd, c"..", DIR, Mode::empty())?;
        let path = self.path.parent().unwrap_or(&self.path).to_owned();
        Ok(Self { fd, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The error that `errno` is when it befell `name` in here.
    pub(crate) fn error(&self, doing: &'static str, name: &str, errno: Errno) -> Error {
        Error::Io { doing, path: self.file(name), errno }
    }

    /// Opens a file in here.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(&self.fd, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// Reads a file. What is not UTF-8 in it (the kernel writes none) becomes U+FFFD.
    pub(crate) fn read(&self, name: &str) -> Result<String, Errno> {
        let fd = self.open_file(name, OFlags::RDONLY)?;
        read_all(fd.as_fd())
    }

    /// Reads a file; `None` when there is none, or when the cgroup has been removed.
    pub(crate) fn read_if_any(&self, name: &str) -> Result<Option<String>> {
        match self.read(name) {
            Ok(text) => Ok(Some(text)),
            Err(Errno::NOENT | Errno::NODEV) => Ok(None),
            Err(errno) => Err(self.error("reading", name, errno)),
        }
    }

    /// Writes a value in one call, as the kernel wants it.
    pub(crate) fn write(&self, name: &str, value: &str) -> Result<(), Errno> {
        let fd = self.open_file(name, OFlags::WRONLY)?;
        loop {
            match rustix::io::write(&fd, value.as_bytes()) {
                Ok(_) => return Ok(()),
                // memory.limit_in_bytes and freezer.state wait inside write(2).
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Whether there are cgroups below. kernfs counts them in st_nlink, which saves reading forty names.
    pub(crate) fn has_children(&self) -> Result<bool, Errno> {
        Ok(fstat(&self.fd)?.st_nlink != 2)
    }

    /// The names of the cgroups directly below.
    pub(crate) fn children(&self) -> Result<Vec<CString>, Errno> {
        let mut names = Vec::new();
        if !self.has_children()? {
            return Ok(names);
        }
        let list =
            openat(&self.fd, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut buffer = Vec::with_capacity(8192);
        let mut entries = RawDir::new(list, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name from [`Dir::children`] as a path.
pub(crate) fn name_path(name: &CString) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()))
}

/// Reads a file from where it stands to its end.
pub(crate) fn read_all(fd: BorrowedFd<'_>) -> Result<String, Errno> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if bytes.len() == bytes.capacity() {
            bytes.reserve(bytes.len());
        }
        match rustix::io::read(fd, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Reads a file of the kernel by path.
pub(crate) fn read_path(path: &Path) -> Result<String, Errno> {
    let fd = openat(rustix::fs::CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    read_all(fd.as_fd())
}

/// Calls `visit` for `top` and all cgroups below it, each before those in it. A cgroup that vanishes meanwhile is
/// passed over. However deep a payload nests its cgroups, two descriptors and no stack are used.
pub(crate) fn walk(top: &Dir, visit: &mut dyn FnMut(&Dir) -> Result<()>) -> Result<()> {
    visit(top)?;
    let mut pending = vec![list(top)?];
    let mut below: Option<Dir> = None;
    while let Some(names) = pending.last_mut() {
        let here = below.as_ref().unwrap_or(top);
        if let Some(name) = names.pop() {
            match here.open_below(name_path(&name)) {
                Ok(child) => {
                    visit(&child)?;
                    pending.push(list(&child)?);
                    below = Some(child);
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(here.error("opening cgroup", &name.to_string_lossy(), errno)),
            }
        } else {
            pending.pop();
            below = match pending.len() {
                0 | 1 => None,
                _ => Some(here.open_parent().map_err(|errno| here.error("opening cgroup", "..", errno))?),
            };
        }
    }
    Ok(())
}

fn list(dir: &Dir) -> Result<Vec<CString>> {
    match dir.children() {
        Ok(names) => Ok(names),
        Err(Errno::NOENT | Errno::NODEV) => Ok(Vec::new()),
        Err(errno) => Err(dir.error("listing", ".", errno)),
    }
}

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> Self {
        dir.fd
    }
}
