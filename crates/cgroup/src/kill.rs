//! Ends all processes of a container, however many there are and whatever they do meanwhile.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::cgroup::{Cgroup, Node};
use crate::deadline::Backoff;
use crate::dir::{Dir, walk};
use crate::error::{Error, Result};
use crate::freezer;
use crate::layout::Mode;
use crate::procs::{self, Killer, Waited};
use crate::watch::Watch;

/// Since Linux 5.14: kills the cgroup and all below it, those just being born too.
const KILL: &str = "cgroup.kill";

impl Cgroup {
    /// Sends SIGKILL to every process in the container's cgroups and below, and thaws them so that it takes
    /// effect. `false` if the container has no cgroup.
    ///
    /// Where the kernel cannot do it at one stroke, it is repeated until no new process shows up, with the
    /// container frozen if they multiply. The killed are not waited for: see [`Cgroup::wait_empty`].
    ///
    /// # Errors
    ///
    /// The processes cannot be found out.
    pub fn kill_all(&self, deadline: Instant) -> Result<bool> {
        let dirs = self.dirs()?;
        let mut rest: Vec<&Dir> = Vec::with_capacity(dirs.len());
        for (node, dir) in &dirs {
            if !(node.name.unified && kill_at_once(dir)?) {
                rest.push(dir);
            }
        }
        // In the hybrid layout this is for those that are in a v1 cgroup only, and for the dying.
        let thawed = self.thaw_all();
        self.kill_listed(&rest, deadline)?;
        thawed?;
        Ok(!dirs.is_empty())
    }

    /// Kills what the lists of `dirs` show until they show nobody new.
    fn kill_listed(&self, dirs: &[&Dir], deadline: Instant) -> Result<()> {
        let mut killer = Killer::default();
        // One strike is enough for those who hold still, the second is to see that.
        for _ in 0..2 {
            if !strike(&mut killer, dirs)? {
                return Ok(());
            }
        }
        while Instant::now() < deadline {
            killer.wait_for_room(deadline);
            let frozen = self.try_freeze(deadline.min(Instant::now() + freezer::KILL_FREEZE));
            let struck = strike(&mut killer, dirs);
            self.thaw_all()?;
            frozen?;
            if !struck? {
                break;
            }
        }
        Ok(())
    }

    /// Freezes as far as that goes by `deadline`, and leaves it at that.
    fn try_freeze(&self, deadline: Instant) -> Result<()> {
        if let Some(dir) = self.v1_dir("freezer")? {
            freezer::v1_freeze(dir, deadline)?;
        } else if let Some(dir) = self.unified_dir()? {
            freezer::v2_freeze(dir, deadline)?;
        }
        Ok(())
    }

    /// Thaws the container and all cgroups that its payload may have frozen, where a frozen task does not die: v1.
    fn thaw_all(&self) -> Result<()> {
        match self.v1_dir("freezer")? {
            Some(dir) => freezer::v1_thaw_all(dir),
            None => self.thaw(),
        }
    }

    /// Waits until there is no process left in the container's cgroups and below.
    ///
    /// # Errors
    ///
    /// [`Error::Survivors`] names those that are still there at the deadline, and the kernel function each waits
    /// in.
    pub fn wait_empty(&self, deadline: Instant) -> Result<()> {
        for (node, dir) in self.dirs()? {
            if !wait_vacant(node, dir, deadline)? {
                return Err(Error::Survivors { path: dir.path().to_owned(), left: procs::stragglers(dir) });
            }
        }
        Ok(())
    }

    /// Whether a process is left in any of the container's cgroups or below.
    ///
    /// # Errors
    ///
    /// The lists cannot be read.
    pub fn is_populated(&self) -> Result<bool> {
        for (node, dir) in self.dirs()? {
            if !wait_vacant(node, dir, Instant::now())? {
                return Ok(true);
            }
            if self.names.mode == Mode::V2 {
                break;
            }
        }
        Ok(false)
    }
}

/// Kills those in `dirs` and below who have not been killed yet. Says whether there were any.
fn strike(killer: &mut Killer, dirs: &[&Dir]) -> Result<bool> {
    let mut any = false;
    for top in dirs {
        walk(top, &mut |dir| {
            any |= killer.strike(dir)?;
            Ok(())
        })?;
    }
    Ok(any)
}

/// `false` if the kernel has no `cgroup.kill`, or refuses it for a threaded cgroup.
fn kill_at_once(dir: &Dir) -> Result<bool> {
    match dir.write(KILL, "1") {
        Ok(()) | Err(Errno::NODEV) => Ok(true),
        Err(Errno::NOENT | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(dir.error("writing", KILL, errno)),
    }
}

/// A process leaves its cgroup a little before its pidfd says that it has ended, and the first process of a pid namespace may
/// stay in between for long: until others have been reaped, by whoever started them from outside. So after this time the list
/// is looked at again.
const RELIST: Duration = Duration::from_millis(20);

fn wait_vacant(node: &Node, dir: &Dir, deadline: Instant) -> Result<bool> {
    if node.name.unified {
        return v2_vacant(dir, deadline);
    }
    let mut backoff = Backoff::until(deadline);
    loop {
        let mut waited = None;
        walk(dir, &mut |dir| {
            if waited.is_none() && !procs::direct(dir)?.is_empty() {
                waited = Some(procs::wait_for_any(dir, deadline.min(Instant::now() + RELIST))?);
            }
            Ok(())
        })?;
        match waited {
            None => return Ok(true),
            Some(Waited::Ended) => {}
            Some(Waited::TimedOut) if Instant::now() < deadline => {}
            Some(Waited::TimedOut) => return Ok(false),
            Some(Waited::Nobody) => {
                if !backoff.pause() {
                    return Ok(false);
                }
            }
        }
    }
}

/// Waits until nobody is in a v2 cgroup or below.
pub(crate) fn v2_vacant(dir: &Dir, deadline: Instant) -> Result<bool> {
    let waited = Watch::open(dir).and_then(|watch| watch.until(|now| !now.populated, deadline));
    match waited {
        Ok(vacant) => Ok(vacant),
        Err(Errno::NOENT | Errno::NODEV) => Ok(true),
        Err(errno) => Err(dir.error("waiting for", crate::watch::FILE, errno)),
    }
}
