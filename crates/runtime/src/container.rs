//! A container as later commands find it: its directory, its record, its process.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use brig_cgroup::Cgroup;
use brig_spec::{ExecSummary, Status, Summary};

use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::gate;
use crate::id::ContainerId;
use crate::ident::has_ended;
use crate::passwd;
use crate::record::{Record, Stage};
use crate::store::{ContainerDir, Store};
use crate::timestamp::Timestamp;

/// How long a cgroup that is being frozen or thawed may take to settle.
const SETTLE: Duration = Duration::from_secs(10);

/// A container.
#[derive(Debug)]
pub struct Container {
    /// Its directory.
    pub dir: ContainerDir,
    /// What is known about it.
    pub record: Box<Record>,
}

impl Container {
    /// Finds a container.
    ///
    /// # Errors
    ///
    /// There is none of that id; its record is missing or damaged.
    pub fn load(store: &Store, id: &ContainerId) -> Result<Self> {
        let dir = store.open(id)?;
        // A directory without a record is one that `create` was killed in before it made anything.
        let record = Record::read(&dir)?.ok_or_else(Error::not_found)?;
        Ok(Self { dir, record })
    }

    /// Its id.
    pub fn id(&self) -> &ContainerId {
        self.dir.id()
    }

    /// Its cgroups, existing or not.
    ///
    /// # Errors
    ///
    /// The record names what cannot be a container's cgroup.
    pub fn cgroup(&self) -> Result<Cgroup> {
        Ok(Cgroup::open(&self.record.cgroup)?)
    }

    /// Its first process, unless that has ended.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn init(&self) -> Result<Option<OwnedFd>> {
        Ok(self.record.find(self.record.init.as_ref())?.filter(|pidfd| !has_ended(pidfd.as_fd())))
    }

    /// Whoever makes or made it, if that process is still there.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn creator(&self) -> Result<Option<OwnedFd>> {
        Ok(self.record.find(Some(&self.record.creator))?.filter(|pidfd| !has_ended(pidfd.as_fd())))
    }

    /// Its status, derived from the kernel in the order in which clients expect it: frozen comes first.
    ///
    /// # Errors
    ///
    /// A cgroup that is being frozen or thawed did not settle in time.
    pub fn status(&self) -> Result<Status> {
        if self.record.stage == Stage::Creating {
            return Ok(if self.creator()?.is_some() { Status::Creating } else { Status::Stopped });
        }
        if self.cgroup()?.self_frozen(after(SETTLE))? {
            return Ok(Status::Paused);
        }
        Ok(match self.init()? {
            None => Status::Stopped,
            Some(_) if self.waits_for_start()? => Status::Created,
            Some(_) => Status::Running,
        })
    }

    fn waits_for_start(&self) -> Result<bool> {
        if self.record.adopted { gate::is_there(&self.dir) } else { gate::is_closed(&self.dir) }
    }

    /// What `state` and `list` show. `owner` is known to `list` only.
    ///
    /// # Errors
    ///
    /// See [`Container::status`].
    pub fn summary(&self, owner: String) -> Result<Summary> {
        let status = self.status()?;
        let pid = if status == Status::Stopped { 0 } else { self.record.init.map_or(0, |init| init.pid) };
        Ok(Summary {
            oci_version: self.record.oci_version.clone(),
            id: self.id().as_str().to_owned(),
            pid,
            status,
            bundle: self.record.bundle.to_string_lossy().into_owned(),
            rootfs: self.record.rootfs.to_string_lossy().into_owned(),
            created: Timestamp::from_nanoseconds(self.record.created).to_string(),
            annotations: self.record.annotations.clone(),
            owner,
            execs: crate::execs::live(self)?,
        })
    }

    /// The state that hooks get.
    pub fn hook_state(&self, status: Status, pid: i32) -> String {
        crate::hooks::to_json(&brig_spec::State {
            oci_version: self.record.oci_version.clone(),
            id: self.id().as_str().to_owned(),
            status,
            pid,
            bundle: self.record.bundle.to_string_lossy().into_owned(),
            annotations: self.record.annotations.clone(),
        })
    }
}

/// The processes of a container that `exec` started under a name and that have not ended, by name.
///
/// # Errors
///
/// There is no such container.
pub fn execs(store: &Store, id: &ContainerId) -> Result<Vec<ExecSummary>> {
    crate::execs::live(&Container::load(store, id)?)
}

/// One line of `list`: a container, or why it could not be looked at.
pub type Listed = std::result::Result<Summary, (ContainerId, Error)>;

/// All containers of a root, by id.
///
/// # Errors
///
/// The root cannot be read.
pub fn list(store: &Store) -> Result<Vec<Listed>> {
    let mut ids = store.ids()?;
    ids.sort_unstable();
    let users = std::fs::read("/etc/passwd").unwrap_or_default();
    let mut listed = Vec::with_capacity(ids.len());
    for id in ids {
        let summary = Container::load(store, &id).and_then(|c| {
            let uid = rustix::fs::fstat(&c.dir).map_or(0, |stat| stat.st_uid);
            c.summary(passwd::name(&users, uid).unwrap_or_else(|| format!("#{uid}")))
        });
        listed.push(summary.doing(|| format!("load container {id}")).map_err(|e| (id, e)));
    }
    Ok(listed)
}
