//! The `config.json` that `brig spec` writes.

use crate::config::{Mount, Root, Spec};
use crate::linux::{IdMapping, Linux, Namespace};
use crate::process::{Capabilities, Process, Rlimit};
use crate::resources::{DeviceRule, Resources};
use crate::{OCI_VERSION, to_string_indented};

/// A configuration that runs `sh` on a terminal in the root file system `rootfs`.
///
/// A rootless one makes a user namespace in which root is the caller (`euid`, `egid`) and needs neither a
/// network nor a cgroup of its own. `cgroup_v2` says that the host has no other cgroups, so that a cgroup
/// namespace shows the container nothing but its own.
pub fn spec(rootless: bool, cgroup_v2: bool, euid: u32, egid: u32) -> Spec {
    Spec {
        oci_version: OCI_VERSION.to_owned(),
        process: Some(process()),
        root: Some(Root { path: "rootfs".to_owned(), readonly: true }),
        hostname: "runc".to_owned(),
        mounts: mounts(rootless),
        linux: Some(linux(rootless, cgroup_v2, euid, egid)),
        ..Spec::default()
    }
}

/// `spec` as the text of a file: indented with tabs, no newline at the end.
///
/// # Errors
///
/// None that is known; see [`to_string_indented`].
pub fn to_text(spec: &Spec) -> Result<String, serde_json::Error> {
    to_string_indented(spec, "\t")
}

fn process() -> Process {
    let capabilities = strings(&["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]);
    Process {
        terminal: true,
        args: strings(&["sh"]),
        env: strings(&["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"]),
        cwd: "/".to_owned(),
        capabilities: Some(Capabilities {
            bounding: capabilities.clone(),
            effective: capabilities.clone(),
            permitted: capabilities,
            ..Capabilities::default()
        }),
        rlimits: vec![Rlimit { kind: "RLIMIT_NOFILE".to_owned(), hard: 1024, soft: 1024 }],
        no_new_privileges: true,
        ..Process::default()
    }
}

fn linux(rootless: bool, cgroup_v2: bool, euid: u32, egid: u32) -> Linux {
    let mut kinds = vec!["pid"];
    if !rootless {
        kinds.push("network");
    }
    kinds.extend(["ipc", "uts", "mount"]);
    if cgroup_v2 {
        kinds.push("cgroup");
    }
    if rootless {
        kinds.push("user");
    }
    let one = |host_id| vec![IdMapping { container_id: 0, host_id, size: 1 }];
    let deny_all = DeviceRule { access: "rwm".to_owned(), ..DeviceRule::default() };
    Linux {
        uid_mappings: if rootless { one(euid) } else { Vec::new() },
        gid_mappings: if rootless { one(egid) } else { Vec::new() },
        resources: (!rootless).then(|| Resources { devices: vec![deny_all], ..Resources::default() }),
        namespaces: kinds
            .into_iter()
            .map(|kind| Namespace { kind: kind.to_owned(), path: String::new() })
            .collect(),
        masked_paths: strings(&[
            "/proc/acpi",
            "/proc/asound",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/proc/sched_debug",
            "/sys/firmware",
            "/proc/scsi",
        ]),
        readonly_paths: strings(&["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]),
        ..Linux::default()
    }
}

fn mounts(rootless: bool) -> Vec<Mount> {
    let mut devpts = vec!["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    if !rootless {
        // The terminals' group. A single mapping has no room for it.
        devpts.push("gid=5");
    }
    let sys = if rootless {
        // sysfs belongs to the network namespace, which a rootless container shares with its host.
        mount("/sys", "none", "/sys", &["rbind", "nosuid", "noexec", "nodev", "ro"])
    } else {
        mount("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"])
    };
    vec![
        mount("/proc", "proc", "proc", &[]),
        mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount("/dev/pts", "devpts", "devpts", &devpts),
        mount("/dev/shm", "tmpfs", "shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
        mount("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        sys,
        mount("/sys/fs/cgroup", "cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", "ro"]),
    ]
}

fn mount(destination: &str, kind: &str, source: &str, options: &[&str]) -> Mount {
    Mount {
        destination: destination.to_owned(),
        kind: kind.to_owned(),
        source: source.to_owned(),
        options: strings(options),
        ..Mount::default()
    }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}
