//! Limits in terms of cgroup v1.

use brig_spec::resources::{BlockIo, Cpu, Memory, Network, ThrottleDevice};
use brig_spec::{Pids, Resources};

use super::write::{Converted, Invalid, Link, Missing, Shape, Write, at, bytes, given};

/// Turns limits into writes, in order.
///
/// # Errors
///
/// A value out of its range, or `unified`, which is for v2.
pub fn convert(resources: &Resources) -> Result<Converted, Invalid> {
    if !resources.unified.is_empty() {
        return Err(Invalid::new(at("unified"), "invalid configuration: cannot use unified on cgroup v1"));
    }
    let mut out = Converted::default();
    if let Some(cpu) = &resources.cpu {
        cpuset(cpu, &mut out);
    }
    if let Some(memory) = &resources.memory {
        self::memory(memory, &mut out)?;
    }
    if let Some(cpu) = &resources.cpu {
        self::cpu(cpu, &mut out)?;
    }
    if let Some(pids) = &resources.pids {
        self::pids(pids, &mut out);
    }
    if let Some(block_io) = &resources.block_io {
        blkio(block_io, &mut out);
    }
    for (index, limit) in resources.hugepage_limits.iter().enumerate() {
        let source = at(format_args!("hugepageLimits[{index}].limit"));
        let prefix = huge_pages(&limit.page_size, index)?;
        out.push(Write::new("hugetlb", format!("{prefix}.limit_in_bytes"), limit.limit, source.clone()));
        out.push(
            Write::new("hugetlb", format!("{prefix}.rsvd.limit_in_bytes"), limit.limit, source)
                .missing(Missing::Ignore),
        );
    }
    if let Some(network) = &resources.network {
        self::network(network, &mut out);
    }
    rdma(resources, &mut out);
    Ok(out)
}

/// What the files of a size of huge pages begin with. The size is a part of their names, so it must not lead elsewhere.
pub(super) fn huge_pages(size: &str, index: usize) -> Result<String, Invalid> {
    if size.is_empty() || !size.bytes().all(|b| b.is_ascii_alphanumeric()) {
        let message = format!("{size:?} is not a size of huge pages, such as 2MB");
        return Err(Invalid::new(at(format_args!("hugepageLimits[{index}].pageSize")), message));
    }
    Ok(format!("hugetlb.{size}"))
}

/// The same on v1 and v2.
pub(super) fn cpuset(cpu: &Cpu, out: &mut Converted) {
    for (file, value, source) in
        [("cpuset.cpus", cpu.cpus.trim(), "cpu.cpus"), ("cpuset.mems", cpu.mems.trim(), "cpu.mems")]
    {
        if !value.is_empty() {
            out.push(Write::new("cpuset", file, value, at(source)));
        }
    }
}

fn memory(memory: &Memory, out: &mut Converted) -> Result<(), Invalid> {
    let limit = bytes(memory.limit, "memory.limit")?;
    let swap = bytes(memory.swap, "memory.swap")?;
    if let Some(limit) = limit {
        out.push(
            Write::new("memory", "memory.limit_in_bytes", limit, at("memory.limit"))
                .default("-1")
                .link(Link::Memory),
        );
    }
    let memsw = |value: i64, source: &str| {
        Write::new("memory", "memory.memsw.limit_in_bytes", value, at(source))
            .default("-1")
            .link(Link::Memory)
    };
    match (limit, swap) {
        (_, Some(swap)) => out.push(memsw(swap, "memory.swap")),
        // Unlimited memory below a limit of both would be none.
        (Some(-1), None) => out.push(memsw(-1, "memory.limit").missing(Missing::Ignore)),
        (_, None) => {}
    }
    if let Some(soft) = bytes(memory.reservation, "memory.reservation")? {
        out.push(
            Write::new("memory", "memory.soft_limit_in_bytes", soft, at("memory.reservation")).default("-1"),
        );
    }
    if memory.disable_oom_killer == Some(true) {
        let write = Write::new("memory", "memory.oom_control", 1, at("memory.disableOOMKiller"));
        out.push(Write { shape: Shape::OomControl, ..write });
    }
    if let Some(swappiness) = memory.swappiness {
        if swappiness > 100 {
            return Err(Invalid::new(
                at("memory.swappiness"),
                format!("invalid memory swappiness value: {swappiness} (valid range is 0-100)"),
            ));
        }
        out.push(Write::new("memory", "memory.swappiness", swappiness, at("memory.swappiness")));
    }
    Ok(())
}

fn cpu(cpu: &Cpu, out: &mut Converted) -> Result<(), Invalid> {
    if let Some(shares) = given(cpu.shares) {
        // The kernel would take the next best value in silence.
        let refuse = |what: &str, best: u64| {
            Err(Invalid::new(at("cpu.shares"), format!("the {what} allowed cpu-shares is {best}")))
        };
        match shares {
            0..2 => return refuse("minimum", 2),
            2..=262_144 => {}
            _ => return refuse("maximum", 262_144),
        }
        if cpu.idle == Some(1) {
            out.skip(at("cpu.shares"), "an idle cgroup has a weight of its own");
        } else {
            out.push(
                Write::new("cpu", "cpu.shares", shares, at("cpu.shares")).default("1024").link(Link::Idle),
            );
        }
    }
    if let Some(idle) = cpu.idle {
        out.push(Write::new("cpu", "cpu.idle", idle, at("cpu.idle")).default("0").link(Link::Idle));
    }
    if let Some(period) = given(cpu.period) {
        out.push(
            Write::new("cpu", "cpu.cfs_period_us", period, at("cpu.period"))
                .default("100000")
                .link(Link::Bandwidth),
        );
    }
    if let Some(burst) = cpu.burst {
        out.push(
            Write::new("cpu", "cpu.cfs_burst_us", burst, at("cpu.burst"))
                .default("0")
                .link(Link::Bandwidth)
                .missing(if burst == 0 { Missing::Ignore } else { Missing::Fail }),
        );
    }
    if let Some(quota) = given(cpu.quota) {
        out.push(
            Write::new("cpu", "cpu.cfs_quota_us", quota.max(-1), at("cpu.quota"))
                .default("-1")
                .link(Link::Bandwidth),
        );
    }
    if let Some(period) = given(cpu.realtime_period) {
        out.push(
            Write::new("cpu", "cpu.rt_period_us", period, at("cpu.realtimePeriod")).link(Link::RealTime),
        );
    }
    if let Some(runtime) = given(cpu.realtime_runtime) {
        out.push(
            Write::new("cpu", "cpu.rt_runtime_us", runtime, at("cpu.realtimeRuntime")).link(Link::RealTime),
        );
    }
    Ok(())
}

/// The same on v1 and v2.
pub(super) fn pids(pids: &Pids, out: &mut Converted) {
    if let Some(limit) = pids.limit {
        let value = match limit {
            1.. => limit.to_string(),
            // systemd takes no 0. With 1 there is room for the first process and no other, which is what 0 means
            // for a container.
            0 => "1".to_owned(),
            _ => "max".to_owned(),
        };
        out.push(Write::new("pids", "pids.max", value, at("pids.limit")).default("max"));
    }
}

fn blkio(block_io: &BlockIo, out: &mut Converted) {
    let instead = |write: Write, file: &'static str| {
        let other = Write { file: file.into(), ..write.clone() };
        write.missing(Missing::Instead(Box::new(other)))
    };
    if let Some(weight) = given(block_io.weight) {
        let write = Write::new("blkio", "blkio.weight", weight, at("blockIO.weight"));
        out.push(instead(write, "blkio.bfq.weight"));
    }
    if let Some(weight) = given(block_io.leaf_weight) {
        out.push(Write::new("blkio", "blkio.leaf_weight", weight, at("blockIO.leafWeight")));
    }
    for (index, device) in block_io.weight_device.iter().enumerate() {
        let key = format!("{}:{}", device.major, device.minor);
        let write = |file: &'static str, weight: u16, member: &str| {
            let source = at(format_args!("blockIO.weightDevice[{index}].{member}"));
            Write::new("blkio", file, format_args!("{key} {weight}"), source).keyed(&key, format!("{key} 0"))
        };
        if let Some(weight) = given(device.weight) {
            out.push(instead(write("blkio.weight_device", weight, "weight"), "blkio.bfq.weight_device"));
        }
        if let Some(weight) = given(device.leaf_weight) {
            out.push(write("blkio.leaf_weight_device", weight, "leafWeight"));
        }
    }
    for (file, member, devices) in [
        ("read_bps", "throttleReadBpsDevice", &block_io.throttle_read_bps_device),
        ("write_bps", "throttleWriteBpsDevice", &block_io.throttle_write_bps_device),
        ("read_iops", "throttleReadIOPSDevice", &block_io.throttle_read_iops_device),
        ("write_iops", "throttleWriteIOPSDevice", &block_io.throttle_write_iops_device),
    ] {
        for (index, ThrottleDevice { major, minor, rate }) in devices.iter().enumerate() {
            let key = format!("{major}:{minor}");
            let source = at(format_args!("blockIO.{member}[{index}].rate"));
            let value = format_args!("{key} {rate}").to_string();
            let write = Write::new("blkio", format!("blkio.throttle.{file}_device"), value, source);
            let reset = format!("{key} 0");
            out.push(write.keyed(key, reset));
        }
    }
}

fn network(network: &Network, out: &mut Converted) {
    if let Some(class) = given(network.class_id) {
        out.push(Write::new("net_cls", "net_cls.classid", class, at("network.classID")));
    }
    for (index, entry) in network.priorities.iter().enumerate() {
        let source = at(format_args!("network.priorities[{index}].priority"));
        let value = format!("{} {}", entry.name, entry.priority);
        let write = Write::new("net_prio", "net_prio.ifpriomap", value, source);
        out.push(write.keyed(&entry.name, format!("{} 0", entry.name)));
    }
}

/// The same on v1 and v2.
pub(super) fn rdma(resources: &Resources, out: &mut Converted) {
    for (device, limit) in &resources.rdma {
        let mut value = device.clone();
        if let Some(handles) = limit.hca_handles {
            value.push_str(&format!(" hca_handle={handles}"));
        }
        if let Some(objects) = limit.hca_objects {
            value.push_str(&format!(" hca_object={objects}"));
        }
        if value.len() > device.len() {
            let write = Write::new("rdma", "rdma.max", value, at(format_args!("rdma[{device:?}]")));
            out.push(write.keyed(device, format!("{device} hca_handle=max hca_object=max")));
        }
    }
}

#[cfg(test)]
mod tests;
