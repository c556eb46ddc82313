//! What `stats` prints: what containers use, for people and for programs.

use std::fmt;

use brig_cgroup::Stats;
use brig_cgroup::stats::{BlkioEntry, Psi};
use brig_runtime::Sample;
use serde::{Serialize, Serializer};

use super::table;
use crate::error::{Error, Kind};

/// What one container uses, as rates since an earlier look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Usage {
    id: String,
    cpu: Cpu,
    memory: Amount,
    pids: Amount,
    io: Io,
    throttling: Throttling,
    pressure: Pressure,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Cpu {
    percent: Tenths,
    /// Nanoseconds altogether.
    total: u64,
}

/// How much of how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Amount {
    current: u64,
    limit: Option<u64>,
}

/// Bytes altogether.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Io {
    read: u64,
    written: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Throttling {
    /// Of the periods in which the quota was used up; none where no quota is set.
    percent: Option<Tenths>,
    /// Nanoseconds of waiting altogether.
    time: u64,
}

/// Share of the last ten seconds in which something had to wait; none where the kernel does not measure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Pressure {
    cpu: Option<Tenths>,
    memory: Option<Tenths>,
    io: Option<Tenths>,
}

/// A number with one decimal place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tenths(u64);

impl Tenths {
    fn percent(part: u64, whole: u64) -> Option<Self> {
        let tenths = u128::from(part).checked_mul(1000)?.checked_div(u128::from(whole))?;
        u64::try_from(tenths).ok().map(Self)
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

impl Serialize for Tenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(u32::try_from(self.0).unwrap_or(u32::MAX)) / 10.0)
    }
}

impl Usage {
    /// What `now` says; rates since `before`, or else since the container was created.
    pub fn new(id: &str, before: Option<&Sample>, now: &Sample) -> Self {
        let stats = &now.stats;
        let since = before.map_or(now.created, |before| before.at);
        let earlier = before.map(|before| &before.stats.cpu);
        let grown = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        let cpu = grown(stats.cpu.usage.total, earlier.map(|cpu| cpu.usage.total));
        let throttling = &stats.cpu.throttling;
        let periods = grown(throttling.periods, earlier.map(|cpu| cpu.throttling.periods));
        let throttled =
            grown(throttling.throttled_periods, earlier.map(|cpu| cpu.throttling.throttled_periods));
        Self {
            id: id.to_owned(),
            cpu: Cpu {
                percent: Tenths::percent(cpu, now.at.saturating_sub(since)).unwrap_or(Tenths(0)),
                total: stats.cpu.usage.total,
            },
            memory: Amount { current: stats.memory.usage.usage, limit: memory_limit(stats) },
            pids: Amount {
                current: stats.pids.current,
                limit: Some(stats.pids.limit).filter(|&limit| limit != 0),
            },
            io: Io { read: io(stats, "Read"), written: io(stats, "Write") },
            throttling: Throttling {
                percent: Tenths::percent(throttled, periods),
                time: throttling.throttled_time,
            },
            pressure: Pressure {
                cpu: some(stats.cpu.psi.as_ref()),
                memory: some(stats.memory.psi.as_ref()),
                io: some(stats.blkio.psi.as_ref()),
            },
        }
    }

    fn row(&self) -> [String; 7] {
        let Pressure { cpu, memory, io } = &self.pressure;
        [
            self.id.clone(),
            format!("{}%", self.cpu.percent),
            of(size(self.memory.current), self.memory.limit.map(size)),
            of(self.pids.current.to_string(), self.pids.limit.map(|limit| limit.to_string())),
            format!("{} / {}", size(self.io.read), size(self.io.written)),
            self.throttling.percent.map_or("-".to_owned(), |percent| format!("{percent}%")),
            [cpu, memory, io]
                .map(|share| share.map_or("-".to_owned(), |share| share.to_string()))
                .join(" / "),
        ]
    }
}

/// v1 shows none as a number of pages not far below 2⁶³.
fn memory_limit(stats: &Stats) -> Option<u64> {
    const NONE: u64 = i64::MAX.unsigned_abs() - (1 << 20);
    Some(stats.memory.usage.limit).filter(|&limit| limit != 0 && limit < NONE)
}

fn io(stats: &Stats, op: &str) -> u64 {
    let of_op = |entry: &&BlkioEntry| entry.op == op;
    stats.blkio.io_service_bytes_recursive.iter().filter(of_op).map(|entry| entry.value).sum()
}

fn some(psi: Option<&Psi>) -> Option<Tenths> {
    // By way of text: there is no conversion that clippy would not call lossy.
    psi.and_then(|psi| format!("{:.0}", psi.some.avg10 * 10.0).parse().ok()).map(Tenths)
}

fn of(current: String, limit: Option<String>) -> String {
    format!("{current} / {}", limit.as_deref().unwrap_or("-"))
}

/// Three digits or so, and a unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut rest = bytes;
    for unit in UNITS {
        if rest < 1024 * 1024 || unit == "EiB" {
            return match rest / 1024 {
                whole @ ..100 => format!("{whole}.{}{unit}", rest % 1024 * 10 / 1024),
                whole => format!("{whole}{unit}"),
            };
        }
        rest /= 1024;
    }
    format!("{bytes}B")
}

/// One row for each container.
pub fn table(usages: &[Usage]) -> String {
    let head = ["ID", "CPU", "MEM / LIMIT", "PIDS", "READ / WRITTEN", "THROTTLED", "PRESSURE CPU / MEM / IO"];
    let rows: Vec<_> = [head.map(str::to_owned)].into_iter().chain(usages.iter().map(Usage::row)).collect();
    table::text(&rows)
}

/// One line: an array, `[]` when there is none.
///
/// # Errors
///
/// None that is known: the type has nothing that JSON lacks.
pub fn json(usages: &[Usage]) -> Result<String, Error> {
    let line = serde_json::to_string(usages);
    line.map(|line| line + "\n").map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use brig_cgroup::stats::PsiData;

    use super::*;

    fn sample(at: u64, cpu: u64) -> Sample {
        let mut stats = Stats::default();
        stats.cpu.usage.total = cpu;
        stats.memory.usage.usage = 3 << 19;
        stats.memory.usage.limit = 64 << 20;
        stats.pids.current = 2;
        let entry = |op: &str, value| BlkioEntry { major: 8, minor: 0, op: op.to_owned(), value };
        stats.blkio.io_service_bytes_recursive =
            vec![entry("Read", 10), entry("Write", 2048), entry("Total", 9)];
        Sample { at, created: 1_000_000_000, stats }
    }

    #[test]
    fn rates_are_since_the_look_before_or_since_the_creation() {
        let mut now = sample(3_000_000_000, 500_000_000);
        assert_eq!(Usage::new("c1", None, &now).cpu.percent.to_string(), "25.0");
        let before = sample(2_000_000_000, 377_000_000);
        assert_eq!(Usage::new("c1", Some(&before), &now).cpu.percent.to_string(), "12.3");
        now.stats.cpu.throttling.periods = 10;
        now.stats.cpu.throttling.throttled_periods = 4;
        assert_eq!(Usage::new("c1", Some(&before), &now).throttling.percent, Some(Tenths(400)));
        // A clock that was set back.
        assert_eq!(Usage::new("c1", Some(&now), &before).cpu.percent, Tenths(0));
    }

    #[test]
    fn a_table_for_people() {
        let mut now = sample(3_000_000_000, 500_000_000);
        let psi = Psi { some: PsiData { avg10: 1.26, ..PsiData::default() }, ..Psi::default() };
        now.stats.memory.psi = Some(psi);
        let mut unlimited = now.clone();
        unlimited.stats.memory.usage.limit = 0x7fff_ffff_ffff_f000;
        unlimited.stats.pids.limit = 7;
        let usages = [Usage::new("c1", None, &now), Usage::new("c2", None, &unlimited)];
        assert_eq!(
            table(&usages),
            "ID          CPU         MEM / LIMIT        PIDS        READ / WRITTEN   THROTTLED   PRESSURE CPU / MEM / IO\n\
             c1          25.0%       1.5MiB / 64.0MiB   2 / -       10B / 2.0KiB     -           - / 1.3 / -\n\
             c2          25.0%       1.5MiB / -         2 / 7       10B / 2.0KiB     -           - / 1.3 / -\n"
        );
    }

    #[test]
    fn a_line_for_programs() {
        assert_eq!(json(&[]).unwrap(), "[]\n");
        assert_eq!(
            json(&[Usage::new("c1", None, &sample(3_000_000_000, 500_000_000))]).unwrap(),
            "[{\"id\":\"c1\",\"cpu\":{\"percent\":25.0,\"total\":500000000},\"memory\":{\"current\":1572864,\"limit\":67108864},\
             \"pids\":{\"current\":2,\"limit\":null},\"io\":{\"read\":10,\"written\":2048},\"throttling\":{\"percent\":null,\"time\":0},\
             \"pressure\":{\"cpu\":null,\"memory\":null,\"io\":null}}]\n"
        );
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KiB"),
            (102_399, "99.9KiB"),
            (102_400, "100KiB"),
            (1 << 20, "1.0MiB"),
            (1 << 40, "1.0TiB"),
            (u64::MAX, "15.9EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
