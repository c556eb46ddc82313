//! The document of the `features` command.
//!
//! It tells what was built in, whatever the host has: clients ask once and remember.

use std::collections::BTreeMap;

use brig_spec::Features;
use brig_spec::features::{
    CgroupFeatures, IntelRdtFeatures, LinuxFeatures, MemoryPolicyFeatures, MountExtensions, SeccompFeatures,
    Support,
};

use crate::version;

const HOOKS: &[&str] =
    &["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

const MOUNT_OPTIONS: &[&str] = &[
    "async",
    "atime",
    "bind",
    "defaults",
    "dev",
    "diratime",
    "dirsync",
    "exec",
    "iversion",
    "lazytime",
    "loud",
    "mand",
    "noatime",
    "nodev",
    "nodiratime",
    "noexec",
    "noiversion",
    "nolazytime",
    "nomand",
    "norelatime",
    "nostrictatime",
    "nosuid",
    "nosymfollow",
    "private",
    "ratime",
    "rbind",
    "rdev",
    "rdiratime",
    "relatime",
    "remount",
    "rexec",
    "rnoatime",
    "rnodev",
    "rnodiratime",
    "rnoexec",
    "rnorelatime",
    "rnostrictatime",
    "rnosuid",
    "rnosymfollow",
    "ro",
    "rprivate",
    "rrelatime",
    "rro",
    "rrw",
    "rshared",
    "rslave",
    "rstrictatime",
    "rsuid",
    "rsymfollow",
    "runbindable",
    "rw",
    "shared",
    "silent",
    "slave",
    "strictatime",
    "suid",
    "symfollow",
    "sync",
    "tmpcopyup",
    "unbindable",
];

const NAMESPACES: &[&str] = &["cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts"];

/// In the order of their numbers, see capabilities(7).
const CAPABILITIES: &[&str] = &[
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

const MEMORY_POLICY_MODES: &[&str] = &[
    "MPOL_BIND",
    "MPOL_DEFAULT",
    "MPOL_INTERLEAVE",
    "MPOL_LOCAL",
    "MPOL_PREFERRED",
    "MPOL_PREFERRED_MANY",
    "MPOL_WEIGHTED_INTERLEAVE",
];

const MEMORY_POLICY_FLAGS: &[&str] =
    &["MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"];

/// Annotations of `config.json` that act on the host.
const UNSAFE_ANNOTATIONS: &[&str] = &["bundle", "org.systemd.property.", "org.criu.config"];

/// The whole document. `seccomp` is what the filter compiler and this kernel can do.
pub fn document(seccomp: SeccompFeatures) -> Features {
    Features {
        oci_version_min: "1.0.0".to_owned(),
        oci_version_max: brig_spec::OCI_VERSION.to_owned(),
        hooks: owned(HOOKS),
        mount_options: owned(MOUNT_OPTIONS),
        linux: Some(linux(seccomp)),
        annotations: annotations(),
        potentially_unsafe_config_annotations: owned(UNSAFE_ANNOTATIONS),
    }
}

fn linux(seccomp: SeccompFeatures) -> LinuxFeatures {
    let yes = Some(true);
    let support = Some(Support { enabled: yes });
    LinuxFeatures {
        namespaces: owned(NAMESPACES),
        capabilities: owned(CAPABILITIES),
        cgroup: Some(CgroupFeatures { v1: yes, v2: yes, systemd: yes, systemd_user: yes, rdma: yes }),
        seccomp: Some(seccomp),
        apparmor: support.clone(),
        selinux: support.clone(),
        intel_rdt: Some(IntelRdtFeatures { enabled: yes, schemata: yes, monitoring: yes }),
        memory_policy: Some(MemoryPolicyFeatures {
            modes: owned(MEMORY_POLICY_MODES),
            flags: owned(MEMORY_POLICY_FLAGS),
        }),
        mount_extensions: Some(MountExtensions { idmap: support.clone() }),
        net_devices: support,
    }
}

/// Under runc's names only what tools key on and what is true.
fn annotations() -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from(
        [
            ("org.opencontainers.runc.version", version::COMPATIBLE),
            ("org.opencontainers.runc.checkpoint.enabled", "false"),
            ("brig.version", version::OWN),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    if let Some(commit) = version::COMMIT {
        annotations.insert("brig.commit".to_owned(), commit.to_owned());
    }
    annotations
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{CAPABILITIES, MOUNT_OPTIONS, document};
    use brig_spec::features::SeccompFeatures;

    #[test]
    fn lists_are_complete_and_sorted() {
        assert_eq!(CAPABILITIES.len(), 41);
        assert_eq!(MOUNT_OPTIONS.len(), 60);
        assert!(MOUNT_OPTIONS.is_sorted());
        assert!(MOUNT_OPTIONS.contains(&"rro"));
    }

    #[test]
    fn clients_find_what_they_look_for() {
        let document = document(SeccompFeatures { enabled: Some(true), ..SeccompFeatures::default() });
        let text = brig_spec::to_string_indented(&document, "    ").unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["ociVersionMin"], "1.0.0");
        assert_eq!(json["ociVersionMax"], "1.3.0");
        assert_eq!(json["linux"]["mountExtensions"]["idmap"]["enabled"], true);
        assert_eq!(json["linux"]["seccomp"]["enabled"], true);
        assert_eq!(json["annotations"]["org.opencontainers.runc.checkpoint.enabled"], "false");
        assert!(text.starts_with("{\n    \"ociVersionMin\": \"1.0.0\",\n"));
    }
}
