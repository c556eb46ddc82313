//! `linux`: namespaces, devices, kernel parameters and security.

use std::collections::BTreeMap;

use crate::resources::Resources;
use crate::seccomp::Seccomp;

object! {
    /// What is particular to Linux.
    pub struct Linux {
        /// User ids of a new user namespace.
        pub uid_mappings: Vec<IdMapping> = "uidMappings",
        /// Group ids of a new user namespace.
        pub gid_mappings: Vec<IdMapping> = "gidMappings",
        /// Kernel parameters, name to value.
        pub sysctl: BTreeMap<String, String> = "sysctl",
        /// Limits for the container's cgroup.
        pub resources: Option<Resources> = "resources",
        /// The container's cgroup; its form depends on the cgroup driver.
        pub cgroups_path: String = "cgroupsPath",
        /// Namespaces to make or join; those not listed are the runtime's.
        pub namespaces: Vec<Namespace> = "namespaces",
        /// Device nodes, besides the six that every container gets.
        pub devices: Vec<Device> = "devices",
        /// Network interfaces to move in, by their name on the host.
        pub net_devices: BTreeMap<String, NetDevice> = "netDevices",
        /// The system call filter.
        pub seccomp: Option<Seccomp> = "seccomp",
        /// Propagation of the root mount: `shared`, `slave`, `private` or `unbindable`, or `r` and one of them.
        pub rootfs_propagation: String = "rootfsPropagation",
        /// Paths that the container cannot read.
        pub masked_paths: Vec<String> = "maskedPaths",
        /// Paths that the container cannot write.
        pub readonly_paths: Vec<String> = "readonlyPaths",
        /// SELinux label of the container's mounts.
        pub mount_label: String = "mountLabel",
        /// Intel Resource Director Technology.
        pub intel_rdt: Option<IntelRdt> = "intelRdt",
        /// NUMA memory policy.
        pub memory_policy: Option<MemoryPolicy> = "memoryPolicy",
        /// Execution domain.
        pub personality: Option<Personality> = "personality",
        /// Offsets of a new time namespace, by clock (`monotonic`, `boottime`).
        pub time_offsets: BTreeMap<String, TimeOffset> = "timeOffsets",
    }

    /// One range of an id mapping, see user_namespaces(7).
    pub struct IdMapping {
        /// First id inside.
        pub container_id: u32 = "containerID" always,
        /// First id outside.
        pub host_id: u32 = "hostID" always,
        /// How many.
        pub size: u32 = "size" always,
    }

    /// One of `linux.namespaces`.
    pub struct Namespace {
        /// `pid`, `network`, `mount`, `ipc`, `uts`, `user`, `cgroup` or `time`.
        pub kind: String = "type" always,
        /// The one to join; empty for a new one.
        pub path: String = "path",
    }

    /// One of `linux.devices`, see mknod(2).
    pub struct Device {
        /// Absolute path in the container.
        pub path: String = "path" always,
        /// `c`, `u`, `b` or `p`.
        pub kind: String = "type" always,
        /// Major number.
        pub major: i64 = "major" always,
        /// Minor number.
        pub minor: i64 = "minor" always,
        /// Permission bits.
        pub file_mode: Option<u32> = "fileMode",
        /// Owner, inside the container.
        pub uid: Option<u32> = "uid",
        /// Group, inside the container.
        pub gid: Option<u32> = "gid",
    }

    /// A value of `linux.netDevices`.
    pub struct NetDevice {
        /// Name inside; empty keeps the one that the interface has.
        pub name: String = "name",
    }

    /// `linux.intelRdt`, see the kernel's resctrl documentation.
    pub struct IntelRdt {
        /// Class of service; empty for one of the container's own, named after its id.
        pub clos_id: String = "closID",
        /// Lines for the `schemata` file, written as they are.
        pub schemata: Vec<String> = "schemata",
        /// `L3:…` line for `schemata`.
        pub l3_cache_schema: String = "l3CacheSchema",
        /// `MB:…` line for `schemata`.
        pub mem_bw_schema: String = "memBwSchema",
        /// Make a monitoring group for the container.
        pub enable_monitoring: bool = "enableMonitoring",
    }
    // Members of specification 1.0 to 1.2, replaced by `enableMonitoring`.
    ignores "enableCMT", "enableMBM";

    /// `linux.memoryPolicy`, see set_mempolicy(2).
    pub struct MemoryPolicy {
        /// Name such as `MPOL_INTERLEAVE`.
        pub mode: String = "mode" always,
        /// NUMA nodes, `0-1,3`.
        pub nodes: String = "nodes",
        /// Names such as `MPOL_F_STATIC_NODES`.
        pub flags: Vec<String> = "flags",
    }

    /// `linux.personality`, see personality(2).
    pub struct Personality {
        /// `LINUX` or `LINUX32`.
        pub domain: String = "domain" always,
        /// None are defined so far.
        pub flags: Vec<String> = "flags",
    }

    /// A value of `linux.timeOffsets`.
    pub struct TimeOffset {
        /// Seconds.
        pub secs: i64 = "secs",
        /// Nanoseconds on top.
        pub nanosecs: u32 = "nanosecs",
    }
}
