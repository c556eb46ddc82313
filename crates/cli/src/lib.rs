//! The program: command line in, exit status out. Everything that it does is in `brig-runtime`.
//!
//! A library so that xtask can make man pages and completions out of [`flags`] and [`commands::ALL`].

pub mod caller;
pub mod commands;
pub mod error;
pub mod flags;
pub mod global;
pub mod log;
pub mod output;
pub mod paths;
pub mod quote;
pub mod status;
pub mod value;
pub mod version;

use crate::status::ExitCode;
use std::ffi::OsString;
use std::path::Path;

use error::Error;
use flags::{Action, Invocation, Parsed, Usage, UsageError, Values, help};
use global::Global;

/// The exit status of an unknown command.
const UNKNOWN_COMMAND: u8 = 3;

/// The program.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let argv0 = words.next().unwrap_or_else(|| OsString::from("brig"));
    let program = Path::new(&argv0).file_name().map_or_else(|| "brig".into(), |name| name.to_string_lossy());
    let words: Vec<OsString> = words.collect();
    match flags::parse(&words) {
        Ok(Invocation { globals, action }) => match action {
            Action::Help(command) => print(&help::text(&program, command)),
            Action::Version => print(&version::text()),
            Action::Run(parsed) => run(&program, &globals, &parsed),
        },
        Err(error) => usage(&program, &argv0.to_string_lossy(), &error),
    }
}

fn run(program: &str, globals: &Values, parsed: &Parsed) -> ExitCode {
    let command = parsed.command;
    let global = global::log_settings(globals)
        .and_then(|settings| log::start(&settings))
        .and_then(|()| Global::resolve(program, globals))
        .and_then(|global| start_trace(&global, parsed).map(|()| global));
    let global = match global {
        Ok(global) => global,
        Err(error) => return fail(&error, 1),
    };
    match (command.run)(parsed, &global) {
        Ok(status) => {
            log::release();
            status
        }
        Err(error) => fail(&error.with_prefix(command.error_prefix), command.failure),
    }
}

fn start_trace(global: &Global, parsed: &Parsed) -> Result<(), Error> {
    let Some(path) = &global.trace else { return Ok(()) };
    let words: Vec<_> = parsed.operands.iter().map(|word| word.to_string_lossy()).collect();
    let title = format!("{} {} {}", global.program, parsed.command.name, words.join(" "));
    Ok(brig_sys::trace::start(path, &title).map_err(|e| brig_runtime::Error::from(e).context("--trace"))?)
}

/// Help goes to standard output, what was wrong to standard error and into the log.
fn usage(program: &str, argv0: &str, error: &UsageError) -> ExitCode {
    let message = error.usage.message(argv0);
    match error.usage {
        Usage::UnknownCommand(_) => {}
        Usage::Operands { .. } => {
            let _ = output::print(&format!("Incorrect Usage.\n\n{}", help::text(program, error.command)));
        }
        _ => {
            let _ = output::print(&help::text(program, error.command));
            output::complain(&format!("Incorrect Usage: {}\n", quote::visible(&message)));
        }
    }
    // A log that cannot be opened is no reason to hide what is wrong.
    let _ = global::log_settings(&error.globals).and_then(|settings| log::start(&settings));
    let status = match error.usage {
        Usage::UnknownCommand(_) => UNKNOWN_COMMAND,
        _ => 1,
    };
    fail(&Error::caller(message), status)
}

fn fail(error: &Error, status: u8) -> ExitCode {
    log::fail(error);
    ExitCode::from(status)
}

fn print(text: &str) -> ExitCode {
    match output::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}
