//! What attacks have in common.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use brig_tests::{Bundle, Finished, Run, host, note};

/// How often to try: as often as one waits for, or with `ATTACK=full` as often as it takes to believe the result. `ATTACK=NUMBER`
/// multiplies the former.
pub fn rounds(quick: usize, full: usize) -> usize {
    match std::env::var("ATTACK").as_deref() {
        Ok("full") => full,
        Ok(number) => quick * number.parse::<usize>().unwrap_or(1),
        Err(_) => quick,
    }
}

/// The careless program.
pub fn naive() -> Run {
    Run::new(env!("CARGO_BIN_EXE_brig-test-naive"))
}

/// Its path.
pub fn naive_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_brig-test-naive"))
}

/// A directory of the host that has to stay as it is.
pub struct Victim {
    dir: tempfile::TempDir,
}

pub const SECRET: &str = "the host's secret";

impl Victim {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("brig-victim-").tempdir_in("/tmp").unwrap();
        // Whoever gets here may read: what keeps a container out must not be its lack of permission.
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(dir.path().join("file"), SECRET).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self) -> PathBuf {
        self.path().join("file")
    }

    pub fn is_untouched(&self) -> bool {
        let mut names = fs::read_dir(self.path()).unwrap().map(|e| e.unwrap().file_name());
        names.next().is_some_and(|name| name == "file")
            && names.next().is_none()
            && fs::read_to_string(self.file()).unwrap() == SECRET
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        assert!(self.is_untouched(), "{:?}", fs::read_dir(self.path()).unwrap().collect::<Vec<_>>());
    }

    /// As it was, after the naive program was there.
    pub fn restore(&self) {
        for entry in fs::read_dir(self.path()).unwrap() {
            let path = entry.unwrap().path();
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        fs::write(self.file(), SECRET).unwrap();
    }
}

/// A thread that does the same over and over.
pub struct Attacker {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    pub fn new(mut act: impl FnMut() + Send + 'static) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                act();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, count, thread: Some(thread) }
    }

    /// Swaps two names for as long as it lives.
    pub fn swapping(one: PathBuf, other: PathBuf) -> Self {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Self::new(move || {
            let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
        })
    }

    /// How often it has.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An attack has to succeed against what is careless, sooner or later.
#[track_caller]
pub fn must_break(what: &str, mut succeeds: impl FnMut() -> bool) {
    const PATIENCE: usize = 20_000;
    for round in 1..=PATIENCE {
        if succeeds() {
            return note(&format!("{what}: the naive variant broke in round {round}"));
        }
    }
    panic!("{what}: the attack does not even break the naive variant");
}

/// Nothing of it may be a panic or a hang.
#[track_caller]
pub fn ended_in_order(finished: &Finished) {
    assert!(!finished.both().contains("panicked at"), "{finished}");
    assert!(finished.code() < 128 || finished.code() == 255, "{finished}");
}

/// An attacker in a container goes on for good: it must not outlive a test that was killed.
#[test]
fn a_test_that_is_killed_leaves_no_process() {
    const WHERE: &str = "BRIG_TEST_LEAVES";
    if let Some(path) = std::env::var_os(WHERE) {
        let b = Bundle::sleeping();
        b.start();
        fs::write(path, format!("{} {}", b.pid(), b.path().display())).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    let name = "support::a_test_that_is_killed_leaves_no_process";
    let own = std::env::current_exe().unwrap();
    let test = Run::new(own).args(["--exact", name, "--nocapture"]).env(WHERE, &told).detached().spawn();
    let words = || fs::read_to_string(&told).unwrap_or_default();
    host::eventually("its container", || words().contains(' '));
    let text = words();
    let (pid, path) = text.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    assert!(host::is_alive(pid));
    test.signal(9);
    drop(test);
    host::eventually("the end of its container", || !host::is_alive(pid) && !Path::new(path).exists());
}
