//! What a container uses, as `events --stats` shows it.
//!
//! The types are the schema that clients of runc decode: names, order, and which members are left out when empty.

mod v1;
mod v2;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::layout::Mode;

/// Everything there is to know. Members whose source does not exist keep their default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Processor time.
    pub cpu: Cpu,
    /// v1 cpuset.
    pub cpuset: Cpuset,
    /// Memory.
    pub memory: Memory,
    /// Tasks.
    pub pids: Pids,
    /// Block devices.
    pub blkio: Blkio,
    /// Huge pages, by page size: `2MB`.
    pub hugetlb: BTreeMap<String, Hugetlb>,
    /// Not a cgroup's business: left empty here, for the caller to fill.
    pub intel_rdt: IntelRdt,
    /// Interfaces of a kind of configuration that is extinct: always null.
    pub network_interfaces: Option<Vec<NetworkInterface>>,
}

/// Processor time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// How much.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: CpuUsage,
    /// How often, and how long, it had to wait for its quota.
    #[serde(skip_serializing_if = "is_default")]
    pub throttling: Throttling,
    /// Pressure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// Nanoseconds of processor time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CpuUsage {
    /// All.
    #[serde(skip_serializing_if = "is_default")]
    pub total: u64,
    /// On each CPU (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percpu: Vec<u64>,
    /// On each CPU in the kernel (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percpu_kernel: Vec<u64>,
    /// On each CPU in user mode (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percpu_user: Vec<u64>,
    /// In the kernel.
    pub kernel: u64,
    /// In user mode.
    pub user: u64,
}

/// Quota and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Throttling {
    /// Periods that have passed.
    #[serde(skip_serializing_if = "is_default")]
    pub periods: u64,
    /// Those in which the quota was used up.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_periods: u64,
    /// Nanoseconds of waiting.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_time: u64,
}

/// The v1 cpuset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are cpuset(7)'s")]
pub struct Cpuset {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u16>,
    pub cpu_exclusive: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mems: Vec<u16>,
    pub mem_hardwall: u64,
    pub mem_exclusive: u64,
    pub memory_migrate: u64,
    pub memory_spread_page: u64,
    pub memory_spread_slab: u64,
    pub memory_pressure: u64,
    pub sched_load_balance: u64,
    pub sched_relax_domain_level: i64,
}

/// Memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Bytes of page cache.
    #[serde(skip_serializing_if = "is_default")]
    pub cache: u64,
    /// All memory.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: MemoryEntry,
    /// Memory and swap together.
    #[serde(skip_serializing_if = "is_default")]
    pub swap: MemoryEntry,
    /// The kernel's (v1).
    #[serde(skip_serializing_if = "is_default")]
    pub kernel: MemoryEntry,
    /// TCP buffers (v1).
    #[serde(rename = "kernelTCP", skip_serializing_if = "is_default")]
    pub kernel_tcp: MemoryEntry,
    /// memory.stat.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub raw: BTreeMap<String, u64>,
    /// Pressure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// One kind of memory, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryEntry {
    /// `u64::MAX`, or on v1 a number not much below 2⁶³, for none.
    pub limit: u64,
    /// Now.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: u64,
    /// The most so far.
    #[serde(skip_serializing_if = "is_default")]
    pub max: u64,
    /// How often the limit was hit.
    pub failcnt: u64,
}

/// Tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pids {
    /// Now.
    #[serde(skip_serializing_if = "is_default")]
    pub current: u64,
    /// At most; 0 for no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: u64,
}

/// Block devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are those of v1's files")]
pub struct Blkio {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_service_bytes_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_serviced_recursive: Vec<BlkioEntry>,
    #[serde(rename = "ioQueueRecursive", skip_serializing_if = "Vec::is_empty")]
    pub io_queued_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_service_time_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_wait_time_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_merged_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io_time_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sectors_recursive: Vec<BlkioEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// One number about one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlkioEntry {
    /// Device.
    #[serde(skip_serializing_if = "is_default")]
    pub major: u64,
    /// Device.
    #[serde(skip_serializing_if = "is_default")]
    pub minor: u64,
    /// `Read`, `Write`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub op: String,
    /// Bytes, requests or nanoseconds.
    #[serde(skip_serializing_if = "is_default")]
    pub value: u64,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hugetlb {
    /// Bytes now.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: u64,
    /// Most bytes so far (v1).
    #[serde(skip_serializing_if = "is_default")]
    pub max: u64,
    /// How often the limit was hit.
    pub failcnt: u64,
}

/// Pressure stall information, see Documentation/accounting/psi.rst.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Psi {
    /// At least one task had to wait.
    pub some: PsiData,
    /// All had.
    pub full: PsiData,
}

/// Shares of time in per cent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PsiData {
    /// Of the last 10 seconds.
    #[serde(serialize_with = "short_float")]
    pub avg10: f64,
    /// Of the last minute.
    #[serde(serialize_with = "short_float")]
    pub avg60: f64,
    /// Of the last five minutes.
    #[serde(serialize_with = "short_float")]
    pub avg300: f64,
    /// Microseconds altogether.
    pub total: u64,
}

/// Intel RDT, for the schema's sake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of resctrl's files")]
pub struct IntelRdt {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l3_cache_info: Option<L3CacheInfo>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub l3_cache_schema_root: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub l3_cache_schema: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem_bw_info: Option<MemBwInfo>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mem_bw_schema_root: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mem_bw_schema: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemata: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mbm_stats: Option<Vec<MbmStats>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmt_stats: Option<Vec<CmtStats>>,
}

/// Of `IntelRdt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of resctrl's files")]
pub struct L3CacheInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cbm_mask: String,
    #[serde(skip_serializing_if = "is_default")]
    pub min_cbm_bits: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub num_closids: u64,
}

/// Of `IntelRdt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of resctrl's files")]
pub struct MemBwInfo {
    #[serde(skip_serializing_if = "is_default")]
    pub bandwidth_gran: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub delay_linear: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub min_bandwidth: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub num_closids: u64,
}

/// Of `IntelRdt`: one NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of resctrl's files")]
pub struct MbmStats {
    pub mbm_total_bytes: u64,
    pub mbm_local_bytes: u64,
}

/// Of `IntelRdt`: one NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of resctrl's files")]
pub struct CmtStats {
    pub llc_occupancy: u64,
}

/// Of `network_interfaces`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "the names are those of /sys/class/net/*/statistics")]
pub struct NetworkInterface {
    pub name: String,
    pub rx_bytes: u64,
    pub rx_packets: u64,
    pub rx_errors: u64,
    pub rx_dropped: u64,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub tx_dropped: u64,
}

impl Cgroup {
    /// Collects all numbers. What the kernel, or a cgroup without the controller, does not tell is left at its
    /// default.
    ///
    /// # Errors
    ///
    /// A file cannot be read for another reason than that it is missing, or not understood.
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = Stats::default();
        if self.names.mode == Mode::V2 {
            if let Some(dir) = self.unified_dir()? {
                v2::collect(dir, &mut stats)?;
            }
        } else {
            v1::collect(self, &mut stats)?;
            // v1 knows no pressure, but the kernel measures it where the processes are in a v2 cgroup too.
            if let Some(dir) = self.unified_dir()? {
                v2::pressures(dir, &mut stats)?;
            }
        }
        Ok(stats)
    }

    /// How many processes the kernel has killed for want of memory in this cgroup. `None` if it does not tell.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn oom_kills(&self) -> Result<Option<u64>> {
        let (dir, file) = match self.names.mode {
            Mode::V2 => (self.unified_dir()?, "memory.events"),
            Mode::V1 | Mode::Hybrid => (self.v1_dir("memory")?, "memory.oom_control"),
        };
        let text = dir.map_or(Ok(None), |dir| dir.read_if_any(file))?;
        Ok(text.and_then(|text| crate::parse::flat_keyed(&text, "oom_kill")))
    }
}

/// The sizes of huge pages that this kernel knows, as cgroup files name them.
fn huge_page_sizes() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/kernel/mm/hugepages") else {
        return Vec::new();
    };
    let mut sizes: Vec<String> =
        entries.filter_map(|entry| huge_page_size(entry.ok()?.file_name().to_str()?)).collect();
    sizes.sort_unstable();
    sizes
}

/// `hugepages-2048kB` is `2MB`.
fn huge_page_size(name: &str) -> Option<String> {
    let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    Some(match kib {
        kib if kib >= 1 << 20 => format!("{}GB", kib >> 20),
        kib if kib >= 1 << 10 => format!("{}MB", kib >> 10),
        kib => format!("{kib}KB"),
    })
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// As Go writes floats: without a fraction where there is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn short_float<S: Serializer>(value: &f64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    match value.to_string().parse::<u64>() {
        Ok(whole) => serializer.serialize_u64(whole),
        Err(_) => serializer.serialize_f64(*value),
    }
}

#[cfg(test)]
mod tests;
