//! What the container's process is like: identity, environment, limits, privileges, descriptors, signals.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use brig_tests::{Bundle, Run, better_than_runc, fails_before_runc, host, json, note, runtime, since_runc};

mod attributes;
mod cwd;
mod descriptors;
mod identity;
mod program;
mod signals;

/// The value of a line of `/proc/self/status`, of a process that does not change it.
fn status(b: &mut Bundle, key: &str) -> String {
    b.args(&["grep", &format!("^{key}:"), "/proc/self/status"]);
    let out = b.run().ok().out;
    out.split_once(':').unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ")
}
