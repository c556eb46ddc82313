//! Podman, with conmon between it and the runtime, and Buildah on the same storage.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use brig_tests::{Pty, Run, host};
use tempfile::TempDir;

use crate::image::{self, exists, show_limit};

/// Storage and configuration of its own.
struct Podman {
    dir: TempDir,
    cgroup: String,
    /// What `/sys/fs/cgroup` had at the beginning.
    hierarchies: Vec<PathBuf>,
}

impl Podman {
    /// The one that the tests of this process share.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Podman>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(podman) = shared.upgrade() {
            return podman;
        }
        let podman = Arc::new(Self::new());
        *shared = Arc::downgrade(&podman);
        podman
    }

    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let podman = Self {
            dir: tempfile::Builder::new().prefix("brig-podman-").tempdir().unwrap(),
            cgroup: format!("/brig-test/podman-{}-{number}", std::process::id()),
            hierarchies: in_cgroup_root(),
        };
        let dir = podman.dir.path().display();
        let runtime = brig_tests::runtime();
        // Limits that the host may grant: its own may be below Podman's defaults, without the privilege to raise them.
        let configuration = format!(
            r#"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
runtime = "tested"
runtime_supports_json = ["brig", "runc", "crun"]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{dir}/tmp"
static_dir = "{dir}/static"
volume_path = "{dir}/volumes"
[engine.runtimes]
tested = ["{}"]
[network]
network_config_dir = "{dir}/networks"
"#,
            runtime.display()
        );
        fs::write(podman.dir.path().join("containers.conf"), configuration).unwrap();
        let storage =
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{dir}/storage\"\nrunroot = \"{dir}/run\"\n");
        fs::write(podman.dir.path().join("storage.conf"), storage).unwrap();
        let archive = podman.dir.path().join("image.tar");
        fs::write(&archive, image::archive()).unwrap();
        podman.podman(&["import", archive.to_str().unwrap(), image::NAME]).ok();
        podman
    }

    fn command(&self, program: &str) -> Run {
        let dir = self.dir.path();
        Run::new(program)
            .env("CONTAINERS_CONF", dir.join("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", dir.join("storage.conf"))
    }

    fn podman(&self, args: &[&str]) -> Run {
        self.command("podman").args(args)
    }

    /// `podman run` with these flags, running a shell script.
    fn run(&self, flags: &[&str], script: &str) -> Run {
        self.podman(&["run", "--cgroup-parent", &self.cgroup]).args(flags).args([
            image::NAME,
            "sh",
            "-c",
            script,
        ])
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let removed = self.podman(&["rm", "--force", "--all", "--time=0"]).run();
        let _ = self.podman(&["system", "reset", "--force"]).run();
        // conmon's are never removed.
        let conmon = format!("{}/conmon", self.cgroup);
        for path in [&conmon, &self.cgroup] {
            host::cgroup_dirs(path).iter().for_each(|dir| drop(fs::remove_dir(dir)));
        }
        // Where a controller of cgroup v1 is not mounted, Podman makes a plain directory in place of the hierarchy.
        let root = device(Path::new("/sys/fs/cgroup"));
        for made in in_cgroup_root().iter().filter(|path| !self.hierarchies.contains(path)) {
            if device(made) == root && !host::is_cgroup_v2() {
                let _ = fs::remove_dir_all(made);
            }
        }
        if !std::thread::panicking() {
            assert!(removed.status.success(), "{removed}");
            assert_eq!(host::mounts_below(self.dir.path()), Vec::<String>::new());
        }
    }
}

fn in_cgroup_root() -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/fs/cgroup").unwrap();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|about| about.dev())
}

/// A container in the background. Removed when dropped.
struct Container {
    podman: Arc<Podman>,
    name: String,
}

impl Container {
    fn new(flags: &[&str], script: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let container =
            Self { podman: Podman::shared(), name: format!("c{}", COUNT.fetch_add(1, Ordering::Relaxed)) };
        let flags = [&["--detach", "--name", &container.name], flags].concat();
        // What conmon inherits would keep a pipe open.
        container.podman.run(&flags, script).detached().ok();
        container
    }

    fn podman(&self, command: &str, flags: &[&str]) -> Run {
        self.podman.podman(&[command]).args(flags).arg(&self.name)
    }

    fn exec(&self, script: &str) -> Run {
        self.podman("exec", &[]).args(["sh", "-c", script])
    }

    fn inspect(&self, what: &str) -> String {
        self.podman("inspect", &["--format", what]).ok().line().to_owned()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.podman("rm", &["--force", "--time=0"]).run();
    }
}

#[test]
fn run_passes_output_and_exit_status() {
    let podman = Podman::shared();
    podman.run(&["--rm"], "echo hello; exit 7").run().exits(7).says("hello");
    let wc = podman.run(&["--rm", "--interactive"], "wc -c").input("x".repeat(100_000)).ok();
    assert_eq!(wc.line(), "100000");
}

/// Podman reads the runtime's error record and makes its exit status from it.
#[test]
fn what_cannot_be_executed_is_126_or_127() {
    let podman = Podman::shared();
    let run = |program: &str| {
        podman.podman(&["run", "--rm", "--cgroup-parent", &podman.cgroup, image::NAME, program]).run()
    };
    run("nosuch").exits(127).says("exec: \"nosuch\": executable file not found in $PATH");
    run("/etc/passwd").exits(126).says("exec: \"/etc/passwd\": permission denied");
}

#[test]
fn limits_are_those_of_the_cgroup() {
    let podman = Podman::shared();
    let limit = |controller: &str, flag: &str, v1: &str, v2: &str, value: &str| {
        if host::has_controller(controller) {
            let shown = podman.run(&["--rm", flag], &show_limit(&format!("{controller}/{v1}"), v2)).ok();
            assert_eq!(shown.line(), value, "{flag}");
        }
    };
    limit("memory", "--memory=64m", "memory.limit_in_bytes", "memory.max", "67108864");
    limit("pids", "--pids-limit=40", "pids.max", "pids.max", "40");
    let quota = if host::is_cgroup_v2() { "50000 100000" } else { "50000" };
    limit("cpu", "--cpus=0.5", "cpu.cfs_quota_us", "cpu.max", quota);
}

#[test]
fn a_terminal_is_one() {
    let podman = Podman::shared();
    let mut pty = Pty::new();
    let run = podman
        .run(&["--rm", "--interactive", "--tty"], "tty; echo rea''dy; read line; echo got $line; exit 4");
    let run = run.stdin(pty.slave()).stdout(pty.slave()).with(|command| {
        command.stderr(pty.slave());
    });
    let run = run.spawn();
    pty.expect("ready");
    assert!(pty.seen.contains("/dev/pts/0"), "{:?}", pty.seen);
    pty.write("it\n");
    pty.expect("got it");
    run.finish().exits(4);
}

#[test]
fn volumes_are_shared_with_the_host() {
    let podman = Podman::shared();
    let dir = tempfile::tempdir().unwrap();
    let volume = format!("--volume={}:/data", dir.path().display());
    podman.run(&["--rm", &volume], "echo from the container > /data/out").ok();
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "from the container\n");
}

#[test]
fn a_container_lives_and_dies() {
    let container =
        Container::new(&["--health-cmd=test -e /well"], "trap 'exit 3' TERM; while sleep 0.1; do :; done");
    container.exec("echo inside; exit 9").run().exits(9).says("inside");
    container.podman("exec", &["--tty"]).args(["tty"]).ok().says("/dev/pts/0");
    container.podman("top", &[]).ok().says("PID");
    container.podman("stats", &["--no-stream"]).ok().says(&container.name);
    container.podman("pause", &[]).ok();
    assert_eq!(container.inspect("{{.State.Status}}"), "paused");
    container.podman("unpause", &[]).ok();
    container.podman("healthcheck", &["run"]).fails();
    container.exec("touch /well").ok();
    container.podman("healthcheck", &["run"]).ok();
    container.podman("stop", &[]).ok();
    assert_eq!(container.inspect("{{.State.ExitCode}}"), "3");
    container.podman("start", &[]).detached().ok();
    container.podman("kill", &[]).ok();
    assert_eq!(container.podman("wait", &[]).ok().line(), "137");
}

#[test]
fn rm_force_leaves_nothing() {
    let container =
        Container::new(&["--tmpfs=/tmp"], "trap '' TERM; sleep 993 & while true; do sleep 1; done");
    let pid: i32 = container.inspect("{{.State.Pid}}").parse().unwrap();
    let conmon: i32 = container.inspect("{{.State.ConmonPid}}").parse().unwrap();
    let cgroup = format!("{}/libpod-{}", container.podman.cgroup, container.inspect("{{.Id}}"));
    assert!(!host::cgroup_dirs(&cgroup).is_empty());
    container.podman("rm", &["--force", "--time=0"]).ok();
    host::eventually("an end without a trace", || {
        !host::is_alive(pid) && !host::is_alive(conmon) && host::cgroup_dirs(&cgroup).is_empty()
    });
}

#[test]
fn namespaces_can_be_those_of_others() {
    let other = Container::new(&[], "sleep 1000");
    let inside = other.exec("readlink /proc/self/ns/pid").ok();
    let flag = format!("--pid=container:{}", other.name);
    let joined = other.podman.run(&["--rm", &flag], "readlink /proc/self/ns/pid").ok();
    assert_eq!(joined.line(), inside.line());
}

#[test]
fn images_are_built() {
    let podman = Podman::shared();
    let dir = tempfile::tempdir().unwrap();
    let recipe = format!("FROM {}\nRUN echo built > /made\nCMD cat /made\n", image::NAME);
    fs::write(dir.path().join("Dockerfile"), recipe).unwrap();
    // Buildah puts the container right into the cgroup that it is given.
    let cgroup = format!("{}-build", podman.cgroup);
    let build = ["build", "--network=none", "--cgroup-parent", &cgroup, "--tag=built:test"];
    podman.podman(&build).arg(dir.path()).ok();
    podman.podman(&["run", "--rm", "--cgroup-parent", &podman.cgroup, "built:test"]).ok().says("built");
    assert_eq!(host::cgroup_dirs(&cgroup), Vec::<PathBuf>::new());
}

#[test]
fn buildah_runs_commands() {
    let podman = Podman::shared();
    let cgroup = format!("{}-buildah", podman.cgroup);
    let buildah = |args: &[&str]| podman.command("buildah").args(args);
    let from = buildah(&["from", "--network=none", "--cgroup-parent", &cgroup, image::NAME]).ok();
    let name = from.line();
    let run = |args: &[&str]| {
        let runtime = brig_tests::runtime();
        let runtime = runtime.to_str().unwrap().to_owned();
        buildah(&["run", "--isolation=oci", "--runtime", &runtime]).args(args)
    };
    run(&[name, "sh", "-c", "echo hello; exit 5"]).run().exits(5).says("hello");
    run(&["--tty", name, "tty"]).ok().says("/dev/pts/0");
    run(&[name, "nosuch"]).fails().says("executable file not found in $PATH");
    run(&[name, "touch", "/made"]).ok();
    let mounted = buildah(&["mount", name]).ok();
    assert!(exists(Path::new(mounted.line()).join("made")));
    buildah(&["umount", name]).ok();
    buildah(&["rm", name]).ok();
    assert_eq!(host::cgroup_dirs(&cgroup), Vec::<PathBuf>::new());
}
