//! Other limits for a container that is there.

use std::fs;

use brig_tests::{Bundle, Value, better_than_runc, fails_before_runc, host, json, note, since_runc};

use crate::cgroup::{block_device, lacks};

fn update(b: &Bundle, flags: &[&str]) -> brig_tests::Finished {
    b.brig("update").args(flags).arg(&b.id).run()
}

/// Says what a file says: the v1 one or the v2 one.
type File<'a> = (&'a str, &'a str, &'a str);

#[track_caller]
fn says(b: &Bundle, (controller, v1, v2): File<'_>, on_v1: &str, on_v2: &str) {
    let expected = if host::is_cgroup_v2() { on_v2 } else { on_v1 };
    assert_eq!(b.limit_file(controller, v1, v2), expected, "{v1} or {v2}");
}

const MEMORY: File<'_> = ("memory", "memory.limit_in_bytes", "memory.max");
const RESERVATION: File<'_> = ("memory", "memory.soft_limit_in_bytes", "memory.low");
const SHARES: File<'_> = ("cpu", "cpu.shares", "cpu.weight");
const QUOTA: File<'_> = ("cpu", "cpu.cfs_quota_us", "cpu.max");
const PERIOD: File<'_> = ("cpu", "cpu.cfs_period_us", "cpu.max");
const BURST: File<'_> = ("cpu", "cpu.cfs_burst_us", "cpu.max.burst");
const IDLE: File<'_> = ("cpu", "cpu.idle", "cpu.idle");
const CPUS: File<'_> = ("cpuset", "cpuset.cpus", "cpuset.cpus");
const MEMS: File<'_> = ("cpuset", "cpuset.mems", "cpuset.mems");
const PIDS: File<'_> = ("pids", "pids.max", "pids.max");

/// What v1 shows for no limit.
fn none() -> String {
    (i64::MAX / 4096 * 4096).to_string()
}

#[test]
fn each_flag() {
    if lacks(&["memory", "cpu", "cpuset", "pids"]) {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    for (flags, file, on_v1, on_v2) in [
        (&["--memory", "64M"][..], MEMORY, "67108864", "67108864"),
        (&["--memory-reservation", "32MiB"], RESERVATION, "33554432", "33554432"),
        (&["--cpu-share", "2048"], SHARES, "2048", "174"),
        (&["--cpu-quota", "50000"], QUOTA, "50000", "50000 100000"),
        (&["--cpu-period", "200000"], PERIOD, "200000", "50000 200000"),
        (&["--cpu-burst", "10000"], BURST, "10000", "10000"),
        (&["--cpu-burst", "0"], BURST, "0", "0"),
        (&["--cpu-quota", "-1"], QUOTA, "-1", "max 200000"),
        (&["--cpu-idle", "1"], IDLE, "1", "1"),
        (&["--cpu-idle", "0"], IDLE, "0", "0"),
        (&["--cpuset-cpus", "0"], CPUS, "0", "0"),
        (&["--cpuset-mems", "0"], MEMS, "0", "0"),
        (&["--pids-limit", "50"], PIDS, "50", "50"),
        (&["--pids-limit", "-1"], PIDS, "max", "max"),
        // Nothing is no change.
        (&[], MEMORY, "67108864", "67108864"),
        (&["--memory", "-1"], MEMORY, &none(), "max"),
    ] {
        let finished = update(&b, flags);
        finished.exits(0);
        assert_eq!(finished.both(), "", "{flags:?}");
        says(&b, file, on_v1, on_v2);
    }
    let obsolete = update(&b, &["--kernel-memory", "1M", "--kernel-memory-tcp", "1M"]);
    obsolete.exits(0).says("Kernel memory settings are ignored and will be removed");
}

#[test]
fn memory_with_swap() {
    if lacks(&["memory"]) {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("memory", json!({ "limit": 64 << 20, "swap": 96 << 20 }));
    let created = b.brig("create").arg(&b.id).detached().run();
    if created.code() != 0 {
        return note("not run: the kernel does not count swap");
    }
    let swap: File<'_> = ("memory", "memory.memsw.limit_in_bytes", "memory.swap.max");
    says(&b, swap, "100663296", "33554432");
    // Raised and lowered past each other, in whatever order the kernel wants it.
    update(&b, &["--memory", "256M", "--memory-swap", "512M"]).exits(0);
    says(&b, MEMORY, "268435456", "268435456");
    says(&b, swap, "536870912", "268435456");
    update(&b, &["--memory", "32M", "--memory-swap", "48M"]).exits(0);
    says(&b, MEMORY, "33554432", "33554432");
    says(&b, swap, "50331648", "16777216");
    // The limit of both stays what it was, and so the one of swap does not.
    update(&b, &["--memory", "40M"]).exits(0);
    says(&b, swap, "50331648", "8388608");
    update(&b, &["--memory-swap", "-1"]).exits(0);
    says(&b, swap, &none(), "max");
    says(&b, MEMORY, "41943040", "41943040");
    update(&b, &["--memory-swap", "64M"]).exits(0);
    // More memory than memory and swap cannot be.
    assert_ne!(update(&b, &["--memory", "128M"]).code(), 0);
    says(&b, MEMORY, "41943040", "41943040");
    // Without a limit of memory there is none of both.
    update(&b, &["--memory", "-1"]).exits(0);
    says(&b, MEMORY, &none(), "max");
    says(&b, swap, &none(), "max");
}

#[test]
fn weight_of_block_devices() {
    let v2 = host::is_cgroup_v2();
    let controller = if v2 { "io" } else { "blkio" };
    if lacks(&[controller]) {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    let files: &[&str] =
        if v2 { &["io.bfq.weight", "io.weight"] } else { &["blkio.weight", "blkio.bfq.weight"] };
    let Some(file) = files.iter().find(|file| b.cgroup_dir(controller).join(file).exists()) else {
        let refused = update(&b, &["--blkio-weight", "500"]);
        assert_ne!(refused.code(), 0);
        refused.says("blockIO.weight");
        return;
    };
    update(&b, &["--blkio-weight", "500"]).exits(0);
    let found = b.limit_file(controller, file, file);
    let weight = if *file == "io.weight" { "4950" } else { "500" };
    assert!(found.lines().next().unwrap().ends_with(weight), "{found}");
}

const JSON: &str = r#"{
    "memory": { "limit": 67108864, "reservation": 33554432, "Swap": null },
    "CPU": { "shares": 2048, "quota": 50000, "period": 200000, "cpus": "0", "mems": "0", "idle": null },
    "pids": { "limit": 44 },
    "blockIO": { "weight": 0 }
}"#;

#[test]
fn json_of_a_file_and_of_standard_input() {
    if lacks(&["memory", "cpu", "cpuset", "pids"]) {
        return;
    }
    for file in [true, false] {
        let b = Bundle::sleeping();
        b.start();
        let path = b.path().join("resources.json");
        fs::write(&path, JSON).unwrap();
        let from = if file { path.to_str().unwrap() } else { "-" };
        // Other flags are void then; what follows the first value is not read.
        let run = b.brig("update").args(["--resources", from, "--pids-limit", "7", &b.id]);
        run.input(format!("{JSON}\n{{\"pids\":{{\"limit\":8}}}}")).ok();
        says(&b, MEMORY, "67108864", "67108864");
        says(&b, RESERVATION, "33554432", "33554432");
        says(&b, SHARES, "2048", "174");
        says(&b, QUOTA, "50000", "50000 200000");
        says(&b, PERIOD, "200000", "50000 200000");
        says(&b, CPUS, "0", "0");
        says(&b, PIDS, "44", "44");
    }
}

#[test]
fn members_that_are_null_are_absent() {
    better_than_runc("crashes", || {
        let b = Bundle::sleeping();
        b.start();
        let text = r#"{"memory":null,"cpu":null,"blockIO":null,"pids":null,"network":null,"unified":null}"#;
        b.brig("update").args(["-r", "-", &b.id]).input(text).ok();
    });
}

#[test]
fn json_that_cannot_be_read() {
    let b = Bundle::sleeping();
    b.start();
    let with = |text: &str| b.brig("update").args(["-r", "-", &b.id]).input(text).fails();
    with("{");
    with(r#"{"memory":{"limit":"much"}}"#).says("memory.limit");
    b.brig("update").args(["-r", "/no/such/file", &b.id]).fails().says("no such file or directory");
}

/// There is no such processor here, so all that can be seen is that it is tried.
#[test]
fn caches_and_memory_bandwidth() {
    if std::path::Path::new("/sys/fs/resctrl/info").exists() {
        return note("not run: this processor has it");
    }
    let b = Bundle::sleeping();
    b.start();
    for (flags, text) in [
        (["--l3-cache-schema", "L3:0=f"], "Intel RDT/CAT: l3 cache schema is not enabled"),
        (["--mem-bw-schema", "MB:0=50"], "Intel RDT/MBA: memory bandwidth schema is not enabled"),
    ] {
        let refused = update(&b, &flags);
        assert_ne!(refused.code(), 0);
        refused.says(text);
    }
}

/// Row 34 of the cases.
#[test]
fn a_quota_taken_away_while_the_memory_changes() {
    if lacks(&["memory", "cpu", "pids"]) || fails_before_runc((1, 4), "takes a limit of 0 tasks for none") {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("cpu", json!({ "quota": 50_000, "period": 100_000 }));
    b.start();
    update(&b, &["--cpu-quota", "-1", "--memory", "64M"]).exits(0);
    says(&b, QUOTA, "-1", "max 100000");
    says(&b, MEMORY, "67108864", "67108864");
    update(&b, &["--pids-limit", "0"]).exits(0);
    says(&b, PIDS, "1", "1");
    update(&b, &["--pids-limit", "-1"]).exits(0);
    says(&b, PIDS, "max", "max");
    let unknown = update(&b, &["--cpu-frob", "1"]);
    assert_ne!(unknown.code(), 0);
    unknown.says("flag provided but not defined: -cpu-frob");
}

/// Row 33 of the cases.
#[test]
fn device_rules_stay() {
    if lacks(&["pids"]) {
        return;
    }
    let script = "mknod /kmsg c 1 11; head -c 1 /kmsg >/dev/null && echo allowed";
    let caps = json!(["CAP_MKNOD", "CAP_SYSLOG", "CAP_DAC_OVERRIDE"]);
    for allowed in [true, false] {
        let mut b = Bundle::sleeping();
        b.config["process"]["capabilities"] =
            json!({ "bounding": caps, "effective": caps, "permitted": caps });
        let rules = json!([
            { "allow": false, "access": "rwm" },
            { "allow": allowed, "type": "c", "major": 1, "minor": 11, "access": "rw" }
        ]);
        b.limit("devices", rules).start();
        let list = || {
            let file = b.cgroup_dir("devices").join("devices.list");
            fs::read_to_string(file).unwrap_or_default()
        };
        let before = list();
        update(&b, &["--pids-limit", "50"]).exits(0);
        let other = r#"{"pids":{"limit":40},"devices":[{"allow":true,"access":"rwm"}]}"#;
        b.brig("update").args(["-r", "-", &b.id]).input(other).ok();
        says(&b, PIDS, "40", "40");
        assert_eq!(list(), before);
        let finished = b.exec(&["sh", "-c", script]).run();
        assert_eq!(finished.out == "allowed\n", allowed, "{finished}");
        if !allowed {
            finished.says("Operation not permitted");
        }
    }
}

/// What is not mentioned stays, also in what later updates start from.
#[test]
fn updates_add_up() {
    if lacks(&["cpu", "pids"]) {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("cpu", json!({ "quota": 40_000, "period": 80_000, "shares": 512 }));
    b.limit("pids", json!({ "limit": 60 }));
    b.start();
    update(&b, &["--cpu-quota", "20000"]).exits(0);
    says(&b, QUOTA, "20000", "20000 80000");
    says(&b, PERIOD, "80000", "20000 80000");
    update(&b, &["--cpu-period", "40000"]).exits(0);
    says(&b, QUOTA, "20000", "20000 40000");
    says(&b, PERIOD, "40000", "20000 40000");
    // As clients send it: all members, zero where nothing is asked for.
    let zeros = r#"{"cpu":{"shares":0,"quota":0,"period":0,"cpus":"","mems":""},"blockIO":{"weight":0}}"#;
    b.brig("update").args(["-r", "-", &b.id]).input(zeros).ok();
    says(&b, QUOTA, "20000", "20000 40000");
    says(&b, PIDS, "60", "60");
    update(&b, &["--cpu-quota", "10000"]).exits(0);
    says(&b, QUOTA, "10000", "10000 40000");
}

/// One bad value, and all stays as it was.
#[test]
fn all_or_nothing() {
    if lacks(&["memory", "cpu", "cpuset", "pids"]) {
        return;
    }
    let mut b = Bundle::sleeping();
    b.limit("memory", json!({ "limit": 64 << 20 }));
    b.limit("cpu", json!({ "quota": 50_000, "period": 100_000, "shares": 512 }));
    b.limit("pids", json!({ "limit": 60 }));
    b.start();
    let good = ["--memory", "128M", "--cpu-quota", "70000", "--cpu-share", "1024", "--pids-limit", "70"];
    for bad in [
        &["--cpuset-cpus", "4000"][..],
        &["--cpuset-mems", "1000"],
        &["--cpu-burst", "100000000"],
        &["--cpu-idle", "7"],
        &["--cpu-period", "1"],
    ] {
        let refused = update(&b, &[&good, bad].concat());
        assert_ne!(refused.code(), 0, "{bad:?}");
        refused.explains("linux.resources.cpu.");
        says(&b, MEMORY, "67108864", "67108864");
        says(&b, QUOTA, "50000", "50000 100000");
        says(&b, SHARES, "512", "59");
        says(&b, PIDS, "60", "60");
    }
    // Nor is anything of it left for later updates.
    update(&b, &["--cpu-period", "200000"]).exits(0);
    says(&b, QUOTA, "50000", "50000 200000");
    for (flags, text) in [
        (&["--memory", "abc"][..], "invalid value for memory: invalid size: 'abc'"),
        (&["--cpu-quota", "x"], "invalid value for cpu-quota: strconv.ParseInt"),
        (&["--pids-limit", "x"], "invalid value"),
        (&["--blkio-weight", "9"], "blkio-weight"),
    ] {
        let refused = update(&b, &[&good, flags].concat());
        assert_ne!(refused.code(), 0, "{flags:?}");
        refused.says(text);
        says(&b, PIDS, "60", "60");
    }
}

#[test]
fn a_limit_below_what_is_in_use() {
    if lacks(&["memory"]) {
        return;
    }
    // A file in a tmpfs cannot be given back without swap.
    let mut b = Bundle::sh("head -c 20000000 /dev/zero >/dev/shm/file; exec sleep 1000");
    b.limit("memory", json!({ "limit": 64 << 20, "swap": 64 << 20 }));
    b.start();
    let used = |file: File<'_>| b.limit_file(file.0, file.1, file.2).parse::<u64>().unwrap();
    let usage = ("memory", "memory.usage_in_bytes", "memory.current");
    host::eventually("the memory to be in use", || used(usage) > 19_000_000);
    let checked = r#"{"memory":{"limit":1048576,"swap":1048576,"checkBeforeUpdate":true}}"#;
    since_runc((1, 2), "checkBeforeUpdate", || {
        let refused = b.brig("update").args(["-r", "-", &b.id]).input(checked).fails();
        refused.explains("rejecting memory").explains("limit 1048576 <= usage");
    });
    says(&b, MEMORY, "67108864", "67108864");
    if !host::is_cgroup_v2() {
        let refused = update(&b, &["--memory", "1M"]);
        assert_ne!(refused.code(), 0);
        refused.says("unable to set memory limit to 1048576 (current usage: ");
        says(&b, MEMORY, "67108864", "67108864");
    }
}

#[test]
fn limits_of_block_devices() {
    let controller = if host::is_cgroup_v2() { "io" } else { "blkio" };
    let Some((major, minor)) = block_device().filter(|_| !lacks(&[controller])) else {
        return note("not run: there is no block device, or no controller for it");
    };
    let b = Bundle::sleeping();
    b.start();
    let rate = |rate: u64| {
        let device = json!([{ "major": major, "minor": minor, "rate": rate }]);
        let text = json!({ "blockIO": { "throttleReadBpsDevice": device } }).to_string();
        b.brig("update").args(["-r", "-", &b.id]).input(text).ok();
        b.limit_file(controller, "blkio.throttle.read_bps_device", "io.max")
    };
    assert!(rate(2 << 20).contains("2097152"));
    assert!(rate(1 << 20).contains("1048576"));
    assert!(!rate(0).contains("1048576"), "0 takes the limit away");
}

#[test]
fn files_of_the_kernel_by_name() {
    let b = Bundle::sleeping();
    b.start();
    let text = r#"{"unified":{"cgroup.max.depth":"4"}}"#;
    let run = b.brig("update").args(["-r", "-", &b.id]).input(text);
    if host::is_cgroup_v2() {
        run.ok();
        assert_eq!(b.limit_file("", "", "cgroup.max.depth"), "4");
        let two = r#"{"unified":{"cgroup.max.depth":"5","cgroup.nonsense":"1"}}"#;
        b.brig("update").args(["-r", "-", &b.id]).input(two).fails().says("cgroup.nonsense");
        assert_eq!(b.limit_file("", "", "cgroup.max.depth"), "4");
    } else {
        run.fails().says("invalid configuration: cannot use unified on cgroup v1");
    }
}

#[test]
fn a_container_that_is_created_or_paused_but_not_one_that_has_ended() {
    if lacks(&["pids"]) {
        return;
    }
    let b = Bundle::sleeping();
    b.create();
    update(&b, &["--pids-limit", "50"]).exits(0);
    says(&b, PIDS, "50", "50");
    b.brig("pause").arg(&b.id).ok();
    update(&b, &["--pids-limit", "51"]).exits(0);
    says(&b, PIDS, "51", "51");
    b.brig("resume").arg(&b.id).ok();
    b.brig("kill").args([&b.id, "KILL"]).ok();
    b.wait_status("stopped");
    update(&b, &["--pids-limit", "52"]).exits(1).says("container not running");
}

#[test]
fn members_of_json_that_mean_nothing_are_said_to_be_ignored() {
    brig_tests::only_brig("says nothing", || {
        let b = Bundle::sleeping();
        b.start();
        let text = json!({ "memry": { "limit": 1 }, "devices": [{ "allow": true, "access": "rwm" }] });
        let run = b.brig("update").args(["-r", "-", &b.id]).input(Value::to_string(&text)).ok();
        run.says("memry").says("device rules are not changed by update");
    });
}
