//! Where a test runs, and what it leaves behind: nothing.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brig_cgroup::{Cgroup, Layout, Mode, Names, Request};
use brig_spec::Resources;

/// Set in the process that has the private mount namespace.
const VIEW: &str = "BRIG_CGROUP_TEST_VIEW";

/// Puts a cgroup2 mount on /sys/fs/cgroup and goes on as what the arguments say.
const SCRIPT: &str = r#"umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@""#;

/// Runs `body` in each view. `test` is the full name of the test, to run it once more by.
pub fn in_each_view(test: &str, body: fn(&View)) {
    in_host_view(test, body);
    if std::env::var_os(VIEW).is_some() || !is_v2() {
        in_v2_view(test, body);
    }
}

/// Whether the host has nothing but cgroup v2.
fn is_v2() -> bool {
    Layout::detect().is_ok_and(|layout| layout.mode == Mode::V2)
}

/// Runs `body` on the host as it is.
pub fn in_host_view(test: &str, body: fn(&View)) {
    if std::env::var_os(VIEW).is_none() && is_root(test) {
        body(&View::new(test));
    }
}

/// Runs `body` where there is only cgroup v2.
pub fn in_v2_view(test: &str, body: fn(&View)) {
    if !is_root(test) {
        return;
    }
    if std::env::var_os(VIEW).is_some() || is_v2() {
        body(&View::new(test));
        return;
    }
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", SCRIPT, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(VIEW, "v2")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "in the cgroup v2 view: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("{test} skipped: making cgroups takes root");
    }
    root
}

/// A place for the cgroups of one test. What is made below is removed in the end.
pub struct View {
    pub layout: Layout,
    /// As a `cgroupsPath`.
    pub place: String,
}

impl View {
    fn new(test: &str) -> Self {
        let name = test.replace("::", "-");
        Self { layout: Layout::detect().unwrap(), place: format!("/brig-test/{name}-{}", std::process::id()) }
    }

    pub fn is_v2(&self) -> bool {
        self.layout.mode == Mode::V2
    }

    pub fn names(&self, name: &str) -> Names {
        let path = format!("{}/{name}", self.place);
        let request = Request { cgroups_path: &path, id: "unused", rootless: false };
        Names::decide(&self.layout, &request).unwrap()
    }

    /// Makes a cgroup.
    pub fn make(&self, name: &str) -> Cgroup {
        Cgroup::make(&self.names(name), &Resources::default()).unwrap()
    }

    /// The directory of `name` in the hierarchy of a v1 controller, or the only one.
    pub fn dir(&self, name: &str, controller: &str) -> PathBuf {
        dir_of(&self.names(name), controller)
    }
}

/// The directory in the hierarchy of a v1 controller, or the v2 one.
pub fn dir_of(names: &Names, controller: &str) -> PathBuf {
    names
        .groups
        .iter()
        .find(|group| group.controllers.iter().any(|c| c == controller))
        .or_else(|| names.groups.iter().find(|group| group.unified))
        .unwrap()
        .dir()
}

impl Drop for View {
    fn drop(&mut self) {
        let request = Request { cgroups_path: &self.place, id: "unused", rootless: false };
        let names = Names::decide(&self.layout, &request).unwrap();
        let cgroup = Cgroup::open(&names).unwrap();
        let cleared = cgroup.kill_all(soon()).and_then(|_| cgroup.remove(soon()));
        for group in &names.groups {
            // Goes when the last test that uses it does.
            let _ = std::fs::remove_dir(group.mount.join("brig-test"));
        }
        if !std::thread::panicking() {
            cleared.unwrap();
        }
    }
}

/// A deadline that no test comes near unless something is wrong, in an emulated machine neither.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(90)
}

/// A deadline that is to be missed.
pub fn at_once() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

/// Waits for what must come.
pub fn until(mut condition: impl FnMut() -> bool) {
    let deadline = soon();
    while !condition() {
        assert!(Instant::now() < deadline, "it has not come");
        std::thread::yield_now();
    }
}

/// A process that is ended with the test.
pub struct Process(pub Child);

impl Process {
    /// Runs a shell script in `cgroup`: it begins when the shell has been moved there.
    pub fn sh(cgroup: &Cgroup, script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", &format!("read go; {script}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let attached = cgroup.attach(pid, true);
        drop(child.stdin.take());
        let process = Self(child);
        attached.unwrap();
        process
    }

    /// Runs a script to its end: what it said, and whether it succeeded.
    pub fn output(cgroup: &Cgroup, script: &str) -> (String, bool) {
        let mut process = Self::sh(cgroup, &format!("{{ {script}; }} 2>&1"));
        let mut text = String::new();
        std::io::Read::read_to_string(process.0.stdout.as_mut().unwrap(), &mut text).unwrap();
        (text, process.0.wait().unwrap().success())
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    /// Waits until the process has printed a line.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        let stdout = self.0.stdout.as_mut().unwrap();
        while std::io::Read::read(stdout, &mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The signal that ended it.
    pub fn killed_by(mut self) -> Option<i32> {
        std::os::unix::process::ExitStatusExt::signal(&self.0.wait().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads resources from JSON.
pub fn resources(json: &str) -> Resources {
    serde_json::from_str(json).unwrap()
}

/// The content of a file, without the last newline.
pub fn content(path: impl AsRef<std::path::Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .trim_end()
        .to_owned()
}
