//! Many whole lives, side by side, some of them cut off: what there is of everything is the same afterwards as before.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brig_tests::host;

use crate::options::Options;
use crate::random::{random, spawn};
use crate::scene::Scene;

const WORKERS: usize = 4;
/// One life in this many is cut off somewhere.
const KILLED: u32 = 4;

/// Runs it; the number of things that are left.
pub fn run(options: &Options) -> usize {
    // What ran before is none of this, and the first scene has whoever clears up behind it started.
    drop(Scene::new());
    crate::scene::orphans();
    let before = Counts::now();
    let (next, killed, left) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let scene = Scene::new();
                while next.fetch_add(1, Ordering::Relaxed) < options.runs {
                    killed.fetch_add(usize::from(live(&scene)), Ordering::Relaxed);
                    // Processes of the other workers are this one's children too, and not left.
                    if let Err(what) = scene.delete_beside_others() {
                        left.fetch_add(1, Ordering::Relaxed);
                        println!("  soak: {what}");
                    }
                }
            });
        }
    });
    let (killed, left) = (killed.into_inner(), left.into_inner());
    println!("{:10} {:>7} {:>7} {:>5}", "soak", "cycles", "killed", "left");
    println!("{:10} {:>7} {killed:>7} {left:>5}", "", options.runs);
    crate::scene::orphans();
    let after = Counts::now();
    if before == after {
        return left;
    }
    println!("  soak: before {before:?}, after {after:?}");
    left + 1
}

/// Create, start, exec, as a manager calls them; one of them killed now and then. Whether one was.
fn live(scene: &Scene) -> bool {
    let victim = random().is_multiple_of(KILLED).then(|| ["create", "start", "exec"][random() as usize % 3]);
    for command in ["create", "start", "exec"] {
        let mut child = spawn(scene, command);
        if victim == Some(command) {
            std::thread::sleep(Duration::from_micros(u64::from(random() % 12_000)));
            let _ = child.kill();
            let _ = child.wait();
            return true;
        }
        let status = child.wait().unwrap();
        assert!(status.success(), "{command}: {status}");
    }
    false
}

/// How many there are of everything that could be left. Descriptors are this process's own.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    descriptors: usize,
    mounts: usize,
    children: usize,
    cgroups: usize,
}

impl Counts {
    fn now() -> Self {
        let lines = |path: &str| std::fs::read_to_string(path).unwrap_or_default().lines().count();
        let own = std::process::id();
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            mounts: lines("/proc/self/mountinfo"),
            children: crate::scene::children().len(),
            cgroups: host::cgroup_dirs("/brig-test").iter().map(|dir| cgroups_of(own, dir)).sum(),
        }
    }
}

/// Cgroups in `dir` that containers of this process have.
fn cgroups_of(own: u32, dir: &Path) -> usize {
    let prefix = format!("t{own}-");
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}
