//! Carries writes out, and takes them back.

use rustix::io::Errno;

use super::write::{Link, Missing, Skipped, Write};
use crate::cgroup::{Cgroup, Node};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::make::{NotEnabled, has_controller};
use crate::parse;

/// Writes values into a cgroup.
pub(super) struct Executor<'a> {
    cgroup: &'a Cgroup,
    /// What was there before, in the order of writing; `None` if nobody will ask.
    undo: Option<Vec<Previous<'a>>>,
    /// Limits for which there is no cgroup; `None` if that is an error.
    skipped: Option<Vec<Skipped>>,
}

/// What a file held.
struct Previous<'a> {
    dir: &'a Dir,
    write: Write,
    values: Vec<String>,
}

impl<'a> Executor<'a> {
    pub(super) fn new(cgroup: &'a Cgroup) -> Self {
        Self { cgroup, undo: None, skipped: None }
    }

    /// One that reads each value before it changes it.
    pub(super) fn with_undo(cgroup: &'a Cgroup) -> Self {
        Self { cgroup, undo: Some(Vec::new()), skipped: None }
    }

    /// One that goes on without the limits that it has no cgroup for.
    pub(super) fn forgiving(cgroup: &'a Cgroup) -> Self {
        Self { cgroup, undo: None, skipped: Some(Vec::new()) }
    }

    /// What a forgiving one has left out.
    pub(super) fn into_skipped(self) -> Vec<Skipped> {
        self.skipped.unwrap_or_default()
    }

    /// Writes all.
    pub(super) fn run(&mut self, writes: &[Write]) -> Result<()> {
        for set in writes.chunk_by(|a, b| a.link.is_some() && a.link == b.link) {
            self.run_set(set)?;
        }
        Ok(())
    }

    /// Writes all and does what comes `then`, or puts everything back.
    pub(super) fn run_or_undo(&mut self, writes: &[Write], then: impl FnOnce() -> Result<()>) -> Result<()> {
        let Err(error) = self.run(writes).and_then(|()| then()) else {
            return Ok(());
        };
        let mut previous = self.undo.take().unwrap_or_default();
        previous.reverse();
        match put_back(&previous) {
            Ok(()) => Err(error),
            Err(undo) => Err(Error::NotUndone { update: Box::new(error), undo: Box::new(undo) }),
        }
    }

    /// Writes values that depend on each other: what the kernel refuses at first is tried again when others are
    /// done, for as long as that gets on. So both raising and lowering them works, whatever they are now.
    fn run_set(&mut self, set: &[Write]) -> Result<()> {
        let mut pending: Vec<&Write> = set.iter().collect();
        loop {
            let before = pending.len();
            let mut refused = Vec::new();
            let mut first = None;
            for write in pending {
                match self.write(write) {
                    Ok(()) => {}
                    Err(error) if before > 1 && error.errno() == Some(Errno::INVAL) => {
                        first.get_or_insert(error);
                        refused.push(write);
                    }
                    Err(error) => return Err(error),
                }
            }
            match first {
                None => return Ok(()),
                Some(error) if refused.len() == before => return Err(error),
                Some(_) => pending = refused,
            }
        }
    }

    fn write(&mut self, write: &Write) -> Result<()> {
        let Some((node, dir)) = self.find(write)? else {
            return if write.missing == Missing::Ignore || write.default == Some(&write.value) {
                Ok(())
            } else if let Some(skipped) = &mut self.skipped {
                let why = "there is no permission for a cgroup that could have it".to_owned();
                skipped.push(Skipped { source: write.source.clone(), why });
                Ok(())
            } else {
                Err(self.no_cgroup(write))
            };
        };
        if node.fresh.get() && write.default == Some(&write.value) {
            return Ok(());
        }
        let old = self.undo.as_ref().and_then(|_| dir.read(&write.file).ok());
        if old.as_ref().is_some_and(|old| write.is_in_effect(old)) {
            return Ok(());
        }
        match dir.write(&write.file, &write.value) {
            Ok(()) => {
                if let (Some(undo), Some(old)) = (&mut self.undo, old) {
                    undo.push(Previous { dir, write: write.clone(), values: write.undo(&old) });
                }
                Ok(())
            }
            Err(Errno::NOENT) => match &write.missing {
                Missing::Ignore => Ok(()),
                Missing::Instead(other) => self.write(other),
                Missing::Fail => Err(self.no_file(write, dir)),
            },
            Err(errno) => Err(refusal(write, dir, errno)),
        }
    }

    /// The cgroup that has the file.
    fn find(&self, write: &Write) -> Result<Option<(&'a Node, &'a Dir)>> {
        let node = match self.cgroup.names.mode {
            Mode::V2 => self.cgroup.unified(),
            Mode::V1 | Mode::Hybrid => self.cgroup.nodes.iter().find(|node| node.controls(&write.controller)),
        };
        let Some(node) = node else {
            return Ok(None);
        };
        Ok(node.dir()?.map(|dir| (node, dir)))
    }

    fn no_cgroup(&self, write: &Write) -> Error {
        let controller = write.controller.clone().into_owned();
        let source_path = write.source.clone();
        if self.cgroup.names.rootless {
            return Error::NotJoined { source_path, controller };
        }
        let known = self.cgroup.unified().is_some_and(|_| self.cgroup.names.mode == Mode::V2)
            || self.cgroup.nodes.iter().any(|node| node.controls(&controller));
        Error::NoController {
            source_path,
            controller,
            reason: if known { ": the container's cgroup is gone" } else { ": it is not mounted" }.to_owned(),
        }
    }

    /// Is it the controller that is missing, or just this file of it?
    fn no_file(&self, write: &Write, dir: &Dir) -> Error {
        let controller = write.controller.as_ref();
        let missing = self.cgroup.names.mode == Mode::V2
            && controller != "cgroup"
            && !has_controller(dir, controller).unwrap_or(true);
        if !missing {
            return Error::NoFile { source_path: write.source.clone(), file: dir.file(&write.file) };
        }
        let mut reason = format!(" in {}", dir.path().display());
        reason.push_str(&NotEnabled::reason(&self.cgroup.not_enabled, controller));
        if write.source.contains("unified[") {
            return Error::NoUnifiedController {
                key: write.file.clone().into_owned(),
                controller: controller.to_owned(),
                reason,
            };
        }
        Error::NoController { source_path: write.source.clone(), controller: controller.to_owned(), reason }
    }
}

/// Puts old values back, the last one first. Linked ones may again have to wait for each other, so they are tried
/// for as many rounds as there are of them.
fn put_back(previous: &[Previous<'_>]) -> Result<()> {
    for set in previous.chunk_by(|a, b| a.write.link.is_some() && a.write.link == b.write.link) {
        let mut result = Ok(());
        for _ in set {
            result = set.iter().try_fold((), |(), old| put_back_one(old));
            // The rest of the set, in the other order.
            if result.is_err() {
                result = set.iter().rev().try_fold((), |(), old| put_back_one(old));
            }
            if result.is_ok() {
                break;
            }
        }
        result?;
    }
    Ok(())
}

fn put_back_one(old: &Previous<'_>) -> Result<()> {
    for value in &old.values {
        old.dir.write(&old.write.file, value).map_err(|errno| {
            let write = Write { value: value.clone(), ..old.write.clone() };
            refusal(&write, old.dir, errno)
        })?;
    }
    Ok(())
}

/// Words for a value that the kernel did not take.
fn refusal(write: &Write, dir: &Dir, errno: Errno) -> Error {
    if errno == Errno::BUSY && write.link == Some(Link::Memory) {
        let number = |file: &str| dir.read(file).ok().and_then(|text| parse::single(&text)).unwrap_or(0);
        return Error::MemoryBusy {
            source_path: write.source.clone(),
            value: write.value.clone(),
            usage: number("memory.usage_in_bytes"),
            peak: number("memory.max_usage_in_bytes"),
        };
    }
    let hint = match (errno, write.controller.as_ref()) {
        (Errno::INVAL, "cpu") if write.file.ends_with("shares") || write.file.ends_with("weight") => {
            " (out of range, or the cgroup is idle: see cpu.idle)"
        }
        (Errno::INVAL, "cpu") if write.link == Some(Link::RealTime) => {
            " (more than what the cgroup above may use, see cpu.rt_runtime_us there)"
        }
        (Errno::INVAL, "cpu") => " (out of range, or more than the cgroup above has, or less than the burst)",
        (Errno::INVAL | Errno::ACCESS | Errno::RANGE, "cpuset") => {
            " (not all of these exist or belong to the cgroup above)"
        }
        (Errno::NOSPC, "cpuset") => " (the cgroup has processes and would be left with none)",
        (Errno::NODEV | Errno::NXIO, "io" | "blkio") => " (no such block device, or a partition)",
        (Errno::INVAL, "memory") if write.file.contains("memsw") => " (less than the memory limit)",
        _ => "",
    };
    Error::Limit {
        source_path: write.source.clone(),
        file: dir.file(&write.file),
        value: write.value.clone(),
        errno,
        hint,
    }
}
