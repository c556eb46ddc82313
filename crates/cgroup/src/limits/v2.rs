//! Limits in terms of cgroup v2.

use brig_spec::Resources;
use brig_spec::resources::{BlockIo, Cpu, Memory, ThrottleDevice};

use super::v1::{cpuset, huge_pages, pids, rdma};
use super::write::{Converted, Invalid, Link, Missing, Write, at, bytes, given};

/// What `cpu.max` says in a new cgroup.
const CPU_MAX: &str = "max 100000";

/// Whether [`convert`] has to know the present `cpu.max`: only one of its two numbers is given.
pub fn needs_cpu_max(resources: &Resources) -> bool {
    resources.cpu.as_ref().is_some_and(|cpu| given(cpu.quota).is_some() != given(cpu.period).is_some())
}

/// Turns limits into writes, in order. `cpu_max` is what that file says now, where [`needs_cpu_max`]; `None` stands
/// for a new cgroup.
///
/// # Errors
///
/// A value that has no meaning, or not together with another.
pub fn convert(resources: &Resources, cpu_max: Option<&str>) -> Result<Converted, Invalid> {
    let mut out = Converted::default();
    if let Some(pids) = &resources.pids {
        self::pids(pids, &mut out);
    }
    if let Some(memory) = &resources.memory {
        self::memory(memory, &mut out)?;
    }
    if let Some(block_io) = &resources.block_io {
        io(block_io, &mut out);
    }
    if let Some(cpu) = &resources.cpu {
        self::cpu(cpu, cpu_max, &mut out);
        cpuset(cpu, &mut out);
    }
    for (index, limit) in resources.hugepage_limits.iter().enumerate() {
        let source = at(format_args!("hugepageLimits[{index}].limit"));
        let prefix = huge_pages(&limit.page_size, index)?;
        out.push(Write::new("hugetlb", format!("{prefix}.max"), limit.limit, source.clone()));
        out.push(
            Write::new("hugetlb", format!("{prefix}.rsvd.max"), limit.limit, source).missing(Missing::Ignore),
        );
    }
    rdma(resources, &mut out);
    if let Some(network) = &resources.network {
        if given(network.class_id).is_some() {
            out.skip(at("network.classID"), V1_ONLY);
        }
        if !network.priorities.is_empty() {
            out.skip(at("network.priorities"), V1_ONLY);
        }
    }
    unified(resources, &mut out)?;
    Ok(out)
}

const V1_ONLY: &str = "cgroup v2 has nothing for it";

/// −1 becomes `max`.
fn or_max(value: i64) -> String {
    if value == -1 { "max".to_owned() } else { value.to_string() }
}

fn memory(memory: &Memory, out: &mut Converted) -> Result<(), Invalid> {
    let limit = bytes(memory.limit, "memory.limit")?;
    let swap = bytes(memory.swap, "memory.swap")?;
    if let Some((value, source)) = swap_max(limit, swap)? {
        let write = Write::new("memory", "memory.swap.max", or_max(value), at(source)).default("max");
        // Without swap accounting there is no limit, and mostly no swap.
        let missing = if value <= 0 { Missing::Ignore } else { Missing::Fail };
        out.push(write.missing(missing));
    }
    if let Some(limit) = limit {
        out.push(Write::new("memory", "memory.max", or_max(limit), at("memory.limit")).default("max"));
    }
    if let Some(low) = bytes(memory.reservation, "memory.reservation")? {
        out.push(Write::new("memory", "memory.low", or_max(low), at("memory.reservation")).default("0"));
    }
    if memory.swappiness.is_some() {
        out.skip(at("memory.swappiness"), V1_ONLY);
    }
    if memory.disable_oom_killer == Some(true) {
        out.skip(at("memory.disableOOMKiller"), V1_ONLY);
    }
    Ok(())
}

/// The specification counts memory and swap together, as v1 did; v2 counts them apart. Yields the number and the
/// JSON path that it is owed to.
fn swap_max(limit: Option<i64>, swap: Option<i64>) -> Result<Option<(i64, &'static str)>, Invalid> {
    const SOURCE: &str = "memory.swap";
    match (limit, swap) {
        (Some(-1), None) => Ok(Some((-1, "memory.limit"))),
        (_, None) => Ok(None),
        (_, Some(-1)) => Ok(Some((-1, SOURCE))),
        (Some(-1), Some(swap)) => Ok(Some((swap, SOURCE))),
        (None, Some(_)) => Err(Invalid::new(at(SOURCE), "unable to set swap limit without memory limit")),
        (Some(limit), Some(swap)) if swap < limit => {
            Err(Invalid::new(at(SOURCE), "memory+swap limit should be >= memory limit"))
        }
        (Some(limit), Some(swap)) => Ok(Some((swap - limit, SOURCE))),
    }
}

fn cpu(cpu: &Cpu, cpu_max: Option<&str>, out: &mut Converted) {
    if let Some(idle) = cpu.idle {
        out.push(Write::new("cpu", "cpu.idle", idle, at("cpu.idle")).default("0"));
    }
    if let Some(shares) = given(cpu.shares) {
        if cpu.idle == Some(1) {
            out.skip(at("cpu.shares"), "an idle cgroup has a weight of its own");
        } else {
            out.push(Write::new("cpu", "cpu.weight", weight(shares), at("cpu.shares")).default("100"));
        }
    }
    if let Some(burst) = cpu.burst {
        out.push(
            Write::new("cpu", "cpu.max.burst", burst, at("cpu.burst"))
                .default("0")
                .link(Link::Bandwidth)
                .missing(if burst == 0 { Missing::Ignore } else { Missing::Fail }),
        );
    }
    let (quota, period) = (given(cpu.quota), given(cpu.period));
    if quota.is_some() || period.is_some() {
        let (old_quota, old_period) =
            cpu_max.unwrap_or(CPU_MAX).trim().split_once(' ').unwrap_or(("max", "100000"));
        let value = format!(
            "{} {}",
            match quota {
                Some(quota @ 1..) => quota.to_string(),
                Some(_) => "max".to_owned(),
                None => old_quota.to_owned(),
            },
            period.map_or(old_period.to_owned(), |period| period.to_string()),
        );
        let source = if quota.is_some() { "cpu.quota" } else { "cpu.period" };
        out.push(Write::new("cpu", "cpu.max", value, at(source)).default(CPU_MAX).link(Link::Bandwidth));
    }
    if given(cpu.realtime_period).is_some() {
        out.skip(at("cpu.realtimePeriod"), V1_ONLY);
    }
    if given(cpu.realtime_runtime).is_some() {
        out.skip(at("cpu.realtimeRuntime"), V1_ONLY);
    }
}

/// `cpu.weight` (1 to 10000) for `cpu.shares` (2 to 262144): a quadratic function of the logarithms that takes the
/// least, the greatest and the default (1024 to 100) to each other. All runtimes use it since 2025.
fn weight(shares: u64) -> u64 {
    match shares {
        0..=2 => return 1,
        262_144.. => return 10_000,
        _ => {}
    }
    // Below 2^18, so exact in f64.
    let log = f64::from(u32::try_from(shares).unwrap_or(u32::MAX)).log2();
    let exponent = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
    let weight = 10_f64.powf(exponent).ceil();
    // By way of text: there is no conversion that clippy would not call lossy.
    weight.to_string().parse().unwrap_or(10_000)
}

fn io(block_io: &BlockIo, out: &mut Converted) {
    if let Some(weight) = given(block_io.weight) {
        let source = at("blockIO.weight");
        let other = Write::new("io", "io.weight", io_weight(weight), source.clone());
        out.push(
            Write::new("io", "io.bfq.weight", weight, source).missing(Missing::Instead(Box::new(other))),
        );
    }
    if given(block_io.leaf_weight).is_some() {
        out.skip(at("blockIO.leafWeight"), V1_ONLY);
    }
    for (index, device) in block_io.weight_device.iter().enumerate() {
        let key = format!("{}:{}", device.major, device.minor);
        if let Some(weight) = given(device.weight) {
            let source = at(format_args!("blockIO.weightDevice[{index}].weight"));
            let write = |file: &'static str, weight: u64| {
                Write::new("io", file, format_args!("{key} {weight}"), source.clone())
                    .keyed(&key, format!("{key} default"))
            };
            let other = write("io.weight", io_weight(weight));
            out.push(write("io.bfq.weight", weight.into()).missing(Missing::Instead(Box::new(other))));
        }
        if given(device.leaf_weight).is_some() {
            out.skip(at(format_args!("blockIO.weightDevice[{index}].leafWeight")), V1_ONLY);
        }
    }
    for (name, member, devices) in [
        ("rbps", "throttleReadBpsDevice", &block_io.throttle_read_bps_device),
        ("wbps", "throttleWriteBpsDevice", &block_io.throttle_write_bps_device),
        ("riops", "throttleReadIOPSDevice", &block_io.throttle_read_iops_device),
        ("wiops", "throttleWriteIOPSDevice", &block_io.throttle_write_iops_device),
    ] {
        for (index, ThrottleDevice { major, minor, rate }) in devices.iter().enumerate() {
            let key = format!("{major}:{minor}");
            let source = at(format_args!("blockIO.{member}[{index}].rate"));
            // 0 took a limit away on v1.
            let rate = if *rate == 0 { "max".to_owned() } else { rate.to_string() };
            let reset = format!("{key} {name}=max");
            out.push(
                Write::new("io", "io.max", format_args!("{key} {name}={rate}"), source).keyed(key, reset),
            );
        }
    }
}

/// 10 to 1000 becomes 1 to 10000.
fn io_weight(weight: u16) -> u64 {
    1 + u64::from(weight).saturating_sub(10) * 9999 / 990
}

/// Whatever else the kernel has: each line of a value is a write of its own.
fn unified(resources: &Resources, out: &mut Converted) -> Result<(), Invalid> {
    for (key, value) in &resources.unified {
        let source = at(format_args!("unified[{key:?}]"));
        if key.contains('/') {
            let message = format!("unified resource {key:?} must be a file name (no slashes)");
            return Err(Invalid::new(source, message));
        }
        let Some((controller, _)) = key.split_once('.') else {
            let message = format!("unified resource {key:?} must be in the form CONTROLLER.PARAMETER");
            return Err(Invalid::new(source, message));
        };
        let lines = value.strip_suffix('\n').unwrap_or(value);
        for line in lines.split('\n') {
            out.push(Write {
                controller: controller.to_owned().into(),
                ..Write::new("", key.clone(), line, source.clone())
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
