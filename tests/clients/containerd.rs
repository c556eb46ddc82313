//! containerd, by its own client `ctr`. The runtime is given as BinaryName to the shim.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};

use brig_tests::{Pty, Run, host};

use crate::engine::{Engine, shims};
use crate::image;

const IMAGE: &str = "docker.io/library/busybox:test";

/// A container of the `test` namespace. Deleted when dropped.
struct Task {
    engine: Arc<Engine>,
    id: String,
}

impl Task {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        static IMPORT: Once = Once::new();
        let engine = Engine::shared();
        IMPORT.call_once_force(|_| {
            let archive = engine.path().join("image.tar");
            let archive = archive.to_str().unwrap();
            engine.docker(&["save", "--output", archive, image::NAME]).ok();
            engine.ctr(&["images", "import", "--snapshotter", "native", archive]).ok();
        });
        let id = format!("task{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Self { engine, id }
    }

    fn cgroup(&self) -> String {
        format!("{}/{}", self.engine.cgroup(), self.id)
    }

    fn record(&self) -> PathBuf {
        self.engine.path().join("runc/test").join(&self.id)
    }

    /// `ctr run` with these flags, running a shell script.
    fn run(&self, flags: &[&str], script: &str) -> Run {
        self.engine
            .ctr(&["run", "--snapshotter", "native"])
            .arg("--runc-binary")
            .arg(brig_tests::runtime())
            .arg("--runc-root")
            .arg(self.engine.path().join("runc"))
            .arg("--fifo-dir")
            .arg(self.engine.path().join("fifo"))
            .args(["--cgroup", &self.cgroup()])
            .args(flags)
            .args([IMAGE, &self.id, "sh", "-c", script])
    }

    /// `ctr tasks COMMAND` with more words.
    fn task(&self, command: &str, words: &[&str]) -> Run {
        self.engine.ctr(&["tasks", command]).args(words)
    }

    fn exec(&self, script: &str) -> Run {
        self.task("exec", &["--exec-id", "e", "--fifo-dir"])
            .arg(self.engine.path().join("fifo"))
            .args([&self.id, "sh", "-c", script])
    }

    fn status(&self) -> String {
        let list = self.task("list", &[]).ok().out;
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(&self.id));
        line.and_then(|line| line.split_whitespace().last()).unwrap_or("GONE").to_owned()
    }

    #[track_caller]
    fn assert_gone(&self) {
        host::eventually("an end without a trace", || {
            shims(&self.id).is_empty()
                && host::cgroup_dirs(&self.cgroup()).is_empty()
                && !image::exists(self.record())
        });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.task("delete", &["--force", &self.id]).run();
        let _ = self.engine.ctr(&["containers", "delete", &self.id]).run();
    }
}

#[test]
fn run_passes_output_and_exit_status() {
    let task = Task::new();
    task.run(&["--rm", "--env", "A=b"], "echo $A; exit 7").run().exits(7).says("b");
    task.assert_gone();
}

#[test]
fn run_says_what_it_cannot_execute() {
    let task = Task::new();
    task.engine
        .ctr(&["run", "--rm", "--snapshotter", "native", "--runc-binary"])
        .arg(brig_tests::runtime())
        .args(["--cgroup", &task.cgroup(), IMAGE, &task.id, "nosuch"])
        .fails()
        .says("exec: \"nosuch\": executable file not found in $PATH");
    task.assert_gone();
}

#[test]
fn a_terminal_is_one() {
    let task = Task::new();
    let mut pty = Pty::new();
    let run = task.run(&["--rm", "--tty"], "tty; echo rea''dy; read line; echo got $line; exit 4");
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
fn a_task_lives_and_dies() {
    let task = Task::new();
    let limit = if host::has_controller("memory") { "67108864" } else { "0" };
    task.run(&["--detach", "--memory-limit", limit], "trap 'exit 3' TERM; while sleep 0.1; do :; done")
        .detached()
        .ok();
    assert_eq!(task.status(), "RUNNING");
    task.exec("echo inside; exit 9").run().exits(9).says("inside");
    task.task("ps", &[&task.id]).ok().says("PID");
    task.task("metrics", &[&task.id]).ok().says("memory");
    if host::has_controller("memory") {
        let file = if host::is_cgroup_v2() { "memory.max" } else { "memory.limit_in_bytes" };
        let file = host::cgroup_dir("memory", &task.cgroup()).join(file);
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), limit);
    }
    task.task("pause", &[&task.id]).ok();
    assert_eq!(task.status(), "PAUSED");
    task.task("resume", &[&task.id]).ok();
    assert_eq!(task.status(), "RUNNING");
    task.task("kill", &["--signal", "SIGTERM", &task.id]).ok();
    host::eventually("the end", || task.status() == "STOPPED");
    // Versions differ in whether they give it as their own.
    let deleted = task.task("delete", &[&task.id]).run();
    assert!(deleted.code() == 3 || deleted.both().contains("exit code 3"), "{deleted}");
    task.assert_gone();
}

/// containerd then has the runtime delete the container.
#[test]
fn a_killed_shim_leaves_nothing() {
    let task = Task::new();
    task.run(&["--detach"], "sleep 995 & exec sleep 994").detached().ok();
    let pids = host::cgroup_dirs(&task.cgroup());
    let pids = std::fs::read_to_string(pids.first().unwrap().join("cgroup.procs")).unwrap();
    let pids: Vec<i32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(!pids.is_empty());
    for shim in shims(&task.id) {
        let pid = rustix::process::Pid::from_raw(shim.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    task.assert_gone();
    host::eventually("the end of all processes", || pids.iter().all(|pid| !host::is_alive(*pid)));
}
