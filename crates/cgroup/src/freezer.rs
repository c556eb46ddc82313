//! Stops and resumes all tasks of a container.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::cgroup::Cgroup;
use crate::deadline::Backoff;
use crate::dir::{Dir, walk};
use crate::error::{Error, Result};
use crate::procs;
use crate::watch::{Counts, Watch};

/// v2: 1 to freeze, 0 to thaw.
const FREEZE: &str = "cgroup.freeze";
/// v1: FROZEN, FREEZING or THAWED.
const STATE: &str = "freezer.state";

/// A freezer, of either kind.
enum Freezer<'a> {
    V1(&'a Dir),
    V2(&'a Dir),
}

impl Cgroup {
    /// Freezes all tasks of the container and waits until they have stopped.
    ///
    /// # Errors
    ///
    /// [`Error::Freeze`] if they have not at the deadline; then they are thawed again. [`Error::NoFreezer`].
    pub fn freeze(&self, deadline: Instant) -> Result<()> {
        let (dir, frozen) = match self.freezer()?.ok_or(Error::NoFreezer)? {
            Freezer::V2(dir) => (dir, v2_freeze(dir, deadline)),
            Freezer::V1(dir) => (dir, v1_freeze(dir, deadline)),
        };
        match frozen {
            Ok(true) => Ok(()),
            failed => {
                // Tasks left half frozen could not even be killed (v1).
                let left = procs::stragglers(dir);
                let thawed = self.thaw();
                failed?;
                thawed?;
                Err(Error::Freeze {
                    path: dir.path().to_owned(),
                    left: left.into_iter().filter(|task| task.state == 'D').collect(),
                })
            }
        }
    }

    /// Resumes all tasks. Nothing to do where there is no cgroup or no freezer.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn thaw(&self) -> Result<()> {
        let (dir, file, value) = match self.freezer()? {
            None => return Ok(()),
            Some(Freezer::V2(dir)) => (dir, FREEZE, "0"),
            Some(Freezer::V1(dir)) => (dir, STATE, "THAWED"),
        };
        match dir.write(file, value) {
            Ok(()) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            Err(errno) => Err(dir.error("writing", file, errno)),
        }
    }

    /// Whether no task of the container can run now, be it that the container was frozen or a cgroup above it.
    ///
    /// # Errors
    ///
    /// The state cannot be read. Without a cgroup or a freezer it is `false`.
    pub fn is_frozen(&self) -> Result<bool> {
        match self.freezer()? {
            None => Ok(false),
            Some(Freezer::V1(dir)) => Ok(read(dir, STATE)?.is_some_and(|state| state.trim() == "FROZEN")),
            Some(Freezer::V2(dir)) => match Counts::read(dir) {
                Ok(counts) => Ok(counts.frozen),
                Err(Errno::NOENT | Errno::NODEV) => Ok(false),
                Err(errno) => Err(dir.error("reading", crate::watch::FILE, errno)),
            },
        }
    }

    /// Whether the container is paused: its *own* freezer is on, whatever holds above. One that is still stopping
    /// its tasks is waited for until the deadline, and then counts as paused too: it will not run on by itself.
    ///
    /// # Errors
    ///
    /// The state cannot be read. Without a cgroup or a freezer it is `false`.
    pub fn self_frozen(&self, deadline: Instant) -> Result<bool> {
        match self.freezer()? {
            None => Ok(false),
            Some(Freezer::V1(dir)) => v1_self_frozen(dir, deadline),
            Some(Freezer::V2(dir)) => {
                if read(dir, FREEZE)?.is_none_or(|value| value.trim() != "1") {
                    return Ok(false);
                }
                let settled = Watch::open(dir).and_then(|watch| watch.until(|now| now.frozen, deadline));
                match settled {
                    Ok(_) => Ok(read(dir, FREEZE)?.is_some_and(|value| value.trim() == "1")),
                    Err(Errno::NOENT | Errno::NODEV) => Ok(false),
                    Err(errno) => Err(dir.error("waiting for", crate::watch::FILE, errno)),
                }
            }
        }
    }

    /// The v1 freezer where there is one, as other tools on such a host use it.
    fn freezer(&self) -> Result<Option<Freezer<'_>>> {
        if let Some(dir) = self.v1_dir("freezer")? {
            return Ok(Some(Freezer::V1(dir)));
        }
        Ok(self.unified_dir()?.map(Freezer::V2))
    }
}

pub(crate) fn v2_freeze(dir: &Dir, deadline: Instant) -> Result<bool> {
    let watch = Watch::open(dir).map_err(|errno| dir.error("opening", crate::watch::FILE, errno))?;
    dir.write(FREEZE, "1").map_err(|errno| dir.error("writing", FREEZE, errno))?;
    watch
        .until(|now| now.frozen, deadline)
        .map_err(|errno| dir.error("waiting for", crate::watch::FILE, errno))
}

/// v1 has no event for this. Reading the state makes the kernel look whether all have stopped; writing it again
/// catches tasks that were born since.
pub(crate) fn v1_freeze(dir: &Dir, deadline: Instant) -> Result<bool> {
    let mut backoff = Backoff::until(deadline);
    let mut tries = 0_u32;
    loop {
        tries += 1;
        // Thawing for a moment lets a task out that waits for a frozen one.
        if tries.is_multiple_of(50) {
            write(dir, "THAWED")?;
        }
        write(dir, "FROZEN")?;
        match read(dir, STATE)?.as_deref().map(str::trim) {
            Some("FROZEN") => return Ok(true),
            Some(_) => {}
            None => return Err(dir.error("reading", STATE, Errno::NOENT)),
        }
        if !backoff.pause() {
            return Ok(false);
        }
    }
}

/// Whether tasks in this v1 cgroup are frozen, or about to be.
pub(crate) fn v1_frozen(dir: &Dir) -> Result<bool> {
    Ok(read(dir, STATE)?.is_some_and(|state| state.trim() != "THAWED"))
}

fn v1_self_frozen(dir: &Dir, deadline: Instant) -> Result<bool> {
    let own = || -> Result<bool> {
        Ok(read(dir, "freezer.self_freezing")?.is_some_and(|value| value.trim() == "1"))
    };
    if !own()? {
        return Ok(false);
    }
    let mut backoff = Backoff::until(deadline);
    while read(dir, STATE)?.is_some_and(|state| state.trim() == "FREEZING") {
        if !backoff.pause() {
            break;
        }
    }
    own()
}

/// Thaws a v1 cgroup and those below: a payload may have frozen some of its own, and a frozen task does not die.
pub(crate) fn v1_thaw_all(top: &Dir) -> Result<()> {
    walk(top, &mut |dir| match dir.write(STATE, "THAWED") {
        Ok(()) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
        Err(errno) => Err(dir.error("writing", STATE, errno)),
    })
}

/// How long a freeze on the way to killing everything may take.
pub(crate) const KILL_FREEZE: Duration = Duration::from_millis(200);

fn write(dir: &Dir, state: &str) -> Result<()> {
    dir.write(STATE, state).map_err(|errno| dir.error("writing", STATE, errno))
}

fn read(dir: &Dir, file: &str) -> Result<Option<String>> {
    dir.read_if_any(file)
}
