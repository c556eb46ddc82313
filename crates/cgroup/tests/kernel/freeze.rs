//! Pause and resume.

use crate::view::{Process, content, in_each_view, soon, until};

/// A script that counts, to see whether it runs.
const COUNT: &str = "while :; do echo; done";

fn state(process: &Process) -> String {
    content(format!("/proc/{}/stat", process.pid()))
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn there_and_back() {
    in_each_view("freeze::there_and_back", |view| {
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, &format!("{COUNT} >/dev/null"));
        assert!(!cgroup.is_frozen().unwrap() && !cgroup.self_frozen(soon()).unwrap());
        for _ in 0..3 {
            cgroup.freeze(soon()).unwrap();
            assert!(cgroup.is_frozen().unwrap() && cgroup.self_frozen(soon()).unwrap());
            // Right after a thaw it may still be on its way through the kernel, never again in user mode.
            until(|| state(&process) != "R");
            cgroup.thaw().unwrap();
            assert!(!cgroup.is_frozen().unwrap() && !cgroup.self_frozen(soon()).unwrap());
        }
        // Frozen and killed, a process is gone.
        cgroup.freeze(soon()).unwrap();
        cgroup.kill_all(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
        cgroup.wait_empty(soon()).unwrap();
    });
}

#[test]
fn frozen_from_above_is_not_paused() {
    in_each_view("freeze::frozen_from_above_is_not_paused", |view| {
        let parent = view.make("p");
        let child = view.make("p/c");
        let _process = Process::sh(&child, "exec sleep 1000");
        parent.freeze(soon()).unwrap();
        assert!(child.is_frozen().unwrap());
        assert!(!child.self_frozen(soon()).unwrap());
        assert!(parent.self_frozen(soon()).unwrap());
        parent.thaw().unwrap();
        child.kill_all(soon()).unwrap();
    });
}

#[test]
fn an_empty_one_is_frozen_at_once() {
    in_each_view("freeze::an_empty_one_is_frozen_at_once", |view| {
        let cgroup = view.make("x");
        cgroup.freeze(soon()).unwrap();
        assert!(cgroup.self_frozen(soon()).unwrap());
        cgroup.thaw().unwrap();
    });
}

#[test]
fn what_a_payload_has_frozen_can_be_deleted() {
    in_each_view("freeze::what_a_payload_has_frozen_can_be_deleted", |view| {
        let cgroup = view.make("x");
        let inner = view.make("x/inner");
        let process = Process::sh(&inner, "exec sleep 1000");
        inner.freeze(soon()).unwrap();
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
        cgroup.remove(soon()).unwrap();
    });
}
