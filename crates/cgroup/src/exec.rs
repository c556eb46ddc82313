//! A cgroup of its own for one process that joins a container, so that it can be killed with all that it started.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode as Permissions, mkdirat};
use rustix::io::Errno;

use crate::cgroup::{Cgroup, open_mount};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::layout::{Layout, Mode};
use crate::names::Names;

impl Names {
    /// The names of a cgroup below the container's, in the v2 hierarchy only; `None` on a host that has none.
    ///
    /// Limits are the container's: no controller is handed down, so that there may be processes on both levels.
    pub fn below(&self, name: &str) -> Option<Self> {
        let mut names = self.clone();
        names.groups.retain(|group| group.unified);
        let group = names.groups.first_mut()?;
        group.path.push(name);
        // The unit is the container's, and ends with that.
        names.unit = None;
        Some(names)
    }
}

impl Cgroup {
    /// Makes the cgroup that [`Names::below`] named, unless it is there, and opens it for clone3(2).
    ///
    /// # Errors
    ///
    /// The container's cgroup is gone; too many cgroups.
    pub fn make_below(names: &Names) -> Result<OwnedFd> {
        let cgroup = Self::open(names)?;
        let gone = || Error::Io {
            doing: "creating cgroup",
            path: names.groups.first().map(crate::names::Name::dir).unwrap_or_default(),
            errno: Errno::NOENT,
        };
        let node = cgroup.nodes.first().ok_or_else(gone)?;
        let mount = open_mount(&node.name)?.ok_or_else(gone)?;
        let error = |errno| mount.error("creating cgroup", &node.name.path.to_string_lossy(), errno);
        match mkdirat(&mount, &node.name.path, Permissions::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(error(errno)),
        }
        Ok(mount.open_below(&node.name.path).map_err(error)?.into())
    }
}

/// Takes a process out of a frozen v1 cgroup, into the caller's own, so that a signal it was sent takes effect. Nothing else does
/// that while its cgroup is frozen. On v2 it is not needed, and nothing is done.
///
/// # Errors
///
/// The process cannot be moved.
pub fn release_frozen(pid: i32) -> Result<()> {
    let layout = Layout::detect()?;
    if layout.mode == Mode::V2 {
        return Ok(());
    }
    let has_freezer = |h: &&crate::layout::Hierarchy| h.controllers.iter().any(|name| name == "freezer");
    let Some(hierarchy) = layout.hierarchies.iter().find(has_freezer) else { return Ok(()) };
    let path = hierarchy.mount.join(hierarchy.own()?);
    let dir = Dir::open(&path).map_err(|errno| Error::Io { doing: "opening cgroup", path, errno })?;
    dir.write("cgroup.procs", &pid.to_string()).map_err(|errno| dir.error("writing", "cgroup.procs", errno))
}
