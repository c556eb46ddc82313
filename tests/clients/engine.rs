//! The private Docker Engine (the script `engine` beside this file), and containers in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use brig_tests::{Run, Value, host};
use tempfile::TempDir;

use crate::documented::{snippet, with_lines};
use crate::image;

/// A running engine. Ends with the last test that uses it, or with this process, however that ends.
pub struct Engine {
    dir: TempDir,
    cgroup: String,
    script: Child,
    answers: Mutex<BufReader<ChildStdout>>,
}

impl Engine {
    /// The engine that the tests of this process share.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Engine>> = Mutex::new(Weak::new());
        // A test that failed to start the engine must not be in the way of the next one's try.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = shared.upgrade() {
            return engine;
        }
        let engine = Arc::new(Self::start(""));
        *shared = Arc::downgrade(&engine);
        engine
    }

    /// An engine of its own, of a kind that the script knows.
    pub fn of_kind(kind: &str) -> Arc<Self> {
        Arc::new(Self::start(kind))
    }

    fn start(kind: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::Builder::new().prefix("brig-docker-").tempdir().unwrap();
        // The root of a user namespace has to come through.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        documented_configuration(dir.path(), kind);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let cgroup = format!("/brig-test/docker-{}-{number}", std::process::id());
        let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/engine"))
            .arg(dir.path())
            .arg(brig_tests::runtime())
            .args([cgroup.as_str(), kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not to be ended by the keyboard, but to clean up when this process is.
            .process_group(0)
            .spawn()
            .unwrap();
        let answers = Mutex::new(BufReader::new(script.stdout.take().unwrap()));
        let engine = Self { dir, cgroup, script, answers };
        assert_eq!(engine.answer(), "ready", "the engine has not started, see above");
        engine.docker(&["import", "-", image::NAME]).input(image::archive()).ok();
        engine
    }

    fn answer(&self) -> String {
        let mut line = String::new();
        self.answers.lock().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Has the script kill or start a daemon.
    #[track_caller]
    pub fn tell(&self, command: &str, answer: &str) {
        writeln!(self.script.stdin.as_ref().unwrap(), "{command}").unwrap();
        assert_eq!(self.answer(), answer, "{command}");
    }

    /// A docker command.
    pub fn docker(&self, args: &[&str]) -> Run {
        let client = ["/usr/bin/docker", "docker"]
            .into_iter()
            .find(|path| image::exists(path) || !path.starts_with('/'));
        Run::new(client.unwrap())
            .env("DOCKER_CONFIG", self.dir.path())
            .env("DOCKER_BUILDKIT", "0")
            .arg("--host")
            .arg(format!("unix://{}/docker.sock", self.dir.path().display()))
            .args(args)
    }

    /// A command of containerd's own client.
    pub fn ctr(&self, args: &[&str]) -> Run {
        Run::new("ctr")
            .arg("--address")
            .arg(self.path().join("containerd.sock"))
            .args(["--namespace", "test"])
            .args(args)
    }

    /// The path that all cgroups of the engine's containers are below.
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// `docker run --rm` with more words, of which `IMAGE` stands for the image.
    pub fn run(&self, args: &[&str]) -> Run {
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "IMAGE" { image::NAME } else { *arg }).collect();
        self.docker(&["run", "--rm"]).args(args)
    }

    /// A container in the background, with these flags, running a shell script.
    pub fn container(self: &Arc<Self>, flags: &[&str], script: &str) -> Container {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("c{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let container = Container { engine: Arc::clone(self), name };
        self.docker(&["run", "--detach", "--name", &container.name])
            .args(flags)
            .args([image::NAME, "sh", "-c", script])
            .ok();
        container
    }

    /// Files of the engine.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// What the script takes from `docs/install.md`.
fn documented_configuration(dir: &Path, kind: &str) {
    let snippet = |chapter, language| snippet(chapter, language, &brig_tests::runtime());
    match kind {
        "documented" => std::fs::write(dir.join("daemon.json"), snippet("Docker", "json")).unwrap(),
        "cri" => {
            const PLUGIN: &str = "[plugins.\"io.containerd.grpc.v1.cri\".containerd";
            let toml = snippet("containerd", "toml").replace("version = 2\n", "");
            let toml = with_lines(&toml, &format!("{PLUGIN}]"), "snapshotter = \"native\"");
            let root = format!("Root = \"{}/runc\"", dir.display());
            let toml = with_lines(&toml, &format!("{PLUGIN}.runtimes.brig.options]"), &root);
            std::fs::write(dir.join("runtime.toml"), toml).unwrap();
        }
        _ => {}
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.script.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(120) {
                let _ = self.script.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        let _ = self.answers.get_mut().unwrap_or_else(PoisonError::into_inner).read_to_string(&mut said);
        if !std::thread::panicking() {
            assert!(status.success(), "the engine ended with {status}: {said}");
        }
    }
}

/// A container. Removed when dropped, and it must leave nothing.
pub struct Container {
    pub engine: Arc<Engine>,
    pub name: String,
}

impl Container {
    /// A docker command on it: its name follows the flags.
    pub fn docker(&self, command: &str, flags: &[&str]) -> Run {
        self.engine.docker(&[command]).args(flags).arg(&self.name)
    }

    /// `docker exec`.
    pub fn exec(&self, args: &[&str]) -> Run {
        self.docker("exec", &[]).args(args)
    }

    /// `docker exec` of a shell script that succeeds; what it prints.
    pub fn sh(&self, script: &str) -> String {
        self.exec(&["sh", "-c", script]).ok().line().to_owned()
    }

    /// What `docker inspect` says of it.
    pub fn inspect(&self) -> Value {
        let out = self.docker("inspect", &[]).ok().out;
        let mut list: Value = serde_json::from_str(&out).unwrap();
        list[0].take()
    }

    /// What `docker inspect` says of its state.
    pub fn state(&self, member: &str) -> Value {
        self.inspect()["State"][member].take()
    }

    /// Waits until its log has a text.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        host::eventually(&format!("{text:?} in the log"), || {
            self.docker("logs", &[]).run().both().contains(text)
        });
    }

    /// All traces of it on the host, to look at after its end.
    pub fn traces(&self) -> Traces {
        let about = self.inspect();
        let path = |value: &Value| value.as_str().filter(|path| !path.is_empty()).map(PathBuf::from);
        Traces {
            id: about["Id"].as_str().unwrap().to_owned(),
            cgroup: format!("{}/{}", self.engine.cgroup, about["Id"].as_str().unwrap()),
            pid: i32::try_from(about["State"]["Pid"].as_i64().unwrap()).unwrap(),
            engine: self.engine.path().to_owned(),
            mounts: [&about["GraphDriver"]["Data"]["MergedDir"], &about["NetworkSettings"]["SandboxKey"]]
                .into_iter()
                .filter_map(path)
                .collect(),
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let removed = self.docker("rm", &["--force", "--volumes"]).run();
        if !std::thread::panicking() {
            assert!(removed.status.success() || removed.both().contains("No such container"), "{removed}");
        }
    }
}

/// Where a container was, on the host.
#[derive(Debug)]
pub struct Traces {
    pub id: String,
    pub cgroup: String,
    pub pid: i32,
    engine: PathBuf,
    mounts: Vec<PathBuf>,
}

impl Traces {
    /// What is left of it.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> =
            host::cgroup_dirs(&self.cgroup).iter().map(|dir| dir.display().to_string()).collect();
        if self.pid != 0 && host::is_alive(self.pid) {
            left.push(format!("process {}", self.pid));
        }
        left.extend(shims(&self.id).iter().map(|pid| format!("shim {pid}")));
        for place in ["exec", "containerd-state"] {
            left.extend(
                named(&self.engine.join(place), &self.id, 4).iter().map(|path| path.display().to_string()),
            );
        }
        left.extend(self.mounts.iter().flat_map(|path| host::mounts_below(path)));
        left
    }

    /// Expects that nothing is left, soon: a shim ends a moment after it has answered.
    #[track_caller]
    pub fn assert_gone(&self) {
        let begun = Instant::now();
        let mut left = self.left();
        while !left.is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
            left = self.left();
        }
        assert_eq!(left, Vec::<String>::new());
    }
}

/// Shims of a container.
pub fn shims(id: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let command_line = |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|pid| pid.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|pid| {
            let line = String::from_utf8_lossy(&command_line(pid)).into_owned();
            line.contains("containerd-shim") && line.contains(id)
        })
        .collect()
}

/// Files and folders of this name below a folder, so many levels down.
fn named(dir: &Path, name: &str, levels: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy() == name {
            found.push(entry.path());
        } else if levels > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(named(&entry.path(), name, levels - 1));
        }
    }
    found
}
