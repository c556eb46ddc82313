//! Bundles with a busybox root file system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Run, caretaker, host, is_other_runtime, runtime};

/// Programs of busybox that tests use.
const APPLETS: &[&str] = &[
    "sh",
    "ash",
    "true",
    "false",
    "cat",
    "ls",
    "id",
    "pwd",
    "env",
    "echo",
    "printf",
    "sleep",
    "mkdir",
    "rmdir",
    "rm",
    "mv",
    "cp",
    "ln",
    "readlink",
    "stat",
    "touch",
    "chmod",
    "chown",
    "mount",
    "umount",
    "mountpoint",
    "ps",
    "kill",
    "killall",
    "grep",
    "sed",
    "awk",
    "head",
    "tail",
    "wc",
    "cut",
    "sort",
    "tr",
    "test",
    "[",
    "nproc",
    "hostname",
    "dd",
    "mknod",
    "tty",
    "stty",
    "ip",
    "ifconfig",
    "df",
    "du",
    "find",
    "xargs",
    "seq",
    "expr",
    "date",
    "usleep",
    "timeout",
    "nohup",
    "setsid",
    "su",
    "dmesg",
    "sysctl",
    "ping",
    "whoami",
    "chroot",
    "unshare",
    "nsenter",
    "dmesg",
    "sync",
    "tee",
    "yes",
    "od",
    "hexdump",
    "top",
    "free",
    "uname",
    "ionice",
    "renice",
    "nice",
    "chrt",
    "taskset",
    "flock",
    "mkfifo",
    "basename",
    "dirname",
    "realpath",
    "ulimit",
    "trap",
];

/// Makes a root file system in a directory.
pub fn rootfs(dir: &Path) {
    for sub in ["bin", "dev", "proc", "sys", "tmp", "etc", "root", "usr/bin", "var"] {
        fs::create_dir_all(dir.join(sub)).unwrap();
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].iter().find(|p| Path::new(p).exists());
    let busybox = busybox.expect("busybox is missing: install busybox-static");
    fs::copy(busybox, dir.join("bin/busybox")).unwrap();
    for applet in APPLETS {
        let _ = symlink("busybox", dir.join("bin").join(applet));
    }
    fs::write(
        dir.join("etc/passwd"),
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n",
    )
    .unwrap();
}

/// A bundle, and the container made of it.
#[derive(Debug)]
pub struct Bundle {
    dir: TempDir,
    /// The container's id.
    pub id: String,
    /// Its configuration; written before each command.
    pub config: Value,
    /// Directory with the records of this test.
    pub root: PathBuf,
}

impl Default for Bundle {
    fn default() -> Self {
        Self::new(&["true"])
    }
}

impl Bundle {
    /// A bundle whose container runs this command.
    pub fn new(args: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = tempfile::Builder::new().prefix("brig-test-").tempdir().unwrap();
        // The container's users must be able to get at their root file system.
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        rootfs(&dir.path().join("rootfs"));
        let root = dir.path().join("state");
        caretaker::tell(&runtime(), &root, &id, dir.path());
        let mut bundle = Self { dir, config: default_config(&id), id, root };
        bundle.args(args);
        bundle
    }

    /// A bundle whose container runs a shell script.
    pub fn sh(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    /// A bundle whose container sleeps until it is killed.
    pub fn sleeping() -> Self {
        Self::new(&["sleep", "1000"])
    }

    pub fn args(&mut self, args: &[&str]) -> &mut Self {
        self.config["process"]["args"] = json!(args);
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn rootfs(&self) -> PathBuf {
        self.dir.path().join("rootfs")
    }

    /// The container's cgroup.
    pub fn cgroup(&self) -> String {
        if host::by_systemd() {
            format!("/brig.slice/brig-test.slice/{}", self.unit())
        } else {
            format!("/brig-test/{}", self.id)
        }
    }

    /// The same as `cgroupsPath` has it.
    pub fn cgroups_path(&self) -> String {
        cgroups_path(&self.id)
    }

    /// The container's unit, where systemd makes the cgroups.
    pub fn unit(&self) -> String {
        format!("brig-{}.scope", self.id.replace('+', "\\x2b"))
    }

    /// The container's cgroup directory for a controller.
    pub fn cgroup_dir(&self, controller: &str) -> PathBuf {
        host::cgroup_dir(controller, &self.cgroup())
    }

    /// Sets a member of `linux.resources`.
    pub fn limit(&mut self, member: &str, value: Value) -> &mut Self {
        self.config["linux"]["resources"][member] = value;
        self
    }

    /// What a file of the container's cgroup says: `v1` in the hierarchy of the controller, or `v2`.
    #[track_caller]
    pub fn limit_file(&self, controller: &str, v1: &str, v2: &str) -> String {
        let file = self.cgroup_dir(controller).join(if host::is_cgroup_v2() { v2 } else { v1 });
        match fs::read_to_string(&file) {
            Ok(text) => text.trim_end().to_owned(),
            Err(e) => panic!("{}: {e}", file.display()),
        }
    }

    /// Leaves a namespace out of the configuration.
    pub fn without_namespace(&mut self, kind: &str) -> &mut Self {
        self.namespaces().retain(|ns| ns["type"] != kind);
        self
    }

    /// Adds a namespace, or changes it to one that is joined.
    pub fn with_namespace(&mut self, kind: &str, path: Option<&str>) -> &mut Self {
        self.without_namespace(kind);
        let mut ns = json!({ "type": kind });
        if let Some(path) = path {
            ns["path"] = json!(path);
        }
        self.namespaces().push(ns);
        self
    }

    fn namespaces(&mut self) -> &mut Vec<Value> {
        self.config["linux"]["namespaces"].as_array_mut().unwrap()
    }

    /// Gives the container a user namespace, whose root is 100000 on the host, and the root file system to it.
    pub fn in_user_namespace(&mut self) -> &mut Self {
        self.with_namespace("user", None);
        let map = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
        self.config["linux"]["uidMappings"] = map.clone();
        self.config["linux"]["gidMappings"] = map;
        let owned = Run::new("chown").args(["-R", "100000:100000"]).arg(self.rootfs());
        owned.ok();
        self
    }

    /// Adds a mount.
    pub fn mount(&mut self, mount: Value) -> &mut Self {
        self.config["mounts"].as_array_mut().unwrap().push(mount);
        self
    }

    /// Writes `config.json`.
    pub fn write_config(&self) {
        fs::write(self.path().join("config.json"), serde_json::to_vec_pretty(&self.config).unwrap()).unwrap();
    }

    /// The runtime with this test's root; the rest of the command line is to be added.
    pub fn runtime(&self) -> Run {
        self.write_config();
        let run = Run::new(runtime()).arg("--root").arg(&self.root);
        if host::by_systemd() { run.arg("--systemd-cgroup") } else { run }
    }

    /// A command on the container; `create` and `run` get the bundle.
    pub fn brig(&self, command: &str) -> Run {
        let run = self.runtime().arg(command);
        if matches!(command, "create" | "run") { run.arg("--bundle").arg(self.path()) } else { run }
    }

    /// `run ID` in the foreground.
    pub fn run(&self) -> Run {
        self.brig("run").arg(&self.id)
    }

    /// Creates the container.
    pub fn create(&self) {
        self.brig("create").arg(&self.id).detached().ok();
    }

    /// Creates and starts the container.
    pub fn start(&self) {
        self.create();
        self.brig("start").arg(&self.id).ok();
    }

    /// `exec ID ARGS…` in the foreground.
    pub fn exec(&self, args: &[&str]) -> Run {
        self.brig("exec").arg(&self.id).args(args)
    }

    /// The `state` of the container.
    pub fn state(&self) -> Value {
        let out = self.brig("state").arg(&self.id).ok().out;
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// Its status.
    pub fn status(&self) -> String {
        self.state()["status"].as_str().unwrap_or_default().to_owned()
    }

    /// The pid of its first process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.state()["pid"].as_i64().unwrap()).unwrap()
    }

    /// Waits until it has a status.
    #[track_caller]
    pub fn wait_status(&self, status: &str) {
        host::eventually(&format!("status {status}"), || self.status() == status);
    }

    /// Deletes it by force.
    pub fn delete(&self) {
        self.brig("delete").args(["--force", &self.id]).ok();
    }

    /// What is there of the container: record, cgroups, mounts, processes.
    pub fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> =
            host::cgroup_dirs(&self.cgroup()).iter().map(|dir| dir.display().to_string()).collect();
        if self.root.join(&self.id).exists() {
            left.push(self.root.join(&self.id).display().to_string());
        }
        if host::by_systemd() && host::unit_file(&self.unit()).exists() {
            left.push(format!("unit {}", self.unit()));
        }
        left.extend(host::mounts_below(self.path()));
        left.extend(self.processes().iter().map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("process {pid}: {}", String::from_utf8_lossy(&words).replace('\0', " "))
        }));
        left
    }

    /// Processes that are in the container's cgroup, or have this bundle on their command line.
    pub fn processes(&self) -> Vec<i32> {
        let dir = self.path().to_string_lossy().into_owned();
        let (own, below) = (self.cgroup(), format!("{}/", self.cgroup()));
        host::processes(|pid| {
            let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            cgroups
                .lines()
                .filter_map(|line| line.splitn(3, ':').nth(2))
                .any(|path| path == own || path.contains(&below))
                || String::from_utf8_lossy(&words).contains(&dir)
        })
    }

    /// Processes in the container's cgroup.
    pub fn members(&self) -> Vec<i32> {
        host::members_of(&self.cgroup())
    }

    /// Expects that nothing is there.
    #[track_caller]
    pub fn assert_gone(&self) {
        assert_eq!(self.leftovers(), Vec::<String>::new());
    }

    /// Removes by hand what the runtime left, so that a test that failed harms no other.
    fn sweep(&mut self) {
        for pid in self.processes() {
            host::kill(pid);
        }
        host::remove_cgroups(&self.cgroup());
        for _ in 0..10 {
            let mounts = host::mounts_below(self.path());
            for point in mounts.iter().rev().filter_map(|line| line.split(' ').nth(4)) {
                let _ = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
            }
        }
        // Deleting the directory would delete what is mounted in it.
        if !host::mounts_below(self.path()).is_empty() {
            self.dir.disable_cleanup(true);
        }
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let force =
            Run::new(runtime()).arg("--root").arg(&self.root).args(["delete", "--force", &self.id]).run();
        // What was told to end needs a moment for it.
        let begun = std::time::Instant::now();
        let mut left = self.leftovers();
        while !left.is_empty() && begun.elapsed() < std::time::Duration::from_secs(2) {
            std::thread::sleep(std::time::Duration::from_millis(5));
            left = self.leftovers();
        }
        if !left.is_empty() {
            self.sweep();
        }
        if std::thread::panicking() {
            return;
        }
        assert!(force.status.success(), "{force}");
        assert!(left.is_empty(), "delete --force left {left:?}");
    }
}

fn cgroups_path(id: &str) -> String {
    if host::by_systemd() { format!("brig-test.slice:brig:{id}") } else { format!("/brig-test/{id}") }
}

/// The default configuration, with names of this test.
fn default_config(id: &str) -> Value {
    let mut config = json!({
        // Old versions of crun take no other.
        "ociVersion": if is_other_runtime() { "1.0.2" } else { "1.2.0" },
        "process": {
            "user": { "uid": 0, "gid": 0 },
            "args": ["true"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"],
            "cwd": "/",
            "capabilities": {
                "bounding": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
                "effective": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
                "permitted": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]
            },
            "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024 }],
            "noNewPrivileges": true
        },
        "root": { "path": "rootfs", "readonly": false },
        "hostname": "brig-test",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"] },
            { "destination": "/dev/pts", "type": "devpts", "source": "devpts",
              "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"] },
            { "destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"] },
            { "destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"] },
            { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"] },
            { "destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev", "relatime", "ro"] }
        ],
        "linux": {
            "cgroupsPath": cgroups_path(id),
            "resources": { "devices": [{ "allow": false, "access": "rwm" }] },
            "namespaces": [{ "type": "pid" }, { "type": "network" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }],
            "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
                "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
        }
    });
    if host::is_cgroup_v2() {
        config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "cgroup" }));
    }
    config
}
