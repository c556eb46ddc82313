//! What the host has, and what a container left on it.

use std::path::{Path, PathBuf};

/// Whether `/sys/fs/cgroup` is a pure cgroup v2 mount.
pub fn is_cgroup_v2() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// Whether this host runs systemd.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Whether containers are to have their cgroups from systemd: `DRIVER=systemd`.
pub fn by_systemd() -> bool {
    std::env::var_os("DRIVER").is_some_and(|driver| driver == "systemd")
}

/// The file that is there for as long as systemd knows a transient unit.
pub fn unit_file(unit: &str) -> PathBuf {
    Path::new("/run/systemd/transient").join(unit)
}

/// Whether a controller can limit a container here.
pub fn has_controller(name: &str) -> bool {
    if is_cgroup_v2() {
        let list = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
        list.split_whitespace().any(|c| c == name)
    } else {
        hierarchies()
            .iter()
            .any(|h| h.file_name().is_some_and(|n| n.to_string_lossy().split(',').any(|c| c == name)))
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

/// Mount point of the cgroup v2 hierarchy.
pub fn unified() -> Option<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// Processes in a cgroup, in any hierarchy.
pub fn members_of(path: &str) -> Vec<i32> {
    let mut found: Vec<i32> = cgroup_dirs(path)
        .iter()
        .filter_map(|dir| std::fs::read_to_string(dir.join("cgroup.procs")).ok())
        .flat_map(|text| text.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Directories of a cgroup path (absolute, as in `cgroupsPath`) that exist, in all hierarchies.
pub fn cgroup_dirs(path: &str) -> Vec<PathBuf> {
    let relative = path.trim_start_matches('/');
    hierarchies().into_iter().map(|h| h.join(relative)).filter(|dir| dir.exists()).collect()
}

/// The directory of a cgroup in the hierarchy of a controller (the only one, on v2).
pub fn cgroup_dir(controller: &str, path: &str) -> PathBuf {
    let relative = path.trim_start_matches('/');
    if is_cgroup_v2() {
        return Path::new("/sys/fs/cgroup").join(relative);
    }
    let found = hierarchies()
        .into_iter()
        .find(|h| h.file_name().is_some_and(|n| n.to_string_lossy().split(',').any(|c| c == controller)));
    found.unwrap_or_else(|| panic!("no hierarchy for {controller}")).join(relative)
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

/// A directory of the host that is a shared mount; all that is mounted on and in it is taken off in the end.
#[derive(Debug)]
pub struct SharedMount {
    dir: tempfile::TempDir,
}

impl SharedMount {
    #[allow(clippy::new_without_default, reason = "it mounts")]
    pub fn new() -> Self {
        use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
        let dir = tempfile::Builder::new().prefix("brig-test-").tempdir().unwrap();
        mount_bind(dir.path(), dir.path()).unwrap();
        // A peer group of its own, not that of the mount below.
        mount_change(dir.path(), MountPropagationFlags::PRIVATE).unwrap();
        mount_change(dir.path(), MountPropagationFlags::SHARED).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for SharedMount {
    fn drop(&mut self) {
        // Taken off here, it goes wherever it came by propagation.
        while !mounts_below(self.path()).is_empty() {
            let points: Vec<String> = mounts_below(self.path());
            let last = points.last().and_then(|line| line.split(' ').nth(4)).unwrap();
            rustix::mount::unmount(last, rustix::mount::UnmountFlags::DETACH).unwrap();
        }
    }
}

/// The fields of a mount in a mountinfo, see proc_pid_mountinfo(5).
#[derive(Debug, Clone)]
pub struct MountLine {
    /// `major:minor`.
    pub device: String,
    pub root: String,
    /// Per mount.
    pub options: Vec<String>,
    /// `shared:N`, `master:N` and so on.
    pub propagation: Vec<String>,
    pub fstype: String,
    pub source: String,
    /// Per file system.
    pub fs_options: Vec<String>,
}

impl MountLine {
    /// The uppermost mount at a mount point.
    pub fn find(table: &str, point: &str) -> Option<Self> {
        table.lines().rfind(|line| line.split(' ').nth(4) == Some(point)).map(Self::new)
    }

    fn new(line: &str) -> Self {
        let split = |text: &str| text.split(',').map(str::to_owned).collect();
        let (mount, fs) = line.split_once(" - ").unwrap();
        let mount: Vec<&str> = mount.split(' ').collect();
        let fs: Vec<&str> = fs.split(' ').collect();
        Self {
            device: mount[2].to_owned(),
            root: mount[3].to_owned(),
            options: split(mount[5]),
            propagation: mount[6..].iter().map(|&field| field.to_owned()).collect(),
            fstype: fs[0].to_owned(),
            source: fs[1].to_owned(),
            fs_options: split(fs[2]),
        }
    }

    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }

    /// Whether a propagation field begins like this.
    pub fn is(&self, propagation: &str) -> bool {
        self.propagation.iter().any(|p| p.starts_with(propagation))
    }
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            !matches!(stat.rsplit(')').next().map(|s| s.trim_start().chars().next()), Some(Some('Z' | 'X')))
        }
        Err(_) => false,
    }
}

/// Processes that a condition holds for, but zombies.
pub fn processes(condition: impl Fn(i32) -> bool) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != own && condition(pid) && is_alive(pid))
        .collect()
}

/// Kills a process.
pub fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Thaws, empties and removes a cgroup with what is below it, in all hierarchies.
pub fn remove_cgroups(path: &str) {
    for dir in cgroup_dirs(path) {
        remove_cgroup(&dir);
    }
}

fn remove_cgroup(dir: &Path) {
    let _ = std::fs::write(dir.join("cgroup.freeze"), "0");
    let _ = std::fs::write(dir.join("freezer.state"), "THAWED");
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    for _ in 0..200 {
        let procs = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        for pid in procs.lines().filter_map(|line| line.parse().ok()) {
            kill(pid);
        }
        if std::fs::remove_dir(dir).is_ok() || !dir.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits until a condition holds; it has to, in time.
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    within(30, what, condition);
}

/// As [`eventually`], for what may take this many seconds.
#[track_caller]
pub fn within(seconds: u64, what: &str, mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(seconds), "waited in vain for: {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
