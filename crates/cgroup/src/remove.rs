//! Removes a container's cgroups, with all that its payload made below them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::cgroup::{Cgroup, open_mount};
use crate::deadline::Backoff;
use crate::dir::{Dir, name_path};
use crate::error::{Error, Result};
use crate::kill::v2_vacant;
use crate::procs::{self, Waited};
use crate::systemd::Systemd;

impl Cgroup {
    /// Makes sure that systemd has done all that a creator, dead by now, asked of it.
    ///
    /// # Errors
    ///
    /// systemd is there and does not answer.
    pub fn outrun_creator(&self) -> Result<()> {
        match &self.names.unit {
            Some(unit) => Systemd::new(unit.bus).outrun(unit),
            None => Ok(()),
        }
    }

    /// Stops the unit, if there is one, then removes the cgroups and all below them, in every hierarchy; never one above. What is not there is no error,
    /// so this can be repeated until it succeeds. Processes that are leaving are waited for, none is killed.
    ///
    /// # Errors
    ///
    /// [`Error::Remove`] names the first directory that would not go, and who is in it. The other hierarchies
    /// have been cleared nevertheless. A lack of permission is tolerated where the names are lenient.
    pub fn remove(&self, deadline: Instant) -> Result<()> {
        let mut first = match &self.names.unit {
            Some(unit) => Systemd::new(unit.bus).stop(unit, deadline),
            None => Ok(()),
        };
        for node in &self.nodes {
            let removed = open_mount(&node.name).and_then(|mount| {
                mount
                    .map_or(Ok(()), |mount| remove_tree(&mount, &node.name.path, node.name.unified, deadline))
            });
            match removed {
                Err(error) if self.names.lenient() && error.is_permission() => {
                    log::debug!("leaving a cgroup that is not ours: {error}");
                }
                Err(error) if first.is_ok() => first = Err(error),
                Err(error) => log::debug!("{error}"),
                Ok(()) => {}
            }
        }
        first
    }
}

/// A cgroup on the way down, by its name, and the names in it that are still to be removed.
struct Level {
    name: CString,
    pending: Vec<CString>,
}

/// Removes the cgroup at `path` below `mount`, and all below it.
pub(crate) fn remove_tree(mount: &Dir, path: &Path, unified: bool, deadline: Instant) -> Result<()> {
    let top = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let mut levels = vec![Level { name: CString::default(), pending: vec![top] }];
    let mut below: Option<Dir> = None;
    let mut backoff = Backoff::until(deadline);
    while let Some(level) = levels.last_mut() {
        let here = below.as_ref().unwrap_or(mount);
        let Some(name) = level.pending.pop() else {
            // All in here is gone. Now this one's turn, by name from above.
            let done = levels.pop();
            below = match levels.len() {
                0 | 1 => None,
                _ => Some(here.open_parent().map_err(|errno| here.error("opening cgroup", "..", errno))?),
            };
            if let (Some(done), Some(above)) = (done, levels.last_mut()) {
                above.pending.push(done.name);
            }
            continue;
        };
        match unlinkat(here, &name, AtFlags::REMOVEDIR) {
            Ok(()) => backoff = Backoff::until(deadline),
            Err(Errno::NOENT) => {}
            Err(Errno::BUSY) => {
                if let Some(child) = busy(here, &name, unified, deadline, &mut backoff)? {
                    let pending = children(&child)?;
                    levels.push(Level { name, pending });
                    below = Some(child);
                } else {
                    level.pending.push(name);
                }
            }
            Err(errno) => {
                return Err(Error::Remove {
                    path: here.path().join(name_path(&name)),
                    errno,
                    left: Vec::new(),
                });
            }
        }
    }
    Ok(())
}

/// Deals with a cgroup that would not go: returns it if there are others in it, else waits for its processes.
fn busy(
    here: &Dir,
    name: &CString,
    unified: bool,
    deadline: Instant,
    backoff: &mut Backoff,
) -> Result<Option<Dir>> {
    let dir = match here.open_below(name_path(name)) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(here.error("opening cgroup", &name.to_string_lossy(), errno)),
    };
    let expired = Instant::now() >= deadline;
    let has_children = dir.has_children().map_err(|errno| dir.error("looking at", ".", errno))?;
    if has_children && !expired {
        return Ok(Some(dir));
    }
    if !expired && wait(&dir, unified, deadline)? && backoff.pause() {
        return Ok(None);
    }
    let left = procs::stragglers(&dir);
    Err(Error::Remove {
        // There may have been no time to get down to where they are.
        path: left.first().map_or(dir.path(), |task| &task.cgroup).to_owned(),
        errno: Errno::BUSY,
        left,
    })
}

/// Waits for an event after which another try makes sense; `false` when none came in time.
fn wait(dir: &Dir, unified: bool, deadline: Instant) -> Result<bool> {
    if unified {
        return v2_vacant(dir, deadline);
    }
    Ok(procs::wait_for_any(dir, deadline)? != Waited::TimedOut)
}

fn children(dir: &Dir) -> Result<Vec<CString>> {
    match dir.children() {
        Ok(names) => Ok(names),
        Err(Errno::NOENT) => Ok(Vec::new()),
        Err(errno) => Err(dir.error("listing", ".", errno)),
    }
}
