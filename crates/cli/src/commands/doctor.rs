//! `doctor`: tells what this host has of what containers need.

use std::process::ExitCode;

use super::list::FORMAT;
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::Format;

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Looks at the kernel, the cgroups, systemd and the caller's rights, and tells what is missing and
what does not work without it.",
    flags: &[FORMAT],
    min_operands: 0,
    max_operands: 0,
    hidden: true,
    ..Command::new("doctor", "tell what this host lacks", run)
};

/// What `doctor` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoctorArgs {
    /// `--format`.
    pub format: Format,
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    let format = parsed.flags.raw("format").unwrap_or_default();
    let args = DoctorArgs { format: Format::parse(&format.to_string_lossy())? };
    examine(args, global)
}

fn examine(_args: DoctorArgs, _global: &Global) -> Result<ExitCode, Error> {
    Err(Error::unsupported("doctor"))
}
