//! `start`.

use std::os::fd::AsFd;
use std::time::Duration;

use brig_spec::Status;
use brig_sys::process::signal;
use brig_sys::trace::span;

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Error, Result};
use crate::gate::{self, Outcome};
use crate::hooks::{self, HookKind};
use crate::id::ContainerId;
use crate::notify::Proxy;
use crate::store::{Lock, Store};

/// How long another command may take that has the container's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Lets the process of a created container go on to its program.
///
/// # Errors
///
/// The container is not in that state; its program could not be executed; a hook failed.
pub fn start(store: &Store, id: &ContainerId) -> Result<()> {
    let dir = store.open(id)?;
    let lock = dir.lock(after(LOCK_TIMEOUT))?;
    // The record is read under the lock: a creator may only just have finished it.
    drop(dir);
    let container = Container::load(store, id)?;
    let refuse = |text: &str| Err(Error::state(text));
    match container.status()? {
        Status::Created => {}
        Status::Running => return refuse("cannot start an already running container"),
        Status::Stopped => return refuse("cannot start a container that has stopped"),
        Status::Paused => return refuse("cannot start a container in the paused state"),
        Status::Creating => return refuse("cannot start a container that is being created"),
    }
    // It would be waited for until whoever froze the cgroup above thaws it again.
    if container.cgroup()?.is_frozen()? {
        return refuse("cannot start a container while a cgroup above its own is frozen");
    }
    let proxy = Proxy::bind(&container.dir)?;
    go(&container, lock)?;
    if let (Some(proxy), Some(init)) = (proxy, container.init()?) {
        let pid = container.record.init.map_or(0, |init| init.pid);
        proxy.pass_on(&init, pid)?;
    }
    Ok(())
}

/// Opens the gate, then runs the `poststart` hooks. Those run without the lock: one that hangs must not be in the way of `delete`.
///
/// # Errors
///
/// As [`start`].
pub(crate) fn go(container: &Container, lock: Lock) -> Result<()> {
    let program = container.record.process.args.first().map_or("", String::as_str);
    let init = container.init()?.filter(|_| container.record.adopted);
    let opening = span("starting the program");
    let outcome = match &init {
        Some(init) => gate::open_adopted(&container.dir, init)?,
        None => gate::open(&container.dir)?,
    };
    drop(opening);
    match outcome {
        Outcome::Passed => {}
        Outcome::Gone => return Err(Error::state("cannot start a container that has stopped")),
        Outcome::Failed(fault) => {
            return Err(fault.into_error(program).context("unable to start container process"));
        }
    }
    drop(lock);
    let hooks = container.record.planned_hooks().poststart;
    if hooks.is_empty() {
        return Ok(());
    }
    let pid = container.record.init.map_or(0, |init| init.pid);
    let state = container.hook_state(Status::Running, pid);
    hooks::run_all(HookKind::Poststart, &hooks, &state, None).inspect_err(|_| {
        // The specification: the container is stopped.
        if let Ok(Some(init)) = container.init() {
            let _ = signal(init.as_fd(), rustix::process::Signal::KILL.as_raw());
        }
    })
}
