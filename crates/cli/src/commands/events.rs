//! `events`: reports what happens to a container.

use crate::status::ExitCode;
use std::time::Duration;

use brig_cgroup::Stats;
use brig_runtime::Event;

use super::{container_id, span, store};
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::output;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Prints one line of JSON for each event: statistics in intervals, and each time the kernel kills
a process for want of memory. Ends with the container.",
    flags: &[
        Flag::duration("interval", "time between statistics").default("5s"),
        Flag::switch("stats", "print the statistics once"),
    ],
    ..Command::new("events", "report statistics and out-of-memory kills of a container", run)
};

/// What `events` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsArgs {
    /// The container's name.
    pub id: ContainerId,
    /// `--interval`.
    pub interval: Duration,
    /// `--stats`.
    pub stats: bool,
}

impl EventsArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let interval = span(parsed, "interval", 1)
            .map_err(|_| Error::caller("duration interval must be greater than 0"))?;
        Ok(Self {
            id: container_id(parsed)?,
            interval: interval.unwrap_or_default(),
            stats: parsed.flags.switch("stats"),
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    events(&EventsArgs::new(parsed)?, global)
}

fn events(args: &EventsArgs, global: &Global) -> Result<ExitCode, Error> {
    let store = store(global)?;
    if args.stats {
        let stats = brig_runtime::stats(&store, &args.id)?;
        output::print(&record(&args.id, &Event::Stats(Box::new(stats)))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    crate::log::release();
    brig_runtime::events(&store, &args.id, args.interval, |event| {
        let line = record(&args.id, &event).and_then(|line| output::print(&line));
        line.map_err(|error| brig_runtime::Error::host(error.message))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// One line of JSON.
fn record(id: &ContainerId, event: &Event) -> Result<String, Error> {
    let mut line = match event {
        Event::Stats(stats) => {
            serde_json::to_string(&Record { kind: "stats", id: id.as_str(), data: Some(stats) })
        }
        Event::Oom => serde_json::to_string(&Record { kind: "oom", id: id.as_str(), data: None }),
    }
    .map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))?;
    line.push('\n');
    Ok(line)
}

#[derive(serde::Serialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Stats>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{message, parsed};
    use super::EventsArgs;

    #[test]
    fn intervals() {
        let args = |words: &[&str]| EventsArgs::new(&parsed(&[&["events"], words].concat()));
        assert_eq!(args(&["c1"]).unwrap().interval, Duration::from_secs(5));
        let once = args(&["--stats", "c1"]).unwrap();
        assert!(once.stats);
        assert_eq!(args(&["--interval=500ms", "c1"]).unwrap().interval, Duration::from_millis(500));
        for interval in ["0", "0s", "-1s", "0.1ns"] {
            assert_eq!(
                message(args(&["--interval", interval, "c1"])),
                "duration interval must be greater than 0"
            );
        }
    }
}
