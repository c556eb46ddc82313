//! Short commands again and again, one after the other and at once: none hangs, each status is right, and nothing is left.
//!
//! Few of them here; `FULL=1` runs as many as it takes to believe it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use brig_sys::process::{ExitStatus, pidfd_info};
use brig_tests::{Bundle, Socket, fails_before_runc, host, others_may_fail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How many, in a hurry or not.
fn times(few: usize, full: usize) -> usize {
    if std::env::var_os("FULL").is_some() { full } else { few }
}

/// Does a thing so many times, some at once.
fn repeat(times: usize, at_once: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= times {
                        break;
                    }
                    work(number);
                }
            });
        }
    });
}

/// What there is of a container: processes, cgroups, mounts and files of its record.
fn inventory(b: &Bundle) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (kind, count) in [
        ("processes", b.processes().len()),
        ("cgroups", host::cgroup_dirs(&b.cgroup()).iter().map(|dir| count_dirs(dir)).sum()),
        ("mounts", host::mounts_below(b.path()).len()),
        ("mounts on the host", fs::read_to_string("/proc/self/mountinfo").unwrap().matches(&b.id).count()),
        ("files", fs::read_dir(b.root.join(&b.id)).map_or(0, Iterator::count)),
        ("records of execs", fs::read_dir(b.root.join(&b.id).join("execs")).map_or(0, Iterator::count)),
    ] {
        found.insert(kind.to_owned(), count);
    }
    found
}

fn count_dirs(dir: &std::path::Path) -> usize {
    let below = fs::read_dir(dir).into_iter().flatten().flatten();
    1 + below
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|e| count_dirs(&e.path()))
        .sum::<usize>()
}

/// Descriptors of this process: those that commands pass on to nobody would be here.
fn own_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn exec_status(b: &Bundle, number: usize) {
    let status = i32::try_from(number % 100).unwrap();
    b.exec(&["sh", "-c", &format!("exit {status}")]).run().exits(status);
}

#[test]
fn execs_that_end_at_once() {
    others_may_fail("1.5 loses one now and then (exec failed: EOF)", || {
        let b = Bundle::sleeping();
        b.start();
        let before = inventory(&b);
        repeat(times(60, 5000), 4, |number| exec_status(&b, number));
        assert_eq!(inventory(&b), before);
    });
}

#[test]
fn execs_that_end_at_once_with_a_pidfd() {
    others_may_fail("1.5 loses one now and then (exec failed: EOF)", || {
        if fails_before_runc((1, 2), "has no --pidfd-socket") {
            return;
        }
        let b = Bundle::sleeping();
        b.start();
        let before = inventory(&b);
        let told = AtomicUsize::new(0);
        repeat(times(60, 5000), 4, |number| {
            let status = i32::try_from(number % 100).unwrap();
            let socket = Socket::new(b.path().join(format!("socket-{number}")));
            let exec = b.brig("exec").arg("--pidfd-socket").arg(&socket.path);
            exec.args([&b.id, "sh", "-c", &format!("exit {status}")]).run().exits(status);
            let pidfd = socket.receive().fds.remove(0);
            fs::remove_file(&socket.path).unwrap();
            // The command has ended, so it has waited for the process.
            let mut fds = [PollFd::new(&pidfd, PollFlags::empty())];
            let hung_up = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            if let Some(end) = pidfd_info(std::os::fd::AsFd::as_fd(&pidfd)).and_then(|info| info.exit) {
                assert_eq!((hung_up, end), (Ok(1), ExitStatus::Exited(status)));
                told.fetch_add(1, Ordering::Relaxed);
            }
        });
        let told = told.into_inner();
        assert!(told == 0 || told == times(60, 5000), "{told}");
        assert_eq!(inventory(&b), before);
    });
}

#[test]
fn detached_execs_that_end_at_once() {
    others_may_fail("1.5 loses one now and then (exec failed: EOF)", || {
        if fails_before_runc((1, 2), "has no --pidfd-socket") {
            return;
        }
        let b = Bundle::sleeping();
        b.start();
        let before = inventory(&b);
        repeat(times(60, 1000), 4, |number| {
            let socket = Socket::new(b.path().join(format!("socket-{number}")));
            let exec = b.brig("exec").arg("--detach").arg("--pidfd-socket").arg(&socket.path);
            exec.args([&b.id, "sh", "-c", &format!("exit {}", number % 100)]).detached().ok();
            let pidfd = socket.receive().fds.remove(0);
            fs::remove_file(&socket.path).unwrap();
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            assert_eq!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)), Ok(1));
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::empty())], Some(&limit));
            let end = pidfd_info(std::os::fd::AsFd::as_fd(&pidfd)).and_then(|info| info.exit);
            assert!(
                end.is_none_or(|end| end == ExitStatus::Exited(i32::try_from(number % 100).unwrap())),
                "{end:?}"
            );
        });
        host::eventually("all to be gone", || inventory(&b) == before);
    });
}

/// Containers that run one after the other under one name.
#[test]
fn runs_one_after_the_other() {
    let b = Bundle::default();
    let fds = own_fds();
    for number in 0..times(20, 1000) {
        b.run().ok();
        assert!(number % 10 != 0 || b.leftovers().is_empty());
    }
    b.assert_gone();
    assert!(own_fds() <= fds + 64, "{fds} descriptors before, {} now", own_fds());
}

#[test]
fn runs_at_once() {
    let at_once = 16;
    let all: Vec<Bundle> = (0..times(16, 200)).map(|_| Bundle::default()).collect();
    repeat(all.len(), at_once, |number| drop(all[number].run().ok()));
    all.iter().for_each(Bundle::assert_gone);
}

#[test]
fn execs_one_after_the_other() {
    let b = Bundle::sleeping();
    b.start();
    let before = inventory(&b);
    for _ in 0..times(20, 1000) {
        b.exec(&["true"]).ok();
    }
    assert_eq!(inventory(&b), before);
}

#[test]
fn execs_at_once() {
    others_may_fail("1.5 loses one now and then (exec failed: EOF)", || {
        let b = Bundle::sleeping();
        b.start();
        let before = inventory(&b);
        repeat(times(32, 200), 16, |_| drop(b.exec(&["true"]).ok()));
        assert_eq!(inventory(&b), before);
    });
}
