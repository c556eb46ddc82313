//! The process that becomes the container's: what it does between its birth and the init program.
//!
//! It is a copy of the command, so it is told nothing that it inherited at the clone anyway. `create` and `exec` are two
//! lists of named steps; what both need stands in files of its own.

mod console;
pub mod create;
mod devices;
pub mod exec;
mod finish;
mod hidden;
mod joined_proc;
mod mounts;
mod namespaces;
mod process;
mod root;

pub use process::cwd_outside;

use std::os::fd::OwnedFd;

use brig_sys::process::exit_now;
use brig_sys::trace::span;

use crate::channel::{Channel, FromChild, ToChild};
use crate::error::{Error, Kind, Result};

/// A step: what is being done, for messages, and how.
type Step<T> = (&'static str, fn(&mut T) -> Result<()>);

/// Says something at the level of `--debug`; nothing is sent unless somebody reads it.
fn debug(channel: &Channel, line: impl FnOnce() -> String) {
    if log::log_enabled!(log::Level::Debug) {
        channel.report(&FromChild::Log(log::Level::Debug, line()));
    }
}

/// Works through the steps, the last of which executes the init program; tells the command what went wrong.
fn work<T>(subject: &mut T, steps: &[Step<T>], channel: &Channel) -> ! {
    debug(channel, || {
        format!("child process in init(): process {}, {} steps to go", std::process::id(), steps.len())
    });
    for (what, step) in steps {
        let _span = span(what);
        if let Err(e) = step(subject) {
            // Its error says itself what was being mounted, in the words that clients know.
            let e = if *what == mounts::STEP { e } else { e.context(*what) };
            channel.report(&FromChild::Failed(e));
            exit_now(1);
        }
    }
    channel
        .report(&FromChild::Failed(Error::new(Kind::Internal, "the list of steps ended without an execve")));
    exit_now(1)
}

/// What the command has said so far. Its words may come before they are waited for, so each is remembered.
#[derive(Debug, Default)]
struct Inbox {
    attached: bool,
    mapped: bool,
    go: bool,
    source: Option<Option<OwnedFd>>,
}

impl Inbox {
    fn hear(&mut self, channel: &Channel) -> Result<()> {
        match channel.hear()? {
            Some((ToChild::Attached, _)) => self.attached = true,
            Some((ToChild::Mapped, _)) => self.mapped = true,
            Some((ToChild::Go, _)) => self.go = true,
            Some((ToChild::Source, fd)) => self.source = Some(fd),
            // The command is gone, and nobody is left to be told.
            None => exit_now(1),
        }
        Ok(())
    }

    fn wait_attached(&mut self, channel: &Channel) -> Result<()> {
        while !self.attached {
            self.hear(channel)?;
        }
        Ok(())
    }

    fn wait_mapped(&mut self, channel: &Channel) -> Result<()> {
        while !self.mapped {
            self.hear(channel)?;
        }
        Ok(())
    }

    fn wait_go(&mut self, channel: &Channel) -> Result<()> {
        while !self.go {
            self.hear(channel)?;
        }
        self.go = false;
        Ok(())
    }

    fn wait_source(&mut self, channel: &Channel) -> Result<Option<OwnedFd>> {
        loop {
            match self.source.take() {
                Some(source) => return Ok(source),
                None => self.hear(channel)?,
            }
        }
    }
}
