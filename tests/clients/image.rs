//! The image that all clients run: busybox and a user or two.

use std::fs;
use std::path::Path;

use brig_tests::Run;

/// Its name in every client.
pub const NAME: &str = "busybox:test";

/// The image's files as a tar archive.
pub fn archive() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    brig_tests::rootfs(dir.path());
    fs::write(dir.path().join("etc/group"), "root:x:0:\nstaff:x:50:user\n").unwrap();
    let archive = dir.path().with_extension("tar");
    Run::new("tar").arg("-C").arg(dir.path()).arg("-cf").arg(&archive).arg(".").ok();
    let bytes = fs::read(&archive).unwrap();
    fs::remove_file(&archive).unwrap();
    bytes
}

/// Prints a limit of the container's cgroup from inside, on cgroup v1 or v2: the first of the files that is there.
pub fn show_limit(v1: &str, v2: &str) -> String {
    format!("cat /sys/fs/cgroup/{v1} 2>/dev/null || cat /sys/fs/cgroup/{v2}")
}

/// Whether a path is there.
pub fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().symlink_metadata().is_ok()
}
