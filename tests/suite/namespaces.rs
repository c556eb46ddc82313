//! Namespaces: new ones, joined ones, the host's; and what only exists in them.

use std::fs;

use brig_tests::{Bundle, Run, fails_before_runc, json, note, since_runc};

/// Name of a kind in the configuration and below `/proc/PID/ns`.
const KINDS: [(&str, &str); 7] = [
    ("pid", "pid"),
    ("network", "net"),
    ("ipc", "ipc"),
    ("uts", "uts"),
    ("mount", "mnt"),
    ("cgroup", "cgroup"),
    ("time", "time"),
];

fn link(pid: &str, file: &str) -> String {
    fs::read_link(format!("/proc/{pid}/ns/{file}")).unwrap().to_string_lossy().into_owned()
}

/// A container that sleeps, in a host's place for everything that a test does not name.
fn with_all_new() -> Bundle {
    let mut b = Bundle::sleeping();
    b.with_namespace("cgroup", None);
    b
}

#[test]
fn new_namespaces() {
    let mut b = with_all_new();
    since_runc((1, 2), "time namespaces", || drop(b.with_namespace("time", None).id.clone()));
    b.start();
    let pid = b.pid().to_string();
    for (kind, file) in KINDS {
        let is_new = b.config["linux"]["namespaces"].as_array().unwrap().iter().any(|ns| ns["type"] == kind);
        assert_eq!(link(&pid, file) != link("self", file), is_new, "{kind}");
    }
}

#[test]
fn the_hosts_namespaces() {
    let mut b = Bundle::sleeping();
    for kind in ["network", "ipc", "uts", "cgroup"] {
        b.without_namespace(kind);
    }
    b.config.as_object_mut().unwrap().remove("hostname");
    b.start();
    let pid = b.pid().to_string();
    for (kind, file) in KINDS {
        let is_new = kind == "pid" || kind == "mount";
        assert_eq!(link(&pid, file) != link("self", file), is_new, "{kind}");
    }
}

#[test]
fn joined_namespaces() {
    let mut a = with_all_new();
    a.config["hostname"] = "first".into();
    a.start();
    for (kind, file) in [("network", "net"), ("ipc", "ipc"), ("uts", "uts"), ("cgroup", "cgroup")] {
        let mut b = Bundle::sleeping();
        b.config.as_object_mut().unwrap().remove("hostname");
        b.with_namespace(kind, Some(&format!("/proc/{}/ns/{file}", a.pid())));
        b.start();
        assert_eq!(link(&a.pid().to_string(), file), link(&b.pid().to_string(), file), "{kind}");
        assert_ne!(link("self", file), link(&b.pid().to_string(), file), "{kind}");
    }
}

#[test]
fn a_joined_pid_namespace() {
    let a = Bundle::sleeping();
    a.start();
    // Its procfs shows the other's processes, and its own among them.
    let mut b = Bundle::sh(
        "cat /proc/1/cmdline | tr '\\0' ' '; echo; [ $$ -ne 1 ] && [ -d /proc/$$ ] && echo here; kill -0 1",
    );
    b.with_namespace("pid", Some(&format!("/proc/{}/ns/pid", a.pid())));
    assert_eq!(b.run().ok().out, "sleep 1000 \nhere\n");
    assert_eq!(a.status(), "running");
    // It can be killed, waited for and deleted as any.
    b.args(&["sleep", "1000"]);
    b.start();
    assert_eq!(link(&a.pid().to_string(), "pid"), link(&b.pid().to_string(), "pid"));
    assert_eq!(b.exec(&["cat", "/proc/1/cmdline"]).ok().out, "sleep\u{0}1000\u{0}");
    b.delete();
    b.assert_gone();
    assert_eq!(a.status(), "running");
}

#[test]
fn the_end_of_the_joined_pid_namespace_is_the_end() {
    let a = Bundle::sleeping();
    a.start();
    let mut b = Bundle::sleeping();
    b.with_namespace("pid", Some(&format!("/proc/{}/ns/pid", a.pid())));
    b.start();
    a.delete();
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
}

#[test]
fn a_joined_mount_namespace() {
    // As an engine would prepare it: with the rootfs in it.
    let host = Run::new("unshare").args(["--mount", "--propagation", "private", "sleep", "1000"]).spawn();
    brig_tests::host::eventually("the namespace", || {
        link(&host.pid().to_string(), "mnt") != link("self", "mnt")
    });
    let mut b = Bundle::sh("cat /etc/passwd | head -1; exec sleep 1000");
    b.with_namespace("mount", Some(&format!("/proc/{}/ns/mnt", host.pid())));
    b.config["linux"]["maskedPaths"] = json!([]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    b.start();
    let exec = b.exec(&["cat", "/etc/passwd"]).ok();
    assert!(exec.out.starts_with("root:x:0:0:root:/root:/bin/sh\nuser:"), "{exec}");
    b.delete();
    b.assert_gone();
}

#[test]
fn a_joined_time_namespace_and_offsets() {
    if fails_before_runc((1, 2), "knows no time namespaces") {
        return;
    }
    if !std::path::Path::new("/proc/self/ns/time").exists() {
        return note("not checked: this kernel has no time namespaces");
    }
    let mut a = Bundle::sleeping();
    a.with_namespace("time", None);
    a.config["linux"]["timeOffsets"] = json!({
        "monotonic": { "secs": 7_000_000, "nanosecs": 5 },
        "boottime": { "secs": 9_000_000, "nanosecs": 0 },
    });
    a.start();
    let uptime = |b: &Bundle| {
        let out = b.exec(&["cat", "/proc/uptime"]).ok().out;
        out.split('.').next().unwrap().parse::<u64>().unwrap()
    };
    assert!(uptime(&a) >= 9_000_000);
    let offsets = a.exec(&["cat", "/proc/self/timens_offsets"]).ok().out;
    let offsets: Vec<&str> = offsets.split_whitespace().collect();
    assert_eq!(offsets, ["monotonic", "7000000", "5", "boottime", "9000000", "0"]);
    let mut b = Bundle::sleeping();
    b.with_namespace("time", Some(&format!("/proc/{}/ns/time", a.pid())));
    b.start();
    assert!(uptime(&b) >= 9_000_000);
    b.delete();
    b.config["linux"]["timeOffsets"] = json!({ "boottime": { "secs": 1, "nanosecs": 0 } });
    b.run().run().exits(1).says("both namespace path and time offsets specified");
    b.without_namespace("time");
    b.run()
        .run()
        .exits(1)
        .says("time namespace offsets specified, but time namespace isn't enabled in the config");
}

#[test]
fn namespaces_that_cannot_be() {
    let mut b = Bundle::default();
    b.with_namespace("frob", None);
    b.run().run().exits(1).says("frob").says("does not exist");
    let mut b = Bundle::default();
    b.config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "pid" }));
    b.run().run().exits(1).says("malformed spec file: duplicated ns");
    let mut b = Bundle::default();
    b.with_namespace("network", Some("/no/such/namespace"));
    b.run().run().exits(1).says("/no/such/namespace").says("no such file or directory");
    b.assert_gone();
    // Not the kind that it says.
    let mut b = Bundle::default();
    b.with_namespace("network", Some("/proc/self/ns/uts"));
    b.run().run().exits(1);
    b.assert_gone();
    let mut b = Bundle::default();
    b.with_namespace("network", Some("/etc/passwd"));
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn exec_is_in_all_namespaces_of_the_container() {
    let mut b = with_all_new();
    since_runc((1, 2), "time namespaces", || drop(b.with_namespace("time", None).id.clone()));
    b.start();
    let pid = b.pid().to_string();
    for (_, file) in KINDS {
        let seen = b.exec(&["readlink", &format!("/proc/self/ns/{file}")]).ok().out;
        assert_eq!(seen.trim_end(), link(&pid, file));
    }
}

#[test]
fn a_new_network_has_a_loopback_interface_that_is_up() {
    let b = Bundle::sh("ip addr show lo; ls /sys/class/net");
    let out = b.run().ok().out;
    assert!(out.contains("LOOPBACK,UP"), "{out}");
    assert!(out.contains("127.0.0.1/8"), "{out}");
    assert_eq!(out.lines().last(), Some("lo"));
}

#[test]
fn the_hosts_network_is_left_alone() {
    let mut b = Bundle::new(&["ls", "/sys/class/net"]);
    b.without_namespace("network");
    let out = b.run().ok().out;
    let mut own: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    own.sort();
    assert_eq!(out.lines().collect::<Vec<_>>(), own);
}

#[test]
fn network_devices_are_moved_in() {
    if fails_before_runc((1, 4), "knows no netDevices") {
        return;
    }
    let name = format!("bt{}", std::process::id() % 100_000);
    let add = Run::new("ip").args(["link", "add", &name, "type", "dummy"]).run();
    if add.code() != 0 {
        return note("not checked: no dummy network interface can be made here");
    }
    let mut b = Bundle::new(&["ls", "/sys/class/net"]);
    b.config["linux"]["netDevices"] = json!({ &name: { "name": "inside0" } });
    let finished = b.run().run();
    let _ = Run::new("ip").args(["link", "del", &name]).run();
    finished.exits(0);
    assert_eq!(finished.out, "inside0\nlo\n");
}

#[test]
fn sysctls_of_new_namespaces() {
    let mut b =
        Bundle::sh("cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/shmmax /proc/sys/fs/mqueue/msg_max");
    b.config["linux"]["sysctl"] = json!({
        "net.ipv4.ip_forward": "1",
        "kernel/shmmax": "123456",
        "fs.mqueue.msg_max": "77",
    });
    assert_eq!(b.run().ok().out, "1\n123456\n77\n");
}

#[test]
fn sysctls_of_a_joined_network() {
    let a = Bundle::sleeping();
    a.start();
    let mut b = Bundle::new(&["cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start"]);
    b.with_namespace("network", Some(&format!("/proc/{}/ns/net", a.pid())));
    b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_unprivileged_port_start": "99" });
    assert_eq!(b.run().ok().out, "99\n");
}

#[test]
fn sysctls_of_the_host_are_refused() {
    for (key, without, text) in [
        ("net.ipv4.ip_forward", "network", "not allowed in host network namespace"),
        ("kernel.shmmax", "ipc", "is not allowed in the hosts ipc namespace"),
        ("kernel.msgmax", "ipc", "is not allowed in the hosts ipc namespace"),
        ("fs.mqueue.msg_max", "ipc", "is not allowed in the hosts ipc namespace"),
        ("vm.swappiness", "", "is not in a separate kernel namespace"),
        ("kernel.core_pattern", "", "is not in a separate kernel namespace"),
        ("kernel.hostname", "", "is not allowed as it conflicts with the OCI \"hostname\" field"),
    ] {
        let mut b = Bundle::default();
        b.without_namespace(without);
        b.config["linux"]["sysctl"] = json!({ key: "1" });
        b.run().run().exits(1).says(key).says(text);
        b.assert_gone();
    }
}

#[test]
fn a_sysctl_that_does_not_exist() {
    let mut b = Bundle::default();
    b.config["linux"]["sysctl"] = json!({ "net.frob": "1" });
    b.run().run().exits(1).says("frob").says("no such file or directory");
    b.assert_gone();
}

#[test]
fn dots_in_the_name_of_a_sysctl() {
    let mut b = Bundle::default();
    b.config["linux"]["sysctl"] = json!({ "net/../kernel/core_pattern": "owned" });
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let finished = b.run().run();
    assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), before);
    finished.exits(1);
}
