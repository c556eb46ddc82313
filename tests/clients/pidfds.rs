//! The manager in `manager.rs`: 200 containers and 200 processes in them at the same time, by pidfds alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brig_tests::{Bundle, Run, host, is_other_runtime, json, note, runtime};

/// So many of either, unless `CONTAINERS` says otherwise.
const CONTAINERS: usize = 200;

/// How a container ends when the manager has it ended, after the process that joined it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// With a status, by itself.
    Ends,
    /// With a status, while what it started and lost (by a double fork) goes on.
    LeavesOrphans,
    /// The same where no pid namespace ends what it leaves.
    LeavesOrphansOnTheHost,
    /// By SIGKILL.
    IsKilled,
}

struct Scene {
    /// Its root file system serves all, and its folder has all that is made here.
    bundle: Bundle,
    containers: Vec<String>,
    jobs: String,
    expected: BTreeMap<String, String>,
}

impl Scene {
    fn new(count: usize) -> Self {
        let bundle = Bundle::default();
        fs::create_dir(bundle.rootfs().join("gates")).unwrap();
        let mut scene =
            Self { bundle, containers: Vec::new(), jobs: String::new(), expected: BTreeMap::new() };
        for number in 0..count {
            scene.container(number);
        }
        scene
    }

    /// A container, and a process that joins it once it is ready, which a fifo tells.
    fn container(&mut self, number: usize) {
        let kind = match number % 4 {
            0 => Kind::Ends,
            1 => Kind::LeavesOrphans,
            2 => Kind::LeavesOrphansOnTheHost,
            _ => Kind::IsKilled,
        };
        let id = format!("{}-{number}", self.bundle.id);
        let status = number % 120;
        let orphans = if kind == Kind::Ends { "" } else { "(sh -c 'sleep 1000 & sleep 1000 &' &)" };
        let ready = format!("trap 'exit {status}' USR1; echo >/gates/{number}");
        let script = format!("{ready}; {orphans}\nsleep 1000 & while :; do wait $!; done");
        Run::new("mkfifo").arg(self.bundle.rootfs().join(format!("gates/{number}"))).ok();
        self.write_bundle(&id, &script, kind);
        let (signal, ended) = if kind == Kind::IsKilled { (9, 137) } else { (10, status) };
        writeln!(self.jobs, "run {id} {} {signal}", self.folder(&id).display()).unwrap();
        self.expected.insert(id.clone(), ended.to_string());
        // One in three of those that join leaves something behind, too, and one in three is ended by a signal.
        let (end, status) = match number % 3 {
            0 => (format!("exit {}", 199 - status), 199 - status),
            1 => (format!("(sleep 1000 &); exit {}", 199 - status), 199 - status),
            _ => ("kill -TERM $$; sleep 1000".to_owned(), 143),
        };
        let file = self.bundle.rootfs().join(format!("join-{number}"));
        fs::write(file, format!("read line </gates/{number}; {end}\n")).unwrap();
        writeln!(self.jobs, "exec {id} exec-{number} sh /join-{number}").unwrap();
        self.expected.insert(format!("exec-{number}"), status.to_string());
        self.containers.push(id);
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.bundle.path().join(id)
    }

    fn cgroup(id: &str) -> String {
        format!("/brig-test/{id}")
    }

    fn write_bundle(&self, id: &str, script: &str, kind: Kind) {
        let mut config = self.bundle.config.clone();
        config["process"]["args"] = json!(["sh", "-c", script]);
        config["root"]["path"] = json!(self.bundle.rootfs());
        config["linux"]["cgroupsPath"] = json!(Self::cgroup(id));
        if kind == Kind::LeavesOrphansOnTheHost {
            config["linux"]["namespaces"].as_array_mut().unwrap().retain(|ns| ns["type"] != "pid");
        }
        fs::create_dir(self.folder(id)).unwrap();
        fs::write(self.folder(id).join("config.json"), config.to_string()).unwrap();
    }

    /// The manager, under the program that these words call.
    fn manage(&self, under: &[&str]) -> BTreeMap<String, String> {
        let mut words = under.to_vec();
        words.push(env!("CARGO_BIN_EXE_brig-test-manager"));
        let run = Run::new(words[0]).args(&words[1..]).arg(runtime()).arg(&self.bundle.root);
        let out = run.input(self.jobs.as_str()).limit(Duration::from_secs(600)).ok().out;
        out.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(id, s)| (id.to_owned(), s.to_owned()))
            .collect()
    }

    fn check(&self, ended: &BTreeMap<String, String>) {
        if ended.values().all(|status| status == "unknown") {
            note("exit statuses not checked: this kernel's pidfds do not tell them");
            assert!(ended.keys().eq(self.expected.keys()));
        } else {
            assert_eq!(*ended, self.expected);
        }
        let left: Vec<String> = fs::read_dir(&self.bundle.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(left, Vec::<String>::new(), "records");
        let cgroups: Vec<PathBuf> =
            self.containers.iter().flat_map(|id| host::cgroup_dirs(&Self::cgroup(id))).collect();
        assert_eq!(cgroups, Vec::<PathBuf>::new());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for id in &self.containers {
            if self.bundle.root.join(id).exists() || !host::cgroup_dirs(&Self::cgroup(id)).is_empty() {
                self.bundle.runtime().args(["delete", "--force", id]).run();
                host::remove_cgroups(&Self::cgroup(id));
            }
        }
    }
}

fn count() -> usize {
    std::env::var("CONTAINERS").ok().and_then(|n| n.parse().ok()).unwrap_or(CONTAINERS)
}

/// Whether each pid namespace has a `kernel.pid_max` of its own: before, it is that of all.
fn has_own_pid_max() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

#[test]
fn a_manager_sees_every_end_and_status() {
    if is_other_runtime() {
        return note("not run: others send no pidfd in time, or kill what a manager leaves");
    }
    let scene = Scene::new(count());
    scene.check(&scene.manage(&["env"]));
}

#[test]
fn a_manager_sees_every_end_and_status_while_pids_are_used_again_and_again() {
    if !has_own_pid_max() || is_other_runtime() {
        return note("not run: pids cannot be made scarce here");
    }
    let scene = Scene::new(count());
    // Room for what lives at the same time, and little more.
    let scarce = (400 + 8 * count()).to_string();
    let unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let init = [env!("CARGO_BIN_EXE_brig-test-helper"), "recycle", &scarce];
    scene.check(&scene.manage(&[&unshare[..], &init].concat()));
}

/// What the page shows is what is tested.
#[test]
fn the_page_shows_the_manager() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(top.join("docs/pidfd.md")).unwrap();
    let program = fs::read_to_string(top.join("tests/clients/manager.rs")).unwrap();
    let shown = page.split("```rust\n").skip(1).map(|part| part.split("```").next().unwrap());
    let mut any = false;
    for part in shown {
        assert!(program.contains(part), "not in the program:\n{part}");
        any = true;
    }
    assert!(any);
}
