//! `kill`.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

use brig_sys::errno_text;
use brig_sys::process::signal;

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::execs;
use crate::id::ContainerId;
use crate::store::Store;
use crate::tree::{self, SIGKILL};

/// How long it may take to find all that are to be killed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Which process is signalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The container's first; SIGKILL goes to all of a container that has no pid namespace of its own.
    Init,
    /// One that `exec` started under a name.
    Exec(String),
    /// One of the container's, by its pid on the host.
    Pid(i32),
}

/// Sends a signal to a process of a container, with `tree` to all that it started too.
///
/// `all` is an old flag of callers: with it, a stopped container is no error.
///
/// # Errors
///
/// The phrases by which callers learn that there is nothing to signal any more.
pub fn kill(
    store: &Store,
    id: &ContainerId,
    target: &Target,
    number: i32,
    tree: bool,
    all: bool,
) -> Result<()> {
    let container = Container::load(store, id)?;
    match target {
        Target::Init => kill_init(&container, number, all),
        Target::Exec(exec) => kill_exec(&container, exec, number, tree),
        Target::Pid(pid) => {
            let pidfd = tree::member(&container.cgroup()?, *pid)?;
            if tree { tree::kill(*pid, pidfd.as_fd(), number) } else { deliver(&pidfd, number, "process") }
        }
    }
}

fn kill_exec(container: &Container, exec: &str, number: i32, tree: bool) -> Result<()> {
    let record = execs::find(&container.dir, exec)?;
    let record = record.ok_or_else(|| Error::state(format!("exec {exec} does not exist")))?;
    if record.is_starting(container)? {
        return Err(Error::state(format!("unable to signal exec {exec}: it has not started yet")));
    }
    let process = record.open(container)?;
    match record.cgroup()? {
        // What it started may outlive it.
        Some(cgroup) if tree && number == SIGKILL => {
            cgroup.kill_all(after(TIMEOUT)).map(drop).doing(|| "killing all of it")
        }
        Some(cgroup) if tree => tree::signal_cgroup(&cgroup, number),
        _ => match (process, record.process) {
            (Some(pidfd), Some(ident)) if tree => tree::kill(ident.pid, pidfd.as_fd(), number),
            (Some(pidfd), _) => deliver(&pidfd, number, "exec"),
            (None, _) => {
                Err(Error::state(format!("unable to signal exec {exec}: os: process already finished")))
            }
        },
    }
}

fn deliver(pidfd: &OwnedFd, number: i32, what: &str) -> Result<()> {
    signal(pidfd.as_fd(), number).map_err(|e| match e {
        Errno::SRCH => Error::state(format!("unable to signal {what}: os: process already finished")),
        e => Error::host(format!("unable to signal {what}: {}", errno_text(e))).with_errno(e),
    })
}

fn kill_init(container: &Container, number: i32, all: bool) -> Result<()> {
    let init = container.init()?;
    if number == SIGKILL && !container.record.own_pid_namespace {
        return kill_all(container, init.is_some(), all);
    }
    let Some(init) = init else {
        return if all { Ok(()) } else { Err(Error::state("container not running")) };
    };
    deliver(&init, number, "init")?;
    if number == SIGKILL {
        // Frozen, it would die when somebody resumes it only.
        container.cgroup()?.thaw().doing(|| "thawing the cgroup")?;
    }
    Ok(())
}

fn kill_all(container: &Container, has_init: bool, stopped_is_fine: bool) -> Result<()> {
    let cgroup = container.cgroup()?;
    if !has_init && !cgroup.exists()? {
        if stopped_is_fine {
            return Ok(());
        }
        return Err(Error::state("unable to kill all processes: container not running"));
    }
    if let Some(init) = container.init()? {
        let _ = signal(init.as_fd(), SIGKILL);
    }
    cgroup.kill_all(after(TIMEOUT)).doing(|| "killing all processes")?;
    Ok(())
}
