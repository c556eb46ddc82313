//! A process of the container that looks at every process that comes into its pid namespace, as fast as it can:
//!
//! `race OUT STOP SECRET TEXT DEVICE:INODE…` writes `ready` and its findings to OUT until STOP is there. A finding is one of the
//! programs with these inodes as `/proc/PID/exe`, or SECRET, a file of the host that holds TEXT, read by way of `/proc/PID`. When there
//! is a file STOP.sync it removes that: what it found out until then has been written.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an attacker is no part of the program"
)]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

struct Race<'a> {
    out: File,
    secret: &'a str,
    text: &'a str,
    programs: &'a [&'a str],
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ["race", out, stop, secret, text, ref programs @ ..] = args[..] else { panic!("{args:?}") };
    let out = OpenOptions::new().append(true).create(true).open(out).unwrap();
    let mut race = Race { out, secret, text, programs };
    let own = i32::try_from(std::process::id()).unwrap();
    race.say("ready");
    let (mut newest, mut looked, mut seen) = (own, 0_u64, 0_u64);
    while !looked.is_multiple_of(64) || !Path::new(stop).exists() {
        // Pids are given out in order: the next few are the ones to come.
        let mut next = newest + 5;
        if looked.is_multiple_of(64) {
            let _ = fs::remove_file(format!("{stop}.sync"));
            // More of them may have come and gone than that, while this process had no CPU.
            next = next.max(last_pid());
        }
        looked += 1;
        for pid in (newest + 1)..=next {
            if fs::symlink_metadata(format!("/proc/{pid}")).is_ok() {
                newest = pid;
                seen += 1;
                // It changes while it is looked at: from an image of the runtime to whatever it becomes.
                for _ in 0..40 {
                    if !race.look_at(pid) {
                        break;
                    }
                }
            }
        }
        newest = newest.max(next - 5);
    }
    race.say(&format!("looked {looked} times, saw {seen} processes, up to pid {newest}"));
}

/// The pid in this namespace that was given out last.
fn last_pid() -> i32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap();
    text.split_whitespace().next_back().and_then(|pid| pid.parse().ok()).unwrap()
}

impl Race<'_> {
    fn say(&mut self, what: &str) {
        writeln!(self.out, "{what}").unwrap();
    }

    fn look_at(&mut self, pid: i32) -> bool {
        let proc = format!("/proc/{pid}");
        if let Ok(exe) = fs::metadata(format!("{proc}/exe")) {
            let id = format!("{}:{}", exe.dev(), exe.ino());
            if self.programs.contains(&id.as_str()) {
                self.say(&format!("finding: the runtime as exe of {pid}"));
                if OpenOptions::new().read(true).write(true).open(format!("{proc}/mem")).is_ok() {
                    self.say(&format!("finding: its memory, {pid}"));
                }
            }
        }
        let ways =
            ["root".to_owned(), "cwd".to_owned()].into_iter().chain((0..24).map(|n| format!("fd/{n}")));
        for way in ways {
            // Out of the container's root there is no way up; from a directory of the host there is.
            let path = format!("{proc}/{way}/../../../../../../../../../..{}", self.secret);
            if fs::read_to_string(path).is_ok_and(|read| read == self.text) {
                self.say(&format!("finding: a file of the host through {way} of {pid}"));
            }
        }
        Path::new(&proc).exists()
    }
}
