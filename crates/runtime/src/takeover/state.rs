//! runc's `state.json`, as versions 1.1 to 1.5 write it: what of it later commands need.
//!
//! Old versions write zeros and `null` where new ones leave members out. Members that are not here are ignored.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use brig_spec::{Capabilities, Cpu, Hook as SpecHook, IoPriority, Memory, Pids, Resources, Scheduler};

use super::seccomp::Seccomp;

/// A member that may be `null`.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct State {
    pub init_process_pid: i32,
    /// Field 22 of `/proc/PID/stat`.
    pub init_process_start: u64,
    /// RFC 3339.
    pub created: String,
    pub config: Config,
    /// Until 1.1: the lack of permission for cgroups is tolerated.
    pub rootless: bool,
    /// Controller to directory; `""` for the v2 hierarchy.
    #[serde(deserialize_with = "nullable")]
    pub cgroup_paths: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    pub rootfs: PathBuf,
    pub umask: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    pub namespaces: Vec<Namespace>,
    pub capabilities: Option<CapabilitySets>,
    pub cgroups: Option<Cgroups>,
    pub apparmor_profile: String,
    pub process_label: String,
    pub oom_score_adj: Option<i32>,
    pub seccomp: Option<Seccomp>,
    pub no_new_privileges: bool,
    #[serde(rename = "Hooks", deserialize_with = "nullable")]
    pub hooks: Hooks,
    /// `ociVersion`.
    pub version: String,
    #[serde(deserialize_with = "nullable")]
    pub labels: Vec<String>,
    pub no_new_keyring: bool,
    pub rootless_euid: bool,
    pub rootless_cgroups: bool,
    pub scheduler: Option<Scheduler>,
    pub io_priority: Option<IoPriority>,
    pub personality: Option<Personality>,
}

#[derive(Debug, Deserialize)]
pub struct Namespace {
    /// Such as `NEWPID`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Empty for one made for the container.
    #[serde(default)]
    pub path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CapabilitySets {
    #[serde(deserialize_with = "nullable")]
    bounding: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    effective: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    inheritable: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    permitted: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    ambient: Vec<String>,
}

impl From<CapabilitySets> for Capabilities {
    fn from(sets: CapabilitySets) -> Self {
        Self {
            bounding: sets.bounding,
            effective: sets.effective,
            inheritable: sets.inheritable,
            permitted: sets.permitted,
            ambient: sets.ambient,
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Personality {
    pub domain: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Hooks {
    #[serde(deserialize_with = "nullable")]
    pub poststart: Vec<Hook>,
    #[serde(deserialize_with = "nullable")]
    pub poststop: Vec<Hook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Hook {
    path: String,
    #[serde(deserialize_with = "nullable")]
    args: Vec<String>,
    env: Option<Vec<String>>,
    /// Nanoseconds.
    timeout: Option<i64>,
}

impl From<Hook> for SpecHook {
    fn from(hook: Hook) -> Self {
        let timeout = hook.timeout.map(|ns| (ns / 1_000_000_000).max(1));
        Self { path: hook.path, args: hook.args, env: hook.env, timeout }
    }
}

/// The limits that `update` writes together with others. 0 is none, in old versions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cgroups {
    memory: i64,
    memory_reservation: i64,
    memory_swap: i64,
    memory_swappiness: Option<u64>,
    oom_kill_disable: bool,
    cpu_shares: u64,
    cpu_quota: i64,
    cpu_burst: Option<u64>,
    cpu_period: u64,
    cpu_rt_quota: i64,
    cpu_rt_period: u64,
    cpuset_cpus: String,
    cpuset_mems: String,
    cpu_idle: Option<i64>,
    pids_limit: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    unified: BTreeMap<String, String>,
}

fn set<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

impl From<Cgroups> for Resources {
    fn from(given: Cgroups) -> Self {
        let memory = Memory {
            limit: set(given.memory),
            reservation: set(given.memory_reservation),
            swap: set(given.memory_swap),
            swappiness: given.memory_swappiness,
            disable_oom_killer: set(given.oom_kill_disable),
            ..Memory::default()
        };
        let cpu = Cpu {
            shares: set(given.cpu_shares),
            quota: set(given.cpu_quota),
            burst: given.cpu_burst,
            period: set(given.cpu_period),
            realtime_runtime: set(given.cpu_rt_quota),
            realtime_period: set(given.cpu_rt_period),
            cpus: given.cpuset_cpus,
            mems: given.cpuset_mems,
            idle: given.cpu_idle,
        };
        let pids = given.pids_limit.and_then(set).map(|limit| Pids { limit: Some(limit) });
        Self { memory: Some(memory), cpu: Some(cpu), pids, unified: given.unified, ..Self::default() }
    }
}
