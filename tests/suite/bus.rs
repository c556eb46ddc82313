//! A systemd that hangs, dies or talks nonsense: an error in time, and nothing left.
//!
//! The systemd is a thread of the test ([`FakeBus`]); what is to be seen of the host is in namespaces, where the test's own cgroup
//! is the root of cgroup v2.

use std::fs;
use std::path::{Path, PathBuf};

use brig_tests::{Bundle, FakeBus, Fault, Finished, Plan, Run, host, is_other_runtime, runtime};

/// Where the command runs: in a cgroup namespace of its own, with `/run/systemd` from the test's directory.
const ENTER: &str = r#"
mkdir -p "$CGROUP" && echo $$ >"$CGROUP/cgroup.procs" || exit 99
exec unshare --mount --cgroup --pid --fork --kill-child --mount-proc sh -ec '
    umount -R /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p /sys/fs/cgroup/init.scope /sys/fs/cgroup/system.slice
    echo $$ >/sys/fs/cgroup/init.scope/cgroup.procs
    mount -t tmpfs tmpfs /run
    mkdir /run/systemd
    mount --bind "$DIR/run" /run/systemd
    set +e
    brig() { "$RUNTIME_UNDER_TEST" --root "$DIR/state" --systemd-cgroup "$@" </dev/null >/dev/null; }
    left() {
        ls -A "$DIR/state" 2>/dev/null | sed "s/^/record /"
        find /sys/fs/cgroup -mindepth 1 -type d ! -name init.scope ! -name "*.slice" | sed "s/^/cgroup /"
        ls -A /run/systemd/transient | sed "s/^/unit /"
        for comm in /proc/[0-9]*/comm; do grep -sE "^(brig|sleep)" "$comm" | sed "s/^/process /"; done
    }
    eval "$SCRIPT"
' sh
"#;

/// A machine with a systemd that has something wrong with it.
struct Machine {
    bundle: Bundle,
    dir: tempfile::TempDir,
    cgroup: PathBuf,
    bus: FakeBus,
}

impl Machine {
    fn new(plan: Option<Plan>) -> Self {
        let mut bundle = Bundle::sleeping();
        bundle.config["linux"]["cgroupsPath"] = "system.slice:brig:c1".into();
        // Filters of devices are another matter.
        bundle.config["linux"]["resources"] = serde_json::json!({});
        bundle.write_config();
        let dir = tempfile::Builder::new().prefix("brig-test-").tempdir().unwrap();
        let hierarchy = host::unified().expect("cgroup2 is not mounted");
        let cgroup = hierarchy.join("brig-test").join(dir.path().file_name().unwrap());
        let bus = FakeBus::start(dir.path(), &cgroup, plan);
        Self { bundle, dir, cgroup, bus }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn arm(&self) -> &Self {
        fs::write(self.file("armed"), "").unwrap();
        self
    }

    /// Runs a script there. `brig` is the runtime, `left` lists what is left of containers.
    fn run(&self, script: &str) -> Finished {
        Run::new("sh")
            .args(["-c", ENTER])
            .env("CGROUP", &self.cgroup)
            .env("DIR", self.dir.path())
            .env("RUNTIME_UNDER_TEST", runtime())
            .env("BUNDLE", self.bundle.path())
            .env("SCRIPT", script)
            .env("DBUS_SYSTEM_BUS_ADDRESS", self.bus.address())
            .env("BRIG_SYSTEMD_TIMEOUT", "0.3")
            .run()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        host::eventually("the namespaces end", || {
            fs::read_to_string(self.cgroup.join("cgroup.events"))
                .is_ok_and(|text| text.contains("populated 0"))
        });
        remove_tree(&self.cgroup);
    }
}

fn remove_tree(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}

const ALL: [Fault; 11] = [
    Fault::Silence,
    Fault::DoneInSilence,
    Fault::Close,
    Fault::CloseOnce,
    Fault::DoneAndCloseOnce,
    Fault::Garbage,
    Fault::Huge,
    Fault::Cut,
    Fault::WrongAnswer,
    Fault::JobFails,
    Fault::Refuse,
];

/// Each fault at each of so many messages, those that the test of a container's life shows.
fn each_fault_at_each_message(messages: usize, run: impl Fn(Plan)) {
    for fault in ALL {
        for at in 1..=messages {
            run(Plan { fault, at });
        }
    }
}

/// What was said in the script: `rc N`, then what is left.
fn status(out: &str) -> (i32, Vec<&str>) {
    let mut lines = out.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("rc ")).unwrap_or_else(|| panic!("{out:?}"));
    (status.parse().unwrap(), lines.collect())
}

/// One line of error if it failed, none else.
fn check_error(finished: &Finished, failed: bool, plan: Plan) {
    let errors = finished.err.lines().filter(|line| line.contains("level=error")).count();
    assert_eq!(errors, usize::from(failed), "{plan:?}: {finished}");
    assert!(!finished.err.contains("panicked"), "{plan:?}: {finished}");
}

#[test]
fn messages_of_a_containers_life() {
    if is_other_runtime() {
        return;
    }
    let machine = Machine::new(None);
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; brig start c1; brig update --memory-swap -1 c1 || echo no; brig delete -f c1; left");
    assert_eq!(status(&finished.out), (0, vec![]), "{finished}");
    let messages = machine.bus.messages();
    assert_eq!(
        messages,
        [
            "AUTH",
            "Hello",
            "AddMatch",
            "StartTransientUnit", // create
            "AUTH",
            "Hello",
            "SetUnitProperties", // update
            "AUTH",
            "Hello",
            "StopUnit" // delete
        ],
        "{finished}"
    );
}

#[test]
fn a_slice_is_started_where_it_is_missing() {
    if is_other_runtime() {
        return;
    }
    let mut machine = Machine::new(None);
    machine.bundle.config["linux"]["cgroupsPath"] = "a-b.slice:brig:c1".into();
    machine.bundle.write_config();
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; cat /sys/fs/cgroup/a.slice/a-b.slice/brig-c1.scope/cgroup.procs | wc -l; brig delete -f c1; left");
    assert_eq!(status(&finished.out), (0, vec!["1"]), "{finished}");
    let messages = machine.bus.messages();
    assert_eq!(messages[..6], ["AUTH", "Hello", "AddMatch", "StartUnit", "AddMatch", "StartTransientUnit"]);
}

#[test]
fn create() {
    if is_other_runtime() {
        return;
    }
    each_fault_at_each_message(4, |plan| {
        let machine = Machine::new(Some(plan));
        let finished = machine.arm().run(
            "brig create -b $BUNDLE c1; rc=$?; echo rc $rc; [ $rc = 0 ] || left; rm $DIR/armed; brig delete -f c1 || echo undeletable; left",
        );
        let (status, left) = status(&finished.out);
        check_error(&finished, status != 0, plan);
        let passing = matches!(plan.fault, Fault::CloseOnce | Fault::DoneAndCloseOnce);
        // What is lost once is made up for.
        assert!(!passing || status == 0, "{plan:?}: {finished}");
        // A bus that talks nonsense once it has made the unit keeps that from being taken back, and the record stays to say so.
        // (A real systemd would clear it away by itself, since nobody lives in it.) The last list has to be empty.
        let done = !matches!(plan.fault, Fault::Silence | Fault::Close | Fault::Refuse | Fault::JobFails);
        let remains = done && status != 0 && !left.is_empty();
        assert!(left.is_empty() || remains && left.len() <= 3, "{plan:?}: {finished}");
        assert!(!finished.out.contains("undeletable"), "{plan:?}: {finished}");
        if remains {
            assert_eq!(finished.out.matches("unit ").count(), 1, "deleted in the end: {plan:?}: {finished}");
        }
    });
}

#[test]
fn update() {
    if is_other_runtime() {
        return;
    }
    each_fault_at_each_message(3, |plan| {
        let machine = Machine::new(Some(plan));
        let finished = machine.run(
            "brig create -b $BUNDLE c1 || exit; brig start c1; touch $DIR/armed; brig update --memory-swap -1 c1; echo rc $?; rm $DIR/armed; brig delete -f c1; left",
        );
        let (status, left) = status(&finished.out);
        check_error(&finished, status != 0, plan);
        assert_eq!(left, [""; 0], "{plan:?}: {finished}");
    });
}

#[test]
fn delete() {
    if is_other_runtime() {
        return;
    }
    each_fault_at_each_message(3, |plan| {
        let machine = Machine::new(Some(plan));
        let finished = machine.run(
            "brig create -b $BUNDLE c1 || exit; brig start c1; touch $DIR/armed; brig delete -f --timeout 500ms c1; rc=$?; echo rc $rc; [ $rc = 0 ] || ls $DIR/state; rm $DIR/armed; brig delete -f c1; left",
        );
        let (status, left) = status(&finished.out);
        check_error(&finished, status != 0, plan);
        // The record is there until nothing else is.
        let expected: &[&str] = if status == 0 { &[] } else { &["c1"] };
        assert_eq!(left, expected, "{plan:?}: {finished}");
    });
}

#[test]
fn a_leftover_unit_is_taken_away_first() {
    if is_other_runtime() {
        return;
    }
    let machine = Machine::new(None);
    fs::write(machine.file("run/transient/brig-c1.scope"), "").unwrap();
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; brig delete -f c1; left");
    assert_eq!(status(&finished.out), (0, vec![]), "{finished}");
    assert_eq!(machine.bus.messages()[..5], ["AUTH", "Hello", "StopUnit", "AddMatch", "StartTransientUnit"]);
}

#[test]
fn what_the_bus_says_is_in_the_error() {
    if is_other_runtime() {
        return;
    }
    let machine = Machine::new(Some(Plan { fault: Fault::Refuse, at: 4 }));
    let finished = machine.arm().run("brig create -b $BUNDLE c1; echo rc $?; left");
    assert_eq!(status(&finished.out), (1, vec![]), "{finished}");
    finished.says(
        "error creating systemd unit `brig-c1.scope`: org.freedesktop.DBus.Error.AccessDenied: not you",
    );
    finished.says("systemd does not let the caller do this");
    let machine = Machine::new(Some(Plan { fault: Fault::JobFails, at: 4 }));
    let finished = machine.arm().run("brig create -b $BUNDLE c1; echo rc $?; left");
    assert_eq!(status(&finished.out), (1, vec![]), "{finished}");
    finished.says("error creating systemd unit `brig-c1.scope`: got `failed`");
    let machine = Machine::new(Some(Plan { fault: Fault::Silence, at: 4 }));
    let finished = machine.arm().run("brig create -b $BUNDLE c1; echo rc $?; left");
    assert_eq!(status(&finished.out), (1, vec![]), "{finished}");
    finished.says("Timeout waiting for systemd to create brig-c1.scope");
}

/// A value is one value of its property: what goes on behind it is an error, and nothing is asked of systemd.
#[test]
fn annotations_add_no_properties_but_their_own() {
    if is_other_runtime() {
        return;
    }
    let injected = [
        ("Description", "'a'), ('ExecStart', <'x'>"),
        ("Description", "'a'>), ('Slice', <'system.slice'"),
        ("Description", "'a' 'b'"),
        ("Description", "'a"),
        ("Description", "['a', 5]"),
        ("TimeoutStopUSec", "uint64 1, uint64 2"),
        ("TimeoutStopUSec", "uint64 18446744073709551616"),
        ("Description') , ('Slice", "'x'"),
        ("Description\n", "'x'"),
        ("", "'x'"),
    ];
    for (name, value) in injected {
        let mut machine = Machine::new(None);
        machine.bundle.config["annotations"] =
            serde_json::json!({ format!("org.systemd.property.{name}"): value });
        machine.bundle.write_config();
        let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; brig delete -f c1; left");
        assert_eq!(status(&finished.out), (1, vec![]), "{name:?} {value:?}: {finished}");
        let asked = machine.bus.messages().iter().any(|message| message == "StartTransientUnit");
        assert!(!asked, "{name:?} {value:?}: {:?}", machine.bus.messages());
    }
    // The same with nothing behind it.
    let mut machine = Machine::new(None);
    machine.bundle.config["annotations"] =
        serde_json::json!({ "org.systemd.property.Description": "'a, b'" });
    machine.bundle.write_config();
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; brig delete -f c1; left");
    assert_eq!(status(&finished.out), (0, vec![]), "{finished}");
}

#[test]
fn without_systemd() {
    if is_other_runtime() {
        return;
    }
    let machine = Machine::new(None);
    fs::remove_dir(machine.file("run/system")).unwrap();
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; left");
    assert_eq!(status(&finished.out), (1, vec![]), "{finished}");
    finished.says("systemd not running on this host, cannot use systemd cgroups manager");
    fs::create_dir(machine.file("run/system")).unwrap();
    fs::remove_file(machine.file("bus")).unwrap();
    let finished = machine.run("brig create -b $BUNDLE c1; echo rc $?; left");
    assert_eq!(status(&finished.out), (1, vec![]), "{finished}");
    finished.says("connect: no such file or directory").says("is systemd running?");
}
