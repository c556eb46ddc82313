//! The end of a process that this command has made itself.

use std::os::fd::AsFd;
use std::time::Duration;

use brig_cgroup::release_frozen;
use brig_sys::process::{Child, reap, signal};

use crate::deadline::after;
use crate::delete::wait_ended;
use crate::error::{Error, Result};
use crate::tree::SIGKILL;

/// How long a killed process may take. One that sits in the kernel, waiting for a device, may take for ever.
const PATIENCE: Duration = Duration::from_secs(10);
/// A process that can end has ended by then.
const SOON: Duration = Duration::from_millis(100);

/// Kills a child, waits for its end and takes it off the kernel's list.
///
/// # Errors
///
/// It does not end.
pub(crate) fn end(child: &Child) -> Result<()> {
    let pid = child.pid.as_raw_nonzero().get();
    let _ = signal(child.pidfd.as_fd(), SIGKILL);
    // A frozen task of cgroup v1 does not notice; the one that froze it need not be asked.
    if !wait_ended(&child.pidfd, after(SOON))?
        && let Err(e) = release_frozen(pid)
    {
        log::debug!("{e}");
    }
    if wait_ended(&child.pidfd, after(PATIENCE))? {
        reap(child.pidfd.as_fd(), false)?;
        return Ok(());
    }
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (name, place) = (read("comm"), read("wchan"));
    Err(Error::host(format!(
        "process {pid} ({}) was killed and does not end, it waits in {}",
        name.trim(),
        place.trim()
    ))
    .hint("a task in uninterruptible sleep is waiting for a device or a network file system"))
}
