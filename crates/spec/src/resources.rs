//! `linux.resources`: limits for the container's cgroup. `update` reads the same object.

use std::collections::BTreeMap;

object! {
    /// Limits for a cgroup. What is absent stays as it is.
    pub struct Resources {
        /// Device access, in the order in which the rules apply.
        pub devices: Vec<DeviceRule> = "devices",
        /// Memory.
        pub memory: Option<Memory> = "memory",
        /// Processor time and placement.
        pub cpu: Option<Cpu> = "cpu",
        /// Number of tasks.
        pub pids: Option<Pids> = "pids",
        /// Block devices.
        pub block_io: Option<BlockIo> = "blockIO",
        /// Huge pages.
        pub hugepage_limits: Vec<HugepageLimit> = "hugepageLimits",
        /// Network class and priorities (cgroup v1 only).
        pub network: Option<Network> = "network",
        /// RDMA, by device name.
        pub rdma: BTreeMap<String, Rdma> = "rdma",
        /// cgroup v2 files, name to value. Written last.
        pub unified: BTreeMap<String, String> = "unified",
    }

    /// One of `devices`.
    pub struct DeviceRule {
        /// Allow or deny.
        pub allow: bool = "allow" always,
        /// `a` (or empty), `c` or `b`.
        pub kind: String = "type",
        /// Major number; absent or negative for all.
        pub major: Option<i64> = "major",
        /// Minor number; absent or negative for all.
        pub minor: Option<i64> = "minor",
        /// Some of `r`, `w` and `m`.
        pub access: String = "access",
    }

    /// Memory limits in bytes; −1 is unlimited.
    pub struct Memory {
        /// Hard limit.
        pub limit: Option<i64> = "limit",
        /// Soft limit.
        pub reservation: Option<i64> = "reservation",
        /// Limit of memory and swap together.
        pub swap: Option<i64> = "swap",
        /// Kernel memory: obsolete, has no effect.
        pub kernel: Option<i64> = "kernel",
        /// TCP buffers: obsolete, has no effect.
        pub kernel_tcp: Option<i64> = "kernelTCP",
        /// 0 to 100 (cgroup v1 only).
        pub swappiness: Option<u64> = "swappiness",
        /// Let tasks wait instead of killing one (cgroup v1 only).
        pub disable_oom_killer: Option<bool> = "disableOOMKiller",
        /// Obsolete, has no effect.
        pub use_hierarchy: Option<bool> = "useHierarchy",
        /// With `update`, refuse a limit below what is in use.
        pub check_before_update: Option<bool> = "checkBeforeUpdate",
    }

    /// Processor limits.
    pub struct Cpu {
        /// Relative weight as of cgroup v1, 2 to 262144.
        pub shares: Option<u64> = "shares",
        /// Microseconds per period; negative is unlimited.
        pub quota: Option<i64> = "quota",
        /// Microseconds that may be saved up.
        pub burst: Option<u64> = "burst",
        /// Length of the period in microseconds.
        pub period: Option<u64> = "period",
        /// Microseconds of real-time scheduling per period (cgroup v1 only).
        pub realtime_runtime: Option<i64> = "realtimeRuntime",
        /// Length of that period in microseconds (cgroup v1 only).
        pub realtime_period: Option<u64> = "realtimePeriod",
        /// CPUs, `0-3,7`.
        pub cpus: String = "cpus",
        /// Memory nodes, `0-1`.
        pub mems: String = "mems",
        /// 1 gives the whole cgroup SCHED_IDLE weight.
        pub idle: Option<i64> = "idle",
    }

    /// Task limit.
    pub struct Pids {
        /// Number of tasks; negative is unlimited.
        pub limit: Option<i64> = "limit",
    }

    /// Block device weights and limits.
    pub struct BlockIo {
        /// Relative weight, 10 to 1000.
        pub weight: Option<u16> = "weight",
        /// Weight against the children (CFQ scheduler only).
        pub leaf_weight: Option<u16> = "leafWeight",
        /// Weights per device.
        pub weight_device: Vec<WeightDevice> = "weightDevice",
        /// Bytes read per second.
        pub throttle_read_bps_device: Vec<ThrottleDevice> = "throttleReadBpsDevice",
        /// Bytes written per second.
        pub throttle_write_bps_device: Vec<ThrottleDevice> = "throttleWriteBpsDevice",
        /// Reads per second.
        pub throttle_read_iops_device: Vec<ThrottleDevice> = "throttleReadIOPSDevice",
        /// Writes per second.
        pub throttle_write_iops_device: Vec<ThrottleDevice> = "throttleWriteIOPSDevice",
    }

    /// One of `weightDevice`.
    pub struct WeightDevice {
        /// Major number.
        pub major: i64 = "major" always,
        /// Minor number.
        pub minor: i64 = "minor" always,
        /// Relative weight, 10 to 1000.
        pub weight: Option<u16> = "weight",
        /// Weight against the children (CFQ scheduler only).
        pub leaf_weight: Option<u16> = "leafWeight",
    }

    /// One of the `throttle…Device` lists.
    pub struct ThrottleDevice {
        /// Major number.
        pub major: i64 = "major" always,
        /// Minor number.
        pub minor: i64 = "minor" always,
        /// Bytes or operations per second.
        pub rate: u64 = "rate" always,
    }

    /// One of `hugepageLimits`.
    pub struct HugepageLimit {
        /// Size such as `2MB`.
        pub page_size: String = "pageSize" always,
        /// Bytes.
        pub limit: u64 = "limit" always,
    }

    /// Network class and priorities.
    pub struct Network {
        /// For `net_cls.classid`.
        pub class_id: Option<u32> = "classID",
        /// For `net_prio.ifpriomap`.
        pub priorities: Vec<InterfacePriority> = "priorities",
    }

    /// One of `network.priorities`.
    pub struct InterfacePriority {
        /// Interface.
        pub name: String = "name" always,
        /// Priority of its traffic.
        pub priority: u32 = "priority" always,
    }

    /// A value of `rdma`.
    pub struct Rdma {
        /// Most handles.
        pub hca_handles: Option<u32> = "hcaHandles",
        /// Most objects.
        pub hca_objects: Option<u32> = "hcaObjects",
    }
}
