//! What is known about a container, on disk.
//!
//! Everything that outlives a command is named here before it is made (promise 1), and the record is replaced as a
//! whole, so that whoever reads it finds one state or the next and nothing between. Of `config.json` it keeps what later
//! commands need: later edits of that file have no effect, as the specification wants it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use brig_sys::trace::span;
use serde::{Deserialize, Serialize};

use crate::boot;
use crate::error::{Doing, Error, Result};
use crate::ident::Ident;
use crate::store::{ContainerDir, names};
use crate::takeover;

/// Version of the record's format.
const VERSION: u32 = 1;

/// How far a container has come. What follows from the kernel (stopped, paused, created or running) is not written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Its creator is at work, or was killed at it.
    Creating,
    /// It depends on nobody any more.
    Created,
}

/// What goes with a container's seccomp filter; the filter itself is in a file beside the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterRecord {
    /// Socket of the agent, when the filter notifies one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener_path: Option<String>,
    /// Passed on to the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub listener_metadata: String,
}

/// A container's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub version: u32,
    /// runc made the container: its record lies beside this one, see `crate::takeover`.
    #[serde(default)]
    pub adopted: bool,
    /// See [`Stage`].
    pub stage: Stage,
    /// Boot that the processes below belong to; empty where the record does not survive a boot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// Who makes, or made, the container.
    pub creator: Ident,
    /// The container's first process; not before [`Stage::Created`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<Ident>,
    /// When it became created: nanoseconds since the epoch.
    #[serde(default)]
    pub created: u64,
    /// `ociVersion` of its config.
    pub oci_version: String,
    /// Bundle directory, absolute.
    pub bundle: PathBuf,
    /// Root file system on the host, absolute.
    pub rootfs: PathBuf,
    /// `annotations`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its cgroups.
    pub cgroup: brig_cgroup::Names,
    /// Namespaces other than the runtime's, as flags of clone(2).
    pub namespaces: u64,
    /// Whether the pid namespace was made for it: then the end of its init ends all of it.
    pub own_pid_namespace: bool,
    /// The runtime's process is not root in the initial user namespace.
    #[serde(default)]
    pub rootless: bool,
    /// Keep the caller's session keyring.
    #[serde(default)]
    pub keep_keyring: bool,
    /// What `exec` starts from.
    pub process: brig_spec::Process,
    /// `linux.personality`, as personality(2) takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personality: Option<u32>,
    /// `linux.memoryPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<brig_spec::MemoryPolicy>,
    /// The seccomp filter, compiled in the file beside the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterRecord>,
    /// Limits in force, for `update` to merge with.
    #[serde(default)]
    pub resources: brig_spec::Resources,
    /// Hooks that later commands run.
    #[serde(default)]
    pub hooks: brig_spec::Hooks,
    /// Without a mount namespace: mount id of what lay at `rootfs` before. Whatever is mounted there since is the container's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted_over: Option<u64>,
    /// Its resctrl groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdt: Option<crate::rdt::Groups>,
    /// Name of the program that made it, `brig` or what it was called as; the init program is named after it.
    #[serde(default)]
    pub called_as: String,
}

impl Record {
    /// The version to write.
    pub const VERSION: u32 = VERSION;

    /// Opens a process that the record names, if it is still there and still the same.
    ///
    /// # Errors
    ///
    /// EMFILE and its like.
    pub fn find(&self, ident: Option<&Ident>) -> Result<Option<OwnedFd>> {
        match ident {
            Some(ident) if self.boot.is_empty() || self.boot == boot::current() => ident.open(),
            _ => Ok(None),
        }
    }

    /// Its hooks as they are to be run.
    pub fn planned_hooks(&self) -> brig_plan::Hooks {
        brig_plan::hooks(&self.hooks, &brig_plan::extensions(&self.annotations))
    }

    /// Writes the record, replacing the one before.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, dir: &ContainerDir) -> Result<()> {
        let _span = span("writing the record");
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(crate::error::Kind::Internal, format!("writing the record: {e}")))?;
        dir.replace(names::RECORD, names::RECORD_NEW, &bytes).doing(|| "writing the record")
    }

    /// Reads the record, or the one that runc left; `None` when there is none.
    ///
    /// # Errors
    ///
    /// It is damaged, or of a version that this program does not know.
    pub fn read(dir: &ContainerDir) -> Result<Option<Box<Self>>> {
        let _span = span("reading the record");
        let Some(bytes) = dir.read(names::RECORD)? else {
            return takeover::read(dir).map(|found| found.map(Box::new));
        };
        Self::parse(&bytes).map(Some).doing(|| dir.file(names::RECORD).display().to_string())
    }

    /// Reads a record from its bytes.
    ///
    /// # Errors
    ///
    /// As [`Record::read`].
    pub fn parse(bytes: &[u8]) -> Result<Box<Self>> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let broken = |e: serde_json::Error| {
            Error::state(format!("the record cannot be read: {e}"))
                .hint("delete --force removes the container all the same")
        };
        let head: Head = serde_json::from_slice(bytes).map_err(broken)?;
        if head.version != VERSION {
            return Err(Error::state(format!(
                "the record has version {}, this brig reads {VERSION}",
                head.version
            ))
            .hint("delete --force removes the container all the same"));
        }
        serde_json::from_slice(bytes).map_err(broken)
    }
}
