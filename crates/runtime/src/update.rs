//! `update`: other limits for a container.

use std::time::Duration;

use brig_spec::{BlockIo, Cpu, Memory, Resources, Status, ThrottleDevice, WeightDevice};

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::id::ContainerId;
use crate::rdt;
use crate::store::Store;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Changes the limits that `changes` names; all of them, or on an error none. What it does not name stays, in the kernel and in
/// the record. Device rules are not touched: hooks may have added to them.
///
/// # Errors
///
/// The container is stopped; a limit is refused.
pub fn update(store: &Store, id: &ContainerId, changes: &Resources, rdt: &rdt::Changes) -> Result<()> {
    let dir = store.open(id)?;
    let _lock = dir.lock(after(TIMEOUT))?;
    let mut container = Container::load(store, id)?;
    if matches!(container.status()?, Status::Stopped | Status::Creating) {
        return Err(Error::state("container not running"));
    }
    if !changes.devices.is_empty() {
        log::warn!("linux.resources.devices: device rules are not changed by update");
    }
    let groups = container.record.rdt.clone();
    let changed = rdt::change(groups.as_ref(), rdt)?;
    match (change_limits(&mut container, changes), changed) {
        (Err(error), Some(changed)) => Err(match changed.undo() {
            Ok(()) => error,
            Err(undo) => undo.context(format!("{error}; and")),
        }),
        (done, _) => done,
    }
}

/// Changes the limits of the cgroup, in the record and in the kernel.
fn change_limits(container: &mut Container, changes: &Resources) -> Result<()> {
    let merged = merge(&container.record.resources, changes);
    let cgroup = container.cgroup()?;
    // First the record: it can be put back without fail, which limits below what is in use by then cannot.
    let before = std::mem::replace(&mut container.record.resources, merged);
    container.record.write(&container.dir)?;
    match cgroup.update(&with_partners(&container.record.resources, changes)) {
        Ok(skipped) => {
            for skipped in skipped {
                log::warn!("{}: {}", skipped.source, skipped.why);
            }
            Ok(())
        }
        Err(error) => {
            let error = Error::from(error);
            container.record.resources = before;
            container.record.write(&container.dir).doing(|| {
                format!("{error}; and the record, which has the new limits already, could not be put back")
            })?;
            Err(error)
        }
    }
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
        take(&mut merged.pids.get_or_insert_default().limit, pids.limit);
    }
    if let Some(io) = &changes.block_io {
        merge_io(merged.block_io.get_or_insert_default(), io);
    }
    for limit in &changes.hugepage_limits {
        replace(&mut merged.hugepage_limits, limit, |a, b| a.page_size == b.page_size);
    }
    if let Some(network) = &changes.network {
        let now = merged.network.get_or_insert_default();
        take_given(&mut now.class_id, network.class_id);
        for priority in &network.priorities {
            replace(&mut now.priorities, priority, |a, b| a.name == b.name);
        }
    }
    for (device, change) in &changes.rdma {
        let now = merged.rdma.entry(device.clone()).or_default();
        take(&mut now.hca_handles, change.hca_handles);
        take(&mut now.hca_objects, change.hca_objects);
    }
    merged.unified.extend(changes.unified.clone());
    merged
}

fn take<T>(now: &mut Option<T>, change: Option<T>) {
    if change.is_some() {
        *now = change;
    }
}

/// Where 0 stands for "leave it": clients send all members, set or not.
fn take_given<T: Default + PartialEq>(now: &mut Option<T>, change: Option<T>) {
    take(now, change.filter(|value| *value != T::default()));
}

fn merge_memory(now: &mut Memory, change: &Memory) {
    take_given(&mut now.limit, change.limit);
    take_given(&mut now.reservation, change.reservation);
    take(&mut now.swappiness, change.swappiness);
    take(&mut now.disable_oom_killer, change.disable_oom_killer);
    // Without a limit for memory there can be none for memory and swap together.
    let unlimited = change.limit == Some(-1) && change.swap.is_none_or(|swap| swap == 0);
    take_given(&mut now.swap, if unlimited { Some(-1) } else { change.swap });
}

fn merge_cpu(now: &mut Cpu, change: &Cpu) {
    take_given(&mut now.shares, change.shares);
    take_given(&mut now.quota, change.quota);
    take(&mut now.burst, change.burst);
    take_given(&mut now.period, change.period);
    take_given(&mut now.realtime_runtime, change.realtime_runtime);
    take_given(&mut now.realtime_period, change.realtime_period);
    take(&mut now.idle, change.idle);
    for (now, change) in [(&mut now.cpus, &change.cpus), (&mut now.mems, &change.mems)] {
        if !change.is_empty() {
            now.clone_from(change);
        }
    }
}

fn merge_io(now: &mut BlockIo, change: &BlockIo) {
    take_given(&mut now.weight, change.weight);
    take_given(&mut now.leaf_weight, change.leaf_weight);
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
        && (given(memory.limit) || given(memory.swap))
    {
        memory.limit = all.limit;
        memory.swap = all.swap;
    }
    if let (Some(cpu), Some(all)) = (&mut write.cpu, &merged.cpu)
        && (given(cpu.quota) || given(cpu.period) || cpu.burst.is_some())
    {
        cpu.quota = all.quota;
        cpu.period = all.period;
    }
    write
}

fn given<T: Default + PartialEq>(value: Option<T>) -> bool {
    value.is_some_and(|value| value != T::default())
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

    #[test]
    fn zero_leaves_what_is_there() {
        let now = resources(
            Memory { limit: Some(100), swap: Some(200), reservation: Some(50), ..Memory::default() },
            Cpu { quota: Some(5), period: Some(10), shares: Some(7), burst: Some(2), ..Cpu::default() },
        );
        let changes = resources(
            Memory { limit: Some(0), swap: Some(0), reservation: Some(0), ..Memory::default() },
            Cpu { quota: Some(0), period: Some(0), shares: Some(0), ..Cpu::default() },
        );
        let merged = merge(&now, &changes);
        assert_eq!(merged, now);
        assert_eq!(with_partners(&merged, &changes), changes);
        // What has a use for 0 gets it.
        let changes = resources(Memory::default(), Cpu { burst: Some(0), idle: Some(0), ..Cpu::default() });
        let cpu = merge(&now, &changes).cpu.unwrap();
        assert_eq!((cpu.burst, cpu.idle, cpu.shares), (Some(0), Some(0), Some(7)));
    }

    #[test]
    fn lists_are_merged_by_what_they_name() {
        let parse = |json: &str| serde_json::from_str::<Resources>(json).unwrap();
        let now = parse(
            r#"{"pids":{"limit":9},"network":{"classID":5,"priorities":[{"name":"lo","priority":1}]},
            "rdma":{"m":{"hcaHandles":1,"hcaObjects":2}},"unified":{"a.b":"1"},
            "hugepageLimits":[{"pageSize":"2MB","limit":1}],
            "blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":10}]}}"#,
        );
        let changes = parse(
            r#"{"pids":{},"network":{"priorities":[{"name":"lo","priority":2},{"name":"e","priority":3}]},
            "rdma":{"m":{"hcaHandles":7}},"unified":{"c.d":"2"},
            "hugepageLimits":[{"pageSize":"2MB","limit":3},{"pageSize":"1GB","limit":4}],
            "blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":20},{"major":8,"minor":1,"weight":30}]}}"#,
        );
        let expected = parse(
            r#"{"pids":{"limit":9},
            "network":{"classID":5,"priorities":[{"name":"lo","priority":2},{"name":"e","priority":3}]},
            "rdma":{"m":{"hcaHandles":7,"hcaObjects":2}},"unified":{"a.b":"1","c.d":"2"},
            "hugepageLimits":[{"pageSize":"2MB","limit":3},{"pageSize":"1GB","limit":4}],
            "blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":20},{"major":8,"minor":1,"weight":30}]}}"#,
        );
        assert_eq!(merge(&now, &changes), expected);
    }
}
