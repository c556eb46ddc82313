//! What a container uses and what happens to it: `events`, `ps`.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use brig_cgroup::{Cgroup, OomEvent, Stats};
use brig_spec::Status;
use brig_sys::SysError;

use crate::container::Container;
use crate::deadline::{after, timespec_until};
use crate::error::{Doing, Error, Result};
use crate::id::ContainerId;
use crate::store::Store;

/// Something to tell about a container.
#[derive(Debug)]
pub enum Event {
    /// What it uses.
    Stats(Box<Stats>),
    /// The kernel killed a process of it for want of memory.
    Oom,
}

fn load_alive(store: &Store, id: &ContainerId) -> Result<Container> {
    let container = Container::load(store, id)?;
    match container.status()? {
        Status::Stopped | Status::Creating => {
            Err(Error::state(format!("container with id {id} is not running")))
        }
        _ => Ok(container),
    }
}

/// What a container uses now.
///
/// # Errors
///
/// It is stopped, or its cgroup cannot be read.
pub fn stats(store: &Store, id: &ContainerId) -> Result<Stats> {
    Ok(sample(store, id)?.stats)
}

/// What a container uses, and when that was.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it was looked at: nanoseconds since the epoch.
    pub at: u64,
    /// When the container was created, on the same clock.
    pub created: u64,
    /// What it used.
    pub stats: Stats,
}

/// What a container uses now, with the time, so that two of them make a rate.
///
/// # Errors
///
/// As [`stats`].
pub fn sample(store: &Store, id: &ContainerId) -> Result<Sample> {
    let container = load_alive(store, id)?;
    let cgroup = container.cgroup()?;
    let at = crate::clock::now_ns();
    let stats = read(&container, &cgroup)?;
    Ok(Sample { at, created: container.record.created, stats })
}

fn read(container: &Container, cgroup: &Cgroup) -> Result<Stats> {
    let mut stats = cgroup.stats().doing(|| "reading statistics")?;
    if let Some(groups) = &container.record.rdt {
        stats.intel_rdt = groups.stats();
    }
    Ok(stats)
}

/// Tells what a container uses at each interval, and each kill for want of memory as it happens, until the container ends or
/// `tell` fails.
///
/// # Errors
///
/// As [`stats`]; what `tell` answers.
pub fn events(
    store: &Store,
    id: &ContainerId,
    interval: Duration,
    mut tell: impl FnMut(Event) -> Result<()>,
) -> Result<()> {
    let container = load_alive(store, id)?;
    let cgroup = container.cgroup()?;
    let mut watch = cgroup.watch_oom()?;
    let mut next = after(interval);
    loop {
        let left = timespec_until(next).unwrap_or(rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut fds = [PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN | PollFlags::PRI)];
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(SysError::new("poll", "memory events", e).into()),
        }
        for event in watch.read()? {
            match event {
                OomEvent::Oom => tell(Event::Oom)?,
                OomEvent::Gone => return Ok(()),
            }
        }
        if timespec_until(next).is_none() {
            // After a long sleep of the machine one record is enough.
            next = after(interval);
            match read(&container, &cgroup) {
                Ok(stats) => tell(Event::Stats(Box::new(stats)))?,
                Err(e) => log::error!("reading statistics of {id}: {e}"),
            }
        }
    }
}

/// The host pids of all processes of a container, those in sub-cgroups too.
///
/// # Errors
///
/// The cgroup cannot be read.
pub fn processes(store: &Store, id: &ContainerId) -> Result<Vec<i32>> {
    Container::load(store, id)?.cgroup()?.pids(true).doing(|| "reading the container's processes")
}
