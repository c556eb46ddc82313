//! Limits of containers whose cgroups systemd makes, where it has the controllers for them.

use std::fs;

use brig_tests::{Bundle, Run, host, json, note};

use super::lacks;
use crate::systemd::rootless;

const FILES: [&str; 6] = ["memory.max", "memory.low", "memory.swap.max", "cpu.max", "cpu.weight", "pids.max"];

/// Row 33 of the cases: what systemd sets anew is what the container has, after an update too.
#[test]
fn a_reload_changes_nothing() {
    if !host::by_systemd() || lacks(&["memory", "cpu", "pids"]) {
        return note("not run: for DRIVER=systemd, with controllers");
    }
    let caps = json!(["CAP_MKNOD", "CAP_SYSLOG", "CAP_DAC_OVERRIDE"]);
    let script =
        "mknod /kmsg c 1 11; mknod /mem c 1 1; head -c 1 /kmsg >/dev/null && echo kmsg; head -c 1 /mem";
    let mut b = Bundle::sleeping();
    b.config["process"]["capabilities"] = json!({ "bounding": caps, "effective": caps, "permitted": caps });
    b.limit(
        "devices",
        json!([
            { "allow": false, "access": "rwm" },
            { "allow": true, "type": "c", "major": 1, "minor": 11, "access": "rw" }
        ]),
    );
    b.limit("pids", json!({ "limit": 60 }));
    b.limit("memory", json!({ "limit": 64 << 20, "swap": 96 << 20, "reservation": 32 << 20 }));
    // Whole per cents: systemd has no others, and writes what it has when anything changes.
    b.limit("cpu", json!({ "quota": 12_500, "period": 50_000, "shares": 2048 }));
    b.start();
    b.brig("update").args(["--pids-limit", "50", "--memory", "48M", &b.id]).ok();
    let limits = || FILES.map(|file| b.limit_file("", "", file));
    let devices = || {
        let finished = b.exec(&["sh", "-c", script]).run();
        assert_eq!(finished.out, "kmsg\n", "{finished}");
        finished.says("/mem: Operation not permitted");
        b.exec(&["rm", "/kmsg", "/mem"]).ok();
    };
    let before = limits();
    assert_eq!(before, ["50331648", "33554432", "50331648", "12500 50000", "174", "50"]);
    devices();
    Run::new("systemctl").arg("daemon-reload").ok();
    assert_eq!(limits(), before);
    devices();
}

/// Run as a user with a session, whose systemd has been given these controllers.
#[test]
fn limits_of_a_rootless_container() {
    if !host::by_systemd() || rustix::process::geteuid().is_root() || lacks(&["memory", "pids"]) {
        return note("not run: for a user with DRIVER=systemd");
    }
    let mut b = rootless();
    b.args(&[
        "sh",
        "-c",
        "while [ ! -e /go ]; do sleep 0.1; done; exec dd if=/dev/zero of=/dev/null bs=64M count=1",
    ]);
    b.limit("memory", json!({ "limit": 24 << 20, "swap": 24 << 20 }));
    b.limit("pids", json!({ "limit": 33 }));
    b.start();
    let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
    let own = own.trim_end().trim_start_matches("0::").to_owned();
    let file = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup{own}/{name}")).unwrap();
    assert_eq!((file("memory.max").trim_end(), file("pids.max").trim_end()), ("25165824", "33"));
    b.brig("update").args(["--pids-limit", "20", "--memory", "20M", "--memory-swap", "20M", &b.id]).ok();
    assert_eq!((file("memory.max").trim_end(), file("pids.max").trim_end()), ("20971520", "20"));
    let stats = b.brig("events").args(["--stats", &b.id]).ok();
    stats.says("\"limit\":20971520");
    fs::write(b.rootfs().join("go"), "").unwrap();
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    assert!(host::cgroup_dirs(&own).is_empty());
}
