//! `stats`: shows what containers use.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use brig_runtime::{Sample, Store};

use super::list::FORMAT;
use super::{span, store};
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::{Global, Root};
use crate::output::{self, Format, usage};
use crate::status::ExitCode;
use crate::value::{ContainerId, id};

/// The table.
pub static COMMAND: Command = Command {
    operands: "[<container-id>…]",
    description: "\
Shows what the containers, or all below --root, use, again and again: processor time in per cent
of one CPU since the line before (the first: since the container was created), memory and tasks
with their limits, bytes read and written, in how many of its periods the processor quota was
used up, and for how much of the last ten seconds something had to wait for CPU, memory and I/O.
Ends when none of the named containers is left. As JSON each line is an array.",
    flags: &[
        FORMAT,
        Flag::duration("interval", "time between two looks").default("2s"),
        Flag::switch("once", "show it once"),
    ],
    min_operands: 0,
    max_operands: usize::MAX,
    ..Command::new("stats", "show what containers use", run)
};

/// What `stats` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsArgs {
    /// The containers' names; none means all.
    pub ids: Vec<ContainerId>,
    /// `--once`.
    pub once: bool,
    /// `--interval`.
    pub interval: Duration,
    /// `--format`.
    pub format: Format,
}

impl StatsArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            ids: parsed.operands.iter().map(|id| id::container_id(id)).collect::<Result<_, _>>()?,
            once: parsed.flags.switch("once"),
            interval: span(parsed, "interval", 1)?.unwrap_or_default(),
            format: Format::parse(&format.to_string_lossy())?,
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    stats(&StatsArgs::new(parsed)?, global)
}

fn stats(args: &StatsArgs, global: &Global) -> Result<ExitCode, Error> {
    // Only a root that was asked for has to be there.
    if args.ids.is_empty() && args.once && global.root == Root::System && !global.root.path().exists() {
        output::print(&page(args.format, &[])?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = store(global)?;
    crate::log::release();
    let live = args.format == Format::Table && !args.once && std::io::stdout().is_terminal();
    let mut before = samples(&store, &args.ids, true)?;
    output::print(&screen(live, true, &page(args.format, &usages(&BTreeMap::new(), &before))?))?;
    while !args.once && output::is_read_for(args.interval) {
        let now = samples(&store, &args.ids, false)?;
        if now.is_empty() && !args.ids.is_empty() {
            break;
        }
        output::print(&screen(live, false, &page(args.format, &usages(&before, &now))?))?;
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks at the containers. One that is named has to be there at first, and may end later.
fn samples(
    store: &Store,
    named: &[ContainerId],
    first: bool,
) -> Result<BTreeMap<ContainerId, Sample>, Error> {
    let ids = if named.is_empty() { store.ids()? } else { named.to_vec() };
    let mut found = BTreeMap::new();
    for id in ids {
        match brig_runtime::sample(store, &id) {
            Ok(sample) => drop(found.insert(id, sample)),
            Err(error) if first && !named.is_empty() => return Err(error.into()),
            Err(error) => {
                let error = Error::from(error);
                if error.kind != Kind::State {
                    log::warn!("{id}: {error}");
                }
            }
        }
    }
    Ok(found)
}

fn usages(before: &BTreeMap<ContainerId, Sample>, now: &BTreeMap<ContainerId, Sample>) -> Vec<usage::Usage> {
    now.iter().map(|(id, sample)| usage::Usage::new(id.as_str(), before.get(id), sample)).collect()
}

fn page(format: Format, usages: &[usage::Usage]) -> Result<String, Error> {
    match format {
        Format::Table => Ok(usage::table(usages)),
        Format::Json => usage::json(usages),
    }
}

/// On a terminal each page takes the place of the one before.
fn screen(live: bool, first: bool, page: &str) -> String {
    const CLEAR: &str = "\x1b[2J";
    const HOME: &str = "\x1b[H";
    const CLEAR_LINE: &str = "\x1b[K\n";
    const CLEAR_BELOW: &str = "\x1b[J";
    if !live {
        return page.to_owned();
    }
    let clear = if first { CLEAR } else { "" };
    format!("{clear}{HOME}{}{CLEAR_BELOW}", page.replace('\n', CLEAR_LINE))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{message, parsed};
    use super::{StatsArgs, screen};
    use crate::output::Format;

    #[test]
    fn any_number_of_containers() {
        let all = StatsArgs::new(&parsed(&["stats", "--once", "--format=json"])).unwrap();
        assert!(all.once && all.ids.is_empty());
        assert_eq!(all.format, Format::Json);
        assert_eq!(all.interval, Duration::from_secs(2));
        assert_eq!(StatsArgs::new(&parsed(&["stats", "a", "b"])).unwrap().ids.len(), 2);
        let error = message(StatsArgs::new(&parsed(&["stats", "a", "b/c"])));
        assert_eq!(error, "invalid container ID format");
        let error = message(StatsArgs::new(&parsed(&["stats", "--interval=0s"])));
        assert_eq!(error, "--interval must be greater than 0");
    }

    #[test]
    fn a_page_on_a_terminal_takes_the_place_of_the_one_before() {
        assert_eq!(screen(false, true, "a\nb\n"), "a\nb\n");
        assert_eq!(screen(true, true, "a\n"), "\x1b[2J\x1b[Ha\x1b[K\n\x1b[J");
        assert_eq!(screen(true, false, "a\n"), "\x1b[Ha\x1b[K\n\x1b[J");
    }
}
