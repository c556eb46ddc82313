//! What the configuration wants of this host besides files: namespaces, limits, rights, devices.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use brig_cgroup::{Layout, Names};
use brig_plan::{Ns, Plan};
use brig_spec::{Resources, Spec};
use brig_sys::errno_text;
use brig_sys::process::CloneFlags;

use super::Complaints;
use crate::filter::LoadedFilter;

const KINDS: [(&str, CloneFlags); 8] = [
    ("cgroup", CloneFlags::NEWCGROUP),
    ("ipc", CloneFlags::NEWIPC),
    ("mount", CloneFlags::NEWNS),
    ("network", CloneFlags::NEWNET),
    ("pid", CloneFlags::NEWPID),
    ("time", CloneFlags::NEWTIME),
    ("user", CloneFlags::NEWUSER),
    ("uts", CloneFlags::NEWUTS),
];

fn type_name(flag: CloneFlags) -> Option<&'static str> {
    KINDS.iter().find(|(_, known)| *known == flag).map(|(name, _)| *name)
}

/// `linux.namespaces[].path`.
pub(super) fn namespaces(spec: &Spec, complaints: &mut Complaints) {
    let list = spec.linux.iter().flat_map(|linux| &linux.namespaces).enumerate();
    for (index, namespace) in list.filter(|(_, namespace)| !namespace.path.is_empty()) {
        let path = format!("linux.namespaces[{index}].path");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&namespace.path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(errno) => {
                let message = format!("namespace path: lstat {}: {}", namespace.path, errno_text(errno));
                let hint = "the process or container whose namespace it was may have ended";
                complaints.error(path, message, Some(hint.to_owned()));
                continue;
            }
        };
        let kind = brig_sys::process::namespace_type(fd.as_fd()).ok().and_then(type_name);
        // A type that there is not is another complaint.
        if kind != Some(namespace.kind.as_str()) && KINDS.iter().any(|(name, _)| *name == namespace.kind) {
            let what = kind.map_or_else(|| "no namespace".to_owned(), |kind| format!("a {kind} namespace"));
            let message = format!("{} is {what}, not one of type {}", namespace.path, namespace.kind);
            complaints.error(path, message, None);
        }
    }
}

/// `linux.cgroupsPath` and `linux.resources`.
pub(super) fn cgroup(plan: &Plan, layout: Option<&Layout>, complaints: &mut Complaints) {
    let Some(layout) = layout else { return };
    // Under systemd, names are units and limits are its properties.
    if !plan.cgroup.systemd {
        let request = brig_cgroup::Request {
            cgroups_path: &plan.cgroup.path,
            id: "check",
            rootless: plan.rootless_cgroups,
        };
        // A name that is taken from the id cannot be known.
        if !plan.cgroup.path.is_empty()
            && let Err(error) = Names::decide(layout, &request).and_then(|names| names.check_vacant())
        {
            complaints.of_error("linux.cgroupsPath", &error.into());
        }
    }
    limits(plan, layout, complaints);
    block_devices(plan, complaints);
}

fn limits(plan: &Plan, layout: &Layout, complaints: &mut Complaints) {
    let resources = &plan.cgroup.resources;
    let v2 = layout.mode == brig_cgroup::Mode::V2;
    let mut writes = Vec::new();
    for part in parts(resources) {
        let converted =
            if v2 { brig_cgroup::v2::convert(&part, None) } else { brig_cgroup::v1::convert(&part) };
        match converted {
            Ok(converted) => writes.extend(converted.writes),
            Err(invalid) => complaints.of_text(&invalid.to_string(), "linux.resources"),
        }
    }
    let available = controllers(layout);
    for write in &writes {
        let controller = write.controller.as_ref();
        if write.missing != brig_cgroup::Missing::Fail || available.iter().any(|name| name == controller) {
            continue;
        }
        // Parameters of no controller (cgroup.max.depth) are there always.
        if controller == "cgroup" {
            continue;
        }
        let message = format!("cannot set {controller} limit: container could not join or create cgroup");
        let hint = format!(
            "this host has no {controller} controller where containers are made (it has: {})",
            available.join(" ")
        );
        complaints.error(write.source.clone(), message, Some(hint));
    }
    for (index, limit) in resources.hugepage_limits.iter().enumerate() {
        if !huge_page_sizes().contains(&limit.page_size) {
            let path = format!("linux.resources.hugepageLimits[{index}].pageSize");
            let message = format!("this machine has no huge pages of {}", limit.page_size);
            complaints.error(path, message, Some(format!("it has: {}", huge_page_sizes().join(" "))));
        }
    }
    cpus(plan, complaints);
}

/// Limits by section, so that what is wrong in one does not hide what is wrong in another.
fn parts(all: &Resources) -> Vec<Resources> {
    let none = Resources::default;
    let mut parts = vec![
        Resources { memory: all.memory.clone(), ..none() },
        Resources { cpu: all.cpu.clone(), ..none() },
        Resources { pids: all.pids.clone(), ..none() },
        Resources { block_io: all.block_io.clone(), ..none() },
        Resources { hugepage_limits: all.hugepage_limits.clone(), ..none() },
        Resources { network: all.network.clone(), rdma: all.rdma.clone(), ..none() },
    ];
    let unified = all.unified.iter().map(|(key, value)| [(key.clone(), value.clone())].into());
    parts.extend(unified.map(|unified| Resources { unified, ..none() }));
    parts
}

/// The controllers that a container can have.
fn controllers(layout: &Layout) -> Vec<String> {
    if layout.mode != brig_cgroup::Mode::V2 {
        return layout.hierarchies.iter().flat_map(|hierarchy| hierarchy.controllers.clone()).collect();
    }
    let list = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// As cgroups name them: `2MB`.
fn huge_page_sizes() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let size: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(match size {
            0..1024 => format!("{size}KB"),
            1024..1_048_576 => format!("{}MB", size / 1024),
            _ => format!("{}GB", size / 1_048_576),
        })
    };
    entries.filter_map(name).collect()
}

/// CPUs and memory nodes that are not there.
fn cpus(plan: &Plan, complaints: &mut Complaints) {
    let Some(cpu) = &plan.cgroup.resources.cpu else { return };
    for (member, list, file) in [
        ("cpus", &cpu.cpus, "/sys/devices/system/cpu/possible"),
        ("mems", &cpu.mems, "/sys/devices/system/node/possible"),
    ] {
        let path = format!("linux.resources.cpu.{member}");
        let text = list.trim();
        if text.is_empty() {
            continue;
        }
        let Some(wanted) = numbers(text) else {
            complaints.error(
                path,
                format!("invalid list {text:?}"),
                Some("lists look like 0-3,7".to_owned()),
            );
            continue;
        };
        let possible = std::fs::read_to_string(file).ok().and_then(|text| numbers(text.trim()));
        let missing = possible.and_then(|possible| wanted.into_iter().find(|n| !possible.contains(n)));
        if let Some(number) = missing {
            let message = format!("this machine has no number {number}");
            complaints.error(path, message, Some(format!("see {file}")));
        }
    }
}

/// The numbers of a list such as `0-3,7`; `None` where it is none, or longer than any machine's.
fn numbers(list: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 65_536;
    let mut found = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

fn block_devices(plan: &Plan, complaints: &mut Complaints) {
    let Some(io) = &plan.cgroup.resources.block_io else { return };
    let weights = io.weight_device.iter().map(|device| (device.major, device.minor)).collect();
    let rates = |list: &[brig_spec::ThrottleDevice]| list.iter().map(|d| (d.major, d.minor)).collect();
    let lists: [(&str, Vec<(i64, i64)>); 5] = [
        ("weightDevice", weights),
        ("throttleReadBpsDevice", rates(&io.throttle_read_bps_device)),
        ("throttleWriteBpsDevice", rates(&io.throttle_write_bps_device)),
        ("throttleReadIOPSDevice", rates(&io.throttle_read_iops_device)),
        ("throttleWriteIOPSDevice", rates(&io.throttle_write_iops_device)),
    ];
    for (member, list) in lists {
        for (index, (major, minor)) in list.into_iter().enumerate() {
            if !Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
                let path = format!("linux.resources.blockIO.{member}[{index}]");
                let hint = "lsblk lists the devices with their numbers";
                complaints.error(path, format!("no block device {major}:{minor}"), Some(hint.to_owned()));
            }
        }
    }
}

/// `process`: what needs rights that the caller has not.
pub(super) fn rights(plan: &Plan, complaints: &mut Complaints) {
    let own = rustix::thread::capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    // In a user namespace of its own the process gets all capabilities over that, and none over the host.
    let process = &plan.process;
    if !plan.namespaces.user.is_private() {
        let bounding = process.capabilities.permitted & !bounding_set();
        if bounding != 0 {
            let names = brig_plan::capabilities::names(bounding);
            let message = format!("unable to apply caps: operation not permitted: {names}");
            let hint = "the runtime itself does not have these";
            complaints.error("process.capabilities.permitted", message, Some(hint.to_owned()));
        }
    }
    if own.contains(CapabilitySet::SYS_RESOURCE) {
        let most: Option<u64> = read_number("/proc/sys/fs/nr_open");
        for (index, limit) in process.rlimits.iter().enumerate() {
            let too_many = limit.resource == 7 && most.is_some_and(|most| limit.hard > most);
            if too_many {
                rlimit(index, limit.resource, "the most is in /proc/sys/fs/nr_open", complaints);
            }
        }
        return;
    }
    for (index, limit) in process.rlimits.iter().enumerate() {
        if hard_limit(limit.resource).is_some_and(|own| limit.hard > own) {
            let hint = "a hard limit above the caller's needs CAP_SYS_RESOURCE";
            rlimit(index, limit.resource, hint, complaints);
        }
    }
    if let Some(wanted) = process.oom_score_adj {
        oom_score(wanted, complaints);
    }
}

/// Without CAP_SYS_RESOURCE there is a lower bound, which nothing shows: so it is tried, on this process, and taken back.
fn oom_score(wanted: i32, complaints: &mut Complaints) {
    const FILE: &str = "/proc/self/oom_score_adj";
    let write = |score: i32| {
        let file = rustix::fs::open(FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, score.to_string().as_bytes()).map(drop)
    };
    let Some(own) = read_number::<i32>(FILE) else { return };
    if let Err(errno @ (Errno::ACCESS | Errno::PERM)) = write(wanted) {
        let message = format!("failed to update {FILE}: {}", errno_text(errno));
        let hint = format!("a value lower than the caller's, {own}, needs CAP_SYS_RESOURCE");
        complaints.error("process.oomScoreAdj", message, Some(hint));
    }
    let _ = write(own);
}

fn rlimit(index: usize, resource: u32, hint: &str, complaints: &mut Complaints) {
    let message = format!("error setting rlimit type {resource}: operation not permitted");
    complaints.error(format!("process.rlimits[{index}]"), message, Some(hint.to_owned()));
}

fn read_number<T: std::str::FromStr>(file: &str) -> Option<T> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// This process's bounding set, from `/proc/self/status`.
fn bounding_set() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(u64::MAX)
}

/// The caller's hard limit, from `/proc/self/limits`: these are its names in the order of their numbers.
fn hard_limit(resource: u32) -> Option<u64> {
    const NAMES: [&str; 16] = [
        "Max cpu time",
        "Max file size",
        "Max data size",
        "Max stack size",
        "Max core file size",
        "Max resident set",
        "Max processes",
        "Max open files",
        "Max locked memory",
        "Max address space",
        "Max file locks",
        "Max pending signals",
        "Max msgqueue size",
        "Max nice priority",
        "Max realtime priority",
        "Max realtime timeout",
    ];
    let name = NAMES.get(usize::try_from(resource).ok()?)?;
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// `linux.sysctl`, `linux.netDevices`, LSM profiles and the filter.
pub(super) fn kernel(spec: &Spec, plan: &Plan, complaints: &mut Complaints) {
    for sysctl in &plan.sysctls {
        if !Path::new("/proc/sys").join(&sysctl.path).exists() {
            let message = format!("open /proc/sys/{}: no such file or directory", sysctl.path.display());
            let hint =
                "the host has no such parameter; one of a device that comes later may exist in the container";
            complaints.warning(format!("linux.sysctl[{:?}]", sysctl.key), message, Some(hint.to_owned()));
        }
    }
    for device in &plan.net_devices {
        if !Path::new("/sys/class/net").join(&device.host_name).exists() {
            let message = format!("no network device {:?} on the host", device.host_name);
            complaints.error(format!("linux.netDevices[{:?}]", device.host_name), message, None);
        }
    }
    if let Some(profile) = &plan.process.apparmor_profile
        && profile != "unconfined"
        && let Ok(list) = std::fs::read_to_string("/sys/kernel/security/apparmor/profiles")
        && !list.lines().any(|line| line.rsplit_once(" (").is_some_and(|(name, _)| name == profile))
    {
        let message = format!(
            "unable to apply apparmor profile: apparmor failed to apply profile: {profile} is not loaded"
        );
        complaints.error("process.apparmorProfile", message, Some("load it with apparmor_parser".to_owned()));
    }
    filter(spec, plan, complaints);
    if plan.namespaces.user == Ns::New && read_number::<u64>("/proc/sys/user/max_user_namespaces") == Some(0)
    {
        let message = "unshare: no space left on device (user.max_user_namespaces is 0)";
        complaints.error(
            "linux.namespaces",
            message,
            Some("set the sysctl user.max_user_namespaces".to_owned()),
        );
    }
}

fn filter(spec: &Spec, plan: &Plan, complaints: &mut Complaints) {
    let (Some(given), Some(_)) = (spec.linux.as_ref().and_then(|l| l.seccomp.as_ref()), &plan.seccomp) else {
        return;
    };
    // What the plan complains about is not compiled.
    if brig_seccomp::Profile::from_spec(given).is_ok()
        && let Err(error) = LoadedFilter::compile(given)
    {
        complaints.of_text(&error.message(), "linux.seccomp");
    }
    for (index, name) in given.flags.iter().flatten().enumerate() {
        let bit = brig_seccomp::FLAGS.iter().find(|(known, _)| known == name).map(|(_, bit)| *bit);
        if bit.is_some_and(|bit| !brig_sys::seccomp::knows_flag(bit)) {
            let message = format!("this kernel does not have {name}");
            complaints.error(format!("linux.seccomp.flags[{index}]"), message, None);
        }
    }
    for (index, rule) in given.syscalls.iter().enumerate() {
        for (place, name) in rule.names.iter().enumerate() {
            if brig_seccomp::Syscall::from_name(name).is_some() {
                continue;
            }
            // Profiles list calls of other architectures and of newer kernels; a misspelt one has a near neighbour.
            let known = brig_seccomp::Syscall::all().map(brig_seccomp::Syscall::name);
            if let Some(near) = brig_spec::nearest(name, known) {
                let path = format!("linux.seccomp.syscalls[{index}].names[{place}]");
                let hint = format!("did you mean {near}?");
                complaints.warning(
                    path,
                    format!("{name:?} is no system call that is known here"),
                    Some(hint),
                );
            }
        }
    }
    if !given.listener_path.is_empty() && given.syscalls.iter().any(|rule| rule.action == "SCMP_ACT_NOTIFY") {
        let errno = rustix::fs::stat(given.listener_path.as_str()).err();
        if let Some(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) = errno {
            let message = format!("dial unix {}: connect: {}", given.listener_path, errno_text(errno));
            let hint = "the seccomp agent must listen there before the container is created";
            complaints.error("linux.seccomp.listenerPath", message, Some(hint.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        assert_eq!(numbers("0-2,7"), Some(vec![0, 1, 2, 7]));
        assert_eq!(numbers("5"), Some(vec![5]));
        for bad in ["", "a", "3-1", "0-4294967295", "1,,2", "-1"] {
            assert_eq!(numbers(bad), None, "{bad}");
        }
    }

    #[test]
    fn limits_of_this_process_are_found() {
        use rustix::process::{Resource, getrlimit};
        let expected = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(hard_limit(7), Some(expected));
        let expected = getrlimit(Resource::As).maximum.unwrap_or(u64::MAX);
        assert_eq!(hard_limit(9), Some(expected));
        assert_eq!(hard_limit(99), None);
    }
}
