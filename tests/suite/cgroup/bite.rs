//! Limits that the container runs into.

use brig_tests::{Bundle, Value, host, json, note};

use super::{block_device, lacks};

/// `events --stats` of a container.
fn stats(b: &Bundle) -> Value {
    let out = b.brig("events").args(["--stats", &b.id]).ok().out;
    serde_json::from_str::<Value>(&out).unwrap()["data"].clone()
}

/// A program that takes as much memory.
fn takes(memory: &'static str) -> [&'static str; 5] {
    ["dd", "if=/dev/zero", "of=/dev/null", "count=1", memory]
}

#[test]
fn whoever_takes_too_much_memory_is_killed() {
    if lacks(&["memory"]) {
        return;
    }
    let limit = json!({ "limit": 24 << 20, "swap": 24 << 20 });
    let mut b = Bundle::new(&takes("bs=64M"));
    b.limit("memory", limit.clone()).run().run().exits(137);
    let mut b = Bundle::new(&takes("bs=8M"));
    b.limit("memory", limit).run().ok();
}

#[test]
fn a_process_that_exec_started_is_killed_too() {
    if lacks(&["memory"]) {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("memory", json!({ "limit": 24 << 20, "swap": 24 << 20 })).start();
    b.exec(&takes("bs=64M")).run().exits(137);
    assert_eq!(b.status(), "running");
}

#[test]
fn a_quota_throttles() {
    if lacks(&["cpu"]) {
        return;
    }
    let mut b = Bundle::sh("while :; do :; done");
    b.limit("cpu", json!({ "quota": 5_000, "period": 50_000 })).start();
    host::eventually("it to be throttled", || {
        let throttling = stats(&b)["cpu"]["throttling"].clone();
        throttling["throttledPeriods"].as_u64() > Some(1) && throttling["throttledTime"].as_u64() > Some(0)
    });
}

#[test]
fn a_fork_bomb_fizzles_out() {
    if lacks(&["pids"]) {
        return;
    }
    // A shell ends when it cannot fork: then there is another one to try.
    let mut b = Bundle::sh("while :; do sh -c 'while :; do sleep 1000 & done' 2>/dev/null; done");
    b.limit("pids", json!({ "limit": 12 })).start();
    host::eventually("the limit to be reached", || {
        let events = b.limit_file("pids", "pids.events", "pids.events");
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|n| n != "0"))
    });
    let pids = stats(&b)["pids"].clone();
    assert_eq!(pids["limit"], 12);
    assert!(pids["current"].as_u64() <= Some(12), "{pids}");
}

/// With room for one task only the program itself can run.
#[test]
fn no_tasks_but_the_first() {
    if lacks(&["pids"]) {
        return;
    }
    let mut b = Bundle::sh("echo alone; (true); echo more");
    b.limit("pids", json!({ "limit": 0 }));
    let finished = b.run().run();
    assert!(finished.out.starts_with("alone\n"), "{finished}");
    assert!(finished.err.contains("fork"), "{finished}");
}

/// A disk that is throttled makes its writers wait, which the kernel counts.
#[test]
fn a_slow_disk_is_waited_for() {
    if lacks(&["io"]) {
        return;
    }
    let measured = std::path::Path::new("/proc/pressure/io").exists();
    let Some((major, minor)) = block_device().filter(|_| measured) else {
        return note("not run: no block device, or the kernel does not measure pressure");
    };
    let mut b = Bundle::sh("dd if=/dev/zero of=/file bs=64k count=32 oflag=direct && exec sleep 1000");
    let device = rustix::fs::stat(b.path()).unwrap().st_dev;
    if (u64::from(rustix::fs::major(device)), u64::from(rustix::fs::minor(device))) != (major, minor) {
        return note("not run: the bundle is not on a block device of its own");
    }
    let rate = json!([{ "major": major, "minor": minor, "rate": 1 << 20 }]);
    b.limit("blockIO", json!({ "throttleWriteBpsDevice": rate })).start();
    host::eventually("the file to be written", || {
        std::fs::metadata(b.rootfs().join("file")).is_ok_and(|file| file.len() == 2 << 20)
            && b.members().len() == 1
    });
    let blkio = stats(&b)["blkio"].clone();
    let all = blkio["ioServiceBytesRecursive"].as_array().unwrap();
    // A number that is 0 is left out.
    let number = |entry: &Value, key: &str| entry[key].as_u64().unwrap_or(0);
    let device = |entry: &&Value| {
        entry["op"] == "Write" && (number(entry, "major"), number(entry, "minor")) == (major, minor)
    };
    let written = all.iter().find(device).and_then(|entry| entry["value"].as_u64());
    assert!(written >= Some(2 << 20), "{blkio}");
    // Microseconds, of the two seconds that 2 MiB take at 1 MiB/s.
    assert!(blkio["psi"]["some"]["total"].as_u64() > Some(500_000), "{blkio}");
}

#[test]
fn huge_pages_run_out() {
    if lacks(&["hugetlb"]) {
        return;
    }
    let there = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    if there.trim().parse::<u32>().unwrap() < 4 {
        return note("not run: fewer than four huge pages in vm.nr_hugepages");
    }
    let mut b =
        Bundle::sh("fallocate -l 2M /huge/one && echo one; fallocate -l 6M /huge/three && echo three");
    std::os::unix::fs::symlink("busybox", b.rootfs().join("bin/fallocate")).unwrap();
    let options = json!(["pagesize=2M"]);
    b.mount(json!({ "destination": "/huge", "type": "hugetlbfs", "source": "huge", "options": options }));
    b.limit("hugepageLimits", json!([{ "pageSize": "2MB", "limit": 4 << 20 }]));
    let finished = b.run().run();
    assert_eq!(finished.out, "one\n", "{finished}");
}
