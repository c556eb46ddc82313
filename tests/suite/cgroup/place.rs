//! Where a container's cgroup may be, and who is in it.

use std::fs;
use std::path::PathBuf;

use brig_tests::{Bundle, Run, Spawned, better_than_runc, host, json, note, only_brig, others_may_fail};

use super::lacks;

/// Says so where systemd has a say about places: these tests choose their own.
fn by_systemd() -> bool {
    if host::by_systemd() {
        note("not run: for the file system driver");
    }
    host::by_systemd()
}

/// A container whose cgroup is one level further down; answers with the one above it.
fn nested(b: &mut Bundle) -> String {
    let above = b.cgroup();
    b.config["linux"]["cgroupsPath"] = json!(format!("{above}/inner"));
    above
}

/// The directories of a cgroup, made in all hierarchies.
fn make(path: &str) -> Vec<PathBuf> {
    let dirs: Vec<_> = host::hierarchies().iter().map(|h| h.join(path.trim_start_matches('/'))).collect();
    dirs.iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
    dirs
}

fn freezer(path: &str, frozen: bool) {
    let dir = host::cgroup_dir("freezer", path);
    if host::is_cgroup_v2() {
        fs::write(dir.join("cgroup.freeze"), if frozen { "1" } else { "0" }).unwrap();
    } else {
        fs::write(dir.join("freezer.state"), if frozen { "FROZEN" } else { "THAWED" }).unwrap();
    }
}

fn sleeper() -> Spawned {
    Run::new("sleep").arg("1000").spawn()
}

/// A cgroup that the test made itself: not the runtime's to remove.
struct Swept(String);

impl Drop for Swept {
    fn drop(&mut self) {
        host::remove_cgroups(&self.0);
    }
}

/// Row 36 of the cases.
#[test]
fn a_frozen_cgroup_is_refused() {
    if by_systemd() {
        return;
    }
    let b = Bundle::default();
    let _swept = Swept(b.cgroup());
    make(&b.cgroup());
    freezer(&b.cgroup(), true);
    let refused = b.brig("create").arg(&b.id).detached().fails();
    refused.says("container's cgroup unexpectedly frozen");
    assert!(!b.root.join(&b.id).exists());
    host::remove_cgroups(&b.cgroup());
}

#[test]
fn a_cgroup_with_processes_is_refused() {
    if by_systemd() {
        return;
    }
    let b = Bundle::default();
    let mut other = sleeper();
    for dir in make(&b.cgroup()) {
        // An empty cpuset takes none.
        let _ = fs::write(dir.join("cgroup.procs"), other.pid().to_string());
    }
    let refused = b.brig("create").arg(&b.id).detached().fails();
    refused.says("container's cgroup is not empty");
    assert!(!b.root.join(&b.id).exists());
    b.delete();
    assert!(other.child().try_wait().unwrap().is_none(), "the stranger was killed");
    drop(other);
    host::remove_cgroups(&b.cgroup());
}

#[test]
fn a_container_below_a_frozen_cgroup() {
    if by_systemd() {
        return;
    }
    let mut b = Bundle::sh("while :; do echo >>/ticks; sleep 0.05; done");
    let above = nested(&mut b);
    b.start();
    let ticks = || fs::metadata(b.rootfs().join("ticks")).map_or(0, |file| file.len());
    host::eventually("the program to run", || ticks() > 0);
    freezer(&above, true);
    // It is not the container that is paused.
    assert_eq!(b.status(), "running");
    only_brig("runc waits for good", || {
        b.exec(&["true"]).run().exits(255).says("cannot exec into a frozen cgroup");
    });
    let mut waiting = b.brig("exec").args(["--ignore-paused", &b.id, "echo", "at last"]).spawn();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waiting.child().try_wait().unwrap().is_none());
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    b.brig("update").arg(&b.id).ok();
    b.brig("events").args(["--stats", &b.id]).ok();
    b.brig("resume").arg(&b.id).ok();
    freezer(&above, false);
    waiting.finish().exits(0).says("at last");
    let before = ticks();
    host::eventually("the program to go on", || ticks() > before);
    b.delete();
    host::remove_cgroups(&above);
}

#[test]
fn a_container_below_a_frozen_cgroup_is_not_started() {
    if by_systemd() {
        return;
    }
    only_brig("runc waits for good", || {
        let mut b = Bundle::sleeping();
        let above = nested(&mut b);
        b.create();
        freezer(&above, true);
        b.brig("start").arg(&b.id).fails().says("a cgroup above its own is frozen");
        freezer(&above, false);
        b.brig("start").arg(&b.id).ok();
        b.delete();
        host::remove_cgroups(&above);
    });
}

/// Row 36 of the cases: a payload that froze some of its own processes.
#[test]
fn a_container_that_froze_its_own_cgroup_is_deleted() {
    others_may_fail("does not thaw what it has not frozen", || {
        let b = Bundle::sh("sleep 1000 & sleep 1000 & wait");
        b.start();
        host::eventually("its processes", || b.members().len() == 3);
        let below = format!("{}/below", b.cgroup());
        let pid = b.members().into_iter().find(|&pid| pid != b.pid()).unwrap();
        let dir = host::cgroup_dir("freezer", &below);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("cgroup.procs"), pid.to_string()).unwrap();
        freezer(&below, true);
        b.delete();
        b.assert_gone();
    });
}

/// Controllers that are handed down keep processes out of the container's own cgroup.
#[test]
fn exec_follows_where_the_first_process_has_gone() {
    if !host::is_cgroup_v2() || lacks(&["pids"]) {
        return note("not run: needs cgroup v2 with pids");
    }
    let b = Bundle::sleeping();
    b.start();
    let top = b.cgroup_dir("");
    fs::create_dir(top.join("init")).unwrap();
    fs::write(top.join("init/cgroup.procs"), b.pid().to_string()).unwrap();
    fs::write(top.join("cgroup.subtree_control"), "+pids").unwrap();
    let own = b.exec(&["cat", "/proc/self/cgroup"]).ok().out;
    assert!(own.trim_end().ends_with("/init"), "{own}");
    let exec = |sub: &str| b.brig("exec").args(["--cgroup", sub, &b.id, "cat", "/proc/self/cgroup"]);
    assert_eq!(exec("init").ok().out, own);
    // Exactly there, and nowhere else.
    exec("/").run().exits(255).says("device or resource busy");
    b.exec(&["true"]).ok();
}

/// Below a threaded cgroup processes can only be in cgroups that are threaded too.
#[test]
fn threaded_cgroups() {
    if by_systemd() {
        return;
    }
    if !host::is_cgroup_v2() {
        return note("not run: needs cgroup v2");
    }
    let mut b = Bundle::new(&["cat", "/proc/self/cgroup"]);
    let above = nested(&mut b);
    let dir = make(&above).remove(0);
    let swept = Swept(above);
    fs::create_dir(dir.join("threads")).unwrap();
    fs::write(dir.join("threads/cgroup.type"), "threaded").unwrap();
    b.run().ok();
    if host::has_controller("memory") {
        b.limit("memory", json!({ "limit": 64 << 20 }));
        b.run().fails().says("cannot enter cgroupv2").says("with domain controllers -- it is in");
    }
    drop(swept);

    better_than_runc("only says: operation not supported", || {
        let b = Bundle::sleeping();
        b.start();
        let top = b.cgroup_dir("");
        fs::create_dir(top.join("threads")).unwrap();
        fs::write(top.join("threads/cgroup.type"), "threaded").unwrap();
        fs::create_dir(top.join("invalid")).unwrap();
        let refused = b.brig("exec").args(["--cgroup", "invalid", &b.id, "true"]).run();
        refused.exits(255).says("see its cgroup.type");
        b.brig("exec").args(["--cgroup", "threads", &b.id, "true"]).ok();
    });
}
