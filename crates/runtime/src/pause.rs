//! `pause` and `resume`.

use std::time::Duration;

use brig_spec::Status;

use crate::container::Container;
use crate::deadline::after;
use crate::error::{Doing, Error, Result};
use crate::id::ContainerId;
use crate::store::Store;

/// How long freezing may take: tasks in the kernel have to come to a point where they can stop.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Freezes all processes of a container.
///
/// # Errors
///
/// The container is not created or running; it did not freeze in time, and is thawed again.
pub fn pause(store: &Store, id: &ContainerId) -> Result<()> {
    let dir = store.open(id)?;
    let _lock = dir.lock(after(TIMEOUT))?;
    let container = Container::load(store, id)?;
    match container.status()? {
        Status::Created | Status::Running => {}
        // Clients know the end of this phrase for whatever cannot be paused.
        Status::Paused => return Err(Error::state("container is paused: container not running")),
        Status::Stopped | Status::Creating => return Err(Error::state("container not running")),
    }
    container.cgroup()?.freeze(after(TIMEOUT)).doing(|| "unable to freeze")
}

/// Thaws a paused container.
///
/// # Errors
///
/// The container is not paused.
pub fn resume(store: &Store, id: &ContainerId) -> Result<()> {
    let dir = store.open(id)?;
    let _lock = dir.lock(after(TIMEOUT))?;
    let container = Container::load(store, id)?;
    if container.status()? != Status::Paused {
        return Err(Error::state("container not paused"));
    }
    container.cgroup()?.thaw().doing(|| "unable to thaw")
}
