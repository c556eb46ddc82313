//! Numbers of cgroup v2.

use super::{
    Blkio, BlkioEntry, Cpu, Hugetlb, Memory, MemoryEntry, Pids, Psi, PsiData, Stats, huge_page_sizes,
};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::parse::{device_number, flat_entries, flat_keyed, pids, single};

/// Fills `stats` from the cgroup `dir`.
pub(super) fn collect(dir: &Dir, stats: &mut Stats) -> Result<()> {
    stats.pids = tasks(dir)?;
    if let Some(text) = dir.read_if_any("memory.stat")? {
        stats.memory = memory(dir, &text)?;
    }
    if let Some(text) = dir.read_if_any("io.stat")? {
        stats.blkio = io(&text);
    }
    if let Some(text) = dir.read_if_any("cpu.stat")? {
        stats.cpu = cpu(&text);
    }
    pressures(dir, stats)?;
    for size in huge_page_sizes() {
        if let Some(entry) = hugetlb(dir, &size)? {
            stats.hugetlb.insert(size, entry);
        }
    }
    Ok(())
}

/// Fills in the pressure, which does not depend on controllers.
pub(super) fn pressures(dir: &Dir, stats: &mut Stats) -> Result<()> {
    stats.cpu.psi = pressure(dir, "cpu.pressure")?;
    stats.memory.psi = pressure(dir, "memory.pressure")?;
    stats.blkio.psi = pressure(dir, "io.pressure")?;
    Ok(())
}

/// A file with one number.
pub(super) fn number(dir: &Dir, file: &str) -> Result<Option<u64>> {
    let Some(text) = dir.read_if_any(file)? else {
        return Ok(None);
    };
    match single(&text) {
        Some(number) => Ok(Some(number)),
        None => Err(Error::Malformed { path: dir.file(file), what: text }),
    }
}

/// Without the controller, the processes are counted.
fn tasks(dir: &Dir) -> Result<Pids> {
    if let Some(current) = number(dir, "pids.current")? {
        let limit = number(dir, "pids.max")?.filter(|&limit| limit != u64::MAX);
        return Ok(Pids { current, limit: limit.unwrap_or(0) });
    }
    let text = match dir.read("cgroup.procs") {
        Err(rustix::io::Errno::OPNOTSUPP) => dir.read_if_any("cgroup.threads")?,
        _ => dir.read_if_any("cgroup.procs")?,
    };
    let count = text.map_or(0, |text| pids(&text).count());
    Ok(Pids { current: u64::try_from(count).unwrap_or(u64::MAX), limit: 0 })
}

/// v2 counts swap by itself; the schema is v1's, with memory and swap together.
fn memory(dir: &Dir, stat: &str) -> Result<Memory> {
    let entry = |kind: &str| -> Result<Option<MemoryEntry>> {
        let Some(usage) = number(dir, &format!("{kind}.current"))? else {
            return Ok(None);
        };
        let events = dir.read_if_any(&format!("{kind}.events"))?.unwrap_or_default();
        Ok(Some(MemoryEntry {
            limit: number(dir, &format!("{kind}.max"))?.unwrap_or(u64::MAX),
            usage,
            max: number(dir, &format!("{kind}.peak"))?.unwrap_or(0),
            failcnt: flat_keyed(&events, "max").unwrap_or(0),
        }))
    };
    let usage = entry("memory")?.unwrap_or_default();
    let mut swap = entry("memory.swap")?.unwrap_or_default();
    swap.usage = swap.usage.saturating_add(usage.usage);
    // The highest of a sum is not the sum of the highest.
    swap.max = 0;
    swap.limit = swap.limit.saturating_add(usage.limit);
    let raw = flat_entries(stat).map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Memory { cache: flat_keyed(stat, "file").unwrap_or(0), usage, swap, raw, ..Memory::default() })
}

/// `8:0 rbytes=1 wbytes=2 rios=3 wios=4 …`, under the names that v1 had.
fn io(text: &str) -> Blkio {
    let mut blkio = Blkio::default();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let Some((major, minor)) = fields.next().and_then(device_number) else {
            continue;
        };
        for (key, value) in fields.filter_map(|field| field.split_once('=')) {
            let (table, op) = match key {
                "rbytes" => (&mut blkio.io_service_bytes_recursive, "Read"),
                "wbytes" => (&mut blkio.io_service_bytes_recursive, "Write"),
                "rios" => (&mut blkio.io_serviced_recursive, "Read"),
                "wios" => (&mut blkio.io_serviced_recursive, "Write"),
                _ => continue,
            };
            if let Ok(value) = value.parse() {
                table.push(BlkioEntry { major, minor, op: op.to_owned(), value });
            }
        }
    }
    blkio
}

/// Microseconds become nanoseconds.
fn cpu(text: &str) -> Cpu {
    let mut cpu = Cpu::default();
    for (key, value) in flat_entries(text) {
        let nanoseconds = value.saturating_mul(1000);
        match key {
            "usage_usec" => cpu.usage.total = nanoseconds,
            "user_usec" => cpu.usage.user = nanoseconds,
            "system_usec" => cpu.usage.kernel = nanoseconds,
            "nr_periods" => cpu.throttling.periods = value,
            "nr_throttled" => cpu.throttling.throttled_periods = value,
            "throttled_usec" => cpu.throttling.throttled_time = nanoseconds,
            _ => {}
        }
    }
    cpu
}

/// `None` where the kernel does not measure it, or not for this cgroup: then it may also refuse the reading.
fn pressure(dir: &Dir, file: &str) -> Result<Option<Psi>> {
    match dir.read(file) {
        Ok(text) => Ok(Some(psi(&text))),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NODEV | rustix::io::Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(dir.error("reading", file, errno)),
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same for `full`.
fn psi(text: &str) -> Psi {
    let mut psi = Psi::default();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let data = match fields.next() {
            Some("some") => &mut psi.some,
            Some("full") => &mut psi.full,
            _ => continue,
        };
        *data = PsiData::default();
        for (key, value) in fields.filter_map(|field| field.split_once('=')) {
            match key {
                "avg10" => data.avg10 = value.parse().unwrap_or(0.0),
                "avg60" => data.avg60 = value.parse().unwrap_or(0.0),
                "avg300" => data.avg300 = value.parse().unwrap_or(0.0),
                "total" => data.total = value.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
    psi
}

/// Pages that are reserved count too, where the kernel tells (since 5.7).
fn hugetlb(dir: &Dir, size: &str) -> Result<Option<Hugetlb>> {
    let usage = match number(dir, &format!("hugetlb.{size}.rsvd.current"))? {
        Some(usage) => Some(usage),
        None => number(dir, &format!("hugetlb.{size}.current"))?,
    };
    let Some(usage) = usage else {
        return Ok(None);
    };
    let events = dir.read_if_any(&format!("hugetlb.{size}.events"))?.unwrap_or_default();
    Ok(Some(Hugetlb { usage, max: 0, failcnt: flat_keyed(&events, "max").unwrap_or(0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_lines() {
        let blkio = io("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n254:1 rbytes=x\nbad\n");
        let value = |entry: &BlkioEntry| (entry.major, entry.op.clone(), entry.value);
        assert_eq!(
            blkio.io_service_bytes_recursive.iter().map(value).collect::<Vec<_>>(),
            [(8, "Read".into(), 1), (8, "Write".into(), 2)]
        );
        assert_eq!(blkio.io_serviced_recursive.len(), 2);
    }

    #[test]
    fn cpu_lines() {
        let cpu =
            cpu("usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 9\nnr_throttled 1\nthrottled_usec 7\n");
        assert_eq!((cpu.usage.total, cpu.usage.user, cpu.usage.kernel), (5000, 3000, 2000));
        assert_eq!(cpu.throttling.throttled_time, 7000);
    }

    #[test]
    fn psi_lines() {
        let psi = psi("some avg10=0.12 avg60=1.00 avg300=0.00 total=99\nfull avg10=0.00\n");
        assert!((psi.some.avg10 - 0.12).abs() < 1e-9 && psi.some.total == 99);
        assert_eq!(psi.full, PsiData::default());
    }
}
