//! The directory below the root that holds a container's record, and the lock in it.
//!
//! `mkdir` of `<root>/<id>` reserves the id. The lock (a POSIX record lock, fcntl(2)) says who is changing the container:
//! the kernel names its holder and drops it when the holder dies, so nothing that is written down can lie about it.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Mode, OFlags, inotify};
use rustix::io::Errno;
use rustix::process::{Flock, FlockOffsetType, FlockType, Pid, PidfdFlags, fcntl_getlk, pidfd_open};

use brig_cgroup::Mark;
use brig_sys::trace::span;
use brig_sys::{Context, SysError};

use crate::deadline::timespec_until;
use crate::error::{Error, Result};
use crate::id::ContainerId;

/// Files of a container's directory.
pub mod names {
    /// What the container is.
    pub const RECORD: &str = "record.json";
    /// The record while it is written.
    pub const RECORD_NEW: &str = "record.json.new";
    /// Who is changing the container.
    pub const LOCK: &str = "lock";
    /// On this the init program waits for `start`; see `crate::gate`.
    pub const FIFO: &str = "exec.fifo";
    /// The compiled seccomp filter.
    pub const FILTER: &str = "seccomp.bpf";
}

/// The root: one directory for each container.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store below `root` (absolute), which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `st_dev` of the root, or of what it would be made in.
    pub fn device(&self) -> Option<u64> {
        self.root.ancestors().find_map(|dir| rustix::fs::stat(dir).ok()).map(|stat| stat.st_dev)
    }

    /// Reserves an id: makes its directory and takes its lock.
    ///
    /// # Errors
    ///
    /// The id is in use; the root cannot be made.
    pub fn reserve(&self, id: &ContainerId) -> Result<(ContainerDir, Lock)> {
        let _span = span("taking the id");
        let path = self.root.join(id.as_str());
        let mode = Mode::from_raw_mode(0o711);
        match rustix::fs::mkdir(&path, mode) {
            Err(Errno::NOENT) => {
                make_root(&self.root)?;
                rustix::fs::mkdir(&path, mode)
            }
            other => other,
        }
        .map_err(|e| match e {
            Errno::EXIST => Error::state("container with given ID already exists")
                .with_errno(e)
                .hint("choose another id, or remove that one with delete (--force if it still runs)"),
            e => SysError::path("mkdir", &path, e).into(),
        })?;
        // From here to the lock somebody may delete the fresh directory: then the lock cannot be made or is taken.
        let gone = |e: Error| e.context("the container was deleted while it was being created");
        let dir = self.open(id).map_err(gone)?;
        match dir.try_lock().map_err(gone)? {
            Some(lock) => Ok((dir, lock)),
            None => Err(gone(Error::state("its directory is locked"))),
        }
    }

    /// Opens the directory of a container.
    ///
    /// # Errors
    ///
    /// There is none of that id; it is a link or belongs to another user.
    pub fn open(&self, id: &ContainerId) -> Result<ContainerDir> {
        let path = self.root.join(id.as_str());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Err(Error::not_found()),
            Err(e) => return Err(Error::from(SysError::path("open", &path, e))),
        };
        check_owner(&rustix::fs::fstat(&fd).on_path("fstat", &path)?, &path)?;
        Ok(ContainerDir { id: id.clone(), path, fd })
    }

    /// The ids that have a directory, in no particular order; empty when the root does not exist.
    ///
    /// # Errors
    ///
    /// The root cannot be read.
    pub fn ids(&self) -> Result<Vec<ContainerId>> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&self.root, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(e) => return Err(SysError::path("open", &self.root, e).into()),
        };
        let mut ids = Vec::new();
        for entry in rustix::fs::Dir::new(fd).on_path("read", &self.root)? {
            let entry = entry.on_path("read", &self.root)?;
            let name = entry.file_name().to_str().ok();
            if let Some(id) = name.and_then(|name| ContainerId::parse(name).ok())
                && matches!(
                    entry.file_type(),
                    rustix::fs::FileType::Directory | rustix::fs::FileType::Unknown
                )
            {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

/// Refuses what others have made or can change: a record decides what is killed and removed, and what `exec` runs as whom.
fn check_owner(stat: &rustix::fs::Stat, path: &Path) -> Result<()> {
    let (owner, others) = (stat.st_uid, Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH));
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Error::attack(format!("{}: it belongs to user {owner}", path.display()))
            .hint("only the user who made a container may change it"));
    }
    if !others.is_empty() {
        return Err(Error::attack(format!("{}: others than its owner may write to it", path.display()))
            .hint("nothing in it can be trusted; remove it by hand, or take the permission away if you know who had it"));
    }
    Ok(())
}

/// Makes the root and what leads to it, for the owner only.
fn make_root(root: &Path) -> Result<()> {
    let mut missing: Vec<&Path> = root.ancestors().take_while(|p| !p.exists()).collect();
    while let Some(dir) = missing.pop() {
        match rustix::fs::mkdir(dir, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(SysError::path("mkdir", dir, e).into()),
        }
    }
    Ok(())
}

/// The directory of one container, open.
#[derive(Debug)]
pub struct ContainerDir {
    id: ContainerId,
    path: PathBuf,
    fd: OwnedFd,
}

impl ContainerDir {
    /// Whose it is.
    pub fn id(&self) -> &ContainerId {
        &self.id
    }

    /// Where it is, for messages and for what callers are told.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it, for messages.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What its cgroups are marked with.
    ///
    /// # Errors
    ///
    /// The directory cannot be looked at.
    pub fn mark(&self) -> Result<Mark> {
        let device = rustix::fs::fstat(&self.fd).on_path("fstat", &self.path)?.st_dev;
        let root = self.path.parent().unwrap_or(&self.path).to_owned();
        Ok(Mark { root, device, id: self.id.as_str().to_owned() })
    }

    /// Whether another runtime keeps its record here, under a name that is not ours.
    pub fn is_foreign(&self) -> bool {
        ["state.json", "status"].iter().any(|name| self.open_file(name, OFlags::PATH).is_ok())
    }

    /// Takes the lock if nobody has it.
    ///
    /// # Errors
    ///
    /// The directory was deleted meanwhile, or is not writable.
    pub fn try_lock(&self) -> Result<Option<Lock>> {
        let file = self.open_lock()?;
        match rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
            Err(e) => return Err(SysError::path("fcntl(F_SETLK)", self.file(names::LOCK), e).into()),
        }
        // Whoever held it before may have been a delete, and this file is the one it removed.
        let links = rustix::fs::fstat(&file).on_path("fstat", self.file(names::LOCK))?.st_nlink;
        if links == 0 { Err(Error::not_found()) } else { Ok(Some(Lock { _file: file })) }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    ///
    /// The deadline passed: the error names the process that holds it.
    pub fn lock(&self, deadline: Instant) -> Result<Lock> {
        // To close a watch takes the kernel some milliseconds (it waits for an SRCU grace period), and mostly there is no need for one.
        if let Some(lock) = self.try_lock()? {
            return Ok(lock);
        }
        // The holder's close of the file, by itself or with its death, is the event that is waited for.
        let watch = self.watch_lock()?;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            let Some(left) = timespec_until(deadline) else {
                let holder =
                    self.lock_holder()?.map_or_else(String::new, |h| format!(" by process {}", h.pid));
                return Err(Error::state(format!("container {} is being changed{holder}", self.id))
                    .hint("another command on this container has not finished"));
            };
            let mut fds = [PollFd::new(&watch, PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(SysError::new("poll", "the lock's watch", e).into()),
            }
            let mut events = [0_u8; 512];
            let _ = rustix::io::read(&watch, &mut events);
        }
    }

    fn watch_lock(&self) -> Result<OwnedFd> {
        // The file must be there to be watched; opened and closed here before this process can hold a lock on it.
        drop(self.open_lock()?);
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let watch = inotify::init(flags).on("inotify_init1", "")?;
        let path = format!("/proc/self/fd/{}/{}", self.fd.as_raw_fd(), names::LOCK);
        let events = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::DELETE_SELF;
        inotify::add_watch(&watch, &path, events).on_path("inotify_add_watch", self.file(names::LOCK))?;
        Ok(watch)
    }

    fn open_lock(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat(&self.fd, names::LOCK, flags, Mode::from_raw_mode(0o600)) {
            Ok(fd) => Ok(fd),
            Err(Errno::NOENT) => Err(Error::not_found()),
            Err(e) => Err(SysError::path("open", self.file(names::LOCK), e).into()),
        }
    }

    /// Who holds the lock: asked from the kernel, and asked again once its pidfd is open, so that it cannot be a stranger.
    ///
    /// # Errors
    ///
    /// The lock cannot be asked for.
    pub fn lock_holder(&self) -> Result<Option<Holder>> {
        let file = self.open_lock()?;
        let holder = || -> Result<Option<Pid>> {
            let probe = Flock {
                start: 0,
                length: 0,
                pid: None,
                typ: FlockType::WriteLock,
                offset_type: FlockOffsetType::Set,
            };
            let found = fcntl_getlk(&file, &probe).on_path("fcntl(F_GETLK)", self.file(names::LOCK))?;
            Ok(found.and_then(|lock| lock.pid))
        };
        let Some(pid) = holder()? else { return Ok(None) };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(None);
        };
        Ok((holder()? == Some(pid)).then_some(Holder { pid: pid.as_raw_nonzero().get(), pidfd }))
    }

    /// Reads a file of the directory, not following a link; `None` when there is none.
    ///
    /// # Errors
    ///
    /// It is a link, belongs to somebody else, or cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let path = || self.file(name);
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(SysError::path("open", path(), e).into()),
        };
        let stat = rustix::fs::fstat(&fd).on_path("fstat", path())?;
        check_owner(&stat, &path())?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(Error::attack(format!("{}: it is not a regular file", path().display())));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0) + 1);
        let mut file = std::fs::File::from(fd);
        std::io::Read::read_to_end(&mut file, &mut bytes)
            .map_err(|e| crate::error::io_error("read", &path(), &e))?;
        Ok(Some(bytes))
    }

    /// Replaces a file atomically. Only the holder of the lock calls this, so the name of the new file can be fixed.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn replace(&self, name: &str, new: &str, bytes: &[u8]) -> Result<()> {
        let file = self.create(new)?;
        brig_sys::write_all(file.as_fd(), bytes).on_path("write", self.file(new))?;
        drop(file);
        rustix::fs::renameat(&self.fd, new, &self.fd, name).on_path("rename", self.file(name))?;
        Ok(())
    }

    /// Makes a file, or empties the one that a killed command left.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create(&self, name: &str) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
            .on_path("open", self.file(name))?)
    }

    /// Opens a file of the directory.
    ///
    /// # Errors
    ///
    /// The errno of openat(2), bare: callers tell apart what is missing.
    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Removes the directory and all in it.
    ///
    /// # Errors
    ///
    /// What cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let _span = span("removing the record");
        for _ in 0..TRIES {
            remove_tree(self.fd.as_fd(), &self.path)?;
            match rustix::fs::rmdir(&self.path) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Another delete has removed this one, and what has its name now is a new container's.
                Err(Errno::NOTEMPTY) if self.is_removed()? => return Ok(()),
                Err(Errno::NOTEMPTY) => {}
                Err(e) => return Err(SysError::path("rmdir", &self.path, e).into()),
            }
        }
        Err(SysError::path("rmdir", &self.path, Errno::NOTEMPTY).into())
    }

    fn is_removed(&self) -> Result<bool> {
        Ok(rustix::fs::fstat(&self.fd).on_path("fstat", &self.path)?.st_nlink == 0)
    }
}

impl AsFd for ContainerDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// How often a directory is emptied. Between the last unlink and the rmdir, a command that is at work may make a file anew (its lock,
/// the record of an exec): once for each such command, and each ends when it finds the record gone.
const TRIES: usize = 64;

/// Empties a directory. The record goes when all else is gone, so that it is there for the next try. The lock file goes last: it is
/// held by the caller, and others see by it that the container is going.
fn remove_tree(dir: BorrowedFd<'_>, path: &Path) -> Result<()> {
    const LAST: [&str; 2] = [names::RECORD, names::LOCK];
    for entry in rustix::fs::Dir::read_from(dir).on_path("read", path)? {
        let entry = entry.on_path("read", path)?;
        let name = entry.file_name();
        if name == c"." || name == c".." || LAST.iter().any(|last| name.to_bytes() == last.as_bytes()) {
            continue;
        }
        let shown = || path.join(name.to_string_lossy().as_ref());
        remove_entry(dir, name, &shown())?;
    }
    for last in LAST {
        let name = CString::new(last).unwrap_or_default();
        remove_entry(dir, &name, &path.join(last))?;
    }
    Ok(())
}

fn remove_entry(dir: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                other => other.on_path("open", path)?,
            };
            for _ in 0..TRIES {
                remove_tree(below.as_fd(), path)?;
                match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => return Ok(()),
                    Err(Errno::NOTEMPTY) => {}
                    Err(e) => return Err(SysError::path("rmdir", path, e).into()),
                }
            }
            Err(SysError::path("rmdir", path, Errno::NOTEMPTY).into())
        }
        Err(e) => Err(SysError::path("unlink", path, e).into()),
    }
}

/// The lock on a container, held until dropped or until this process dies.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

/// The process that holds a lock.
#[derive(Debug)]
pub struct Holder {
    /// For messages.
    pub pid: i32,
    /// For signals.
    pub pidfd: OwnedFd,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn id(s: &str) -> ContainerId {
        ContainerId::parse(s).unwrap()
    }

    #[test]
    fn an_id_is_reserved_once_and_free_again_after_removal() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path().join("a/b"));
        let (dir, _lock) = store.reserve(&id("x")).unwrap();
        let again = store.reserve(&id("x")).unwrap_err();
        assert_eq!(again.message(), "container with given ID already exists");
        dir.replace(names::RECORD, names::RECORD_NEW, b"{}").unwrap();
        rustix::fs::mkdirat(&dir, "notify", Mode::from_raw_mode(0o755)).unwrap();
        dir.remove().unwrap();
        dir.remove().unwrap();
        assert!(store.ids().unwrap().is_empty());
        store.reserve(&id("x")).unwrap();
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("x")).unwrap();
        let store = Store::new(root.path());
        assert!(store.open(&id("x")).is_err());
        assert!(store.reserve(&id("x")).is_err());
        let (dir, _lock) = store.reserve(&id("y")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.file(names::RECORD)).unwrap();
        assert!(dir.read(names::RECORD).is_err());
    }

    #[test]
    fn a_lock_of_another_process_is_waited_for_and_named() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path());
        let (dir, lock) = store.reserve(&id("x")).unwrap();
        drop(lock);
        assert!(dir.lock_holder().unwrap().is_none());
        // A record lock is the process's, so another process is needed to hold it.
        let script = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); print('x',flush=True); sys.stdin.read()";
        #[allow(clippy::disallowed_methods, reason = "a test")]
        let mut other = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(dir.file(names::LOCK))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 2];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut ready).unwrap();
        assert!(dir.try_lock().unwrap().is_none());
        assert_eq!(dir.lock_holder().unwrap().unwrap().pid, i32::try_from(other.id()).unwrap());
        let busy = dir.lock(Instant::now()).unwrap_err();
        assert!(busy.to_string().contains(&format!("by process {}", other.id())), "{busy}");
        drop(other.stdin.take());
        dir.lock(Instant::now() + Duration::from_secs(30)).unwrap();
        other.wait().unwrap();
    }
}
