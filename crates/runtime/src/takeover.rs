//! Containers that runc made and that are there when brig takes its place: brig reads runc's record, `state.json`, and never
//! writes it, so that runc can be put back.
//!
//! What a later command changes (the limits) goes into a record of brig's own beside it, which is read first from then on.
//! runc's record has no process to start an `exec` from: that is in the bundle, where runc itself looks for it each time.

mod seccomp;
mod state;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use brig_cgroup::{Layout, Names};
use brig_spec::{Capabilities, Hook, Hooks, Process, Spec, User};
use brig_sys::Context;
use brig_sys::process::CloneFlags;

use crate::error::{Doing, Error, Result};
use crate::filter::LoadedFilter;
use crate::ident::Ident;
use crate::record::{FilterRecord, Record, Stage};
use crate::store::ContainerDir;
use crate::timestamp::Timestamp;

/// runc's record.
const STATE: &str = "state.json";

/// Reads runc's record as one of ours; `None` when there is none.
///
/// # Errors
///
/// It is damaged, or names what cannot be a container's cgroup.
pub fn read(dir: &ContainerDir) -> Result<Option<Record>> {
    match read_state(dir)? {
        Some(state) => to_record(state).map(Some).doing(|| dir.file(STATE).display().to_string()),
        None => Ok(None),
    }
}

/// The process that an `exec` without a description of its own starts from: the bundle's, confined as the container is.
///
/// # Errors
///
/// The bundle is gone, or its configuration cannot be read.
pub fn process(record: &Record) -> Result<Process> {
    let path = record.bundle.join("config.json");
    let bytes = std::fs::read(&path).map_err(|e| {
        Error::from(crate::error::io_error("read", &path, &e)).hint(
            "the container is runc's, which keeps its process in the bundle; --process FILE needs no bundle",
        )
    })?;
    let (spec, _unknown): (Spec, _) = Spec::from_slice(&bytes)
        .map_err(|e| Error::config(e.to_string()).context(path.display().to_string()))?;
    let given = spec.process.unwrap_or_default();
    let confined = record.process.clone();
    Ok(Process {
        user: User { umask: confined.user.umask, ..given.user.clone() },
        args: given.args,
        env: given.env,
        cwd: given.cwd,
        rlimits: given.rlimits,
        exec_cpu_affinity: given.exec_cpu_affinity,
        ..confined
    })
}

/// The container's seccomp filter, compiled anew: runc's record has the profile, and no program.
///
/// # Errors
///
/// The profile cannot be compiled.
pub fn filter(dir: &ContainerDir) -> Result<OwnedFd> {
    let file = memfd_create(c"brig-filter", MemfdFlags::CLOEXEC).on("memfd_create", "the seccomp filter")?;
    let profile = read_state(dir)?.and_then(|state| state.config.seccomp).unwrap_or_default();
    if let Some(filter) = LoadedFilter::compile(&profile.into())? {
        filter.write(std::os::fd::AsFd::as_fd(&file))?;
    }
    Ok(file)
}

fn read_state(dir: &ContainerDir) -> Result<Option<state::State>> {
    let Some(bytes) = dir.read(STATE)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        Error::state(format!("{}: runc's record cannot be read: {e}", dir.file(STATE).display()))
            .hint("delete --force removes the container all the same")
    })
}

fn to_record(state: state::State) -> Result<Record> {
    let config = state.config;
    let init = Ident { pid: state.init_process_pid, start: state.init_process_start, inode: 0 };
    let cgroup =
        Names::adopt(&Layout::detect()?, &state.cgroup_paths, config.rootless_cgroups || state.rootless)?;
    let (annotations, bundle) = labels(&config.labels);
    let own = |kind: &str| config.namespaces.iter().any(|ns| ns.kind == kind && ns.path.is_empty());
    Ok(Record {
        rdt: None,
        version: Record::VERSION,
        adopted: true,
        stage: Stage::Created,
        boot: String::new(),
        creator: init,
        init: Some(init),
        created: Timestamp::parse(&state.created).map_or(0, Timestamp::nanoseconds),
        oci_version: config.version,
        bundle,
        rootfs: config.rootfs,
        annotations,
        own_pid_namespace: own("NEWPID"),
        namespaces: config.namespaces.iter().map(|ns| clone_flag(&ns.kind).bits()).fold(0, |a, b| a | b),
        cgroup,
        rootless: config.rootless_euid,
        keep_keyring: config.no_new_keyring,
        process: Process {
            user: User { umask: config.umask, ..User::default() },
            cwd: "/".to_owned(),
            capabilities: config.capabilities.map(Capabilities::from),
            no_new_privileges: config.no_new_privileges,
            apparmor_profile: config.apparmor_profile,
            selinux_label: config.process_label,
            oom_score_adj: config.oom_score_adj,
            scheduler: config.scheduler,
            io_priority: config.io_priority,
            ..Process::default()
        },
        personality: config.personality.map(|personality| personality.domain),
        memory_policy: None,
        filter: config.seccomp.map(|seccomp| FilterRecord {
            listener_path: Some(seccomp.listener_path).filter(|path| !path.is_empty()),
            listener_metadata: seccomp.listener_metadata,
        }),
        resources: config.cgroups.map(Into::into).unwrap_or_default(),
        hooks: hooks(config.hooks),
        mounted_over: None,
        called_as: "runc".to_owned(),
    })
}

/// runc keeps annotations as `key=value`, and the bundle among them.
fn labels(labels: &[String]) -> (BTreeMap<String, String>, PathBuf) {
    let mut annotations: BTreeMap<String, String> = labels
        .iter()
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    // The last of the list, and so the one that holds.
    let bundle = annotations.remove("bundle").unwrap_or_default();
    (annotations, PathBuf::from(bundle))
}

fn clone_flag(kind: &str) -> CloneFlags {
    match kind {
        "NEWNS" => CloneFlags::NEWNS,
        "NEWCGROUP" => CloneFlags::NEWCGROUP,
        "NEWUTS" => CloneFlags::NEWUTS,
        "NEWIPC" => CloneFlags::NEWIPC,
        "NEWUSER" => CloneFlags::NEWUSER,
        "NEWPID" => CloneFlags::NEWPID,
        "NEWNET" => CloneFlags::NEWNET,
        "NEWTIME" => CloneFlags::NEWTIME,
        _ => CloneFlags::empty(),
    }
}

/// Those that later commands run.
fn hooks(given: state::Hooks) -> Hooks {
    let convert = |hooks: Vec<state::Hook>| hooks.into_iter().map(Hook::from).collect();
    Hooks { poststart: convert(given.poststart), poststop: convert(given.poststop), ..Hooks::default() }
}

#[cfg(test)]
mod tests;
