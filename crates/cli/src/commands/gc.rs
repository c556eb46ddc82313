//! `gc`: removes what crashes have left behind.

use std::process::ExitCode;

use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Shows what belongs to containers that were made by half, or whose records are broken. With
--force removes it.",
    flags: &[Flag::switch("force", "remove what is found")],
    min_operands: 0,
    max_operands: 0,
    hidden: true,
    ..Command::new("gc", "find and remove what crashes have left behind", run)
};

/// What `gc` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcArgs {
    /// `--force`.
    pub force: bool,
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    let args = GcArgs { force: parsed.flags.switch("force") };
    collect(args, global)
}

fn collect(_args: GcArgs, _global: &Global) -> Result<ExitCode, Error> {
    Err(Error::unsupported("gc"))
}
