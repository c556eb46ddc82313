//! Harness for tests of the whole program.
//!
//! A test makes a [`Bundle`], changes its configuration, and calls the runtime on it with [`Bundle::brig`]. When the bundle is
//! dropped its container is deleted, and what is left of it (cgroup, record, mount) fails the test. Every command has a time
//! limit, so nothing hangs.
//!
//! `RUNTIME=/path/to/runtime` points all tests at another runtime. What only brig does is marked: with [`better_than_runc`] where
//! the other one gets it wrong, with [`others_may_fail`] where it does so now and then,
//! [`only_brig`] where it has no such thing, with [`since_runc`] where old versions of it differ.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a harness fails its test by panicking, and starts programs by std"
)]

mod bundle;
mod bus;
pub mod caretaker;
mod command;
pub mod host;
mod pty;
mod socket;

pub use bundle::{Bundle, rootfs};
pub use bus::{FakeBus, Fault, Plan};
pub use command::{Finished, Run, Spawned};
pub use pty::Pty;
pub use serde_json::{Value, json};
pub use socket::{Message, Socket};

use std::path::PathBuf;

/// The runtime under test.
pub fn runtime() -> PathBuf {
    match std::env::var_os("RUNTIME") {
        Some(path) => which(&PathBuf::from(path)),
        None => brig(),
    }
}

fn which(path: &PathBuf) -> PathBuf {
    if path.components().count() > 1 {
        return std::path::absolute(path).unwrap();
    }
    let dirs = std::env::var("PATH").unwrap_or_default();
    let found = dirs.split(':').map(|dir| PathBuf::from(dir).join(path)).find(|p| p.exists());
    found.unwrap_or_else(|| panic!("no {} in PATH", path.display()))
}

/// The `brig` that was built beside this test.
pub fn brig() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let dir = test.parent().and_then(|deps| deps.parent()).unwrap();
    let brig = dir.join("brig");
    assert!(brig.exists(), "{} is missing: build it with the same profile (make test does)", brig.display());
    brig
}

/// Whether another runtime than brig is under test.
pub fn is_other_runtime() -> bool {
    std::env::var_os("RUNTIME").is_some()
}

/// A test that another runtime fails, and why. When pointed at one it must fail, or the mark is wrong.
#[track_caller]
pub fn better_than_runc(why: &str, test: impl FnOnce() + std::panic::UnwindSafe) {
    if !is_other_runtime() {
        return test();
    }
    let failed = std::panic::catch_unwind(test).is_err();
    assert!(failed, "the other runtime passes this test, which says that it does not: {why}");
    note(&format!("fails as marked: {why}"));
}

/// A test that another runtime fails now and then, or on some hosts, and why: its failure is noted.
#[track_caller]
pub fn others_may_fail(why: &str, test: impl FnOnce() + std::panic::UnwindSafe) {
    if !is_other_runtime() {
        return test();
    }
    if std::panic::catch_unwind(test).is_err() {
        note(&format!("fails, as marked: {why}"));
    }
}

/// A test of what only brig has (a command or flag of its own), or of what differs between versions of runc. Not run against
/// another runtime.
#[track_caller]
pub fn only_brig(why: &str, test: impl FnOnce()) {
    if is_other_runtime() {
        return note(&format!("not run: {why}"));
    }
    test();
}

/// A test of what runc has had since a version (of a fault or of a feature, as `why` says). Not run against an older one.
#[track_caller]
pub fn since_runc(version: (u32, u32), why: &str, test: impl FnOnce()) {
    if is_older_runc(version) {
        return note(&format!("not run: {why} since runc {}.{}", version.0, version.1));
    }
    test();
}

/// Says that an older runc fails a test, which then is not run against it.
///
/// For whole tests, at their beginning: `if fails_before_runc((1, 2), "…") { return; }`
#[track_caller]
pub fn fails_before_runc(version: (u32, u32), why: &str) -> bool {
    let fails = is_older_runc(version);
    if fails {
        note(&format!("not run: before {}.{}, runc {why}", version.0, version.1));
    }
    fails
}

/// Whether a runc is under test that is older than this version.
pub fn is_older_runc(version: (u32, u32)) -> bool {
    static VERSION: std::sync::OnceLock<Option<(u32, u32)>> = std::sync::OnceLock::new();
    let ours = VERSION.get_or_init(|| {
        let out = Run::new(runtime()).arg("--version").ok().out;
        let mut numbers = out.strip_prefix("runc version ")?.split(['.', '-', '+']);
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    is_other_runtime() && ours.is_some_and(|ours| ours < version)
}

/// Whether the slow tests of clients are to be run too, which make sure of the same with more of everything.
pub fn is_full() -> bool {
    std::env::var_os("CLIENTS_FULL").is_some()
}

/// Says, past the capture of test output, what a test could not check here. A test that can check nothing says so too.
#[track_caller]
pub fn note(text: &str) {
    let place = std::panic::Location::caller();
    let line = format!("note: {}:{}: {text}\n", place.file(), place.line());
    // The macros for printing are what is captured.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}
