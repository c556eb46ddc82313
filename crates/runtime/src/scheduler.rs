//! `process.scheduler`.
//!
//! The process sets it for itself, unless it has to be cloned once more to be in a pid namespace: some policies do not pass
//! that on, and SCHED_DEADLINE does not even allow it. Then the command sets it afterwards.

use rustix::io::Errno;
use rustix::process::Pid;

use brig_plan::Process;
use brig_sys::process::{SchedAttr, set_scheduler};

use crate::error::{Error, Result};

const SCHED_DEADLINE: u32 = 6;
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// Whether a clone of the process has it too.
pub(crate) fn survives_clone(process: &Process) -> bool {
    process.scheduler.is_none_or(|s| s.policy != SCHED_DEADLINE && s.flags & SCHED_FLAG_RESET_ON_FORK == 0)
}

/// Sets it for this process, or for its child `of`.
///
/// # Errors
///
/// The kernel's.
pub(crate) fn set(of: Option<Pid>, process: &Process) -> Result<()> {
    let Some(s) = process.scheduler else {
        return Ok(());
    };
    let attr = SchedAttr {
        policy: s.policy,
        flags: s.flags,
        nice: s.nice,
        priority: s.priority,
        runtime: s.runtime,
        deadline: s.deadline,
        period: s.period,
        ..SchedAttr::default()
    };
    set_scheduler(of, attr).map_err(|e| {
        let errno = e.errno;
        let error = Error::from(e).context("process.scheduler");
        match errno {
            // The kernel says so for a deadline on some of the CPUs only.
            Errno::PERM => error
                .context("process scheduler can't be used together with AllowedCPUs")
                .hint("real-time policies need CAP_SYS_NICE, and SCHED_DEADLINE all CPUs of the system"),
            _ => error,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brig_plan::Scheduler;

    #[test]
    fn what_a_clone_keeps() {
        let of = |policy, flags| Process {
            scheduler: Some(Scheduler { policy, flags, ..Scheduler::default() }),
            ..Process::default()
        };
        assert!(survives_clone(&Process::default()));
        assert!(survives_clone(&of(3, 0)));
        assert!(!survives_clone(&of(3, 1)));
        assert!(!survives_clone(&of(6, 0)));
    }
}
