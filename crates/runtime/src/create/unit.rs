//! systemd's part in a creation: it is told of the unit once there is a process, and has made it before limits are set.

use brig_cgroup::systemd::{Bus, NewUnit, Systemd};
use brig_cgroup::{Cgroup, Layout, Names, Request};
use brig_plan::{CgroupPlan, Host};
use rustix::io::Errno;

use super::host_side::early_limits;
use crate::error::{Error, Result};

/// The systemd that will make the unit, and what it will be told.
#[derive(Debug)]
pub(super) struct UnitPlan {
    systemd: Systemd,
    new: NewUnit,
}

/// Adds what is to be known about the host where systemd manages cgroups.
///
/// # Errors
///
/// The host has no systemd.
pub(super) fn probe(facts: &mut Host) -> Result<()> {
    if !Systemd::is_running() {
        return Err(Error::host("systemd not running on this host, cannot use systemd cgroups manager")
            .hint("leave --systemd-cgroup out; brig doctor shows what there is"));
    }
    if facts.euid == 0 && facts.in_user_ns {
        facts.user_bus_owner = brig_cgroup::systemd::user_bus_owner();
    }
    Ok(())
}

/// Decides on the unit. A user's systemd is asked where its cgroups are; nothing is made.
///
/// # Errors
///
/// There is no user's systemd; names, limits or annotations make no sense.
pub(super) fn decide(layout: &Layout, request: &Request<'_>, plan: &CgroupPlan) -> Result<(Names, UnitPlan)> {
    let mut systemd = Systemd::new(if request.rootless { Bus::User } else { Bus::System });
    let root = systemd.control_group()?;
    let names =
        Names::decide_unit(layout, request, if request.rootless { Bus::User } else { Bus::System }, &root)?;
    let description = format!("brig container {}", request.id);
    let new =
        NewUnit::decide(&names, &description, &early_limits(&plan.resources), &plan.systemd_properties)?;
    Ok((names, UnitPlan { systemd, new }))
}

impl UnitPlan {
    /// Makes the unit's cgroup, for a process to be born in. `None` where only systemd may.
    ///
    /// # Errors
    ///
    /// There is no systemd to talk to; what it, or the kernel, says.
    pub fn make_birthplace(&mut self, names: &Names, plan: &CgroupPlan) -> Result<Option<Cgroup>> {
        self.systemd.prepare(names, &mut self.new)?;
        Ok(Cgroup::make_in_slice(names, &plan.resources)?)
    }

    /// Tells systemd of the process.
    ///
    /// # Errors
    ///
    /// The connection is lost and cannot be made anew.
    pub fn begin(&mut self, names: &Names, pid: i32) -> Result<()> {
        if names.unit.as_ref().is_some_and(brig_cgroup::systemd::Unit::is_slice) {
            return Ok(());
        }
        Ok(self.systemd.begin(names, &mut self.new, Some(pid))?)
    }

    /// Waits until the unit is there.
    ///
    /// # Errors
    ///
    /// What systemd says.
    pub fn finish(&mut self, names: &Names) -> Result<()> {
        if names.unit.as_ref().is_some_and(brig_cgroup::systemd::Unit::is_slice) {
            return Ok(());
        }
        Ok(self.systemd.finish(names, &mut self.new)?)
    }
}

/// Whether a clone failed since the process may not be born in the cgroup, where systemd would move it to: a user's session is
/// in another part of the tree than what belongs to the user's systemd. Or the directory has just been cleared away.
pub(super) fn may_not_be_born_there(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::NOENT | Errno::NODEV)
}
