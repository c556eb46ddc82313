//! `stats`: shows what containers use.

use std::process::ExitCode;

use super::list::FORMAT;
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::output::Format;
use crate::value::{ContainerId, id};

/// The table.
pub static COMMAND: Command = Command {
    operands: "[<container-id>…]",
    description: "Shows what the containers, or all below --root, use, again and again.",
    flags: &[FORMAT, Flag::switch("once", "show it once")],
    min_operands: 0,
    max_operands: usize::MAX,
    hidden: true,
    ..Command::new("stats", "show what containers use", run)
};

/// What `stats` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsArgs {
    /// The containers' names; none means all.
    pub ids: Vec<ContainerId>,
    /// `--once`.
    pub once: bool,
    /// `--format`.
    pub format: Format,
}

impl StatsArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            ids: parsed.operands.iter().map(|id| id::container_id(id)).collect::<Result<_, _>>()?,
            once: parsed.flags.switch("once"),
            format: Format::parse(&format.to_string_lossy())?,
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    stats(&StatsArgs::new(parsed)?, global)
}

fn stats(_args: &StatsArgs, _global: &Global) -> Result<ExitCode, Error> {
    Err(Error::unsupported("stats"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use super::StatsArgs;
    use crate::output::Format;

    #[test]
    fn any_number_of_containers() {
        let all = StatsArgs::new(&parsed(&["stats", "--once", "--format=json"])).unwrap();
        assert!(all.once && all.ids.is_empty());
        assert_eq!(all.format, Format::Json);
        assert_eq!(StatsArgs::new(&parsed(&["stats", "a", "b"])).unwrap().ids.len(), 2);
        let error = message(StatsArgs::new(&parsed(&["stats", "a", "b/c"])));
        assert_eq!(error, "invalid container ID format");
    }
}
