//! `delete`: takes away whatever of a container there is, however far it came and whoever was killed at it.
//!
//! The order is what makes it repeatable: first nobody may add anything (the creator is stopped, the lock taken), then the
//! processes go, then what they lived in, and the record last. Killed at any point, the next try goes on from there.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use brig_cgroup::{Cgroup, Layout};
use brig_spec::Status;
use brig_sys::process::signal;
use brig_sys::trace::span;
use brig_sys::{Context, SysError};

use crate::container::Container;
use crate::deadline::{after, timespec_until};
use crate::error::{Doing, Error, Kind, Result};
use crate::hooks::{self, HookKind};
use crate::id::ContainerId;
use crate::ident::{Ident, has_ended};
use crate::record::{Record, Stage};
use crate::store::{ContainerDir, Lock, Store};
use crate::{gate, rootfs};

/// The part of the timeout that a command which is not making the container has to finish, before `delete --force` ends it.
const GRACE: u32 = 2;

/// How long the lock of a container without a record is waited for before its record is looked for again.
const UNRECORDED: Duration = Duration::from_millis(20);

/// How many seconds a `poststop` hook has that sets itself no limit.
const POSTSTOP_TIMEOUT: u32 = 60;

/// Unless `--timeout` says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Removes a container. With `force`, whatever its state, and a missing one is no error; without, what is stopped or was
/// abandoned by its creator, and what only waits for `start`.
///
/// # Errors
///
/// The container lives; a task cannot be killed within the timeout: the error names it, and the record stays, so that the
/// next try goes on.
pub fn delete(store: &Store, id: &ContainerId, force: bool, timeout: Duration) -> Result<()> {
    let deadline = after(timeout);
    let dir = loop {
        match store.open(id) {
            Err(e) if force && e.kind() == Kind::NotFound => {}
            other => break other?,
        }
        match remove_marked(store, id, deadline) {
            // Somebody has begun to make it at this moment.
            Err(e) if e.errno() == Some(Errno::EXIST) && timespec_until(deadline).is_some() => {}
            other => return other,
        }
    };
    match delete_open(dir, force, deadline) {
        // Somebody else finished the same job.
        Err(e) if force && e.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

fn delete_open(dir: ContainerDir, force: bool, deadline: Instant) -> Result<()> {
    let lock = if force {
        take_over(&dir, deadline)?
    } else {
        // Its creator has the lock until it is created, and that may take long.
        if let Ok(Some(record)) = Record::read(&dir)
            && creator(&record)?.is_some_and(|creator| !has_ended(creator.as_fd()))
        {
            return Err(not_removable(dir.id(), Status::Creating));
        }
        dir.lock(deadline)?
    };
    let record = match Record::read(&dir) {
        Ok(Some(record)) => record,
        damaged if force => return remove_unrecorded(&dir, damaged.err(), deadline),
        // `create` was killed before it made anything but the directory.
        Ok(None) => {
            dir.remove()?;
            return Err(Error::not_found());
        }
        Err(e) => return Err(e),
    };
    let container = Container { dir, record };
    if !force {
        check_removable(&container)?;
    }
    if container.record.stage == Stage::Creating {
        container.cgroup()?.outrun_creator().doing(|| "deleting a container that was being created")?;
    }
    remove_all(&container.dir, &container.record, deadline)?;
    drop(lock);
    poststop_hooks(&container.record, container.id());
    Ok(())
}

/// What may go without force.
fn check_removable(container: &Container) -> Result<()> {
    match container.status()? {
        // A created container has not run anything of its own yet.
        Status::Stopped | Status::Created => Ok(()),
        status => Err(not_removable(container.id(), status)),
    }
}

fn not_removable(id: &ContainerId, status: Status) -> Error {
    Error::state(format!("cannot delete container {id} that is not stopped: {status}"))
        .hint("stop it, or use --force")
}

/// Takes the lock from whoever has it: a creator at once, any other command after it has had some time to finish.
fn take_over(dir: &ContainerDir, deadline: Instant) -> Result<Lock> {
    let now = Instant::now();
    let mut patience = now + deadline.saturating_duration_since(now) / GRACE;
    loop {
        if let Some(lock) = dir.try_lock()? {
            return Ok(lock);
        }
        let until = match Record::read(dir) {
            Ok(Some(record)) if is_held_by_creator(dir, &record)? => None,
            Ok(Some(_)) => Some(patience),
            // Of a creator that is about to write it, or of another deletion that has just removed it.
            _ => Some(after(UNRECORDED).min(patience)),
        };
        if let Some(until) = until {
            match dir.lock(until) {
                Ok(lock) => return Ok(lock),
                Err(e) if e.kind() == Kind::NotFound => return Err(e),
                Err(_) if until < patience => continue,
                Err(_) => {}
            }
        }
        if let Some(holder) = dir.lock_holder()? {
            stop(&holder.pidfd, deadline)
                .doing(|| format!("stopping process {}, which is changing the container", holder.pid))?;
        }
        if timespec_until(deadline).is_none() {
            return dir.lock(deadline);
        }
        patience = deadline;
    }
}

/// Whether who has the lock is the one who makes the container, and not another deletion of what a killed one left.
fn is_held_by_creator(dir: &ContainerDir, record: &Record) -> Result<bool> {
    let (Some(creator), Some(holder)) = (creator(record)?, dir.lock_holder()?) else { return Ok(false) };
    Ok(record.creator.pid == holder.pid && !has_ended(creator.as_fd()))
}

/// The creator of a container that is not created yet.
fn creator(record: &Record) -> Result<Option<OwnedFd>> {
    if record.stage == Stage::Creating { record.find(Some(&record.creator)) } else { Ok(None) }
}

/// Kills a process and waits until it has ended.
fn stop(pidfd: &OwnedFd, deadline: Instant) -> Result<()> {
    match signal(pidfd.as_fd(), rustix::process::Signal::KILL.as_raw()) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(e) => return Err(SysError::new("pidfd_send_signal", "", e).into()),
    }
    if wait_ended(pidfd, deadline)? { Ok(()) } else { Err(Error::host("it does not end")) }
}

/// Waits for the end of a process; false when the deadline passed first.
pub(crate) fn wait_ended(pidfd: &OwnedFd, deadline: Instant) -> Result<bool> {
    loop {
        let left = timespec_until(deadline).unwrap_or(rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(n) => return Ok(n > 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(SysError::new("poll", "a pidfd", e).into()),
        }
    }
}

/// Removes everything that a record names. The caller holds the lock.
///
/// # Errors
///
/// What could not be removed; the record stays then.
pub(crate) fn remove_all(dir: &ContainerDir, record: &Record, deadline: Instant) -> Result<()> {
    let cgroup = Cgroup::open(&record.cgroup)?;
    end_processes(dir, record, &cgroup, deadline)?;
    let removing = span("removing the cgroup");
    cgroup.remove(deadline).doing(|| "removing the cgroup")?;
    drop(removing);
    crate::rdt::remove(record.rdt.as_ref())?;
    if let Some(before) = record.mounted_over {
        unmount_rootfs(record, before)?;
    }
    dir.remove().doing(|| "removing the record")
}

/// Ends all processes of the container and waits until they are gone.
fn end_processes(dir: &ContainerDir, record: &Record, cgroup: &Cgroup, deadline: Instant) -> Result<()> {
    let _span = span("ending the processes");
    // The end of a pid namespace's first process ends all in it; everything else is found by its cgroup.
    let init = record.find(record.init.as_ref())?;
    if let Some(pidfd) = &init {
        let _ = signal(pidfd.as_fd(), rustix::process::Signal::KILL.as_raw());
    }
    // Frozen, they would not notice.
    cgroup.kill_all(deadline).doing(|| "killing the container's processes")?;
    // A creator that was killed may have left a child that had not reached the cgroup yet; it ends by itself.
    if record.stage == Stage::Creating && !gate::wait_abandoned(dir, deadline)? {
        return Err(Error::host("a process that was making the container does not end"));
    }
    cgroup.wait_empty(deadline).doing(|| "waiting for the container's processes to end")?;
    match (&init, record.init) {
        (Some(pidfd), Some(ident)) if !wait_init_ended(pidfd, &ident, deadline)? => Err(stuck(record)),
        _ => Ok(()),
    }
}

/// Waits for the end of the first process, whose others are gone.
fn wait_init_ended(pidfd: &OwnedFd, init: &Ident, deadline: Instant) -> Result<bool> {
    // Its end is an event; that it has come to where it waits for somebody else is none, and has to be looked for.
    let mut pause = Duration::from_millis(1);
    while !wait_ended(pidfd, after(pause).min(deadline))? {
        if waits_for_a_reaper(init) {
            return Ok(true);
        }
        if timespec_until(deadline).is_none() {
            return Ok(false);
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    Ok(true)
}

/// Whether the first process of a pid namespace has ended but for this: somebody outside who ran a process in it has not asked for
/// that one's status. Only they can, and nothing of the container runs any more.
fn waits_for_a_reaper(init: &Ident) -> bool {
    std::fs::read_to_string(format!("/proc/{}/wchan", init.pid))
        .is_ok_and(|at| at.trim() == "zap_pid_ns_processes")
}

fn stuck(record: &Record) -> Error {
    let pid = record.init.map_or(0, |init| init.pid);
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    Error::host(format!("container init still running: process {pid} does not end, it waits in {}", read("wchan").trim()))
        .hint("a task in uninterruptible sleep is waiting for a device or a network file system; try again when that answers")
}

/// Without a mount namespace of its own, the container's mounts were made on the host: whatever lies over the root file system
/// now and did not before.
fn unmount_rootfs(record: &Record, before: u64) -> Result<()> {
    loop {
        match rootfs::mount_id_of(&record.rootfs) {
            Ok(id) if id != before => {}
            _ => return Ok(()),
        }
        unmount(&record.rootfs, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .on_path("umount", &record.rootfs)?;
    }
}

/// There is a directory, but nothing legible in it: then what is marked as this container's is removed.
fn remove_unrecorded(dir: &ContainerDir, damage: Option<Error>, deadline: Instant) -> Result<()> {
    if let Some(damage) = damage {
        log::warn!("removing container {} without its record: {damage}", dir.id());
    }
    let mark = dir.mark()?;
    let cgroups: Vec<Cgroup> = brig_cgroup::marked(&Layout::detect()?)?
        .into_iter()
        .filter(|(found, _)| *found == mark)
        .map(|(_, names)| Ok(Cgroup::open(&names)?))
        .collect::<Result<_>>()?;
    for cgroup in &cgroups {
        cgroup.kill_all(deadline).doing(|| "killing the container's processes")?;
    }
    // A child of a killed creator, if there was one, ends by itself, wherever it is.
    gate::wait_abandoned(dir, deadline)?;
    for cgroup in &cgroups {
        cgroup.kill_all(deadline).doing(|| "killing the container's processes")?;
        cgroup.wait_empty(deadline).doing(|| "waiting for the container's processes to end")?;
        cgroup.remove(deadline).doing(|| "removing the cgroup")?;
    }
    dir.remove().doing(|| "removing the record")
}

/// Not even a directory is there: that nothing marked is left either is looked at while the id is reserved, so that
/// it cannot be a container that somebody makes at this moment.
pub(crate) fn remove_marked(store: &Store, id: &ContainerId, deadline: Instant) -> Result<()> {
    let device = store.device();
    let theirs = |mark: &brig_cgroup::Mark| {
        mark.root == store.root() && mark.id == id.as_str() && Some(mark.device) == device
    };
    // Usually there is none, and then nothing is to be made, not even for a moment.
    let Ok(layout) = Layout::detect() else { return Ok(()) };
    if !brig_cgroup::marked(&layout)?.iter().any(|(mark, _)| theirs(mark)) {
        return Ok(());
    }
    match store.reserve(id) {
        Ok((dir, _lock)) => remove_unrecorded(&dir, None, deadline),
        // Made by somebody else, or made here and at once removed by another delete.
        Err(e) if e.errno() == Some(Errno::EXIST) || matches!(e.kind(), Kind::State | Kind::NotFound) => {
            Err(Error::state("a container of that id is being created").with_errno(Errno::EXIST))
        }
        Err(e) => Err(e),
    }
}

/// `poststop`: all are run, and a failure is only told, since the container is gone already. So is a hook that does not end: one that
/// sets itself no limit has this, or `delete` would have none.
pub(crate) fn poststop_hooks(record: &Record, id: &ContainerId) {
    if record.hooks.poststop.is_empty() {
        return;
    }
    let mut hooks = record.planned_hooks().poststop;
    for hook in &mut hooks {
        hook.timeout.get_or_insert(POSTSTOP_TIMEOUT);
    }
    let state = hooks::to_json(&brig_spec::State {
        oci_version: record.oci_version.clone(),
        id: id.as_str().to_owned(),
        status: Status::Stopped,
        pid: 0,
        bundle: record.bundle.to_string_lossy().into_owned(),
        annotations: record.annotations.clone(),
    });
    for (index, hook) in hooks.iter().enumerate() {
        if let Err(e) = hooks::run_all(HookKind::Poststop, std::slice::from_ref(hook), &state, None) {
            log::warn!("poststop hook #{index} of container {id}: {e}");
        }
    }
}
