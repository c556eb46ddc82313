//! The processes of a cgroup.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::deadline::wait_any;
use crate::dir::{Dir, read_path, walk};
use crate::error::Result;
use crate::parse;
use crate::straggler::Straggler;

/// How many pidfds are held at once: well below the usual limit of 1024 descriptors.
const BATCH: usize = 256;

/// The processes directly in a cgroup; none if it is gone. Those outside of our pid namespace are 0.
pub(crate) fn direct(dir: &Dir) -> Result<Vec<i32>> {
    match dir.read("cgroup.procs") {
        Ok(text) => Ok(parse::pids(&text).collect()),
        Err(Errno::NOENT | Errno::NODEV) => Ok(Vec::new()),
        // A threaded cgroup lists only threads; their processes may live elsewhere in the threaded tree.
        Err(Errno::OPNOTSUPP) => Ok(threads(dir)?),
        Err(errno) => Err(dir.error("reading", "cgroup.procs", errno)),
    }
}

fn threads(dir: &Dir) -> Result<Vec<i32>> {
    let text = dir.read_if_any("cgroup.threads")?.unwrap_or_default();
    let mut pids: Vec<i32> = parse::pids(&text).filter_map(thread_group).collect();
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// The process that a thread belongs to.
fn thread_group(tid: i32) -> Option<i32> {
    let status = read_path(Path::new(&format!("/proc/{tid}/status"))).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The processes of a cgroup and all below it.
pub(crate) fn recursive(top: &Dir) -> Result<Vec<i32>> {
    let mut pids = Vec::new();
    walk(top, &mut |dir| {
        pids.extend(direct(dir)?);
        Ok(())
    })?;
    Ok(pids)
}

/// Those still in a cgroup or below it, for an error message.
pub(crate) fn stragglers(top: &Dir) -> Vec<Straggler> {
    let mut found = Vec::new();
    // Whatever cannot be read is not worth another error.
    let _ = walk(top, &mut |dir| {
        let pids = direct(dir)?;
        found.extend(pids.into_iter().filter_map(|pid| Straggler::look(pid, dir.path())));
        Ok(())
    });
    found
}

/// Sends SIGKILL to processes, and knows which have got it.
#[derive(Debug, Default)]
pub(crate) struct Killer {
    /// Those killed that may still be dying; at most [`BATCH`].
    doomed: BTreeMap<i32, OwnedFd>,
}

impl Killer {
    /// Kills every process directly in `dir` that has not been killed before. Says whether there was any.
    ///
    /// A number that `cgroup.procs` showed may belong to a stranger by the time it is used. So the pidfd is opened
    /// first and the list read again: a number that is listed *now* was either this member's all along, or has
    /// been handed on since, and then the pidfd is that of a dead process.
    pub(crate) fn strike(&mut self, dir: &Dir) -> Result<bool> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        self.forget_dead();
        let mut spared = direct(dir)?;
        spared.retain(|pid| *pid > 1 && *pid != me && !self.doomed.contains_key(pid));
        let room = BATCH.saturating_sub(self.doomed.len());
        let opened: Vec<(i32, OwnedFd)> =
            spared.iter().take(room).filter_map(|&pid| Some((pid, open(pid)?))).collect();
        if opened.is_empty() {
            return Ok(spared.len() > room);
        }
        let mut members = direct(dir)?;
        members.sort_unstable();
        for (pid, fd) in opened {
            if members.binary_search(&pid).is_ok() && pidfd_send_signal(&fd, Signal::KILL).is_ok() {
                self.doomed.insert(pid, fd);
            }
        }
        Ok(true)
    }

    /// Numbers of the dead may be given to new members, which are to be killed in turn.
    fn forget_dead(&mut self) {
        self.doomed
            .retain(|_, fd| !wait_any(&mut [PollFd::new(fd, PollFlags::IN)], Instant::now()).unwrap_or(true));
    }

    /// Waits until there is room to kill more. The killed must not be frozen.
    pub(crate) fn wait_for_room(&self, deadline: Instant) {
        if self.doomed.len() >= BATCH {
            let mut polled: Vec<PollFd<'_>> =
                self.doomed.values().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            // The time is up, or the next strike finds out what is wrong.
            let _ = wait_any(&mut polled, deadline);
        }
    }
}

/// What became of waiting for a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// One ended.
    Ended,
    /// None did in time.
    TimedOut,
    /// There was none that can be waited for.
    Nobody,
}

/// Waits until one of the processes directly in `dir` ends.
pub(crate) fn wait_for_any(dir: &Dir, deadline: Instant) -> Result<Waited> {
    let fds: Vec<OwnedFd> = direct(dir)?.into_iter().filter_map(open).take(BATCH).collect();
    if fds.is_empty() {
        return Ok(Waited::Nobody);
    }
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match wait_any(&mut polled, deadline) {
        Ok(true) => Ok(Waited::Ended),
        Ok(false) => Ok(Waited::TimedOut),
        Err(errno) => Err(dir.error("waiting for the processes of", "cgroup.procs", errno)),
    }
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}
