//! Limits: that they arrive, that they bite, and what happens where they cannot be.

use std::fs;

use brig_tests::{Bundle, Value, fails_before_runc, host, json, note};

mod apparmor;
mod bite;
mod place;
mod small;
mod unit;

/// Says so where the host cannot limit with one of these controllers.
#[track_caller]
pub fn lacks(controllers: &[&str]) -> bool {
    let missing: Vec<_> = controllers.iter().filter(|name| !host::has_controller(name)).collect();
    if !missing.is_empty() {
        note(&format!("not run: no controller {missing:?} here"));
    }
    !missing.is_empty()
}

/// A block device that is no partition, as `MAJOR:MINOR`: the one that bundles are on if that is one, or else any.
pub fn block_device() -> Option<(u64, u64)> {
    let here = rustix::fs::stat(std::env::temp_dir().as_path()).ok()?.st_dev;
    let here = (u64::from(rustix::fs::major(here)), u64::from(rustix::fs::minor(here)));
    let number = |dir: std::path::PathBuf| {
        // Devices of memory have no queue to throttle; loop devices come and go with other tests.
        let name = dir.file_name()?.to_str()?.to_owned();
        let number = fs::read_to_string(dir.join("dev")).ok()?;
        let (major, minor) = number.trim().split_once(':')?;
        let number = (major.parse().ok()?, minor.parse().ok()?);
        (!name.starts_with("ram") && !name.starts_with("loop")).then_some(number)
    };
    let mut all: Vec<_> = fs::read_dir("/sys/block").ok()?.filter_map(|e| number(e.ok()?.path())).collect();
    all.sort_by_key(|&number| number != here);
    all.first().copied()
}

/// One limit: the member of `linux.resources`, the controller, the v1 file and what it says, and the same for v2.
type Row<'a> = (&'a str, Value, &'a str, (&'a str, &'a str), (&'a str, &'a str));

fn check(rows: &[Row<'_>]) {
    for (member, value, controller, v1, v2) in rows {
        if !host::has_controller(controller) {
            note(&format!("{member} not tried: no controller {controller} here"));
            continue;
        }
        let (_, expected) = if host::is_cgroup_v2() { v2 } else { v1 };
        let mut b = Bundle::sleeping();
        b.limit(member, value.clone()).start();
        assert_eq!(&b.limit_file(controller, v1.0, v2.0), expected, "{value}");
    }
}

#[test]
fn memory() {
    let limit = json!({ "limit": 64 << 20, "reservation": 32 << 20 });
    check(&[
        (
            "memory",
            limit.clone(),
            "memory",
            ("memory.limit_in_bytes", "67108864"),
            ("memory.max", "67108864"),
        ),
        ("memory", limit, "memory", ("memory.soft_limit_in_bytes", "33554432"), ("memory.low", "33554432")),
        (
            "memory",
            json!({ "limit": -1 }),
            "memory",
            ("memory.limit_in_bytes", &no_limit()),
            ("memory.max", "max"),
        ),
        (
            "memory",
            json!({ "limit": 0 }),
            "memory",
            ("memory.limit_in_bytes", &no_limit()),
            ("memory.max", "max"),
        ),
    ]);
    if !host::is_cgroup_v2() {
        let (file, none) = ("memory.swappiness", ("", ""));
        check(&[("memory", json!({ "swappiness": 7 }), "memory", (file, "7"), none)]);
        let mut b = Bundle::sleeping();
        b.limit("memory", json!({ "limit": 64 << 20, "disableOOMKiller": true })).start();
        let control = b.limit_file("memory", "memory.oom_control", "");
        assert!(control.starts_with("oom_kill_disable 1"), "{control}");
    }
}

/// What v1 shows for none: the greatest number of whole pages.
fn no_limit() -> String {
    (i64::MAX / 4096 * 4096).to_string()
}

/// The specification counts memory and swap together, as v1 does.
#[test]
fn swap() {
    if lacks(&["memory"]) {
        return;
    }
    let v2 = host::is_cgroup_v2();
    let file = if v2 { "memory.swap.max" } else { "memory.memsw.limit_in_bytes" };
    let mut probe = Bundle::sleeping();
    probe.limit("memory", json!({ "limit": 64 << 20 })).start();
    if !probe.cgroup_dir("memory").join(file).exists() {
        return note("not run: the kernel does not count swap");
    }
    for (swap, on_v1, on_v2) in [
        (json!(96 << 20), "100663296", "33554432"),
        (json!(64 << 20), "67108864", "0"),
        (json!(-1), no_limit().as_str(), "max"),
        (json!(0), no_limit().as_str(), "max"),
    ] {
        let mut b = Bundle::sleeping();
        b.limit("memory", json!({ "limit": 64 << 20, "swap": swap })).start();
        let found = b.limit_file("memory", "memory.memsw.limit_in_bytes", "memory.swap.max");
        assert_eq!(found, if v2 { on_v2 } else { on_v1 }, "{swap}");
    }
    let mut b = Bundle::sleeping();
    b.limit("memory", json!({ "limit": 64 << 20, "swap": 32 << 20 }));
    let refused = b.brig("create").arg(&b.id).detached().fails();
    refused.explains("swap");
    b.assert_gone();
}

#[test]
fn processor_time() {
    let quota = json!({ "quota": 50_000, "period": 200_000 });
    check(&[
        ("cpu", json!({ "shares": 2048 }), "cpu", ("cpu.shares", "2048"), ("cpu.weight", "174")),
        ("cpu", json!({ "shares": 2 }), "cpu", ("cpu.shares", "2"), ("cpu.weight", "1")),
        ("cpu", json!({ "shares": 262_144 }), "cpu", ("cpu.shares", "262144"), ("cpu.weight", "10000")),
        ("cpu", quota.clone(), "cpu", ("cpu.cfs_quota_us", "50000"), ("cpu.max", "50000 200000")),
        ("cpu", quota, "cpu", ("cpu.cfs_period_us", "200000"), ("cpu.max", "50000 200000")),
        ("cpu", json!({ "quota": -1 }), "cpu", ("cpu.cfs_quota_us", "-1"), ("cpu.max", "max 100000")),
        ("cpu", json!({ "period": 50_000 }), "cpu", ("cpu.cfs_period_us", "50000"), ("cpu.max", "max 50000")),
        ("cpu", json!({ "idle": 1 }), "cpu", ("cpu.idle", "1"), ("cpu.idle", "1")),
        ("cpu", json!({ "idle": 1, "shares": 500 }), "cpu", ("cpu.idle", "1"), ("cpu.idle", "1")),
        (
            "cpu",
            json!({ "quota": 50_000, "burst": 20_000 }),
            "cpu",
            ("cpu.cfs_burst_us", "20000"),
            ("cpu.max.burst", "20000"),
        ),
    ]);
}

#[test]
fn processors_and_memory_nodes() {
    let both = json!({ "cpus": "0", "mems": "0" });
    check(&[
        ("cpu", both.clone(), "cpuset", ("cpuset.cpus", "0"), ("cpuset.cpus", "0")),
        ("cpu", both.clone(), "cpuset", ("cpuset.mems", "0"), ("cpuset.mems", "0")),
    ]);
    if lacks(&["cpuset"]) {
        return;
    }
    let mut b = Bundle::sh("nproc; grep _allowed_list /proc/self/status");
    b.limit("cpu", both);
    let out = b.run().ok().out;
    assert!(out.starts_with("1\n") && out.contains("Cpus_allowed_list:\t0\n"), "{out}");
    for (member, list) in [("cpus", "4000"), ("mems", "1000"), ("cpus", "nonsense")] {
        let mut b = Bundle::default();
        b.limit("cpu", json!({ member: list }));
        b.run().fails().explains(&format!("linux.resources.cpu.{member}"));
        b.assert_gone();
    }
}

/// Row 34 of the cases: 0 is a limit, -1 is none.
#[test]
fn tasks() {
    if fails_before_runc((1, 4), "takes a limit of 0 for none") {
        return;
    }
    check(&[
        ("pids", json!({ "limit": 33 }), "pids", ("pids.max", "33"), ("pids.max", "33")),
        ("pids", json!({ "limit": 0 }), "pids", ("pids.max", "1"), ("pids.max", "1")),
        ("pids", json!({ "limit": -1 }), "pids", ("pids.max", "max"), ("pids.max", "max")),
        ("pids", json!({}), "pids", ("pids.max", "max"), ("pids.max", "max")),
    ]);
}

#[test]
fn throttled_block_devices() {
    let controller = if host::is_cgroup_v2() { "io" } else { "blkio" };
    let Some((major, minor)) = block_device() else {
        return note("not run: there is no block device");
    };
    let key = format!("{major}:{minor}");
    let device = |rate: u64| json!([{ "major": major, "minor": minor, "rate": rate }]);
    let io_max = |what: &str| {
        let of = |name: &str| if what.starts_with(name) { what.to_owned() } else { format!("{name}=max") };
        [key.clone(), of("rbps"), of("wbps"), of("riops"), of("wiops")].join(" ")
    };
    let (bytes, operations) = (format!("{key} 1048576"), format!("{key} 100"));
    for (member, rate, v1, v2) in [
        ("throttleReadBpsDevice", 1_048_576, ("blkio.throttle.read_bps_device", &bytes), "rbps=1048576"),
        ("throttleWriteBpsDevice", 1_048_576, ("blkio.throttle.write_bps_device", &bytes), "wbps=1048576"),
        ("throttleReadIOPSDevice", 100, ("blkio.throttle.read_iops_device", &operations), "riops=100"),
        ("throttleWriteIOPSDevice", 100, ("blkio.throttle.write_iops_device", &operations), "wiops=100"),
    ] {
        let value = json!({ member: device(rate) });
        check(&[("blockIO", value, controller, (v1.0, v1.1), ("io.max", &io_max(v2)))]);
    }
    if lacks(&[controller]) {
        return;
    }
    let mut b = Bundle::default();
    let nothing = json!([{ "major": 4000, "minor": 7, "rate": 1 }]);
    b.limit("blockIO", json!({ "throttleReadBpsDevice": nothing }));
    b.run().fails().explains("linux.resources.blockIO.throttleReadBpsDevice[0].rate").says("no such");
}

/// Which file there is depends on the scheduler of the block devices.
#[test]
fn weights_of_block_devices() {
    let v2 = host::is_cgroup_v2();
    let controller = if v2 { "io" } else { "blkio" };
    if lacks(&[controller]) {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    let has = |file: &str| b.cgroup_dir(controller).join(file).exists();
    let files: &[(&str, &str)] = if v2 {
        &[("io.bfq.weight", "default 500"), ("io.weight", "default 4950")]
    } else {
        &[("blkio.weight", "500"), ("blkio.bfq.weight", "500")]
    };
    let Some((file, expected)) = files.iter().find(|(file, _)| has(file)) else {
        let mut b = Bundle::default();
        b.limit("blockIO", json!({ "weight": 500 }));
        b.run().fails().says("linux.resources.blockIO.weight: this kernel offers no");
        return note("no scheduler with weights: only the refusal was tried");
    };
    let mut weighted = Bundle::sleeping();
    weighted.limit("blockIO", json!({ "weight": 500 }));
    weighted.start();
    let found = weighted.limit_file(controller, file, file);
    assert_eq!(found.lines().next(), Some(*expected));
    // A weight for one device needs that scheduler on the device.
    let Some((major, minor)) = block_device().filter(|_| file.contains("bfq")) else {
        return note("no device with BFQ: its own weight was not tried");
    };
    let mut b = Bundle::sleeping();
    let device = json!([{ "major": major, "minor": minor, "weight": 300 }]);
    b.limit("blockIO", json!({ "weight": 500, "weightDevice": device }));
    let created = b.brig("create").arg(&b.id).detached().run();
    let key = format!("{major}:{minor}");
    if created.code() != 0 {
        created.explains("linux.resources.blockIO.weightDevice[0].weight");
        return note(&format!("{key} has no BFQ: its own weight was refused"));
    }
    let file = if v2 { "io.bfq.weight" } else { "blkio.bfq.weight_device" };
    let found = b.limit_file(controller, file, file);
    assert!(found.lines().any(|line| line == format!("{key} 300")), "{found}");
}

#[test]
fn huge_pages() {
    let v2 = ("hugetlb.2MB.max", "4194304");
    let limit = json!([{ "pageSize": "2MB", "limit": 4_194_304 }]);
    check(&[("hugepageLimits", limit, "hugetlb", ("hugetlb.2MB.limit_in_bytes", "4194304"), v2)]);
    if lacks(&["hugetlb"]) {
        return;
    }
    let mut b = Bundle::default();
    b.limit("hugepageLimits", json!([{ "pageSize": "3MB", "limit": 1 }]));
    b.run().fails().says("linux.resources.hugepageLimits[0]");
}

#[test]
fn network_class_and_priorities() {
    if host::is_cgroup_v2() {
        // v2 has nothing for it, and clients set it all the same.
        let mut b = Bundle::default();
        b.limit("network", json!({ "classID": 1_048_577 }));
        b.run().ok();
        return;
    }
    check(&[
        ("network", json!({ "classID": 1_048_577 }), "net_cls", ("net_cls.classid", "1048577"), ("", "")),
        (
            "network",
            json!({ "priorities": [{ "name": "lo", "priority": 5 }] }),
            "net_prio",
            ("net_prio.ifpriomap", "lo 5"),
            ("", ""),
        ),
    ]);
    if !host::has_controller("net_cls") {
        let mut b = Bundle::default();
        b.limit("network", json!({ "classID": 1_048_577 }));
        b.run().fails().explains("linux.resources.network.classID");
    }
}

/// There is no RDMA hardware here, so all that can be seen is that it is tried.
#[test]
fn rdma() {
    let mut b = Bundle::default();
    b.limit("rdma", json!({ "brig0": { "hcaHandles": 3, "hcaObjects": 10 } }));
    let refused = b.run().fails();
    refused.explains("linux.resources.rdma[\"brig0\"]");
    if host::has_controller("rdma") {
        refused.says("\"brig0 hca_handle=3 hca_object=10\"").says("no such device");
    }
}

#[test]
fn files_of_the_kernel_by_name() {
    let mut b = Bundle::sleeping();
    b.limit("unified", json!({ "cgroup.max.depth": "3", "cgroup.max.descendants": "7\n" }));
    if !host::is_cgroup_v2() {
        b.brig("create").arg(&b.id).fails().says("invalid configuration: cannot use unified on cgroup v1");
        return;
    }
    b.start();
    assert_eq!(b.limit_file("", "", "cgroup.max.depth"), "3");
    assert_eq!(b.limit_file("", "", "cgroup.max.descendants"), "7");
    if lacks(&["memory", "pids"]) {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("pids", json!({ "limit": 20 }));
    b.limit("unified", json!({ "memory.high": "50331648", "pids.max": "19" }));
    b.start();
    assert_eq!(b.limit_file("", "", "memory.high"), "50331648");
    assert_eq!(b.limit_file("", "", "pids.max"), "19", "what is named by file wins");
}

/// Devices: what the configuration allows, then what every container may do.
#[test]
fn device_rules() {
    let mut b = Bundle::sh(
        "mknod /kmsg c 1 11 && mknod /mem c 1 1 && mknod /zero c 1 5 && head -c 1 /zero | od -t x1
         head -c 1 /kmsg >/dev/null && echo kmsg; head -c 1 /mem >/dev/null && echo mem; echo x >/kmsg && echo written",
    );
    let caps = json!(["CAP_MKNOD", "CAP_SYSLOG", "CAP_SYS_RAWIO", "CAP_DAC_OVERRIDE"]);
    b.config["process"]["capabilities"] = json!({ "bounding": caps, "effective": caps, "permitted": caps });
    b.limit(
        "devices",
        json!([
            { "allow": false, "access": "rwm" },
            { "allow": true, "type": "c", "major": 1, "minor": 11, "access": "r" }
        ]),
    );
    let finished = b.run().run();
    assert!(finished.out.contains("kmsg") && !finished.out.contains("mem"), "{finished}");
    assert!(finished.out.contains("0000000 00") && !finished.out.contains("written"), "{finished}");
    assert_eq!(finished.err.matches("Operation not permitted").count(), 2, "{finished}");
}
