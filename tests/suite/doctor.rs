//! `doctor`: what this host can do, found out by doing it.

use std::path::Path;

use brig_tests::{Run, Value, host, only_brig, runtime};

fn findings(run: Run) -> (i32, Value) {
    let finished = run.args(["doctor", "--format", "json"]).run();
    assert_eq!(finished.err, "");
    (finished.code(), serde_json::from_str(&finished.out).unwrap_or_else(|e| panic!("{e}: {finished}")))
}

fn here() -> Value {
    let (code, document) = findings(Run::new(runtime()));
    assert_eq!((code, &document["usable"]), (0, &Value::Bool(true)), "{document:#}");
    document
}

/// The finding of this name.
#[track_caller]
fn find<'a>(document: &'a Value, topic: &str, name: &str) -> &'a Value {
    let list = document["findings"].as_array().unwrap();
    let found = list.iter().find(|finding| finding["topic"] == topic && finding["name"] == name);
    found.unwrap_or_else(|| panic!("no {topic} {name} in {document:#}"))
}

/// The program under a filter that answers this errno to these calls.
fn without(errno: i32, calls: &str) -> Run {
    Run::new(env!("CARGO_BIN_EXE_brig-test-helper"))
        .args(["without", &errno.to_string(), calls])
        .arg(runtime())
}

const ENOSYS: i32 = 38;
const EPERM: i32 = 1;

#[test]
fn every_finding_is_complete() {
    only_brig("doctor", || {
        let document = here();
        let list = document["findings"].as_array().unwrap();
        assert!(list.len() > 40, "{}", list.len());
        let mut names = Vec::new();
        for finding in list {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            assert!(
                !text("topic").is_empty() && !text("name").is_empty() && !text("found").is_empty(),
                "{finding}"
            );
            // What is missing says what that means; what is there does not.
            assert_eq!(finding["good"] == true, text("means").is_empty(), "{finding}");
            assert!(finding["good"] == false || text("mend").is_empty(), "{finding}");
            names.push((text("topic").to_owned(), text("name").to_owned()));
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "two findings have one name");
    });
}

#[test]
fn what_is_found_is_so() {
    only_brig("doctor", || {
        let document = here();
        let mode = find(&document, "cgroups", "hierarchies")["found"].as_str().unwrap().to_owned();
        assert_eq!(mode == "v2", host::is_cgroup_v2(), "{mode}");
        for (controller, v1) in [("memory", "memory"), ("cpu", "cpu"), ("pids", "pids"), ("io", "blkio")] {
            let name = if host::is_cgroup_v2() { controller } else { v1 };
            let finding = find(&document, "cgroups", &format!("controller {name}"));
            assert_eq!(finding["good"], host::has_controller(name), "{finding}");
        }
        let systemd = Path::new("/run/systemd/system").is_dir();
        assert_eq!(find(&document, "systemd", "systemd")["good"], systemd);
        let newuidmap = Path::new("/usr/bin/newuidmap").exists();
        assert_eq!(find(&document, "users", "newuidmap")["good"], newuidmap);
        for kind in ["mount", "pid", "network", "ipc", "uts"] {
            assert_eq!(find(&document, "namespaces", kind)["found"], "works");
        }
    });
}

/// By doing it, and not by the version of the kernel.
#[test]
fn what_the_kernel_refuses_is_found() {
    only_brig("doctor", || {
        for (errno, calls, name, says) in [
            (ENOSYS, "mount_setattr", "mount_setattr", "function not implemented"),
            (EPERM, "fsopen", "mount API (fsopen, fsmount)", "operation not permitted"),
            (EPERM, "keyctl", "session keyrings", "operation not permitted"),
            (ENOSYS, "openat2", "openat2", "function not implemented"),
        ] {
            let (code, document) = findings(without(errno, calls));
            let finding = find(&document, "kernel", name);
            assert_eq!(
                (&finding["good"], &finding["found"]),
                (&Value::Bool(false), &Value::from(says)),
                "{finding}"
            );
            assert_eq!(code, 0, "{calls}: {document:#}");
        }
    });
}

#[test]
fn without_something_vital_it_fails() {
    only_brig("doctor", || {
        for (errno, calls, topic, name) in [
            (ENOSYS, "clone3", "kernel", "clone3, waitid on a pidfd"),
            (ENOSYS, "pidfd_open", "kernel", "pidfd_open, pidfd_send_signal"),
            (EPERM, "clone3", "namespaces", "mount"),
        ] {
            let (code, document) = findings(without(errno, calls));
            assert_eq!((code, &document["usable"]), (1, &Value::Bool(false)), "{calls}: {document:#}");
            let finding = find(&document, topic, name);
            assert_eq!(
                (&finding["good"], &finding["vital"]),
                (&Value::Bool(false), &Value::Bool(true)),
                "{finding}"
            );
        }
    });
}

/// Somebody who may not make user namespaces, nor anything else.
#[test]
fn an_ordinary_user_is_told_about_theirs() {
    only_brig("doctor", || {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let brig = dir.path().join("brig");
        std::fs::copy(runtime(), &brig).unwrap();
        let (code, document) = findings(Run::new(&brig).uid(65534, 65534));
        let user = find(&document, "namespaces", "user");
        assert_eq!(user["vital"], true);
        assert_eq!(code == 0, document["usable"] == true);
        assert_eq!(find(&document, "users", "/etc/subuid")["good"], false);
        assert_eq!(find(&document, "users", "caller")["found"], "uid 65534");
        assert_eq!(find(&document, "cgroups", "delegation")["good"], false);
    });
}

#[test]
fn the_table_is_for_people() {
    only_brig("doctor", || {
        let finished = without(ENOSYS, "mount_setattr").arg("doctor").run();
        finished
            .exits(0)
            .says("KERNEL\n✓ version ")
            .says("\nCGROUPS\n✓ hierarchies ")
            .says("\nContainers can run here.\n");
        let line = finished.out.lines().skip_while(|line| !line.starts_with("✗ mount_setattr ")).take(3);
        let lines: Vec<&str> = line.collect();
        assert!(lines[0].ends_with("function not implemented"), "{lines:?}");
        assert_eq!(
            lines[1],
            "    means: no recursive mount attributes (rro and its kin), no id-mapped mounts"
        );
        assert_eq!(lines[2], "    mend: Linux 5.12 or later");
    });
}
