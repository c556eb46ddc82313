//! Commands that are killed, and what is left of their containers: nothing, once `delete --force` has been there.
//!
//! Not a test harness of functions but a program: it kills a command at its first system call, at its second, and so on, and
//! prints a table. Without arguments it takes strides, as CI does; faults have
//! to be asked for.
//!
//! ```text
//! kill [all] [stride=N] [command=create,exec,…] [victim=command,caller] [delay=0,50]
//! kill random [runs=N] [command=…]       kills at random times
//! kill faults [stride=N] [command=…]     makes one system call fail instead
//! kill orphans [runs=N]                  the other half: creators that vanish must not take the container along
//! kill soak [runs=N]                     whole lives, four at a time, some cut off
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test program"
)]

mod driver;
mod faults;
mod matrix;
mod options;
mod orphans;
mod random;
mod scene;
mod soak;

use options::Options;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == driver::WORD) {
        driver::main(&words[1..]);
    }
    let options = Options::parse(&words);
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: needs root");
        return;
    }
    // What is orphaned here becomes a child of this process, so that none can hide.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let failures = match options.what.as_str() {
        "random" => random::run(&options),
        "faults" => faults::run(&options),
        "orphans" => orphans::run(&options),
        "soak" => soak::run(&options),
        "all" => matrix::run(&options),
        _ => {
            let brief = options.brief();
            matrix::run(&brief) + random::run(&brief) + orphans::run(&brief) + soak::run(&brief)
        }
    };
    if failures > 0 {
        eprintln!("{failures} points failed");
        std::process::exit(1);
    }
}
