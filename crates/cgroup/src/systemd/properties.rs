//! Limits as properties of a unit, see systemd.resource-control(5) and org.freedesktop.systemd1(5).
//!
//! They are made from the writes to files that [`crate::limits`] makes, so both say the same, and so `unified` has its share.
//! What systemd has no property for is in the files only.

use brig_spec::Resources;

use super::value::{Type, Value};
use super::{devices, gvariant};
use crate::devices::Policy;
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::limits::{Missing, Write, v1, v2};
use crate::parse;

/// One property.
#[derive(Debug)]
pub(crate) struct Property {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// A systemd that does not know it, or not with this value, does without: the file is written anyway.
    pub optional: bool,
}

impl Property {
    pub(super) fn new(name: &str, value: impl Into<Value>) -> Self {
        Self { name: name.to_owned(), value: value.into(), optional: false }
    }

    pub(super) fn optional(name: &str, value: impl Into<Value>) -> Self {
        Self { optional: true, ..Self::new(name, value) }
    }
}

/// Limits as properties.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// In any order.
    pub properties: Vec<Property>,
    /// systemd rounds one of them: the file has to be written after it.
    pub rounded: bool,
}

/// What systemd calls "no limit".
const INFINITY: u64 = u64::MAX;

/// CPU time is kept as whole percents in unit files: what is not a multiple of this changes with `daemon-reload`.
const PERCENT: u64 = 10_000;

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// The limits of `resources` but for the devices.
///
/// # Errors
///
/// A limit makes no sense.
pub(crate) fn limits(resources: &Resources, mode: Mode, cpu_max: Option<&str>) -> Result<Limits> {
    let mut limits = Limits::default();
    if mode == Mode::V2 {
        for write in &v2::convert(resources, cpu_max)?.writes {
            limits.add_v2(write);
        }
    } else {
        let mut quota = None;
        for write in &v1::convert(resources)?.writes {
            limits.add_v1(write, &mut quota);
        }
        if let Some((quota, period)) = quota {
            limits.set_quota(quota, period);
        }
    }
    Ok(limits)
}

/// The device rules of a new unit. All that they allow, systemd allows too; it has nothing for exceptions from that, which
/// the filter of the cgroup sees to.
///
/// # Errors
///
/// They make no sense.
pub(crate) fn device_rules(resources: &Resources) -> Result<Vec<Property>> {
    if resources.devices.is_empty() {
        return Ok(Vec::new());
    }
    let policy = Policy::new(&resources.devices)?;
    if policy.default_allow {
        return Ok(vec![Property::new("DevicePolicy", "auto")]);
    }
    let list = devices::allowed(&policy)
        .into_iter()
        .map(|(device, access)| Value::Struct(vec![device.into(), access.into()]));
    let list = Value::Array(Type::Struct(vec![Type::Text, Type::Text]), list.collect());
    Ok(vec![Property::new("DevicePolicy", "strict"), Property::new("DeviceAllow", list)])
}

impl Limits {
    /// The last one holds, as with files.
    fn set(&mut self, property: Property) {
        self.properties.retain(|other| other.name != property.name);
        self.properties.push(property);
    }

    fn set_number(&mut self, name: &str, value: Option<u64>, optional: bool) {
        if let Some(value) = value {
            self.set(Property { optional, ..Property::new(name, value) });
        }
    }

    fn add_v2(&mut self, write: &Write) {
        let value = write.value.trim();
        match write.file.as_ref() {
            "pids.max" => self.set_number("TasksMax", limit(value).map(|limit| limit.max(1)), false),
            "memory.max" => self.set_number("MemoryMax", limit(value), false),
            "memory.swap.max" => self.set_number("MemorySwapMax", limit(value), true),
            "memory.high" => self.set_number("MemoryHigh", limit(value), false),
            "memory.low" => self.set_number("MemoryLow", limit(value), false),
            "memory.min" => self.set_number("MemoryMin", limit(value), true),
            "memory.oom.group" => {
                let policy = if value == "1" { "kill" } else { "continue" };
                self.set(Property::optional("OOMPolicy", policy));
            }
            "cpu.weight" => self.set_number("CPUWeight", value.parse().ok(), false),
            // Since systemd 252.
            "cpu.idle" if value == "1" => self.set_number("CPUWeight", Some(0), true),
            "cpu.max" => {
                let (quota, period) = value.split_once(' ').unwrap_or((value, "100000"));
                if let (Some(quota), Ok(period)) = (limit(quota), period.trim().parse()) {
                    self.set_quota(quota, period);
                }
            }
            "cpuset.cpus" => self.set_cpus("AllowedCPUs", value),
            "cpuset.mems" => self.set_cpus("AllowedMemoryNodes", value),
            "io.weight" => self.set_number("IOWeight", io_weight(value), false),
            "io.bfq.weight" => {
                if let Missing::Instead(other) = &write.missing {
                    self.add_v2(other);
                }
            }
            "io.max" => self.add_io(value),
            _ => {}
        }
    }

    fn add_v1(&mut self, write: &Write, quota: &mut Option<(u64, u64)>) {
        let value = write.value.trim();
        let (old_quota, old_period) = quota.unwrap_or((INFINITY, 100_000));
        match write.file.as_ref() {
            "pids.max" => self.set_number("TasksMax", limit(value).map(|limit| limit.max(1)), false),
            "memory.limit_in_bytes" => self.set_number("MemoryLimit", limit(value), false),
            "cpu.shares" => self.set_number("CPUShares", value.parse().ok(), false),
            "cpu.cfs_quota_us" => *quota = limit(value).map(|quota| (quota, old_period)),
            "cpu.cfs_period_us" => *quota = value.parse().ok().map(|period| (old_quota, period)),
            "cpuset.cpus" => self.set_cpus("AllowedCPUs", value),
            "cpuset.mems" => self.set_cpus("AllowedMemoryNodes", value),
            "blkio.weight" | "blkio.bfq.weight" => {
                self.set_number("BlockIOWeight", value.parse().ok(), false)
            }
            _ => {}
        }
    }

    /// CPU time: so many microseconds of it in each second.
    fn set_quota(&mut self, quota: u64, period: u64) {
        // Since systemd 242.
        self.set_number("CPUQuotaPeriodUSec", Some(period), true);
        let mut share = INFINITY;
        if quota != INFINITY && period != 0 {
            let exact = u128::from(quota) * u128::from(SECOND);
            let step = u128::from(period) * u128::from(PERCENT);
            // Up: what is below one percent would become none at all, and that no limit.
            share = u64::try_from(exact.div_ceil(step)).unwrap_or(INFINITY / PERCENT).saturating_mul(PERCENT);
            self.rounded |= exact % step != 0;
        }
        self.set_number("CPUQuotaPerSecUSec", Some(share), false);
    }

    /// A set of CPUs or nodes: one bit for each. Since systemd 244.
    fn set_cpus(&mut self, name: &str, list: &str) {
        let Some(numbers) = parse::number_list(list).filter(|numbers| !numbers.is_empty()) else {
            return;
        };
        let mut bits: Vec<u8> = Vec::new();
        for number in numbers.into_iter().map(usize::from) {
            if bits.len() <= number / 8 {
                bits.resize(number / 8 + 1, 0);
            }
            if let Some(byte) = bits.get_mut(number / 8) {
                *byte |= 1 << (number % 8);
            }
        }
        self.set(Property::optional(name, bits));
    }

    /// `8:0 rbps=1000 wiops=max`.
    fn add_io(&mut self, value: &str) {
        let Some((device, rates)) = value.split_once(' ') else {
            return;
        };
        for (key, rate) in rates.split(' ').filter_map(|pair| pair.split_once('=')) {
            let name = match key {
                "rbps" => "IOReadBandwidthMax",
                "wbps" => "IOWriteBandwidthMax",
                "riops" => "IOReadIOPSMax",
                "wiops" => "IOWriteIOPSMax",
                _ => continue,
            };
            let Some(rate) = limit(rate) else {
                continue;
            };
            let index = self.properties.iter().position(|property| property.name == name);
            let index = index.unwrap_or_else(|| {
                let none = Value::Array(Type::Struct(vec![Type::Text, Type::Uint64]), Vec::new());
                self.properties.push(Property::optional(name, none));
                self.properties.len() - 1
            });
            if let Some(Property { value: Value::Array(_, entries), .. }) = self.properties.get_mut(index) {
                entries.push(Value::Struct(vec![format!("/dev/block/{device}").into(), rate.into()]));
            }
        }
    }
}

/// A number, `max`, or −1 which was the word for that in v1.
fn limit(text: &str) -> Option<u64> {
    match text {
        "max" | "-1" => Some(INFINITY),
        number => number.parse().ok(),
    }
}

/// `io.weight`: a number, with or without the word `default`. Those of single devices are in the file only.
fn io_weight(text: &str) -> Option<u64> {
    text.strip_prefix("default ").unwrap_or(text).parse().ok()
}

/// `org.systemd.property.*` annotations: names without that prefix, and GVariant text.
///
/// # Errors
///
/// [`Error::Annotation`]: the text is none.
pub(crate) fn annotations(given: &[(String, String)]) -> Result<Vec<Property>> {
    let mut properties = Vec::with_capacity(given.len());
    for (name, text) in given {
        let fault = |fault: String| Error::Annotation { name: name.clone(), value: text.clone(), fault };
        let value = gvariant::parse(text).map_err(fault)?;
        // The bus has all times in microseconds; unit files, which people know, have seconds.
        let seconds =
            name.strip_suffix("Sec").filter(|stem| stem.ends_with(|c: char| c.is_ascii_lowercase()));
        properties.push(match seconds {
            Some(stem) => {
                let value =
                    microseconds(&value).ok_or_else(|| fault("not a number of seconds".to_owned()))?;
                Property::new(&format!("{stem}USec"), value)
            }
            None => Property { name: name.clone(), value, optional: false },
        });
    }
    Ok(properties)
}

fn microseconds(seconds: &Value) -> Option<u64> {
    let whole = match seconds {
        Value::Byte(n) => u64::from(*n),
        Value::Uint16(n) => u64::from(*n),
        Value::Uint32(n) => u64::from(*n),
        Value::Uint64(n) => *n,
        Value::Int16(n) => u64::try_from(*n).ok()?,
        Value::Int32(n) => u64::try_from(*n).ok()?,
        Value::Int64(n) => u64::try_from(*n).ok()?,
        // By way of text: there is no conversion that clippy would not call lossy.
        Value::Double(n) if *n >= 0.0 => return format!("{:.0}", n * 1e6).parse().ok(),
        _ => return None,
    };
    whole.checked_mul(SECOND)
}

#[cfg(test)]
mod tests;
