//! Processes that `exec` started under a name (`--exec-id`): each has a record of its own in the container's directory, so that
//! it can be listed, signalled and waited for.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use brig_cgroup::{Cgroup, Names};
use brig_spec::ExecSummary;
use brig_sys::{Context, SysError};

use crate::error::{Error, Kind, Result};
use crate::ident::{Ident, has_ended};
use crate::store::ContainerDir;
use crate::timestamp::Timestamp;

/// Directory of these records.
const DIRECTORY: &str = "execs";
/// What the cgroup of such a process is called, followed by its name.
const CGROUP_PREFIX: &str = "brig-exec-";

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

    /// Reserves the name: the record is there before the process. One whose process has ended gives way.
    ///
    /// # Errors
    ///
    /// The name is in use.
    pub fn reserve(&self, dir: &ContainerDir) -> Result<()> {
        match rustix::fs::mkdirat(dir, DIRECTORY, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(SysError::path("mkdirat", dir.file(DIRECTORY), e).into()),
        }
        if let Some(old) = find(dir, &self.id)? {
            if old.is_in_use()? {
                return Err(Error::state(format!("exec with given ID already exists: {}", self.id)));
            }
            old.forget(dir)?;
        }
        let path = dir.file(&file_name(&self.id));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, file_name(&self.id), flags, Mode::from_raw_mode(0o600));
        let file = file.map_err(|e| match e {
            Errno::EXIST => Error::state(format!("exec with given ID already exists: {}", self.id)),
            e => SysError::path("open", &path, e).into(),
        })?;
        Ok(brig_sys::write_all(file.as_fd(), &self.to_bytes()?).on_path("write", &path)?)
    }

    /// Replaces the record.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, dir: &ContainerDir) -> Result<()> {
        dir.replace(&file_name(&self.id), &format!("{DIRECTORY}/~{}", self.id), &self.to_bytes()?)
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|e| Error::new(Kind::Internal, format!("writing the exec's record: {e}")))
    }

    /// The process, if it has not ended.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn open(&self) -> Result<Option<OwnedFd>> {
        let pidfd = self.process.map(|process| process.open()).transpose()?.flatten();
        Ok(pidfd.filter(|fd| !has_ended(fd.as_fd())))
    }

    /// Whether the process, or the command that starts it, is there.
    fn is_in_use(&self) -> Result<bool> {
        match self.process {
            Some(_) => Ok(self.open()?.is_some()),
            None => self.creator.is_alive(),
        }
    }

    /// Its own cgroup.
    ///
    /// # Errors
    ///
    /// The record is damaged.
    pub fn cgroup(&self) -> Result<Option<Cgroup>> {
        Ok(self.cgroup.as_ref().map(Cgroup::open).transpose()?)
    }

    /// Removes the record, and the cgroup if nobody is in it. What the process left running keeps the latter.
    ///
    /// # Errors
    ///
    /// The record cannot be removed.
    pub fn forget(&self, dir: &ContainerDir) -> Result<()> {
        if let Some(cgroup) = self.cgroup()? {
            let _ = cgroup.remove(std::time::Instant::now());
        }
        match rustix::fs::unlinkat(dir, file_name(&self.id), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(SysError::path("unlink", dir.file(&file_name(&self.id)), e).into()),
        }
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
    // One that is just being written is one whose command is at work.
    Ok(serde_json::from_slice(&bytes).ok())
}

/// Those whose processes live, by name. Records of others are removed on the way.
///
/// # Errors
///
/// The directory cannot be read.
pub fn live(dir: &ContainerDir) -> Result<Vec<ExecSummary>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let execs = match rustix::fs::openat(dir, DIRECTORY, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(e) => return Err(SysError::path("open", dir.file(DIRECTORY), e).into()),
    };
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::new(execs).on_path("read", dir.file(DIRECTORY))? {
        let entry = entry.on_path("read", dir.file(DIRECTORY))?;
        let name = entry.file_name().to_string_lossy();
        let Some(id) = name.strip_suffix(".json").filter(|id| !id.starts_with('~')) else { continue };
        let Some(record) = find(dir, id)? else { continue };
        match (record.process, record.open()?) {
            (Some(process), Some(_)) => found.push(ExecSummary {
                id: record.id,
                pid: process.pid,
                args: record.args,
                started: Timestamp::from_nanoseconds(record.started).to_string(),
            }),
            _ if !record.is_in_use()? => record.forget(dir)?,
            _ => {}
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}
