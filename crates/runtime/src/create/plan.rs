//! From the bundle to the plan and to the first record.

use std::os::fd::OwnedFd;

use brig_cgroup::{Layout, Names};
use brig_plan::{Ns, Plan};
use brig_spec::Spec;
use brig_sys::trace::span;

use super::CreateRequest;
use super::unit::{self, UnitPlan};
use crate::bundle::{Bundle, open_rootfs};
use crate::error::{Error, Result};
use crate::fds::{self, Passed};
use crate::host;
use crate::ident::Ident;
use crate::notify;
use crate::rdt;
use crate::record::{FilterRecord, Record, Stage};

/// Everything that is decided before anything is made. The large parts are boxed: moved by value, their copies made the
/// stack twice as deep, and each page of it costs a fault in the parent and another one in the child.
#[derive(Debug)]
pub(super) struct Decided {
    pub spec: Box<Spec>,
    pub plan: Box<Plan>,
    pub cgroup: Names,
    /// With systemd: what is to be told to it.
    pub unit: Option<UnitPlan>,
    pub passed: Passed,
    /// Where `linux.intelRdt` puts it.
    pub rdt: Option<rdt::Groups>,
    /// The root file system, open; its path is known to be without links.
    pub _rootfs: OwnedFd,
}

/// Decides. Makes nothing.
pub(super) fn decide(request: &CreateRequest, detached: bool) -> Result<Decided> {
    let bundle = Bundle::enter(request.bundle.as_deref())?;
    let _span = span("planning");
    let layout = Layout::detect()?;
    let mut facts = host::probe(&bundle.spec, &layout)?;
    if request.systemd_cgroup {
        unit::probe(&mut facts)?;
    }
    let wishes = brig_plan::Request {
        id: request.id.as_str().to_owned(),
        bundle: bundle.dir.clone(),
        no_pivot: request.no_pivot,
        systemd_cgroup: request.systemd_cgroup,
        rootless: request.rootless,
        keep_keyring: request.no_new_keyring,
        detached,
        console_socket: request.console_socket.is_some(),
    };
    let (plan, warnings) = Plan::new(&bundle.spec, &wishes, &facts).map_err(from_problem)?;
    let mut plan = Box::new(plan);
    for warning in &warnings {
        tell(warning);
    }
    let rootfs = open_rootfs(&plan.rootfs)?;
    let passed = fds::passed(request.preserve_fds, true)?;
    plan.process.env.extend(passed.env.iter().cloned());
    if notify::manager().is_some() {
        let (mount, variable) = notify::provisions(&request.store, &request.id, plan.mounts.len());
        plan.mounts.push(mount);
        plan.process.env.retain(|e| !e.starts_with("NOTIFY_SOCKET="));
        plan.process.env.push(variable);
    }
    let place = brig_cgroup::Request {
        cgroups_path: &plan.cgroup.path,
        id: request.id.as_str(),
        rootless: plan.rootless_cgroups,
    };
    let (cgroup, unit) = if plan.cgroup.systemd {
        let (names, unit) = unit::decide(&layout, &place, &plan.cgroup)?;
        (names, Some(unit))
    } else {
        (Names::decide(&layout, &place)?, None)
    };
    let rdt =
        plan.intel_rdt.as_ref().map(|given| rdt::Groups::decide(given, request.id.as_str())).transpose()?;
    Ok(Decided { spec: bundle.spec, plan, cgroup, unit, passed, rdt, _rootfs: rootfs })
}

/// Warnings go to a level that the log does not show unasked, since callers take whatever is on it for the error; but for
/// capabilities, where somebody is about to wonder why a program cannot do what it should.
pub(crate) fn tell(warning: &brig_plan::Problem) {
    let level =
        if warning.path.starts_with("process.capabilities") { log::Level::Warn } else { log::Level::Debug };
    log::log!(level, "{warning}");
}

/// A complaint of the planner as an error.
pub(crate) fn from_problem(problem: brig_plan::Problem) -> Error {
    let error = Error::config(problem.to_string());
    match problem.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The record before anything of the container is there.
pub(super) fn first_record(request: &CreateRequest, decided: &Decided) -> Result<Box<Record>> {
    let Decided { spec, plan, .. } = decided;
    Ok(Box::new(Record {
        version: Record::VERSION,
        adopted: false,
        stage: Stage::Creating,
        boot: crate::boot::id_for(request.store.root()),
        creator: Ident::own()?,
        init: None,
        created: 0,
        oci_version: plan.oci_version.clone(),
        bundle: plan.bundle.clone(),
        rootfs: plan.rootfs.clone(),
        annotations: plan.annotations.clone(),
        cgroup: decided.cgroup.clone(),
        namespaces: namespace_flags(plan),
        own_pid_namespace: plan.namespaces.pid == Ns::New,
        rootless: plan.rootless_euid,
        keep_keyring: plan.keep_keyring,
        process: spec.process.clone().unwrap_or_default(),
        personality: plan.process.personality,
        memory_policy: spec.linux.as_ref().and_then(|linux| linux.memory_policy.clone()),
        filter: filter_record(plan),
        resources: plan.cgroup.resources.clone(),
        hooks: spec.hooks.clone().unwrap_or_default(),
        mounted_over: None,
        rdt: decided.rdt.clone(),
        called_as: request.called_as.clone(),
    }))
}

fn filter_record(plan: &Plan) -> Option<FilterRecord> {
    match &plan.seccomp {
        Some(seccomp) => Some(FilterRecord {
            listener_path: Some(seccomp.listener_path.clone()).filter(|path| !path.is_empty()),
            listener_metadata: seccomp.listener_metadata.clone(),
        }),
        None => plan.raw_filter.as_ref().map(|_| FilterRecord::default()),
    }
}

/// The namespaces that `exec` has to join, as flags of setns(2).
fn namespace_flags(plan: &Plan) -> u64 {
    use brig_sys::process::CloneFlags;
    let ns = &plan.namespaces;
    [
        (&ns.user, CloneFlags::NEWUSER),
        (&ns.mount, CloneFlags::NEWNS),
        (&ns.pid, CloneFlags::NEWPID),
        (&ns.network, CloneFlags::NEWNET),
        (&ns.ipc, CloneFlags::NEWIPC),
        (&ns.uts, CloneFlags::NEWUTS),
        (&ns.cgroup, CloneFlags::NEWCGROUP),
        (&ns.time, CloneFlags::NEWTIME),
    ]
    .into_iter()
    .filter(|(ns, _)| ns.is_private())
    .fold(0, |flags, (_, flag)| flags | flag.bits())
}
