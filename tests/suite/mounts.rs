//! Mounts, devices, masked and read-only paths, the root file system.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use brig_tests::host::{MountLine, SharedMount};
use brig_tests::{
    Bundle, Run, Value, better_than_runc, fails_before_runc, host, json, note, runtime, since_runc,
};

mod dev;
mod hostile;
mod kinds;
mod propagation;
mod root;

/// The mounts that the container sees.
fn table(b: &mut Bundle) -> String {
    b.args(&["cat", "/proc/self/mountinfo"]);
    b.run().ok().out
}

/// What the container sees at a mount point.
#[track_caller]
fn seen(b: &mut Bundle, point: &str) -> MountLine {
    let table = table(b);
    MountLine::find(&table, point).unwrap_or_else(|| panic!("{point} is not in {table}"))
}

fn bind(source: impl AsRef<Path>, target: &str, options: &[&str]) -> Value {
    let options: Vec<&str> = ["rbind"].iter().chain(options).copied().collect();
    json!({ "destination": target, "type": "bind", "source": source.as_ref(), "options": options })
}

fn tmpfs(target: &str, options: &[&str]) -> Value {
    json!({ "destination": target, "type": "tmpfs", "source": "tmpfs", "options": options })
}

/// A directory of the host with a file in it.
fn source(b: &Bundle) -> std::path::PathBuf {
    let dir = b.path().join("source");
    fs::create_dir_all(dir.join("sub")).unwrap();
    fs::write(dir.join("file"), "host\n").unwrap();
    dir
}
