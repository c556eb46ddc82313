//! Stopping a container and letting it go on.

use brig_tests::{Bundle, better_than_runc, host};

/// A container that makes a file longer all the time, and how long that is.
fn ticking() -> Bundle {
    Bundle::sh("trap 'echo >/got' USR1; while :; do echo >>/ticks; sleep 0.02; done")
}

fn ticks(b: &Bundle) -> u64 {
    std::fs::metadata(b.rootfs().join("ticks")).map_or(0, |file| file.len())
}

#[track_caller]
fn goes_on(b: &Bundle) {
    let before = ticks(b);
    host::eventually("the program to go on", || ticks(b) > before);
}

#[test]
fn a_paused_container_does_nothing_until_it_is_resumed() {
    let b = ticking();
    b.start();
    goes_on(&b);
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    let stopped = ticks(&b);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(ticks(&b), stopped);
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
    goes_on(&b);
}

#[test]
fn what_cannot_be_paused_or_resumed() {
    let b = ticking();
    let brig = |command: &str| b.brig(command).arg(&b.id);
    brig("pause").exits_with(1, "container does not exist");
    brig("resume").exits_with(1, "container does not exist");
    b.start();
    brig("resume").exits_with(1, "container not paused");
    brig("pause").ok();
    better_than_runc("does not say that it is paused", || {
        let again = b.brig("pause").arg(&b.id).fails();
        again.says("container is paused: container not running");
    });
    assert_eq!(b.status(), "paused");
    brig("resume").ok();
    brig("kill").arg("KILL").ok();
    b.wait_status("stopped");
    brig("pause").exits_with(1, "container not running");
    brig("resume").exits_with(1, "container not paused");
}

#[test]
fn signals_wait_until_it_is_resumed_but_for_the_last() {
    let b = ticking();
    b.start();
    goes_on(&b);
    b.brig("pause").arg(&b.id).ok();
    b.brig("kill").args([&b.id, "USR1"]).ok();
    assert!(!b.rootfs().join("got").exists());
    b.brig("resume").arg(&b.id).ok();
    host::eventually("the signal", || b.rootfs().join("got").exists());
    b.brig("pause").arg(&b.id).ok();
    b.brig("kill").args([&b.id, "KILL"]).ok();
    b.wait_status("stopped");
}

#[test]
fn all_of_its_processes_stop() {
    let b =
        Bundle::sh("while :; do echo >>/one; sleep 0.02; done & while :; do echo >>/two; sleep 0.02; done");
    b.start();
    let sizes = || ["one", "two"].map(|f| std::fs::metadata(b.rootfs().join(f)).map_or(0, |file| file.len()));
    host::eventually("both to run", || sizes().iter().all(|&size| size > 0));
    b.brig("pause").arg(&b.id).ok();
    let stopped = sizes();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(sizes(), stopped);
    // What is not for its processes to do goes on.
    b.brig("ps").args(["--format", "json", &b.id]).ok();
    b.brig("events").args(["--stats", &b.id]).ok();
    b.brig("update").args(["--cpu-share", "500", &b.id]).run();
    b.delete();
}

#[test]
fn a_created_container_can_be_paused() {
    let b = ticking();
    b.create();
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "created");
    b.brig("start").arg(&b.id).ok();
    goes_on(&b);
}
