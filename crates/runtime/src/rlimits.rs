//! `process.rlimits`.
//!
//! Without CAP_SYS_RESOURCE, limits can be set on a process of the same user only, so the process sets its own while it still is
//! what brig was. In a user namespace it is the other way round: its root may not raise them, and the command may.

use rustix::process::Pid;

use brig_plan::Process;

use crate::error::{Error, Result};

/// Sets the limits on this process or on its child.
///
/// # Errors
///
/// A hard limit above the present one, without privilege.
pub(crate) fn set(pid: Pid, process: &Process) -> Result<()> {
    for limit in &process.rlimits {
        brig_sys::process::set_rlimit_of(pid, limit.resource, limit.soft, limit.hard).map_err(|e| {
            let text = brig_sys::errno_text(e);
            Error::host(format!("error setting rlimit type {}: {text}", limit.resource))
                .with_errno(e)
                .hint("a hard limit above the caller's needs CAP_SYS_RESOURCE")
        })?;
    }
    Ok(())
}
