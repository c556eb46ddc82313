//! `features`: what a runtime can do, see features.md of the specification.

use std::collections::BTreeMap;

object! {
    /// The whole document.
    pub struct Features {
        /// Oldest version of the specification that is understood.
        pub oci_version_min: String = "ociVersionMin",
        /// Newest.
        pub oci_version_max: String = "ociVersionMax",
        /// Names of the hooks.
        pub hooks: Vec<String> = "hooks",
        /// Mount options, without those that go to file systems.
        pub mount_options: Vec<String> = "mountOptions",
        /// What is particular to Linux.
        pub linux: Option<LinuxFeatures> = "linux",
        /// Particulars of the implementation.
        pub annotations: BTreeMap<String, String> = "annotations",
        /// Annotations of `config.json` that give the writer power over the host; a final dot makes a prefix.
        pub potentially_unsafe_config_annotations: Vec<String> = "potentiallyUnsafeConfigAnnotations",
    }

    /// `linux`.
    pub struct LinuxFeatures {
        /// Namespace types.
        pub namespaces: Vec<String> = "namespaces",
        /// Capability names.
        pub capabilities: Vec<String> = "capabilities",
        /// Cgroups.
        pub cgroup: Option<CgroupFeatures> = "cgroup",
        /// System call filters.
        pub seccomp: Option<SeccompFeatures> = "seccomp",
        /// AppArmor.
        pub apparmor: Option<Support> = "apparmor",
        /// SELinux.
        pub selinux: Option<Support> = "selinux",
        /// Intel Resource Director Technology.
        pub intel_rdt: Option<IntelRdtFeatures> = "intelRdt",
        /// NUMA memory policies.
        pub memory_policy: Option<MemoryPolicyFeatures> = "memoryPolicy",
        /// Extensions of mounts.
        pub mount_extensions: Option<MountExtensions> = "mountExtensions",
        /// Moving network interfaces.
        pub net_devices: Option<Support> = "netDevices",
    }

    /// Whether something is built in, whatever the host has.
    pub struct Support {
        /// It is.
        pub enabled: Option<bool> = "enabled",
    }

    /// `linux.cgroup`.
    pub struct CgroupFeatures {
        /// cgroup v1.
        pub v1: Option<bool> = "v1",
        /// cgroup v2.
        pub v2: Option<bool> = "v2",
        /// Through systemd.
        pub systemd: Option<bool> = "systemd",
        /// Through a user's systemd.
        pub systemd_user: Option<bool> = "systemdUser",
        /// The rdma controller.
        pub rdma: Option<bool> = "rdma",
    }

    /// `linux.seccomp`.
    pub struct SeccompFeatures {
        /// Filters can be loaded.
        pub enabled: Option<bool> = "enabled",
        /// `SCMP_ACT_*`.
        pub actions: Vec<String> = "actions",
        /// `SCMP_CMP_*`.
        pub operators: Vec<String> = "operators",
        /// `SCMP_ARCH_*`.
        pub archs: Vec<String> = "archs",
        /// `SECCOMP_FILTER_FLAG_*` that are understood.
        pub known_flags: Vec<String> = "knownFlags",
        /// Those that this kernel has too.
        pub supported_flags: Vec<String> = "supportedFlags",
    }

    /// `linux.intelRdt`.
    pub struct IntelRdtFeatures {
        /// `linux.intelRdt` of `config.json` is honoured.
        pub enabled: Option<bool> = "enabled",
        /// `schemata` too.
        pub schemata: Option<bool> = "schemata",
        /// `enableMonitoring` too.
        pub monitoring: Option<bool> = "monitoring",
    }

    /// `linux.memoryPolicy`.
    pub struct MemoryPolicyFeatures {
        /// `MPOL_*`.
        pub modes: Vec<String> = "modes",
        /// `MPOL_F_*`.
        pub flags: Vec<String> = "flags",
    }

    /// `linux.mountExtensions`.
    pub struct MountExtensions {
        /// Id-mapped mounts.
        pub idmap: Option<Support> = "idmap",
    }
}
