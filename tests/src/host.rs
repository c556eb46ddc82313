//! What the host has, and what a container left on it.

use std::path::{Path, PathBuf};

/// Whether `/sys/fs/cgroup` is a pure cgroup v2 mount.
pub fn is_cgroup_v2() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// Whether a controller can limit a container here.
pub fn has_controller(name: &str) -> bool {
    if is_cgroup_v2() {
        let list = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        list.split_whitespace().any(|c| c == name)
    } else {
        hierarchies().iter().any(|h| {
            h.file_name()
                .is_some_and(|n| n.to_string_lossy().split(',').any(|c| c == name))
        })
    }
}

/// Mount points of all cgroup hierarchies.
pub fn hierarchies() -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table
        .lines()
        .filter(|line| line.contains(" - cgroup ") || line.contains(" - cgroup2 "))
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .collect()
}

/// Directories of a cgroup path (absolute, as in `cgroupsPath`) that exist, in all hierarchies.
pub fn cgroup_dirs(path: &str) -> Vec<PathBuf> {
    let relative = path.trim_start_matches('/');
    hierarchies()
        .into_iter()
        .map(|h| h.join(relative))
        .filter(|dir| dir.exists())
        .collect()
}

/// The directory of a cgroup in the hierarchy of a controller (the only one, on v2).
pub fn cgroup_dir(controller: &str, path: &str) -> PathBuf {
    let relative = path.trim_start_matches('/');
    if is_cgroup_v2() {
        return Path::new("/sys/fs/cgroup").join(relative);
    }
    let found = hierarchies().into_iter().find(|h| {
        h.file_name()
            .is_some_and(|n| n.to_string_lossy().split(',').any(|c| c == controller))
    });
    found
        .unwrap_or_else(|| panic!("no hierarchy for {controller}"))
        .join(relative)
}

/// Mounts of this mount namespace below a directory.
pub fn mounts_below(dir: &Path) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let dir = dir.to_string_lossy().into_owned();
    table
        .lines()
        .filter(|line| line.split(' ').nth(4).is_some_and(|p| p.starts_with(&dir)))
        .map(str::to_owned)
        .collect()
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !matches!(
            stat.rsplit(')').next().map(|s| s.trim_start().chars().next()),
            Some(Some('Z' | 'X'))
        ),
        Err(_) => false,
    }
}

/// Waits until a condition holds; it has to, in time.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(30),
            "waited in vain for: {what}"
        );
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
