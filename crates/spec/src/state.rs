//! What is told about a container: to hooks, to seccomp agents, and by the `state` and `list` commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a container is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// `create` is at work. Only hooks see it.
    Creating,
    /// Waits for `start`.
    Created,
    /// The process was executed and has not ended.
    Running,
    /// All processes are frozen. Not a status of the specification, but runc's.
    Paused,
    /// The process has ended.
    Stopped,
}

impl Status {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The specification's state, as hooks get it on their standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The version of the specification that the runtime followed.
    pub oci_version: String,
    /// The container.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// Its process; 0 (not written) when there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pid: i32,
    /// The bundle directory, absolute.
    pub bundle: String,
    /// `annotations` of `config.json`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What the `state` command prints, and `list --format json` for each container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The version of the specification that the creating runtime followed.
    pub oci_version: String,
    /// The container.
    pub id: String,
    /// Its process; 0 when it is stopped.
    pub pid: i32,
    /// Its status.
    pub status: Status,
    /// The bundle directory, absolute.
    pub bundle: String,
    /// The root file system, absolute.
    pub rootfs: String,
    /// RFC 3339 with nanoseconds.
    pub created: String,
    /// `annotations` of `config.json`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// User name of the record's owner; only `list` knows it.
    pub owner: String,
    /// Processes that `exec` started under a name and that have not ended. Not runc's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub execs: Vec<ExecSummary>,
}

/// A process that `exec` started under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExecSummary {
    /// Its name.
    pub id: String,
    /// Its pid on the host.
    pub pid: i32,
    /// argv.
    pub args: Vec<String>,
    /// RFC 3339 with nanoseconds.
    pub started: String,
}

/// What a seccomp agent gets together with the listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessState {
    /// The version of the specification that the runtime followed.
    pub oci_version: String,
    /// Names of the descriptors sent along, in their order: `seccompFd`.
    pub fds: Vec<String>,
    /// The process that has the filter, as the runtime sees it.
    pub pid: i32,
    /// `listenerMetadata` of the filter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metadata: String,
    /// The container.
    pub state: State,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(pid: &i32) -> bool {
    *pid == 0
}
