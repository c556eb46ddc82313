//! The commands, one file each: its table of flags, its arguments, and the function that carries it out.

pub mod check;
pub mod checkpoint;
pub mod create;
pub mod delete;
pub mod doctor;
pub mod events;
pub mod exec;
pub mod features;
pub mod gc;
pub mod kill;
pub mod list;
pub mod pause;
pub mod ps;
pub mod restore;
pub mod resume;
pub mod run;
mod setup;
pub mod spec;
pub mod start;
pub mod state;
pub mod stats;
pub mod update;
pub mod wait;

use crate::status::ExitCode;
use std::time::Duration;

use brig_runtime::Store;
use brig_sys::process::ExitStatus;

use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::value::{ContainerId, id};

pub use setup::SetupArgs;

/// All of them, in the order of the help.
pub static ALL: &[&Command] = &[
    &check::COMMAND,
    &checkpoint::COMMAND,
    &create::COMMAND,
    &delete::COMMAND,
    &doctor::COMMAND,
    &events::COMMAND,
    &exec::COMMAND,
    &features::COMMAND,
    &gc::COMMAND,
    &kill::COMMAND,
    &list::COMMAND,
    &pause::COMMAND,
    &ps::COMMAND,
    &restore::COMMAND,
    &resume::COMMAND,
    &run::COMMAND,
    &spec::COMMAND,
    &start::COMMAND,
    &state::COMMAND,
    &stats::COMMAND,
    &update::COMMAND,
    &wait::COMMAND,
];

/// The container that the first positional names.
fn container_id(parsed: &Parsed) -> Result<ContainerId, Error> {
    id::container_id(parsed.operand(0))
}

/// The exit status of a process that was waited for; success for one that goes on alone.
fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    let code = status.map_or(0, ExitStatus::code);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The containers below `--root`.
fn store(global: &Global) -> Result<Store, Error> {
    Ok(Store::new(global.root.prepared()?))
}

/// A span of time that a flag gives, where it is at least `min` nanoseconds.
fn span(parsed: &Parsed, flag: &'static str, min: i64) -> Result<Option<Duration>, Error> {
    let Some(nanoseconds) = parsed.flags.duration(flag) else {
        return Ok(None);
    };
    u64::try_from(nanoseconds)
        .ok()
        .filter(|_| nanoseconds >= min)
        .map(|nanoseconds| Some(Duration::from_nanos(nanoseconds)))
        .ok_or_else(|| {
            let at_least = if min > 0 { "greater than" } else { "at least" };
            Error::caller(format!("--{flag} must be {at_least} 0"))
        })
}

#[cfg(test)]
pub(crate) mod testing {
    use std::ffi::OsString;

    use crate::error::Error;
    use crate::flags::{Action, Parsed, parse};

    /// A command line without globals, understood.
    pub fn parsed(words: &[&str]) -> Parsed {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        match parse(&words).unwrap().action {
            Action::Run(parsed) => parsed,
            other => panic!("{other:?}"),
        }
    }

    /// The message of an error that has to be there.
    pub fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        result.unwrap_err().message
    }
}
