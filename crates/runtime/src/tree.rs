//! Signals to processes that are found by number: to one of a container's, or to one and all that descend from it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use brig_cgroup::Cgroup;
use brig_sys::SysError;
use brig_sys::process::signal;

use crate::error::{Error, Result};

/// SIGKILL.
pub const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;

/// Opens a process of a cgroup: listed before and after its pidfd is opened, so that it is the one that was meant.
///
/// # Errors
///
/// It is not in the cgroup.
pub fn member(cgroup: &Cgroup, pid: i32) -> Result<OwnedFd> {
    let stranger = || Error::state(format!("process {pid} is not in the container: no such process"));
    let listed = || -> Result<bool> { Ok(cgroup.pids(true)?.contains(&pid)) };
    if !listed()? {
        return Err(stranger());
    }
    let pidfd = open(pid).ok_or_else(stranger)?;
    if listed()? { Ok(pidfd) } else { Err(stranger()) }
}

/// Signals all processes of a cgroup and below it.
///
/// # Errors
///
/// The cgroup cannot be read; the signal is none.
pub fn signal_cgroup(cgroup: &Cgroup, number: i32) -> Result<()> {
    for pid in cgroup.pids(true)? {
        if let Ok(pidfd) = member(cgroup, pid) {
            send(pidfd.as_fd(), number)?;
        }
    }
    Ok(())
}

/// Signals a process and all that descend from it. A process whose parent has ended is not found this way, which is what cgroups are
/// for.
///
/// With SIGKILL all are stopped first: none of them has a child any more that is not found, and none ends, by which its children
/// would become somebody else's.
///
/// # Errors
///
/// The signal is none.
pub fn kill(pid: i32, pidfd: BorrowedFd<'_>, number: i32) -> Result<()> {
    let first = (number == SIGKILL).then_some(SIGSTOP);
    if let Some(stop) = first {
        send(pidfd, stop)?;
    }
    let mut found: BTreeMap<i32, OwnedFd> = BTreeMap::new();
    loop {
        let before = found.len();
        let mut parents = vec![pid];
        parents.extend(found.keys());
        while let Some(parent) = parents.pop() {
            let known = if parent == pid { Some(pidfd) } else { found.get(&parent).map(AsFd::as_fd) };
            for (child, fd) in known.map_or_else(Vec::new, |known| children(parent, known)) {
                if let Entry::Vacant(place) = found.entry(child) {
                    first.map_or(Ok(()), |stop| send(fd.as_fd(), stop))?;
                    place.insert(fd);
                    parents.push(child);
                }
            }
        }
        if found.len() == before || first.is_none() {
            break;
        }
    }
    for fd in found.values() {
        send(fd.as_fd(), number)?;
    }
    send(pidfd, number)
}

/// The children of a process. Numbers are handed on: each child is listed before and after its pidfd is opened, and the parent's pidfd
/// says in the end that the lists were its own.
fn children(parent: i32, pidfd: BorrowedFd<'_>) -> Vec<(i32, OwnedFd)> {
    let opened: Vec<(i32, OwnedFd)> =
        listed_children(parent).into_iter().filter_map(|child| Some((child, open(child)?))).collect();
    let listed = listed_children(parent);
    // Signal 0 reaches a process until it has been waited for, after which its number is free.
    match signal(pidfd, 0) {
        Err(Errno::SRCH) => Vec::new(),
        _ => opened.into_iter().filter(|(child, _)| listed.contains(child)).collect(),
    }
}

fn listed_children(parent: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut pids = Vec::new();
    for task in tasks.flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        pids.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    pids
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn send(pidfd: BorrowedFd<'_>, number: i32) -> Result<()> {
    match signal(pidfd, number) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(e) => Err(SysError::new("pidfd_send_signal", number.to_string(), e).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell in a pipe: what it starts holds that open, so its end is seen.
    #[allow(clippy::disallowed_methods, reason = "a test")]
    fn shell(script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        (child, out)
    }

    fn pid(child: &Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    #[test]
    fn all_that_descend_are_killed() {
        // Three levels, and every one of them is still making more.
        let script = "f() { for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait; }; (f) & (f; f) & (f) & echo ready; f";
        let (mut child, mut out) = shell(script);
        let fd = open(pid(&child)).unwrap();
        kill(pid(&child), fd.as_fd(), SIGKILL).unwrap();
        // All of them had this pipe.
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn others_are_left_alone() {
        let (mut stranger, _) = shell("echo ready; sleep 100");
        let (mut child, mut out) = shell("sleep 100 & echo ready; wait");
        let fd = open(pid(&child)).unwrap();
        kill(pid(&child), fd.as_fd(), SIGKILL).unwrap();
        out.read_to_end(&mut Vec::new()).unwrap();
        child.wait().unwrap();
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_parent_that_was_waited_for_has_no_children() {
        let (mut child, _) = shell("echo ready");
        let gone = open(pid(&child)).unwrap();
        child.wait().unwrap();
        // Its number may be anybody's now; this process has children, and stands for whoever got it.
        let (mut other, _) = shell("echo ready; sleep 100");
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(children(own, gone.as_fd()).is_empty());
        let alive = open(own).unwrap();
        assert!(children(own, alive.as_fd()).iter().any(|(found, _)| *found == pid(&other)));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_signal_that_is_none_is_an_error() {
        let (mut child, _) = shell("echo ready; sleep 100");
        let fd = open(pid(&child)).unwrap();
        assert!(kill(pid(&child), fd.as_fd(), 4711).is_err());
        kill(pid(&child), fd.as_fd(), SIGKILL).unwrap();
        child.wait().unwrap();
    }
}
