//! Numbers of cgroup v1.

use super::v2::number;
use super::{Blkio, BlkioEntry, Cpuset, Hugetlb, MemoryEntry, Stats, huge_page_sizes};
use crate::cgroup::Cgroup;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::parse::{flat_entries, flat_keyed, number_list};

/// cpuacct.stat counts in USER_HZ, which is 100 on every architecture that we know.
const NANOSECONDS_PER_TICK: u64 = 10_000_000;

/// Fills `stats` from the cgroups in all hierarchies.
pub(super) fn collect(cgroup: &Cgroup, stats: &mut Stats) -> Result<()> {
    if let Some(dir) = cgroup.v1_dir("cpu")? {
        let text = dir.read_if_any("cpu.stat")?.unwrap_or_default();
        let value = |key| flat_keyed(&text, key).unwrap_or(0);
        stats.cpu.throttling.periods = value("nr_periods");
        stats.cpu.throttling.throttled_periods = value("nr_throttled");
        stats.cpu.throttling.throttled_time = value("throttled_time");
    }
    if let Some(dir) = cgroup.v1_dir("cpuacct")? {
        cpuacct(dir, stats)?;
    }
    if let Some(dir) = cgroup.v1_dir("cpuset")? {
        stats.cpuset = cpuset(dir)?;
    }
    if let Some(dir) = cgroup.v1_dir("memory")? {
        memory(dir, stats)?;
    }
    if let Some(dir) = cgroup.v1_dir("pids")? {
        stats.pids.current = number(dir, "pids.current")?.unwrap_or(0);
        stats.pids.limit = number(dir, "pids.max")?.filter(|&limit| limit != u64::MAX).unwrap_or(0);
    }
    if let Some(dir) = cgroup.v1_dir("blkio")? {
        stats.blkio = blkio(dir)?;
    }
    if let Some(dir) = cgroup.v1_dir("hugetlb")? {
        for size in huge_page_sizes() {
            if let Some(entry) = hugetlb(dir, &size)? {
                stats.hugetlb.insert(size, entry);
            }
        }
    }
    Ok(())
}

fn cpuacct(dir: &Dir, stats: &mut Stats) -> Result<()> {
    let usage = &mut stats.cpu.usage;
    let text = dir.read_if_any("cpuacct.stat")?.unwrap_or_default();
    let ticks = |key| flat_keyed(&text, key).unwrap_or(0).saturating_mul(NANOSECONDS_PER_TICK);
    usage.user = ticks("user");
    usage.kernel = ticks("system");
    usage.total = number(dir, "cpuacct.usage")?.unwrap_or(0);
    usage.percpu = dir
        .read_if_any("cpuacct.usage_percpu")?
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    let all = dir.read_if_any("cpuacct.usage_all")?.unwrap_or_default();
    (usage.percpu_user, usage.percpu_kernel) = usage_all(&all);
    Ok(())
}

/// A line for each CPU: number, user, system. Before it a heading.
fn usage_all(text: &str) -> (Vec<u64>, Vec<u64>) {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1).map(str::parse::<u64>);
            Some((fields.next()?.ok()?, fields.next()?.ok()?))
        })
        .unzip()
}

fn cpuset(dir: &Dir) -> Result<Cpuset> {
    let list = |file: &str| -> Result<Vec<u16>> {
        let text = dir.read_if_any(file)?.unwrap_or_default();
        number_list(&text).ok_or_else(|| Error::Malformed { path: dir.file(file), what: text.clone() })
    };
    let flag = |file: &str| number(dir, file).map(Option::unwrap_or_default);
    let level = dir.read_if_any("cpuset.sched_relax_domain_level")?.unwrap_or_default();
    Ok(Cpuset {
        cpus: list("cpuset.cpus")?,
        cpu_exclusive: flag("cpuset.cpu_exclusive")?,
        mems: list("cpuset.mems")?,
        mem_hardwall: flag("cpuset.mem_hardwall")?,
        mem_exclusive: flag("cpuset.mem_exclusive")?,
        memory_migrate: flag("cpuset.memory_migrate")?,
        memory_spread_page: flag("cpuset.memory_spread_page")?,
        memory_spread_slab: flag("cpuset.memory_spread_slab")?,
        memory_pressure: flag("cpuset.memory_pressure")?,
        sched_load_balance: flag("cpuset.sched_load_balance")?,
        sched_relax_domain_level: level.trim().parse().unwrap_or(0),
    })
}

fn memory(dir: &Dir, stats: &mut Stats) -> Result<()> {
    let Some(text) = dir.read_if_any("memory.stat")? else {
        return Ok(());
    };
    let memory = &mut stats.memory;
    memory.raw = flat_entries(&text).map(|(name, value)| (name.to_owned(), value)).collect();
    memory.cache = flat_keyed(&text, "cache").unwrap_or(0);
    let entry = |prefix: &str| -> Result<MemoryEntry> {
        let value = |file: &str| number(dir, &format!("{prefix}.{file}")).map(Option::unwrap_or_default);
        Ok(MemoryEntry {
            limit: value("limit_in_bytes")?,
            usage: value("usage_in_bytes")?,
            max: value("max_usage_in_bytes")?,
            failcnt: value("failcnt")?,
        })
    };
    memory.usage = entry("memory")?;
    memory.swap = entry("memory.memsw")?;
    memory.kernel = entry("memory.kmem")?;
    memory.kernel_tcp = entry("memory.kmem.tcp")?;
    Ok(())
}

/// A table of [`Blkio`].
type Table = fn(&mut Blkio) -> &mut Vec<BlkioEntry>;

/// Names of files, less the scheduler's prefix, and where they go. The first is the touchstone: a scheduler has all
/// of them or none.
const TABLES: [(&str, Table); 8] = [
    ("io_service_bytes_recursive", |blkio| &mut blkio.io_service_bytes_recursive),
    ("io_serviced_recursive", |blkio| &mut blkio.io_serviced_recursive),
    ("io_queued_recursive", |blkio| &mut blkio.io_queued_recursive),
    ("io_service_time_recursive", |blkio| &mut blkio.io_service_time_recursive),
    ("io_wait_time_recursive", |blkio| &mut blkio.io_wait_time_recursive),
    ("io_merged_recursive", |blkio| &mut blkio.io_merged_recursive),
    ("time_recursive", |blkio| &mut blkio.io_time_recursive),
    ("sectors_recursive", |blkio| &mut blkio.sectors_recursive),
];

/// BFQ, CFQ (to Linux 4.20), and what the throttling counts whatever the scheduler: the first that has numbers.
fn blkio(dir: &Dir) -> Result<Blkio> {
    let throttle =
        [("blkio.throttle.", "io_service_bytes_recursive"), ("blkio.throttle.", "io_service_bytes")];
    for prefix in ["blkio.bfq.", "blkio."] {
        let mut blkio = Blkio::default();
        for (file, table) in TABLES {
            *table(&mut blkio) = blkio_file(dir, &format!("{prefix}{file}"))?;
        }
        if !blkio.io_service_bytes_recursive.is_empty() {
            return Ok(blkio);
        }
    }
    for (prefix, bytes) in throttle {
        let io_service_bytes_recursive = blkio_file(dir, &format!("{prefix}{bytes}"))?;
        if !io_service_bytes_recursive.is_empty() {
            let serviced = bytes.replace("service_bytes", "serviced");
            return Ok(Blkio {
                io_service_bytes_recursive,
                io_serviced_recursive: blkio_file(dir, &format!("{prefix}{serviced}"))?,
                ..Blkio::default()
            });
        }
    }
    Ok(Blkio::default())
}

fn blkio_file(dir: &Dir, file: &str) -> Result<Vec<BlkioEntry>> {
    Ok(blkio_lines(&dir.read_if_any(file)?.unwrap_or_default()))
}

/// `8:0 Read 124`, or `8:0 124`; a last line with the total of all devices is left out.
fn blkio_lines(text: &str) -> Vec<BlkioEntry> {
    text.lines()
        .filter_map(|line| {
            let (device, rest) = line.split_once(' ')?;
            let (major, minor) = crate::parse::device_number(device)?;
            let (op, value) = rest.split_once(' ').unwrap_or(("", rest));
            Some(BlkioEntry { major, minor, op: op.to_owned(), value: value.trim().parse().ok()? })
        })
        .collect()
}

fn hugetlb(dir: &Dir, size: &str) -> Result<Option<Hugetlb>> {
    for prefix in [format!("hugetlb.{size}.rsvd"), format!("hugetlb.{size}")] {
        if let Some(usage) = number(dir, &format!("{prefix}.usage_in_bytes"))? {
            return Ok(Some(Hugetlb {
                usage,
                max: number(dir, &format!("{prefix}.max_usage_in_bytes"))?.unwrap_or(0),
                failcnt: number(dir, &format!("{prefix}.failcnt"))?.unwrap_or(0),
            }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blkio_formats() {
        let entries = blkio_lines("8:0 Read 1\n8:0 Total 3\n8:16 7\nTotal 3\n\n");
        let shown: Vec<_> = entries.iter().map(|e| (e.minor, e.op.as_str(), e.value)).collect();
        assert_eq!(shown, [(0, "Read", 1), (0, "Total", 3), (16, "", 7)]);
    }

    #[test]
    fn cpuacct_usage_all() {
        assert_eq!(usage_all("cpu user system\n0 5 6\n1 7 8\n"), (vec![5, 7], vec![6, 8]));
        assert_eq!(usage_all(""), (vec![], vec![]));
    }
}
