//! `features`: tells what this program can do.

use crate::status::ExitCode;

use crate::error::{Error, Kind};
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::{self, features};

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Prints the features document of the OCI runtime specification, as JSON. It tells what was built
in, not what this host has.",
    min_operands: 0,
    max_operands: 0,
    ..Command::new("features", "show what this runtime can do", run)
};

fn run(_parsed: &Parsed, _global: &Global) -> Result<ExitCode, Error> {
    let document = features::document(brig_sys::seccomp::knows_flag);
    let mut text = brig_spec::to_string_indented(&document, "    ")
        .map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))?;
    text.push('\n');
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
