//! `list`: shows all containers.

use crate::status::ExitCode;

use brig_spec::Summary;

use super::store;
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::{Global, Root};
use crate::output::{self, Format, complain, summary};
use crate::quote::visible;

/// `--format` of the commands that print a table.
pub(super) const FORMAT: Flag =
    Flag::text("format", "print as 'table' or 'json'").short("f").default("table");

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "Shows all containers below --root.",
    flags: &[
        FORMAT,
        Flag::switch("quiet", "print the names only").short("q"),
        Flag::switch("execs", "show the processes that exec started under a name"),
    ],
    min_operands: 0,
    max_operands: 0,
    ..Command::new("list", "show the containers", run)
};

/// What `list` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListArgs {
    /// `--format`.
    pub format: Format,
    /// `--quiet`: the format does not matter then.
    pub quiet: bool,
    /// `--execs`.
    pub execs: bool,
}

impl ListArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let quiet = parsed.flags.switch("quiet");
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            format: match Format::parse(&format.to_string_lossy()) {
                Err(_) if quiet => Format::Table,
                format => format?,
            },
            quiet,
            execs: parsed.flags.switch("execs"),
        })
    }
}

/// What was found below `--root`.
#[derive(Debug, Default)]
struct Listing {
    containers: Vec<Summary>,
    /// One line for each entry that could not be read: `load container X: …`. They are no failure.
    skipped: Vec<String>,
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    let args = ListArgs::new(parsed)?;
    let Listing { containers, skipped } = list(global)?;
    skipped.iter().for_each(|line| complain(&visible(line)));
    let text = match args {
        ListArgs { quiet: true, .. } => summary::list_ids(&containers),
        ListArgs { format: Format::Table, execs: true, .. } => {
            output::execs::table(&containers.into_iter().map(|c| (c.id, c.execs)).collect::<Vec<_>>())
        }
        ListArgs { format: Format::Table, .. } => summary::list_table(&containers),
        ListArgs { format: Format::Json, .. } => summary::list_json(&containers)?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(global: &Global) -> Result<Listing, Error> {
    // Only a root that was asked for has to be there.
    if global.root == Root::System && !global.root.path().exists() {
        return Ok(Listing::default());
    }
    let mut listing = Listing::default();
    for listed in brig_runtime::list(&store(global)?)? {
        match listed {
            Ok(container) => listing.containers.push(container),
            Err((_, error)) => listing.skipped.push(error.message()),
        }
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use super::ListArgs;
    use crate::output::Format;

    #[test]
    fn formats() {
        let args = |words: &[&str]| ListArgs::new(&parsed(&[&["list"], words].concat()));
        assert_eq!(args(&[]).unwrap().format, Format::Table);
        assert_eq!(args(&["--format=json"]).unwrap().format, Format::Json);
        assert_eq!(args(&["-f", "json", "-f", "table"]).unwrap().format, Format::Table);
        assert!(args(&["-q", "-f", "xml"]).unwrap().quiet);
        for format in ["xml", "", "JSON"] {
            assert_eq!(message(args(&["--format", format])), "invalid format option");
        }
    }
}
