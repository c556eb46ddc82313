//! What the command does for the container from outside: limits and the hooks of the host's side.

use brig_spec::{Resources, Status};
use brig_sys::trace::span;
use rustix::io::Errno;

use super::making::Making;
use crate::error::{Doing, Error, Result};
use crate::hooks::{self, HookKind};

/// A memory limit below this is set last: the set-up itself needs some.
const SMALL_MEMORY: i64 = 16 << 20;

/// The device filter, as soon as the cgroup is there: hooks add rules to it.
pub(super) fn filter_devices(making: &mut Making<'_>) -> Result<()> {
    let devices = &making.decided.plan.cgroup.resources.devices;
    if devices.is_empty() {
        return Ok(());
    }
    let _span = span("loading the device filter");
    set(making, Resources { devices: devices.clone(), ..Resources::default() })
}

/// The file systems are in place, and the process waits. Hooks may look at the limits, so these come first where there are hooks;
/// otherwise they would only slow the process down.
pub(super) fn hooks_and_limits(making: &mut Making<'_>) -> Result<()> {
    let hooks = making.decided.plan.hooks.clone();
    if hooks.prestart.is_empty() && hooks.create_runtime.is_empty() {
        return Ok(());
    }
    set_limits(making)?;
    let (plan, id) = (&making.decided.plan, making.id());
    let state = hooks::state_json(plan, id, Status::Creating, making.pid()?);
    hooks::run_all(HookKind::Prestart, &hooks.prestart, &state, None)?;
    hooks::run_all(HookKind::CreateRuntime, &hooks.create_runtime, &state, None)
}

/// What was left out so far.
pub(super) fn remaining_limits(making: &mut Making<'_>) -> Result<()> {
    let _span = span("setting limits");
    if !making.limits_set {
        set_limits(making)?;
    }
    let memory = making.decided.plan.cgroup.resources.memory.clone().filter(is_small);
    let Some(memory) = memory else {
        return Ok(());
    };
    let limits = Resources { memory: Some(memory), ..Resources::default() };
    set_small(making, &limits).map_err(|e| match e.errno() {
        // v1 takes no limit that is below what is in use.
        Some(Errno::BUSY) => e.context("memory limit too low"),
        // v2 kills, and systemd has taken the cgroup away before it could be told of the limit.
        _ if making.has_ended() => oom_killed(),
        _ => e,
    })?;
    match &making.cgroup {
        Some(cgroup) if cgroup.oom_kills()? > Some(0) => Err(oom_killed()),
        _ => Ok(()),
    }
}

/// The phrase that clients look for.
pub(super) fn oom_killed() -> Error {
    Error::config("container init was OOM-killed (memory limit too low?)")
        .hint("linux.resources.memory.limit must leave 512 KB for the start, and what the program needs")
}

/// Late, and so systemd has not been told of it yet.
fn set_small(making: &Making<'_>, memory: &Resources) -> Result<()> {
    let Some(cgroup) = &making.cgroup else {
        return Ok(());
    };
    let skipped = match making.decided.cgroup.unit {
        Some(_) => cgroup.update(memory),
        None if making.goes_without_limits() => cgroup.apply_what_can_be(memory),
        None => cgroup.apply(memory),
    };
    for skipped in skipped.doing(|| "setting cgroup config for procHooks process")? {
        log::debug!("{skipped:?}");
    }
    Ok(())
}

/// What can be set before there is a process: all but a small memory limit.
pub(super) fn early_limits(resources: &Resources) -> Resources {
    Resources { memory: resources.memory.clone().filter(|memory| !is_small(memory)), ..resources.clone() }
}

fn is_small(memory: &brig_spec::Memory) -> bool {
    memory.limit.is_some_and(|limit| (1..SMALL_MEMORY).contains(&limit))
}

/// All limits but the devices', which are set, and a small memory limit.
fn set_limits(making: &mut Making<'_>) -> Result<()> {
    making.limits_set = true;
    let resources = &making.decided.plan.cgroup.resources;
    let rest = Resources { devices: Vec::new(), ..early_limits(resources) };
    set(making, rest)
}

fn set(making: &mut Making<'_>, resources: Resources) -> Result<()> {
    let Some(cgroup) = &making.cgroup else {
        return Ok(());
    };
    let doing = || "setting cgroup config for procHooks process";
    if making.goes_without_limits() {
        // Whoever says --rootless=true wants the container to run, and is told what it runs without.
        for skipped in cgroup.apply_what_can_be(&resources).doing(doing)? {
            log::warn!("{} is not in force: {}", skipped.source, skipped.why);
        }
        return Ok(());
    }
    for skipped in cgroup.apply(&resources).doing(doing)? {
        log::debug!("{}: {}", skipped.source, skipped.why);
    }
    Ok(())
}
