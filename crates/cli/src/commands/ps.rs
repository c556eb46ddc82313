//! `ps`: shows the processes of a container.

use crate::status::ExitCode;
use std::ffi::OsString;

use super::list::FORMAT;
use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::output::{self, Format};
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    operands: "<container-id> [ps options]",
    description: "\
Shows the container's processes, with their pids on the host: as ps(1) shows them with the
options given (default: -ef), or as a JSON array of the pids.",
    flags: &[FORMAT, Flag::switch("execs", "show which processes exec started under a name")],
    max_operands: usize::MAX,
    passes_on: true,
    ..Command::new("ps", "show the processes of a container", run)
};

/// What `ps` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PsArgs {
    /// The container's name.
    pub id: ContainerId,
    /// `--format`.
    pub format: Format,
    /// `--execs`.
    pub execs: bool,
    /// Options of ps(1); none means `-ef`. Some callers pass several in one word.
    pub options: Vec<OsString>,
}

impl PsArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            id: container_id(parsed)?,
            format: Format::parse(&format.to_string_lossy())?,
            execs: parsed.flags.switch("execs"),
            options: parsed.operands.get(1..).unwrap_or_default().to_vec(),
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    ps(&PsArgs::new(parsed)?, global)
}

fn ps(args: &PsArgs, global: &Global) -> Result<ExitCode, Error> {
    if args.execs {
        let execs = brig_runtime::execs(&store(global)?, &args.id)?;
        let text = match args.format {
            Format::Json => output::execs::json(&execs)?,
            Format::Table => output::execs::table(&[(args.id.to_string(), execs)]),
        };
        output::print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pids = brig_runtime::processes(&store(global)?, &args.id)?;
    let text = match args.format {
        Format::Json if pids.is_empty() => "null\n".to_owned(),
        Format::Json => {
            let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
            format!("[{}]\n", pids.join(","))
        }
        Format::Table => output::ps::by_host(&pids, &args.options)?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use super::PsArgs;
    use crate::output::Format;

    #[test]
    fn options_are_passed_on() {
        let args = PsArgs::new(&parsed(&["ps", "--format", "json", "c1", "-ef", "--format", "x"])).unwrap();
        assert_eq!(args.format, Format::Json);
        assert_eq!(args.options, ["-ef", "--format", "x"]);
        assert!(PsArgs::new(&parsed(&["ps", "c1"])).unwrap().options.is_empty());
        assert_eq!(message(PsArgs::new(&parsed(&["ps", "-f", "xml", "c1"]))), "invalid format option");
    }
}
