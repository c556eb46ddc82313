//! Measures brig beside other runtimes, in turn, and writes what it found: a table, JSON and a chart.
//!
//! `make bench` calls it, in a mount namespace with a pure cgroup v2. From the environment it takes the runtimes `BRIG`, `CRUN` and
//! `RUNC`, the programs `FLOOR` and `MEASURE`, the folder `OUT` for the JSON, `RESULTS` for the rest, the number of `ROUNDS`, and
//! `BENCH=full` for 1,000 containers instead of 100.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failure ends the measurement, and programs are started by std"
)]

mod bundle;
mod chart;
mod goals;
mod report;
mod rows;
mod runtime;
mod stats;

use std::path::PathBuf;

use rows::Bench;
use runtime::{Kind, Runtime};

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn main() {
    let out = PathBuf::from(var("OUT").expect("OUT is not set: use make bench"));
    let results = PathBuf::from(var("RESULTS").expect("RESULTS is not set: use make bench"));
    let rounds: usize = var("ROUNDS").map_or(60, |text| text.parse().expect("ROUNDS is no number"));
    let containers = if var("BENCH").as_deref() == Some("full") { 1000 } else { 100 };
    // What a manager of containers is: the first process of a container becomes its child.
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).expect("becoming a subreaper");

    let dir = tempfile::Builder::new().prefix("brig-bench-").tempdir().expect("a temporary folder");
    // The records are where they usually are: in memory, as /run is. Not all of /run is, here and there.
    let state =
        tempfile::Builder::new().prefix("brig-bench-").tempdir_in("/dev/shm").expect("a folder in /dev/shm");
    let mut runtimes = Vec::new();
    for (kind, name) in [
        (Kind::Brig, "BRIG"),
        (Kind::Floor, "FLOOR"),
        (Kind::Crun, "CRUN"),
        (Kind::CrunUncached, "CRUN"),
        (Kind::Runc, "RUNC"),
    ] {
        match var(name) {
            Some(program) => runtimes.push(Runtime::new(kind, &program, state.path())),
            None => println!("{name} is not set: not measured"),
        }
    }
    let measure = var("MEASURE").expect("MEASURE is not set: use make bench");
    let bench = Bench::new(runtimes, PathBuf::from(measure), dir.path(), rounds, containers);
    let rows = bench.all();
    report::write(&bench, &rows, &out, &results);
}
