//! `update`: other limits for a container.

use std::time::Duration;

use brig_spec::{BlockIo, Cpu, Memory, Resources, Status, ThrottleDevice, WeightDevice};

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::id::ContainerId;
use crate::store::Store;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Changes the limits that `changes` names; all of them, or on an error none. What it does not name stays, in the kernel and in
/// the record. Device rules are not touched: hooks may have added to them.
///
/// # Errors
///
/// The container is stopped; a limit is refused.
pub fn update(store: &Store, id: &ContainerId, changes: &Resources) -> Result<()> {
    let dir = store.open(id)?;
    let _lock = dir.lock(after(TIMEOUT))?;
    let mut container = Container::load(store, id)?;
    if matches!(container.status()?, Status::Stopped | Status::Creating) {
        return Err(Error::state("container not running"));
    }
    let merged = merge(&container.record.resources, changes);
    let cgroup = container.cgroup()?;
    for skipped in cgroup.update(&with_partners(&merged, changes))? {
        log::warn!("{skipped:?}");
    }
    container.record.resources = merged;
    container.record.write(&container.dir).doing(|| "the limits are changed, but not recorded")
}

/// The limits as they will be.
fn merge(now: &Resources, changes: &Resources) -> Resources {
    let mut merged = now.clone();
    if let Some(memory) = &changes.memory {
        merge_memory(merged.memory.get_or_insert_default(), memory);
    }
    if let Some(cpu) = &changes.cpu {
        merge_cpu(merged.cpu.get_or_insert_default(), cpu);
    }
    if let Some(pids) = &changes.pids {
        merged.pids = Some(pids.clone());
    }
    if let Some(io) = &changes.block_io {
        merge_io(merged.block_io.get_or_insert_default(), io);
    }
    for limit in &changes.hugepage_limits {
        merged.hugepage_limits.retain(|l| l.page_size != limit.page_size);
        merged.hugepage_limits.push(limit.clone());
    }
    if changes.network.is_some() {
        merged.network.clone_from(&changes.network);
    }
    merged.rdma.extend(changes.rdma.clone());
    merged.unified.extend(changes.unified.clone());
    merged
}

fn take<T: Clone>(now: &mut Option<T>, change: &Option<T>) {
    if change.is_some() {
        now.clone_from(change);
    }
}

fn merge_memory(now: &mut Memory, change: &Memory) {
    take(&mut now.limit, &change.limit);
    take(&mut now.reservation, &change.reservation);
    take(&mut now.swappiness, &change.swappiness);
    take(&mut now.disable_oom_killer, &change.disable_oom_killer);
    now.check_before_update = change.check_before_update;
    // Without a limit for memory there can be none for memory and swap together.
    let unlimited = change.limit == Some(-1) && change.swap.is_none();
    take(&mut now.swap, &if unlimited { Some(-1) } else { change.swap });
}

fn merge_cpu(now: &mut Cpu, change: &Cpu) {
    take(&mut now.shares, &change.shares);
    take(&mut now.quota, &change.quota);
    take(&mut now.burst, &change.burst);
    take(&mut now.period, &change.period);
    take(&mut now.realtime_runtime, &change.realtime_runtime);
    take(&mut now.realtime_period, &change.realtime_period);
    take(&mut now.idle, &change.idle);
    for (now, change) in [(&mut now.cpus, &change.cpus), (&mut now.mems, &change.mems)] {
        if !change.is_empty() {
            now.clone_from(change);
        }
    }
}

fn merge_io(now: &mut BlockIo, change: &BlockIo) {
    take(&mut now.weight, &change.weight);
    take(&mut now.leaf_weight, &change.leaf_weight);
    for device in &change.weight_device {
        replace(&mut now.weight_device, device, |a: &WeightDevice, b| {
            (a.major, a.minor) == (b.major, b.minor)
        });
    }
    for (now, changes) in [
        (&mut now.throttle_read_bps_device, &change.throttle_read_bps_device),
        (&mut now.throttle_write_bps_device, &change.throttle_write_bps_device),
        (&mut now.throttle_read_iops_device, &change.throttle_read_iops_device),
        (&mut now.throttle_write_iops_device, &change.throttle_write_iops_device),
    ] {
        for device in changes {
            replace(now, device, |a: &ThrottleDevice, b| (a.major, a.minor) == (b.major, b.minor));
        }
    }
}

fn replace<T: Clone>(list: &mut Vec<T>, new: &T, same: impl Fn(&T, &T) -> bool) {
    match list.iter_mut().find(|old| same(old, new)) {
        Some(old) => *old = new.clone(),
        None => list.push(new.clone()),
    }
}

/// What is to be written: what changes, together with what shares a file or an order with it.
fn with_partners(merged: &Resources, changes: &Resources) -> Resources {
    let mut write = changes.clone();
    write.devices.clear();
    if let (Some(memory), Some(all)) = (&mut write.memory, &merged.memory)
        && (memory.limit.is_some() || memory.swap.is_some())
    {
        memory.limit = all.limit;
        memory.swap = all.swap;
    }
    if let (Some(cpu), Some(all)) = (&mut write.cpu, &merged.cpu)
        && (cpu.quota.is_some() || cpu.period.is_some() || cpu.burst.is_some())
    {
        cpu.quota = all.quota;
        cpu.period = all.period;
    }
    write
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(memory: Memory, cpu: Cpu) -> Resources {
        Resources { memory: Some(memory), cpu: Some(cpu), ..Resources::default() }
    }

    #[test]
    fn what_is_not_named_stays() {
        let now = resources(
            Memory { limit: Some(100), swap: Some(200), ..Memory::default() },
            Cpu { quota: Some(5), period: Some(10), cpus: "0-1".to_owned(), ..Cpu::default() },
        );
        let changes = resources(
            Memory { limit: Some(150), ..Memory::default() },
            Cpu { quota: Some(7), ..Cpu::default() },
        );
        let merged = merge(&now, &changes);
        assert_eq!(merged.memory.as_ref().unwrap().swap, Some(200));
        assert_eq!(merged.cpu.as_ref().unwrap().cpus, "0-1");
        let write = with_partners(&merged, &changes);
        assert_eq!(write.memory.unwrap().swap, Some(200));
        let cpu = write.cpu.unwrap();
        assert_eq!((cpu.quota, cpu.period, cpu.cpus.as_str()), (Some(7), Some(10), ""));
    }

    #[test]
    fn unlimited_memory_takes_the_swap_limit_along() {
        let now =
            resources(Memory { limit: Some(100), swap: Some(200), ..Memory::default() }, Cpu::default());
        let changes = resources(Memory { limit: Some(-1), ..Memory::default() }, Cpu::default());
        assert_eq!(merge(&now, &changes).memory.unwrap().swap, Some(-1));
    }
}
