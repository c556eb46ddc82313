//! From a configuration to a plan.

use brig_spec as spec;

use crate::mounts::Surroundings;
use crate::problem::{Draft, Problem, Problems};
use crate::{
    CgroupPlan, Extensions, Host, IdMaps, Mount, Namespaces, Ns, Plan, Process, ProcessContext, Request,
    cgroup, devices, extensions, hooks, intel_rdt, memory_policy, mounts, namespaces, net_devices, process,
    root, seccomp, sysctl,
};

impl Plan {
    /// Decides what a container will be. With the plan come warnings: what the configuration says without effect.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the configuration, given this request and this host.
    pub fn new(spec: &spec::Spec, request: &Request, host: &Host) -> Result<(Self, Vec<Problem>), Problem> {
        Self::draft(spec, request, host).into_result()
    }

    /// As [`Plan::new`], but goes on to the end and tells everything that is wrong.
    pub fn draft(spec: &spec::Spec, request: &Request, host: &Host) -> Draft<Self> {
        let mut problems = Problems::default();
        let plan = draft(spec, request, host, &mut problems);
        problems.draft(plan)
    }
}

fn draft(spec: &spec::Spec, request: &Request, host: &Host, problems: &mut Problems) -> Plan {
    let none = spec::Linux::default();
    let linux = spec.linux.as_ref().unwrap_or(&none);

    check_version(&spec.oci_version, problems);
    // What is wrong with these comes first: it can be the reason of what is wrong with others.
    let namespaces = namespaces::plan(linux, &request.bundle, host, problems);
    let user = spec.process.as_ref().map(|process| &process.user);
    let id_maps = namespaces::id_maps(linux, user, &namespaces.user, host, problems);

    let context = ProcessContext::of_init(request, host, namespaces.user.is_private(), &id_maps);
    let extensions = extensions::plan(&spec.annotations, problems);
    let process = init(spec.process.as_ref(), &context, host, problems);
    let process = extended(process, &extensions, problems);
    let rootfs = root::rootfs(spec.root.as_ref(), request, problems);
    let hostname = net_devices::uts_name("hostname", &spec.hostname, &namespaces.uts, problems);
    let domainname = net_devices::uts_name("domainname", &spec.domainname, &namespaces.uts, problems);
    let around = Surroundings {
        bundle: &request.bundle,
        rootfs: &rootfs,
        rootless: host.euid != 0,
        user: &namespaces.user,
        id_maps: &id_maps,
    };
    let mounts = mounts::plan(&spec.mounts, &around, problems);
    let hooks = spec.hooks.as_ref().map(|given| hooks::plan(given, &extensions, problems));

    let cgroup = cgroup::plan(spec, linux, request, host, problems);
    let owner = cgroup_owner(&process, &mounts, &namespaces, &id_maps);
    let devices = devices::plan(&linux.devices, problems);
    let populate_dev = !mounts::binds_dev(&mounts);
    let (masked_paths, readonly_paths) = root::restricted_paths(linux, &namespaces.mount, problems);
    let process = with_linux(process, linux, host, problems);
    Plan {
        oci_version: spec.oci_version.clone(),
        bundle: request.bundle.clone(),
        annotations: spec.annotations.clone(),
        time_offsets: namespaces::time_offsets(linux, &namespaces.time, problems),
        root: root::plan(spec.root.as_ref(), linux, request, problems),
        devices: if populate_dev { devices } else { Vec::new() },
        populate_dev,
        masked_paths,
        readonly_paths,
        sysctls: sysctl::plan(linux, &namespaces, request, host, problems),
        hostname,
        domainname,
        process,
        seccomp: filter(linux, &extensions, problems),
        raw_filter: extensions.filter,
        cgroup: CgroupPlan { owner, ..cgroup },
        hooks: hooks.unwrap_or_default(),
        net_devices: net_devices::plan(linux, &namespaces.network, host.euid != 0, problems),
        intel_rdt: linux.intel_rdt.as_ref().map(|rdt| intel_rdt::plan(rdt, host, problems)),
        rootless_cgroups: request.rootless_cgroups(host),
        rootless_euid: host.euid != 0,
        keep_keyring: request.keep_keyring,
        rootfs,
        namespaces,
        id_maps,
        mounts,
    }
}

/// runc does not look at the version at all, and there are configurations without a proper one; but one for another
/// major version was not written with this specification in mind.
fn check_version(version: &str, problems: &mut Problems) {
    const PATH: &str = "ociVersion";
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    match major {
        Some(1) => {}
        Some(_) => {
            let newest = spec::OCI_VERSION;
            let message =
                format!("version {version} of the specification is not supported, only 1.x is ({newest})");
            problems.error(PATH, message);
        }
        None => problems.warn(PATH, format!("{version:?} is not a version")),
    }
}

fn init(
    given: Option<&spec::Process>,
    context: &ProcessContext,
    host: &Host,
    problems: &mut Problems,
) -> Process {
    match given {
        Some(given) => process::plan(given, context, host, problems),
        None => {
            problems.error("process", "process property must not be empty");
            Process::default()
        }
    }
}

/// Adds what annotations say about the container's first process.
fn extended(process: Process, extensions: &Extensions, problems: &mut Problems) -> Process {
    let mut process = Process { mount_context: extensions.mount_context.clone(), ..process };
    process.user.keep_groups = extensions.keep_groups;
    if extensions.keep_groups && !process.user.additional_gids.is_empty() {
        let message = "run.oci.keep_original_groups keeps the caller's groups, so none can be added";
        problems.error("process.user.additionalGids", message);
    }
    process
}

/// `linux.seccomp`, unless an annotation brings a filter of its own.
fn filter(linux: &spec::Linux, extensions: &Extensions, problems: &mut Problems) -> Option<spec::Seccomp> {
    if extensions.filter.is_some() {
        return None;
    }
    let mut given = linux.seccomp.clone()?;
    if given.listener_path.is_empty() {
        given.listener_path = extensions.receiver.clone().unwrap_or_default();
    }
    seccomp::plan(&given, extensions.fail_unknown_syscalls, problems)
}

/// Adds what `linux` says about the container's first process.
fn with_linux(process: Process, linux: &spec::Linux, host: &Host, problems: &mut Problems) -> Process {
    let mount_label = (!linux.mount_label.is_empty()).then(|| linux.mount_label.clone());
    if mount_label.is_some() && !host.selinux {
        let message = "selinux label is specified in config, but selinux is disabled or not supported";
        problems.error("linux.mountLabel", message);
    }
    Process {
        mount_label,
        personality: linux.personality.as_ref().map(|given| memory_policy::personality(given, problems)),
        memory_policy: linux.memory_policy.as_ref().map(|given| memory_policy::plan(given, problems)),
        ..process
    }
}

/// The user whose the cgroup becomes, see [`CgroupPlan::owner`]. Without a mapping there is none: then the process's
/// user is refused.
fn cgroup_owner(
    process: &Process,
    mounts: &[Mount],
    namespaces: &Namespaces,
    id_maps: &IdMaps,
) -> Option<u32> {
    let uid = process.user.uid;
    if namespaces.cgroup != Ns::New || !mounts::has_writable_cgroups(mounts) {
        None
    } else if namespaces.user.is_private() {
        id_maps.outside_uid(uid)
    } else {
        Some(uid)
    }
}

#[cfg(test)]
mod tests;
