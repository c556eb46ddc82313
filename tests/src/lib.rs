//! Harness for tests of the whole program.
//!
//! A test makes a [`Bundle`], changes its configuration, and calls the runtime on it with [`Bundle::brig`]. When the bundle is
//! dropped its container is deleted, and what is left of it (cgroup, record, mount) fails the test. Every command has a time
//! limit, so nothing hangs.
//!
//! `RUNTIME=/path/to/runtime` points all tests at another runtime. What only brig does is marked with [`better_than_runc`].

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
mod command;
pub mod host;
mod pty;

pub use bundle::{Bundle, rootfs};
pub use command::{Finished, Run, Spawned};
pub use pty::Pty;
pub use serde_json::{Value, json};

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
    let found = dirs
        .split(':')
        .map(|dir| PathBuf::from(dir).join(path))
        .find(|p| p.exists());
    found.unwrap_or_else(|| panic!("no {} in PATH", path.display()))
}

/// The `brig` that was built beside this test.
pub fn brig() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let dir = test.parent().and_then(|deps| deps.parent()).unwrap();
    let brig = dir.join("brig");
    assert!(
        brig.exists(),
        "{} is missing: build it with the same profile (make test does)",
        brig.display()
    );
    brig
}

/// Whether another runtime than brig is under test.
pub fn is_other_runtime() -> bool {
    std::env::var_os("RUNTIME").is_some()
}

/// A test that another runtime fails, and why. When pointed at one it must fail, or the mark is wrong.
pub fn better_than_runc(why: &str, test: impl FnOnce() + std::panic::UnwindSafe) {
    if !is_other_runtime() {
        return test();
    }
    let failed = std::panic::catch_unwind(test).is_err();
    assert!(
        failed,
        "the other runtime passes this test, which says that it does not: {why}"
    );
    eprintln!("fails as marked: {why}");
}

/// A test of what only brig has (a command or flag of its own). Not run against another runtime.
pub fn only_brig(why: &str, test: impl FnOnce()) {
    if is_other_runtime() {
        eprintln!("not run: {why}");
        return;
    }
    test();
}
