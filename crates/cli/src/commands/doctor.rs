//! `doctor`: tells what this host has of what containers need.

use crate::status::ExitCode;

use super::list::FORMAT;
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::{self, Format, doctor};

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Tries what containers need of this host (system calls, namespaces, cgroups, systemd, rights) and
tells what does not work, what that means and how to mend it. What it makes to find out is gone
with it. Exits with 1 where containers cannot run at all.",
    flags: &[FORMAT],
    min_operands: 0,
    max_operands: 0,
    ..Command::new("doctor", "tell what this host lacks", run)
};

/// What `doctor` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoctorArgs {
    /// `--format`.
    pub format: Format,
}

fn run(parsed: &Parsed, _global: &Global) -> Result<ExitCode, Error> {
    let format = parsed.flags.raw("format").unwrap_or_default();
    let args = DoctorArgs { format: Format::parse(&format.to_string_lossy())? };
    examine(args)
}

fn examine(args: DoctorArgs) -> Result<ExitCode, Error> {
    let findings = brig_runtime::doctor::examine();
    match args.format {
        Format::Table => output::print(&doctor::text(&findings))?,
        Format::Json => output::print(&doctor::json(&findings)?)?,
    }
    Ok(if doctor::is_usable(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
