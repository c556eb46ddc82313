//! Ending everything.

use brig_cgroup::{Cgroup, Error};

use crate::view::{Process, at_once, content, in_each_view, in_host_view, resources, soon, until};

/// Processes that multiply until there are a few hundred.
const MULTIPLY: &str =
    "grow() { [ $1 -gt 0 ] && { grow $(($1 - 1)) & grow $(($1 - 1)) & }; sleep 1000; }; grow 7; wait";

#[test]
fn those_who_multiply() {
    in_each_view("kill::those_who_multiply", |view| {
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, MULTIPLY);
        until(|| cgroup.pids(true).unwrap().len() >= 20);
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
        cgroup.remove(soon()).unwrap();
    });
}

/// Processes that fork all the time, and keep to some fifty at once.
const CHURN: &str = "i=0; while [ $i -lt 16 ]; do i=$((i+1)); \
    { while :; do sleep 0.02 & sleep 0.01 & sleep 0.03 & wait; done; } & done; wait";

/// Without cgroup.kill: a container that is in v1 cgroups only.
#[test]
fn those_who_fork_in_v1() {
    in_host_view("kill::those_who_fork_in_v1", |view| {
        if view.is_v2() {
            return;
        }
        let mut names = view.names("x");
        names.groups.retain(|group| !group.unified);
        if !names.groups.iter().any(|group| group.controllers == ["pids"]) {
            println!("skipped: no pids controller to bound it");
            return;
        }
        let cgroup = Cgroup::make(&names, &resources("{}")).unwrap();
        cgroup.apply(&resources(r#"{"pids":{"limit":300}}"#)).unwrap();
        let process = Process::sh(&cgroup, CHURN);
        until(|| cgroup.pids(true).unwrap().len() >= 30);
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
        cgroup.remove(soon()).unwrap();
    });
}

/// More processes than descriptors to hold them by.
#[test]
fn very_many_in_v1() {
    in_host_view("kill::very_many_in_v1", |view| {
        if view.is_v2() {
            return;
        }
        let mut names = view.names("x");
        names.groups.retain(|group| !group.unified);
        let cgroup = Cgroup::make(&names, &resources("{}")).unwrap();
        let _process =
            Process::sh(&cgroup, "i=0; while [ $i -lt 600 ]; do sleep 1000 & i=$((i+1)); done; wait");
        until(|| cgroup.pids(true).unwrap().len() >= 600);
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(cgroup.pids(true).unwrap(), [0; 0]);
    });
}

#[test]
fn a_hybrid_container_that_left_the_unified_cgroup() {
    in_host_view("kill::a_hybrid_container_that_left_the_unified_cgroup", |view| {
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, "exec sleep 1000");
        let elsewhere = view.make("y");
        if let Some(group) = elsewhere.names().groups.iter().find(|group| group.unified && !view.is_v2()) {
            std::fs::write(group.dir().join("cgroup.procs"), process.pid().to_string()).unwrap();
        }
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
    });
}

#[test]
fn who_is_left_is_told() {
    in_each_view("kill::who_is_left_is_told", |view| {
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, "exec sleep 1000");
        until(|| content(format!("/proc/{}/comm", process.pid())) == "sleep");
        let Err(Error::Survivors { left, .. }) = cgroup.wait_empty(at_once()) else {
            panic!("a cgroup with a process is not empty");
        };
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].pid, left[0].comm.as_str()), (process.pid(), "sleep"));
        assert!(left[0].cgroup.ends_with("x"));
        cgroup.kill_all(soon()).unwrap();
    });
}
