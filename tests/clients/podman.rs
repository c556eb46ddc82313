//! Podman, with conmon between it and the runtime, and Buildah on the same storage.

mod pods;
mod rootless;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use brig_tests::{Pty, Run, host};
use tempfile::TempDir;

use crate::documented::{snippet, with_lines};
use crate::image::{self, show_limit};

/// Who calls Podman.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Root,
    /// The user `tester` of the place.
    Tester,
}

/// A Podman with storage, configuration and a mount namespace (the script `place` beside this file) of its own.
pub struct Podman {
    dir: TempDir,
    place: Child,
    caller: Caller,
    pub cgroup: String,
}

/// uid and gid of `tester`.
const TESTER: u32 = 7100;

impl Podman {
    /// The one that the tests of this process share.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Podman>> = Mutex::new(Weak::new());
        Self::shared_in(&SHARED, Caller::Root, "")
    }

    /// The same for a caller and a kind of place.
    pub fn shared_in(shared: &'static Mutex<Weak<Self>>, caller: Caller, kind: &str) -> Arc<Self> {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(podman) = shared.upgrade() {
            return podman;
        }
        let podman = Arc::new(Self::new(caller, kind));
        *shared = Arc::downgrade(&podman);
        podman
    }

    fn new(caller: Caller, kind: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::Builder::new().prefix("brig-podman-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let mut place = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/place"))
            .arg(dir.path())
            .arg(kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(place.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let cgroup = format!("/brig-test/podman-{}-{number}", std::process::id());
        let podman = Self { dir, place, caller, cgroup };
        assert_eq!(line, "ready\n", "the place was not made, see above");
        podman.configure(kind == "v2");
        let path = "ENV PATH=/usr/bin:/bin";
        let archive = podman.path().join("image.tar");
        let archive = archive.to_str().unwrap();
        podman.podman(&["import", "--change", path, archive, image::NAME]).ok();
        let sleep = "CMD [\"sleep\", \"100000\"]";
        podman.podman(&["import", "--change", path, "--change", sleep, archive, "pause:test"]).ok();
        podman
    }

    fn configure(&self, v2_only: bool) {
        // A host that uses the controllers with cgroup v1 has none for v2.
        let pids_limit = if v2_only && !host::is_cgroup_v2() { "pids_limit = 0" } else { "" };
        let dir = self.path().display();
        // Where everybody may execute it, whoever has built it.
        let runtime = self.path().join("runtime");
        fs::copy(brig_tests::runtime(), &runtime).unwrap();
        // Limits that the host may grant: its own may be below Podman's defaults, without the privilege to raise them.
        let configuration = snippet("Podman and Buildah", "toml", &runtime);
        let engine = format!(
            r#"
infra_image = "localhost/pause:test"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{dir}/xdg/tmp"
static_dir = "{dir}/home/static"
volume_path = "{dir}/home/volumes""#
        );
        let configuration = with_lines(&configuration, "[engine]", &engine);
        let configuration = format!(
            r#"{configuration}
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
{pids_limit}
[network]
network_config_dir = "{dir}/home/networks"
"#
        );
        fs::write(self.path().join("containers.conf"), configuration).unwrap();
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{dir}/home/storage\"\nrunroot = \"{dir}/xdg/run\"\n"
        );
        fs::write(self.path().join("storage.conf"), storage).unwrap();
        fs::write(self.path().join("image.tar"), image::archive()).unwrap();
        for folder in ["home", "xdg"] {
            fs::create_dir(self.path().join(folder)).unwrap();
            if self.caller == Caller::Tester {
                std::os::unix::fs::chown(self.path().join(folder), Some(TESTER), Some(TESTER)).unwrap();
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A program in the place.
    pub fn command(&self, program: &str) -> Run {
        let run = Run::new("nsenter").arg(format!("--mount=/proc/{}/ns/mnt", self.place.id()));
        let run = match self.caller {
            Caller::Root => run,
            Caller::Tester => {
                let id = TESTER.to_string();
                run.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "env", "USER=tester"])
                    .arg(format!("HOME={}/home", self.path().display()))
                    .arg(format!("XDG_RUNTIME_DIR={}/xdg", self.path().display()))
            }
        };
        run.arg(program)
            .env("CONTAINERS_CONF", self.path().join("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.path().join("storage.conf"))
    }

    pub fn podman(&self, args: &[&str]) -> Run {
        self.command("podman").args(args)
    }

    /// `podman COMMAND` with what puts its containers below our cgroup.
    pub fn making(&self, command: &str) -> Run {
        let run = self.podman(&[command]);
        // An ordinary user has no cgroups here.
        if self.caller == Caller::Root { run.args(["--cgroup-parent", &self.cgroup]) } else { run }
    }

    /// `podman run` with these flags, running a shell script.
    pub fn run(&self, flags: &[&str], script: &str) -> Run {
        self.making("run").args(flags).args([image::NAME, "sh", "-c", script])
    }

    /// Mounts of the place below our folder.
    fn mounts(&self) -> Vec<String> {
        let table = fs::read_to_string(format!("/proc/{}/mountinfo", self.place.id())).unwrap();
        let dir = self.path().to_str().unwrap();
        let point = |line: &&str| line.split(' ').nth(4).is_some_and(|point| point.starts_with(dir));
        table.lines().filter(point).map(str::to_owned).collect()
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let pods = self.podman(&["pod", "rm", "--force", "--all", "--time=0"]).run();
        let removed = self.podman(&["rm", "--force", "--all", "--time=0"]).run();
        let mounts = self.mounts();
        let _ = self.podman(&["system", "reset", "--force"]).run();
        // What keeps the user namespace of an ordinary user's containers.
        let pause = fs::read_to_string(self.path().join("xdg/tmp/pause.pid")).unwrap_or_default();
        if let Ok(pid) = pause.trim().parse() {
            host::kill(pid);
        }
        // conmon's are never removed, nor is the parent of pods that were not given one.
        let conmon = format!("{}/conmon", self.cgroup);
        for path in [&conmon, &self.cgroup, "/libpod_parent"] {
            host::cgroup_dirs(path).iter().for_each(|dir| drop(fs::remove_dir(dir)));
        }
        drop(self.place.stdin.take());
        let _ = self.place.wait();
        if !std::thread::panicking() {
            assert!(pods.status.success(), "{pods}");
            assert!(removed.status.success(), "{removed}");
            assert_eq!(mounts, Vec::<String>::new());
        }
    }
}

/// A container in the background. Removed when dropped.
pub struct Container {
    podman: Arc<Podman>,
    pub name: String,
}

impl Container {
    fn new(flags: &[&str], script: &str) -> Self {
        Self::of(Podman::shared(), flags, script)
    }

    pub fn of(podman: Arc<Podman>, flags: &[&str], script: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let container = Self { podman, name: format!("c{}", COUNT.fetch_add(1, Ordering::Relaxed)) };
        let flags = [&["--detach", "--name", &container.name], flags].concat();
        // What conmon inherits would keep a pipe open.
        container.podman.run(&flags, script).detached().ok();
        container
    }

    pub fn podman(&self, command: &str, flags: &[&str]) -> Run {
        self.podman.podman(&[command]).args(flags).arg(&self.name)
    }

    pub fn exec(&self, script: &str) -> Run {
        self.podman("exec", &[]).args(["sh", "-c", script])
    }

    pub fn inspect(&self, what: &str) -> String {
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
    let run = |program: &str| podman.making("run").args(["--rm", image::NAME, program]).run();
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
        let runtime = podman.path().join("runtime").to_str().unwrap().to_owned();
        buildah(&["run", "--isolation=oci", "--runtime", &runtime]).args(args)
    };
    run(&[name, "sh", "-c", "echo hello; exit 5"]).run().exits(5).says("hello");
    run(&["--tty", name, "tty"]).ok().says("/dev/pts/0");
    run(&[name, "nosuch"]).fails().says("executable file not found in $PATH");
    run(&[name, "touch", "/made"]).ok();
    let mounted = buildah(&["mount", name]).ok();
    podman.command("ls").arg(Path::new(mounted.line()).join("made")).ok();
    buildah(&["umount", name]).ok();
    buildah(&["rm", name]).ok();
    assert_eq!(host::cgroup_dirs(&cgroup), Vec::<PathBuf>::new());
}

/// As a build does it: many commands after each other in one container, no console, and as many at once in others.
#[test]
fn buildah_runs_many_commands() {
    let podman = Podman::shared();
    let runtime = podman.path().join("runtime");
    let buildah = |args: &[&str]| podman.command("buildah").args(args);
    let names: Vec<String> = (0..2)
        .map(|n| {
            let cgroup = format!("{}-many-{n}", podman.cgroup);
            let from = buildah(&["from", "--network=none", "--cgroup-parent", &cgroup, image::NAME]).ok();
            from.line().to_owned()
        })
        .collect();
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| {
                for n in 0..10 {
                    let run = buildah(&["run", "--isolation=oci", "--runtime"]).arg(&runtime);
                    run.args([name.as_str(), "sh", "-c", &format!("echo {n} >> /numbers; exit {n}")])
                        .run()
                        .exits(n);
                }
            });
        }
    });
    for name in &names {
        let run = buildah(&["run", "--isolation=oci", "--runtime"]).arg(&runtime);
        assert_eq!(run.args([name.as_str(), "wc", "-l", "/numbers"]).ok().line(), "10 /numbers");
        buildah(&["rm", name]).ok();
    }
    for n in 0..2 {
        assert_eq!(host::cgroup_dirs(&format!("{}-many-{n}", podman.cgroup)), Vec::<PathBuf>::new());
    }
}

/// conmon finds the process by its pid file and waits for it.
#[test]
fn every_exec_has_its_own_exit_status() {
    let container = Container::new(&[], "while sleep 0.1; do :; done");
    for round in 0..5 {
        let runs: Vec<_> = (0..8).map(|n| container.exec(&format!("exit {}", round + n)).spawn()).collect();
        for (n, run) in (0..).zip(runs) {
            run.finish().exits(round + n);
        }
    }
}

#[test]
fn ids_are_mapped() {
    let podman = Podman::shared();
    let script = "id -u; cat /proc/self/uid_map; touch /file && stat -c %u /file; hostname";
    let auto = podman.run(&["--rm", "--userns=auto:size=3000"], script).ok();
    let map: Vec<&str> = auto.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((map[0], map[2]), ("0", "3000"), "{auto}");
    assert!(map[1].parse::<u32>().unwrap() >= 400_000, "{auto}");
    assert_eq!(auto.out.lines().nth(2), Some("0"));
    let other = Container::new(&["--userns=auto:size=2000"], "sleep 1000");
    assert!(other.exec("cat /proc/self/uid_map").ok().out.trim_end().ends_with("2000"));
    let joined = format!("--userns=container:{}", other.name);
    let map = podman.run(&["--rm", &joined], "cat /proc/self/uid_map").ok();
    assert_eq!(map.out, other.exec("cat /proc/self/uid_map").ok().out);
    let own = podman.run(&["--rm", "--uidmap=0:410000:1000", "--gidmap=0:410000:1000"], script).ok();
    assert_eq!(
        own.out.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["0", "410000", "1000"]
    );
}

/// What `--systemd=always` prepares for an init system.
#[test]
fn an_init_system_finds_what_it_needs() {
    let podman = Podman::shared();
    let script = "touch /run/a /run/lock/a /tmp/a && grep -E ' /run | /tmp ' /proc/mounts; echo $container; kill -37 $$; sleep 5";
    podman
        .run(&["--rm", "--systemd=always"], &format!("trap 'echo told; exit 3' 37; {script}"))
        .run()
        .exits(3)
        .says("tmpfs /run ")
        .says("tmpfs /tmp ")
        .says("podman")
        .says("told");
}

#[test]
fn namespaces_of_the_host() {
    let podman = Podman::shared();
    for (flag, kind) in [
        ("--pid=host", "pid"),
        ("--network=host", "net"),
        ("--ipc=host", "ipc"),
        ("--uts=host", "uts"),
        ("--cgroupns=host", "cgroup"),
    ] {
        let link = format!("/proc/self/ns/{kind}");
        let inside = podman.run(&["--rm", flag], &format!("readlink {link}")).ok();
        assert_eq!(inside.line(), fs::read_link(&link).unwrap().to_string_lossy(), "{flag}");
    }
}

#[test]
fn rm_force_of_everything_leaves_nothing() {
    static OWN: Mutex<Weak<Podman>> = Mutex::new(Weak::new());
    let podman = Podman::shared_in(&OWN, Caller::Root, "");
    let one = Container::of(Arc::clone(&podman), &["--pid=host"], "trap '' TERM; sleep 982 & sleep 1000");
    let paused = Container::of(Arc::clone(&podman), &[], "sleep 1000");
    paused.podman("pause", &[]).ok();
    podman.making("create").args(["--name=waiting", image::NAME, "true"]).ok();
    let pids: Vec<i32> = [&one, &paused]
        .iter()
        .map(|container| container.inspect("{{.State.Pid}}").parse().unwrap())
        .collect();
    podman.podman(&["rm", "--force", "--all", "--time=0"]).ok();
    assert_eq!(podman.podman(&["ps", "--all", "--quiet"]).ok().out, "");
    host::eventually("the end of all processes", || !pids.iter().any(|&pid| host::is_alive(pid)));
    host::eventually("the end of all cgroups", || {
        host::cgroup_dirs(&podman.cgroup).iter().all(|dir| {
            let below = fs::read_dir(dir).unwrap().flatten();
            below.filter(|entry| entry.file_name().to_string_lossy().starts_with("libpod-")).count() == 0
        })
    });
}
