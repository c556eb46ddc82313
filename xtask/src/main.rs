//! Chores of the project: what is generated and what is checked. `cargo run -p xtask -- TASK ARGUMENTS`

#![allow(clippy::print_stderr, reason = "a developer's tool talks on its terminal")]

mod docs;
mod interface;
mod lint;
mod syscalls;

use std::error::Error;
use std::process::ExitCode;

/// A task: how it is called, what it does, and its function, which gets the arguments after the name.
type Task = (&'static str, &'static str, fn(&[String]) -> Result<(), Box<dyn Error>>);

const TASKS: &[Task] = &[
    ("docs", "check the tables of docs/ against the sources", docs::run),
    (
        "lint",
        "check the length of files and functions, where unsafe code is, and the README's overview",
        lint,
    ),
    (
        "interface FOLDER",
        "write man pages and completions into FOLDER, which is like /usr/share",
        interface::write,
    ),
    ("overview", "bring the command overview of README.md up to date", interface::overview),
    (
        "syscalls LINUX",
        "write crates/seccomp/src/syscalls/table.rs from the Linux sources in the folder LINUX",
        syscalls::run,
    ),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let wanted = args.next().unwrap_or_default();
    let Some((_, _, run)) = TASKS.iter().find(|(usage, ..)| usage.split(' ').next() == Some(&*wanted)) else {
        eprintln!("usage: xtask TASK");
        for (usage, help, _) in TASKS {
            eprintln!("  {usage:<20} {help}");
        }
        return ExitCode::FAILURE;
    };
    match run(&args.collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {wanted}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn lint(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    lint::run(arguments)?;
    interface::check()
}
