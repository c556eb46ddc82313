//! `gc`: removes what crashes have left behind.

use crate::status::ExitCode;
use std::time::Duration;

use brig_runtime::Leftover;

use super::list::FORMAT;
use super::{span, store};
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::output::{self, Format, complain, table};

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Shows what belongs to containers whose creation was cut off, whose record is broken, or whose
cgroup has no record any more, below --root. With --force removes it, with the processes in
it. Containers that are being made, and stopped ones, are left alone.",
    flags: &[
        Flag { short: None, ..FORMAT },
        Flag::switch("force", "remove what is found").short("f"),
        Flag::duration("timeout", "give up when processes have not ended after this time").default("10s"),
    ],
    min_operands: 0,
    max_operands: 0,
    ..Command::new("gc", "find and remove what crashes have left behind", run)
};

/// What `gc` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcArgs {
    /// `--force`.
    pub force: bool,
    /// `--format`.
    pub format: Format,
    /// `--timeout`, for each container.
    pub timeout: Duration,
}

impl GcArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            force: parsed.flags.switch("force"),
            format: Format::parse(&format.to_string_lossy())?,
            timeout: span(parsed, "timeout", 0)?.unwrap_or_default(),
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    collect(GcArgs::new(parsed)?, global)
}

fn collect(args: GcArgs, global: &Global) -> Result<ExitCode, Error> {
    let store = store(global)?;
    let found = brig_runtime::leftovers(&store)?;
    let mut status = ExitCode::SUCCESS;
    let mut rows = Vec::with_capacity(found.len());
    for leftover in found {
        let removed = args.force.then(|| brig_runtime::remove_leftover(&store, &leftover, args.timeout));
        let state = match removed {
            None => "found",
            Some(Ok(())) => "removed",
            Some(Err(error)) => {
                complain(&format!("container {}: {error}", leftover.id));
                status = ExitCode::FAILURE;
                "failed"
            }
        };
        rows.push((leftover, state));
    }
    let text = match args.format {
        Format::Table => as_table(&rows),
        Format::Json => as_json(&rows)?,
    };
    output::print(&text)?;
    Ok(status)
}

fn as_table(rows: &[(Leftover, &str)]) -> String {
    let head = ["ID", "STATE", "PATH", "REASON"].map(str::to_owned);
    let rows = rows.iter().map(|(leftover, state)| {
        let path = leftover.path.to_string_lossy().escape_debug().to_string();
        [leftover.id.to_string(), (*state).to_owned(), path, leftover.why.clone()]
    });
    table::text(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

fn as_json(rows: &[(Leftover, &str)]) -> Result<String, Error> {
    #[derive(serde::Serialize)]
    struct Row<'a> {
        id: String,
        state: &'a str,
        path: String,
        reason: &'a str,
    }
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(leftover, state)| Row {
            id: leftover.id.to_string(),
            state,
            path: leftover.path.to_string_lossy().into_owned(),
            reason: &leftover.why,
        })
        .collect();
    let line = serde_json::to_string(&rows);
    line.map(|line| line + "\n").map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{message, parsed};
    use super::GcArgs;

    #[test]
    fn it_only_looks_unless_forced() {
        let args = GcArgs::new(&parsed(&["gc"])).unwrap();
        assert!(!args.force);
        assert_eq!(args.timeout, Duration::from_secs(10));
        assert!(GcArgs::new(&parsed(&["gc", "-f", "--timeout", "1s"])).is_ok_and(|args| args.force));
        assert_eq!(message(GcArgs::new(&parsed(&["gc", "--format", "xml"]))), "invalid format option");
    }
}
