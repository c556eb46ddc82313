//! The runtime's own binary, and its processes, seen from inside a container: CVE-2019-5736, CVE-2016-9962.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brig_tests::{Bundle, Run, host, json, note, runtime};

use crate::support::{SECRET, Victim, must_break, naive, naive_path, rounds};

/// The words of the runtime's own output.
const OWN_WORDS: [&str; 3] = ["runc version", "USAGE:", "No help topic"];

/// The host's binary may not change, whatever happens to it meanwhile.
struct Unchanged(Vec<u8>);

impl Unchanged {
    fn new() -> Self {
        Self(fs::read(runtime()).unwrap())
    }
}

impl Drop for Unchanged {
    fn drop(&mut self) {
        assert!(fs::read(runtime()).unwrap() == self.0, "the runtime's binary was changed");
    }
}

#[test]
fn the_program_is_proc_self_exe() {
    let _unchanged = Unchanged::new();
    let b = Bundle::default();
    let root = b.rootfs();
    let broken = naive().args(["exec", &root.to_string_lossy(), "/proc/self/exe", "--version"]).ok();
    assert_eq!(broken.out, "the host's program\n");
    for path in ["/proc/self/exe", "/proc/1/exe", "/proc/thread-self/exe"] {
        let mut b = Bundle::new(&[path, "--version"]);
        b.config["process"]["env"] = json!(["_BRIG=1", "PATH=/bin"]);
        let finished = b.run().run();
        assert_ne!(finished.code(), 0, "{finished}");
        assert!(!OWN_WORDS.iter().any(|words| finished.out.contains(words)), "{finished}");
    }
}

#[test]
fn the_interpreter_is_proc_self_exe() {
    let _unchanged = Unchanged::new();
    let script = |b: &Bundle| {
        fs::write(b.rootfs().join("bin/evil"), "#!/proc/self/exe\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(b.rootfs().join("bin/evil"), mode).unwrap();
    };
    let b = Bundle::new(&["/bin/evil"]);
    script(&b);
    let broken = naive().args(["exec", &b.rootfs().to_string_lossy(), "/bin/evil"]).ok();
    assert_eq!(broken.out, "the host's program\n");
    let finished = b.run().run();
    assert_ne!(finished.code(), 0, "{finished}");
    assert!(!OWN_WORDS.iter().any(|words| finished.both().contains(words)), "{finished}");

    let b = Bundle::sleeping();
    script(&b);
    b.start();
    for command in ["/bin/evil", "/proc/self/exe"] {
        let finished = b.exec(&[command, "--version"]).run();
        assert_ne!(finished.code(), 0, "{finished}");
        assert!(!OWN_WORDS.iter().any(|words| finished.out.contains(words)), "{finished}");
    }
}

/// Libraries of the image are not loaded into the runtime by the environment that the container asks for.
#[test]
fn an_environment_for_the_dynamic_loader() {
    let variables =
        ["LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil", "LD_AUDIT=/evil.so", "GLIBC_TUNABLES=x=y"];
    // What is dynamically linked complains that there is no such library.
    let broken = Run::new("/bin/sh").args(["-c", ":"]).env("LD_PRELOAD", "/evil.so").run();
    assert!(broken.err.contains("/evil.so"), "{broken}");
    let mut b = Bundle::new(&["env"]);
    b.config["process"]["env"] = json!(variables);
    b.config["process"]["args"] = json!(["/bin/env"]);
    let finished = b.run().ok();
    assert_eq!(finished.err, "");
    assert!(finished.out.contains("LD_PRELOAD=/evil.so"), "{finished}");
    let b = Bundle::sleeping();
    b.start();
    let exec = b.brig("exec").args(["-e", variables[0], "-e", variables[2], &b.id, "/bin/true"]);
    assert_eq!(exec.ok().err, "");
}

/// A container with a process that looks at all others.
struct Racer {
    bundle: Bundle,
    victim: Victim,
}

impl Racer {
    fn start(ptrace: bool) -> Self {
        let victim = Victim::new();
        let id = |path: &Path| {
            let stat = fs::metadata(path).unwrap();
            format!("{}:{}", stat.dev(), stat.ino())
        };
        let secret = victim.file().to_string_lossy().into_owned();
        let ids = [id(&runtime()), id(naive_path())];
        let mut b =
            Bundle::new(&["/attacker", "race", "/tmp/out", "/tmp/stop", &secret, SECRET, &ids[0], &ids[1]]);
        fs::copy(env!("CARGO_BIN_EXE_brig-test-attacker"), b.rootfs().join("attacker")).unwrap();
        if ptrace {
            for set in ["bounding", "effective", "permitted"] {
                let list = b.config["process"]["capabilities"][set].as_array_mut().unwrap();
                list.extend([json!("CAP_SYS_PTRACE"), json!("CAP_DAC_OVERRIDE")]);
            }
        }
        b.start();
        let racer = Self { bundle: b, victim };
        let found = || racer.output().contains("ready");
        host::eventually(
            "the attacker to begin (it has to be a static program: make attack builds one)",
            found,
        );
        racer
    }

    fn output(&self) -> String {
        fs::read_to_string(self.bundle.rootfs().join("tmp/out")).unwrap_or_default()
    }

    /// How much it has found, of all that was there to be found until now.
    fn findings(&self) -> usize {
        let sync = self.bundle.rootfs().join("tmp/stop.sync");
        fs::write(&sync, "").unwrap();
        host::eventually("the attacker to have written", || !sync.exists());
        self.output().matches("finding").count()
    }

    /// Its careless victim, until something is found; what was found is forgotten then.
    fn breaks_the_naive(&self, step: &str) {
        let pid = self.bundle.pid().to_string();
        must_break("looking at processes that join", || {
            naive().args([step, &pid]).run();
            self.findings() > 0
        });
        let output = self.output();
        assert!(output.contains("the runtime as exe") || output.contains("a file of the host"), "{output}");
    }

    fn finish(self, before: usize) {
        fs::write(self.bundle.rootfs().join("tmp/stop"), "").unwrap();
        self.bundle.wait_status("stopped");
        let output = self.output();
        assert_eq!(output.matches("finding").count(), before, "{output}");
        let last = output.lines().last().unwrap_or_default();
        assert!(last.starts_with("looked ") && !last.contains(" saw 0 "), "{output}");
        note(last);
        self.victim.assert_untouched();
    }
}

fn exec_is_looked_at(ptrace: bool) {
    let _unchanged = Unchanged::new();
    let racer = Racer::start(ptrace);
    racer.breaks_the_naive(if ptrace { "join" } else { "join-dropped" });
    let before = racer.findings();
    for _ in 0..rounds(150, 10_000) {
        racer.bundle.exec(&["/bin/true"]).ok();
    }
    racer.finish(before);
}

#[test]
fn a_racer_with_ptrace_looks_at_exec() {
    exec_is_looked_at(true);
}

#[test]
fn a_racer_without_capabilities_looks_at_exec() {
    exec_is_looked_at(false);
}

/// Containers are made in the racer's pid namespace.
fn create_is_looked_at(ptrace: bool) {
    let _unchanged = Unchanged::new();
    let racer = Racer::start(ptrace);
    racer.breaks_the_naive(if ptrace { "join" } else { "join-dropped" });
    let before = racer.findings();
    let mut other = Bundle::default();
    other.with_namespace("pid", Some(&format!("/proc/{}/ns/pid", racer.bundle.pid())));
    for _ in 0..rounds(25, 2_000) {
        other.run().ok();
    }
    racer.finish(before);
}

#[test]
fn a_racer_with_ptrace_in_a_shared_pid_namespace_looks_at_create() {
    create_is_looked_at(true);
}

#[test]
fn a_racer_without_capabilities_in_a_shared_pid_namespace_looks_at_create() {
    create_is_looked_at(false);
}

/// The same where the user namespace is shared too, and the racer has all capabilities in it.
#[test]
fn a_racer_in_a_shared_user_namespace_looks_at_create_and_exec() {
    let _unchanged = Unchanged::new();
    let victim = Victim::new();
    let id = |path: &Path| fs::metadata(path).map(|s| format!("{}:{}", s.dev(), s.ino())).unwrap();
    let secret = victim.file().to_string_lossy().into_owned();
    let args =
        ["/attacker", "race", "/tmp/out", "/tmp/stop", &secret, SECRET, &id(&runtime()), &id(naive_path())];
    let mut b = Bundle::new(&args);
    fs::copy(env!("CARGO_BIN_EXE_brig-test-attacker"), b.rootfs().join("attacker")).unwrap();
    b.in_user_namespace();
    for set in ["bounding", "effective", "permitted"] {
        b.config["process"]["capabilities"][set] = json!(["CAP_SYS_PTRACE", "CAP_DAC_OVERRIDE"]);
    }
    b.start();
    let racer = Racer { bundle: b, victim };
    host::eventually("the attacker to begin", || racer.output().contains("ready"));
    racer.breaks_the_naive("join-user");
    let before = racer.findings();
    let mut other = Bundle::default();
    other.in_user_namespace();
    let pid = racer.bundle.pid();
    other.with_namespace("user", Some(&format!("/proc/{pid}/ns/user")));
    other.with_namespace("pid", Some(&format!("/proc/{pid}/ns/pid")));
    for map in ["uidMappings", "gidMappings"] {
        other.config["linux"].as_object_mut().unwrap().remove(map);
    }
    for _ in 0..rounds(20, 2_000) {
        other.run().ok();
        racer.bundle.exec(&["/bin/true"]).ok();
    }
    racer.finish(before);
}
