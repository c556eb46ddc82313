//! Facts about the host that a plan depends on, each asked for only where the configuration makes it matter.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brig_cgroup::{Layout, Mode};
use brig_plan::{CgroupMode, Host};
use brig_spec::{Process, Spec};

use crate::error::Result;
use crate::userns;

pub use brig_sys::process::last_capability;

/// Inode of the initial user namespace (PROC_USER_INIT_INO of linux/proc_ns.h).
const INITIAL_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// Whether this process is in a user namespace other than the first.
pub fn in_user_namespace() -> bool {
    std::fs::metadata("/proc/self/ns/user").is_ok_and(|m| m.ino() != INITIAL_USER_NAMESPACE)
}

/// Facts for a new container.
///
/// # Errors
///
/// A user namespace that is to be joined cannot be looked into.
pub fn probe(spec: &Spec, layout: &Layout) -> Result<Host> {
    let mut host = match &spec.process {
        Some(process) => probe_process(process),
        None => probe_process(&Process::default()),
    };
    host.cgroups = match layout.mode {
        Mode::V1 => CgroupMode::V1,
        Mode::Hybrid => CgroupMode::Hybrid,
        Mode::V2 => CgroupMode::V2,
    };
    let none = brig_spec::Linux::default();
    let linux = spec.linux.as_ref().unwrap_or(&none);
    if !linux.mount_label.is_empty() {
        host.selinux = selinux_enabled();
    }
    for namespace in &linux.namespaces {
        let exists = |name: &str| Path::new("/proc/self/ns").join(name).exists();
        match namespace.kind.as_str() {
            "user" => {
                host.user_namespaces = exists("user");
                if !namespace.path.is_empty() {
                    let path = Path::new(&namespace.path);
                    host.joined_user_namespace = Some(userns::maps_of(path)?);
                }
            }
            "cgroup" => host.cgroup_namespaces = exists("cgroup"),
            "time" => host.time_namespaces = exists("time"),
            _ => {}
        }
        if !namespace.path.is_empty() && is_own(&namespace.kind, Path::new(&namespace.path)) {
            host.own_namespaces.push(PathBuf::from(&namespace.path));
        }
    }
    if host.euid != 0 && !linux.namespaces.iter().any(|ns| ns.kind == "user") {
        host.subordinate = crate::subids::of_caller(host.euid);
    }
    if linux.intel_rdt.is_some() {
        host.intel_rdt = crate::rdt::support();
    }
    Ok(host)
}

/// Facts for a process that joins a container.
pub fn probe_process(process: &Process) -> Host {
    Host {
        euid: rustix::process::geteuid().as_raw(),
        in_user_ns: in_user_namespace(),
        last_capability: last_capability(),
        apparmor: !process.apparmor_profile.is_empty() && apparmor_enabled(),
        selinux: !process.selinux_label.is_empty() && selinux_enabled(),
        ..Host::default()
    }
}

pub(crate) fn apparmor_enabled() -> bool {
    std::fs::read("/sys/module/apparmor/parameters/enabled").is_ok_and(|text| text.starts_with(b"Y"))
}

/// SELinux is there when its file system is mounted.
pub(crate) fn selinux_enabled() -> bool {
    Path::new("/sys/fs/selinux/enforce").exists()
}

/// Whether the path leads to the namespace that this process is in.
fn is_own(kind: &str, path: &Path) -> bool {
    let name = match kind {
        "mount" => "mnt",
        "network" => "net",
        other => other,
    };
    let id = |p: &Path| std::fs::metadata(p).map(|m| (m.dev(), m.ino())).ok();
    let own = id(&Path::new("/proc/self/ns").join(name));
    own.is_some() && own == id(path)
}
