//! Statistics and out-of-memory events.

use std::os::fd::AsFd;

use brig_cgroup::{Cgroup, OomEvent, OomWatch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::view::{Process, content, in_each_view, resources, soon};

/// Waits for events, as a caller's loop would.
fn next(watch: &mut OomWatch<'_>) -> Vec<OomEvent> {
    loop {
        let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
        let fd = watch.as_fd();
        let ready = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)).unwrap();
        assert_eq!(ready, 1, "no event");
        let events = watch.read().unwrap();
        if !events.is_empty() {
            return events;
        }
    }
}

#[test]
fn numbers_of_a_running_container() {
    in_each_view("events::numbers_of_a_running_container", |view| {
        let cgroup = view.make("x");
        let mut process = Process::sh(
            &cgroup,
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo ready; exec sleep 1000",
        );
        process.line();
        let stats = cgroup.stats().unwrap();
        assert_eq!(stats.pids.current, 1);
        assert!(stats.cpu.usage.total > 0);
        if view.is_v2() {
            assert_eq!(stats.cpu.psi.is_some(), view.dir("x/cpu.pressure", "").exists());
        } else {
            assert!(stats.cpu.usage.percpu.iter().sum::<u64>() > 0);
            assert_eq!(stats.cpu.usage.percpu.len(), stats.cpu.usage.percpu_user.len());
            assert!(stats.memory.usage.usage > 0 && stats.memory.raw.contains_key("rss"));
            assert!(!stats.cpuset.cpus.is_empty());
        }
        // It is what it was read from.
        let json = serde_json::to_value(&stats).unwrap();
        assert_eq!(json["pids"]["current"], 1);
        cgroup.kill_all(soon()).unwrap();
    });
}

#[test]
fn the_end_is_told() {
    in_each_view("events::the_end_is_told", |view| {
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, "exec sleep 1000");
        let mut watch = cgroup.watch_oom().unwrap();
        assert_eq!(watch.read().unwrap(), []);
        cgroup.kill_all(soon()).unwrap();
        cgroup.wait_empty(soon()).unwrap();
        drop(process);
        Cgroup::open(cgroup.names()).unwrap().remove(soon()).unwrap();
        assert_eq!(next(&mut watch), [OomEvent::Gone]);
    });
}

#[test]
fn a_kill_for_want_of_memory_is_told() {
    in_each_view("events::a_kill_for_want_of_memory_is_told", |view| {
        let cgroup = view.make("x");
        if view.is_v2() && !content(view.dir("x/cgroup.controllers", "")).contains("memory") {
            println!("skipped: no memory controller here");
            return;
        }
        cgroup.apply(&resources(r#"{"memory":{"limit":8388608,"swap":8388608}}"#)).unwrap();
        let keeper = Process::sh(&cgroup, "exec sleep 1000");
        assert_eq!(cgroup.oom_kills().unwrap(), Some(0));
        let mut watch = cgroup.watch_oom().unwrap();
        let glutton = Process::sh(&cgroup, r"x=$(head -c 100000000 /dev/zero | tr '\0' x)");
        assert_eq!(next(&mut watch), [OomEvent::Oom]);
        assert_eq!(glutton.killed_by(), Some(9));
        assert!(cgroup.oom_kills().unwrap() >= Some(1));
        cgroup.kill_all(soon()).unwrap();
        drop(keeper);
    });
}
