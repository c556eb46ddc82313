//! Processes that `exec` started under a name (`--exec-id`): each has a record of its own in the container's directory, so that
//! it can be listed, signalled and waited for.
//!
//! A record is replaced as a whole, and whoever adds, replaces or removes one holds the lock of their directory, for that moment
//! only: nobody removes the record of one who has just taken a name that had become free. `delete` takes the directory away
//! without asking.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use brig_cgroup::{Cgroup, Names};
use brig_spec::ExecSummary;
use brig_sys::{Context, SysError};

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Error, Kind, Result};
use crate::ident::{Ident, has_ended};
use crate::store::ContainerDir;
use crate::timestamp::Timestamp;

/// Directory of these records.
const DIRECTORY: &str = "execs";
/// A record while it is written.
const NEW: &str = "execs/~new";
/// What the cgroup of such a process is called, followed by its name.
const CGROUP_PREFIX: &str = "brig-exec-";
/// How often the records of processes that have ended are looked for when a name is taken: whenever there is this number more.
const SWEEP_EVERY: usize = 64;

/// Such a process, on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecRecord {
    /// Its name.
    pub id: String,
    /// The command that starts it, or started it.
    pub creator: Ident,
    /// The process; not before it is about to execute its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Ident>,
    /// argv.
    pub args: Vec<String>,
    /// Nanoseconds since the epoch.
    pub started: u64,
    /// Its own cgroup below the container's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Names>,
}

impl ExecRecord {
    /// The name of the cgroup for a process of this name.
    pub fn cgroup_name(id: &str) -> String {
        format!("{CGROUP_PREFIX}{id}")
    }

    /// Reserves the name: the record is there before the process and its cgroup. One of which nothing is left gives way.
    ///
    /// # Errors
    ///
    /// The name is in use.
    pub fn reserve(&self, container: &Container) -> Result<()> {
        match rustix::fs::mkdirat(&container.dir, DIRECTORY, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(SysError::path("mkdirat", container.dir.file(DIRECTORY), e).into()),
        }
        let lock = Execs::open(container)?.ok_or_else(Error::not_found)?;
        lock.take()?;
        let ids = lock.ids()?;
        if ids.len() % SWEEP_EVERY == SWEEP_EVERY - 1 {
            lock.sweep(&ids)?;
        }
        if let Some(old) = find(&container.dir, &self.id)?
            && !lock.clear(&old)?
        {
            return Err(Error::state(format!("exec with given ID already exists: {}", self.id)));
        }
        self.replace(&container.dir)
    }

    /// Replaces the record by one that names the process.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, container: &Container) -> Result<()> {
        let lock = Execs::open(container)?.ok_or_else(Error::not_found)?;
        lock.take()?;
        self.replace(&container.dir)
    }

    fn replace(&self, dir: &ContainerDir) -> Result<()> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(Kind::Internal, format!("writing the exec's record: {e}")))?;
        dir.replace(&file_name(&self.id), NEW, &bytes)
    }

    /// The process, if it has not ended.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn open(&self, container: &Container) -> Result<Option<OwnedFd>> {
        let pidfd = container.record.find(self.process.as_ref())?;
        Ok(pidfd.filter(|fd| !has_ended(fd.as_fd())))
    }

    /// Whether the process has not been made known yet by a command that is at work on it.
    ///
    /// # Errors
    ///
    /// As [`ExecRecord::open`].
    pub fn is_starting(&self, container: &Container) -> Result<bool> {
        let creator = || container.record.find(Some(&self.creator));
        Ok(self.process.is_none() && creator()?.is_some_and(|fd| !has_ended(fd.as_fd())))
    }

    /// Its own cgroup.
    ///
    /// # Errors
    ///
    /// The record is damaged.
    pub fn cgroup(&self) -> Result<Option<Cgroup>> {
        Ok(self.cgroup.as_ref().map(Cgroup::open).transpose()?)
    }

    /// It has ended: removes its cgroup and its record. Both stay while there is anything left of what it started in a cgroup of
    /// its own, for `kill` to find.
    ///
    /// # Errors
    ///
    /// The record cannot be removed.
    pub fn forget(&self, container: &Container) -> Result<()> {
        let Some(lock) = Execs::open(container)? else { return Ok(()) };
        lock.take()?;
        // Another may have the name by now.
        if find(&container.dir, &self.id)?.is_some_and(|found| found.creator == self.creator) {
            lock.remove(self)?;
        }
        Ok(())
    }
}

fn file_name(id: &str) -> String {
    format!("{DIRECTORY}/{id}.json")
}

/// The record of that name, whether its process lives or not.
///
/// # Errors
///
/// It cannot be read.
pub fn find(dir: &ContainerDir, id: &str) -> Result<Option<ExecRecord>> {
    let Some(bytes) = dir.read(&file_name(id))? else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(record) => Ok(Some(record)),
        Err(e) => {
            log::warn!("{}: {e}", dir.file(&file_name(id)).display());
            Ok(None)
        }
    }
}

/// Those whose processes live, by name.
///
/// # Errors
///
/// The directory cannot be read.
pub fn live(container: &Container) -> Result<Vec<ExecSummary>> {
    let Some(execs) = Execs::open(container)? else { return Ok(Vec::new()) };
    let ids = execs.ids()?;
    let mut found = Vec::new();
    for id in &ids {
        let Some(record) = find(&container.dir, id)? else { continue };
        if let (Some(process), Some(_)) = (record.process, record.open(container)?) {
            found.push(ExecSummary {
                id: record.id,
                pid: process.pid,
                args: record.args,
                started: Timestamp::from_nanoseconds(record.started).to_string(),
            });
        }
    }
    if found.len() < ids.len() && execs.try_take()? {
        // Nobody has asked for it, so nobody is told what is in the way.
        let _ = execs.sweep(&ids);
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// The directory of the records. Its lock, once taken, is held until this is dropped.
#[derive(Debug)]
struct Execs<'a> {
    container: &'a Container,
    fd: OwnedFd,
}

impl<'a> Execs<'a> {
    /// `None` when there never was such a process.
    fn open(container: &'a Container) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&container.dir, DIRECTORY, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { container, fd })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(SysError::path("open", container.dir.file(DIRECTORY), e).into()),
        }
    }

    /// Takes the lock. Its holders neither clone nor wait while they have it.
    fn take(&self) -> Result<()> {
        loop {
            match flock(&self.fd, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                other => return Ok(other.on_path("flock", self.container.dir.file(DIRECTORY))?),
            }
        }
    }

    fn try_take(&self) -> Result<bool> {
        match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(e) => Err(SysError::path("flock", self.container.dir.file(DIRECTORY), e).into()),
        }
    }

    fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        let path = || self.container.dir.file(DIRECTORY);
        for entry in rustix::fs::Dir::read_from(&self.fd).on_path("read", path())? {
            let entry = entry.on_path("read", path())?;
            let name = entry.file_name().to_string_lossy();
            ids.extend(name.strip_suffix(".json").map(str::to_owned));
        }
        Ok(ids)
    }

    /// Removes the records of those of which nothing is left.
    fn sweep(&self, ids: &[String]) -> Result<()> {
        for id in ids {
            if let Some(record) = find(&self.container.dir, id)? {
                self.clear(&record)?;
            }
        }
        Ok(())
    }

    /// Removes a record unless its process is there, or is about to be, or has left something. Says whether it is gone.
    fn clear(&self, record: &ExecRecord) -> Result<bool> {
        if record.open(self.container)?.is_some() || record.is_starting(self.container)? {
            return Ok(false);
        }
        self.remove(record)
    }

    /// Removes a record, and its cgroup first. Not while somebody is in that: says whether it is gone.
    fn remove(&self, record: &ExecRecord) -> Result<bool> {
        if let Some(cgroup) = record.cgroup()? {
            if cgroup.is_populated()? {
                return Ok(false);
            }
            cgroup.remove(after(Duration::from_secs(1)))?;
        }
        match rustix::fs::unlinkat(&self.container.dir, file_name(&record.id), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(e) => {
                Err(SysError::path("unlink", self.container.dir.file(&file_name(&record.id)), e).into())
            }
        }
    }
}

#[cfg(test)]
mod tests;
