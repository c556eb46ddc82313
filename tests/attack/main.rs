//! Attacks: on the runtime's binary, by paths, by descriptors, by what leaks in, by configurations, records and terminals.
//!
//! Each is first shown to succeed against a naive program that does the same step without protection (`brig-test-naive`), and then
//! has to fail against the runtime under test. `ATTACK=full` runs races for as many rounds as [`support::rounds`] says, which takes
//! hours; without it there are as many as one waits for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and work with files and programs by std"
)]

mod binary;
mod configs;
mod fds;
mod fuse;
mod leaks;
mod paths;
mod record;
mod support;
mod terminal;
