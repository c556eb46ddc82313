//! Tells when the kernel kills for want of memory, and when the container is no more.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::{OFlags, inotify};
use rustix::io::Errno;

use crate::cgroup::Cgroup;
use crate::deadline::wait;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::parse;
use crate::watch;

/// What an [`OomWatch`] has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomEvent {
    /// A task was killed, or is stopped, because the memory limit was reached.
    Oom,
    /// The container has no processes or no cgroup any more. Nothing will follow.
    Gone,
}

/// A source of events. Its descriptor is readable when there is something to [`read`](OomWatch::read).
#[derive(Debug)]
pub struct OomWatch<'a> {
    dir: &'a Dir,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// An eventfd on memory.oom_control, and that file, which has to stay open. Also signalled when the cgroup is
    /// removed.
    V1 { counter: OwnedFd, _control: OwnedFd },
    /// inotify on memory.events and cgroup.events, and the number of kills that have been told.
    V2 { inotify: OwnedFd, told: u64 },
}

impl Cgroup {
    /// Starts to watch. Kills before that are not told.
    ///
    /// # Errors
    ///
    /// There is no cgroup with a memory controller (v1), or none at all (v2).
    pub fn watch_oom(&self) -> Result<OomWatch<'_>> {
        let dir = match self.names.mode {
            Mode::V2 => self.unified_dir()?,
            Mode::V1 | Mode::Hybrid => self.v1_dir("memory")?,
        };
        let dir = dir.ok_or_else(|| Error::Io {
            doing: "watching memory events of",
            path: self.names.groups.first().map(crate::names::Name::dir).unwrap_or_default(),
            errno: Errno::NOENT,
        })?;
        let source = if self.names.mode == Mode::V2 { v2(dir)? } else { v1(dir)? };
        Ok(OomWatch { dir, source })
    }
}

fn v1(dir: &Dir) -> Result<Source> {
    const FILE: &str = "memory.oom_control";
    const REGISTER: &str = "cgroup.event_control";
    let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| dir.error("watching", FILE, errno))?;
    let control = dir.open_file(FILE, OFlags::RDONLY).map_err(|errno| dir.error("opening", FILE, errno))?;
    let value = format!("{} {}", counter.as_raw_fd(), control.as_raw_fd());
    dir.write(REGISTER, &value).map_err(|errno| dir.error("writing", REGISTER, errno))?;
    Ok(Source::V1 { counter, _control: control })
}

fn v2(dir: &Dir) -> Result<Source> {
    let failed = |errno| dir.error("watching", watch::FILE, errno);
    let inotify =
        inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).map_err(failed)?;
    inotify::add_watch(&inotify, dir.file(watch::FILE), inotify::WatchFlags::MODIFY).map_err(failed)?;
    match inotify::add_watch(&inotify, dir.file("memory.events"), inotify::WatchFlags::MODIFY) {
        // Without the controller there are no kills to tell, but still an end.
        Ok(_) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(dir.error("watching", "memory.events", errno)),
    }
    let told = kills(dir)?;
    Ok(Source::V2 { inotify, told })
}

fn kills(dir: &Dir) -> Result<u64> {
    let text = dir.read_if_any("memory.events")?.unwrap_or_default();
    Ok(parse::flat_keyed(&text, "oom_kill").unwrap_or(0))
}

impl OomWatch<'_> {
    /// Takes what has happened since the last time, without waiting. [`OomEvent::Gone`] comes last; kills that came
    /// close together may come as one.
    ///
    /// # Errors
    ///
    /// The source cannot be read.
    pub fn read(&mut self) -> Result<Vec<OomEvent>> {
        let mut events = Vec::new();
        match &mut self.source {
            Source::V1 { counter, .. } => {
                if drain(counter).map_err(|errno| self.dir.error("watching", "memory.oom_control", errno))? {
                    let here = self.dir.read_if_any("memory.oom_control")?.is_some();
                    events.push(if here { OomEvent::Oom } else { OomEvent::Gone });
                }
            }
            Source::V2 { inotify, told } => {
                drain(inotify).map_err(|errno| self.dir.error("watching", watch::FILE, errno))?;
                let now = kills(self.dir)?;
                if now > *told {
                    events.push(OomEvent::Oom);
                    *told = now;
                }
                let populated = match watch::Counts::read(self.dir) {
                    Ok(counts) => counts.populated,
                    Err(Errno::NOENT | Errno::NODEV) => false,
                    Err(errno) => return Err(self.dir.error("reading", watch::FILE, errno)),
                };
                if !populated {
                    events.push(OomEvent::Gone);
                }
            }
        }
        Ok(events)
    }
}

impl AsFd for OomWatch<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::V1 { counter, .. } => counter.as_fd(),
            Source::V2 { inotify, .. } => inotify.as_fd(),
        }
    }
}

/// Empties a non-blocking source. Says whether there was something in it.
fn drain(fd: &OwnedFd) -> Result<bool, Errno> {
    let mut any = false;
    let mut buffer = [0; 4096];
    // An eventfd has one number, inotify any number of records.
    while wait(fd.as_fd(), PollFlags::IN, std::time::Instant::now())? {
        match rustix::io::read(fd, &mut buffer) {
            Ok(_) => any = true,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(any)
}
