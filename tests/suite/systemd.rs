//! Containers whose cgroups systemd makes. Run by `make systemd-test`, under a real systemd; elsewhere there is nothing to be run.

use std::fs;
use std::path::PathBuf;

use brig_tests::{Bundle, Finished, Run, Value, host, is_other_runtime, json, note};

/// Whether there is a systemd, and it is to be used.
fn not_here() -> bool {
    !host::by_systemd()
}

fn root_only() -> bool {
    not_here() || !rustix::process::geteuid().is_root()
}

fn systemctl(args: &[&str]) -> Finished {
    Run::new("systemctl").args(args).ok()
}

/// Properties of the container's unit.
fn shown(b: &Bundle, names: &str) -> Vec<String> {
    let out = systemctl(&["show", &b.unit(), "--property", names]).out;
    let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn scope(b: &Bundle) -> PathBuf {
    b.cgroup_dir("")
}

#[test]
fn a_scope_in_its_slice() {
    if root_only() {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    assert_eq!(
        shown(&b, "ActiveState,Slice,Delegate,Description,CollectMode,ControlGroup,DefaultDependencies"),
        [
            "ActiveState=active".to_owned(),
            if is_other_runtime() { "CollectMode=inactive" } else { "CollectMode=inactive-or-failed" }
                .to_owned(),
            format!("ControlGroup={}", b.cgroup()),
            "DefaultDependencies=no".to_owned(),
            "Delegate=yes".to_owned(),
            if is_other_runtime() {
                format!("Description=libcontainer container {}", b.id)
            } else {
                format!("Description=brig container {}", b.id)
            },
            "Slice=brig-test.slice".to_owned(),
        ]
    );
    assert_eq!(b.members(), [b.pid()]);
    b.delete();
    b.assert_gone();
}

#[test]
fn names_and_slices() {
    if root_only() {
        return;
    }
    for (path, cgroup) in [
        ("-.slice:brig:{}", "/brig-{}.scope"),
        (":brig:{}", "/system.slice/brig-{}.scope"),
        ("", "/system.slice/runc-{}.scope"),
        ("a-b-c.slice:p:{}", "/a.slice/a-b.slice/a-b-c.slice/p-{}.scope"),
        (":_x:{}", "/system.slice/__x-{}.scope"),
    ] {
        let mut b = Bundle::sleeping();
        b.config["linux"]["cgroupsPath"] = path.replace("{}", &b.id).into();
        b.start();
        let cgroup = cgroup.replace("{}", &b.id);
        let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
        assert!(own.lines().any(|line| line == format!("0::{cgroup}")), "{path}: {own}");
        b.delete();
        let left = host::cgroup_dirs(&cgroup);
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_slice_of_its_own() {
    if root_only() || is_other_runtime() {
        return;
    }
    let mut b = Bundle::sleeping();
    let slice = format!("brig-{}.slice", b.id.replace('-', "_"));
    b.config["linux"]["cgroupsPath"] = format!("system.slice::{slice}").into();
    b.start();
    let cgroup = format!("/brig.slice/{slice}");
    let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
    assert!(own.contains(&format!("0::{cgroup}\n")), "{own}");
    b.delete();
    assert!(host::cgroup_dirs(&cgroup).is_empty());
    assert!(!host::unit_file(&slice).exists());
}

#[test]
fn names_that_are_none_are_refused() {
    if root_only() {
        return;
    }
    let mut b = Bundle::sleeping();
    b.config["linux"]["cgroupsPath"] = "/system.slice/x".into();
    b.brig("create")
        .arg(&b.id)
        .fails()
        .says("expected cgroupsPath to be of format \\\"slice:prefix:name\\\"");
    b.config["linux"]["cgroupsPath"] = "a--b.slice:x:y".into();
    b.brig("create").arg(&b.id).fails().says("invalid slice name: a--b.slice");
}

#[test]
fn annotations_are_properties() {
    if root_only() {
        return;
    }
    let mut b = Bundle::sleeping();
    b.config["annotations"] = json!({
        "org.systemd.property.TimeoutStopUSec": "uint64 7000000",
        "org.systemd.property.Description": "'mine'",
        "org.systemd.property.CollectMode": "'inactive'",
    });
    b.start();
    assert_eq!(
        shown(&b, "TimeoutStopUSec,Description,CollectMode"),
        ["CollectMode=inactive", "Description=mine", "TimeoutStopUSec=7s"]
    );
    b.delete();
    b.config["annotations"] = json!({ "org.systemd.property.TimeoutStopSec": "8" });
    b.start();
    assert_eq!(shown(&b, "TimeoutStopUSec"), ["TimeoutStopUSec=8s"]);
    b.delete();
    b.config["annotations"] = json!({ "org.systemd.property.TimeoutStopSec": "'soon'" });
    let key = "org.systemd.property.TimeoutStopSec";
    b.brig("create").arg(&b.id).fails().says(key);
    b.assert_gone();
    // What systemd says to it is in the error.
    b.config["annotations"] = json!({ "org.systemd.property.NoSuchThing": "true" });
    b.brig("create").arg(&b.id).fails().says("NoSuchThing, or unknown property");
    b.assert_gone();
}

#[test]
fn what_systemd_has_no_property_for_is_in_the_files() {
    if root_only() {
        return;
    }
    if !host::has_controller("hugetlb") {
        return note("not run: there is no hugetlb controller");
    }
    let mut b = Bundle::sleeping();
    b.config["linux"]["resources"]["hugepageLimits"] = json!([{ "pageSize": "2MB", "limit": 4_194_304 }]);
    b.start();
    assert_eq!(fs::read_to_string(scope(&b).join("hugetlb.2MB.max")).unwrap(), "4194304\n");
}

/// A limit with which nothing has to be written to a file where there is no memory controller.
const UNLIMITED_SWAP: &str = r#"{"memory":{"swap":-1}}"#;

#[test]
fn limits_are_properties() {
    if root_only() {
        return;
    }
    let mut b = Bundle::sleeping();
    if host::has_controller("memory") && host::has_controller("pids") && host::has_controller("cpu") {
        b.config["linux"]["resources"]["pids"] = json!({ "limit": 50 });
        b.config["linux"]["resources"]["memory"] = json!({ "limit": 67_108_864, "swap": 134_217_728 });
        b.config["linux"]["resources"]["cpu"] = json!({ "quota": 12_345, "period": 100_000, "shares": 512 });
        b.start();
        assert_eq!(
            shown(&b, "TasksMax,MemoryMax,MemorySwapMax,CPUWeight,CPUQuotaPerSecUSec"),
            [
                "CPUQuotaPerSecUSec=130ms",
                "CPUWeight=59",
                "MemoryMax=67108864",
                "MemorySwapMax=67108864",
                "TasksMax=50"
            ]
        );
        // systemd has whole percents only.
        assert_eq!(fs::read_to_string(scope(&b).join("cpu.max")).unwrap(), "12345 100000\n");
        b.brig("update").args(["--pids-limit", "60", "--cpu-quota", "23456", &b.id]).ok();
        assert_eq!(shown(&b, "TasksMax,CPUQuotaPerSecUSec"), ["CPUQuotaPerSecUSec=240ms", "TasksMax=60"]);
        assert_eq!(fs::read_to_string(scope(&b).join("cpu.max")).unwrap(), "23456 100000\n");
        systemctl(&["daemon-reload"]);
        assert_eq!(fs::read_to_string(scope(&b).join("pids.max")).unwrap(), "60\n");
        // A limit that the kernel refuses changes nothing anywhere.
        b.brig("update").args(["--pids-limit", "70", "--cpu-quota", "1", &b.id]).fails();
        assert_eq!(shown(&b, "TasksMax,CPUQuotaPerSecUSec"), ["CPUQuotaPerSecUSec=240ms", "TasksMax=60"]);
    } else {
        note("no limits that bite: the machine has its controllers in cgroup v1");
        b.start();
        systemctl(&["set-property", "--runtime", &b.unit(), "MemorySwapMax=1M"]);
        b.brig("update").args(["--resources", "-", &b.id]).input(UNLIMITED_SWAP).ok();
        assert_eq!(shown(&b, "MemorySwapMax"), ["MemorySwapMax=infinity"]);
    }
}

/// A container that may open the device of FUSE for reading, and not for writing.
fn with_devices() -> Bundle {
    let mut b = Bundle::sleeping();
    let fuse = json!({ "path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 0o666 });
    b.config["linux"]["devices"] = json!([fuse]);
    b.config["linux"]["resources"]["devices"] = json!([
        { "allow": false, "access": "rwm" },
        { "allow": true, "type": "c", "major": 10, "minor": 229, "access": "r" },
    ]);
    b
}

/// What of the devices can be opened, and how.
fn usable(b: &Bundle) -> String {
    let script = "for f in null fuse; do (: </dev/$f) 2>/dev/null && echo -n \"$f:r \"; (: >/dev/$f) 2>/dev/null && echo -n \"$f:w \"; done; true";
    b.exec(&["sh", "-c", script]).ok().out.trim().to_owned()
}

#[test]
fn daemon_reload_leaves_devices_alone() {
    if root_only() {
        return;
    }
    let b = with_devices();
    b.start();
    let before = usable(&b);
    if !before.contains("fuse") {
        note("the kernel has no FUSE: only what is allowed to all is looked at");
    }
    assert_eq!(before.replace(" fuse:r", ""), "null:r null:w");
    systemctl(&["daemon-reload"]);
    assert_eq!(usable(&b), before);
    b.brig("update").args(["--resources", "-", &b.id]).input(UNLIMITED_SWAP).ok();
    assert_eq!(usable(&b), before);
    systemctl(&["daemon-reexec"]);
    assert_eq!(usable(&b), before);
    let policy = shown(&b, "DevicePolicy,DeviceAllow");
    assert!(policy.contains(&"DevicePolicy=strict".to_owned()), "{policy:?}");
    assert!(policy.contains(&"DeviceAllow=/dev/char/10:229 r".to_owned()), "{policy:?}");
}

#[test]
fn stopped_from_outside() {
    if root_only() {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    systemctl(&["kill", "--signal", "KILL", &b.unit()]);
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
    let mut b = Bundle::sleeping();
    b.config["annotations"] = json!({ "org.systemd.property.TimeoutStopUSec": "uint64 300000" });
    b.start();
    systemctl(&["stop", &b.unit()]);
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
    // And again with the same name.
    b.start();
    assert_eq!(b.status(), "running");
}

#[test]
fn frozen_and_thawed() {
    if root_only() {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    systemctl(&["daemon-reload"]);
    assert_eq!(b.status(), "paused");
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
    b.brig("pause").arg(&b.id).ok();
    b.delete();
    b.assert_gone();
}

#[test]
fn a_failed_unit_of_the_same_name() {
    if root_only() {
        return;
    }
    let b = Bundle::sleeping();
    let mut failing = Run::new("systemd-run")
        .args([
            "--scope",
            "--quiet",
            "--unit",
            &b.unit(),
            "--property",
            "RuntimeMaxSec=1",
            "--property",
            "Slice=brig-test.slice",
        ])
        .args(["sleep", "1000"])
        .spawn();
    host::eventually("the unit fails", || {
        let state = Run::new("systemctl").args(["is-failed", "--quiet", &b.unit()]).run();
        state.status.success() && host::members_of(&b.cgroup()).is_empty()
    });
    let _ = failing.child().wait();
    assert!(host::unit_file(&b.unit()).exists());
    b.start();
    assert_eq!(b.status(), "running");
    assert_eq!(shown(&b, "ActiveState"), ["ActiveState=active"]);
    b.delete();
    b.assert_gone();
}

#[test]
fn a_unit_that_lives_is_no_containers() {
    if root_only() || is_other_runtime() {
        return;
    }
    let b = Bundle::sleeping();
    let mut other = Run::new("systemd-run")
        .args([
            "--scope",
            "--quiet",
            "--unit",
            &b.unit(),
            "--property",
            "Slice=brig-test.slice",
            "sleep",
            "1000",
        ])
        .spawn();
    host::eventually("the unit is there", || !host::members_of(&b.cgroup()).is_empty());
    b.brig("create").arg(&b.id).fails().says("container's cgroup is not empty");
    b.delete();
    assert_eq!(host::members_of(&b.cgroup()).len(), 1, "the other's process has been killed");
    let _ = other.child().kill();
    let _ = other.child().wait();
    host::eventually("the unit is gone", || !host::unit_file(&b.unit()).exists());
}

#[test]
fn killed_for_memory_and_made_anew() {
    if root_only() {
        return;
    }
    if !host::has_controller("memory") {
        return note("not run: there is no memory controller");
    }
    let mut b = Bundle::sh("x=a; while :; do x=$x$x; done");
    b.config["linux"]["resources"]["memory"] = json!({ "limit": 33_554_432, "swap": 33_554_432 });
    for _ in 0..2 {
        b.start();
        b.wait_status("stopped");
        b.brig("delete").arg(&b.id).ok();
        b.assert_gone();
    }
}

#[test]
fn stages_before_the_containers_process() {
    if root_only() {
        return;
    }
    // Namespaces that are joined, and a time namespace, take a process that goes before.
    let mut b = Bundle::sleeping();
    b.with_namespace("time", None).with_namespace("uts", Some("/proc/1/ns/uts"));
    b.config.as_object_mut().unwrap().remove("hostname");
    b.start();
    assert_eq!(b.members(), [b.pid()]);
    let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
    assert!(own.contains(&b.cgroup()), "{own}");
}

#[test]
fn the_bus_restarts() {
    if root_only() {
        return;
    }
    // It is everybody's bus.
    if std::env::var_os("ALONE").is_none() {
        return note("run by itself: ALONE=1");
    }
    let b = Bundle::sleeping();
    b.start();
    systemctl(&["restart", "dbus.service"]);
    b.brig("update").args(["--resources", "-", &b.id]).input(UNLIMITED_SWAP).ok();
    systemctl(&["restart", "dbus.service"]);
    b.delete();
    b.assert_gone();
    systemctl(&["restart", "dbus.service"]);
    b.start();
    b.delete();
    // Without a bus there is systemd's own socket.
    systemctl(&["stop", "dbus.socket", "dbus.service"]);
    b.start();
    assert_eq!(b.members(), [b.pid()]);
    b.brig("update").args(["--resources", "-", &b.id]).input(UNLIMITED_SWAP).ok();
    b.delete();
    b.assert_gone();
    systemctl(&["start", "dbus.socket", "dbus.service"]);
}

/// A bundle for a user who is not root.
pub fn rootless() -> Bundle {
    let mut b = Bundle::sleeping();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    b.with_namespace("user", None);
    b.config["linux"]["uidMappings"] = json!([{ "containerID": 0, "hostID": uid, "size": 1 }]);
    b.config["linux"]["gidMappings"] = json!([{ "containerID": 0, "hostID": gid, "size": 1 }]);
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if let Some(options) = mount.get_mut("options").and_then(Value::as_array_mut) {
            options.retain(|option| option != "gid=5");
        }
    }
    b.config["linux"]["cgroupsPath"] = format!("brig-test.slice:brig:{}", b.id).into();
    b
}

/// With `--user` of `tests/with-systemd` from inside of the user's systemd, with `--session` from outside.
#[test]
fn of_a_user() {
    if not_here() || rustix::process::geteuid().is_root() {
        return;
    }
    let b = rootless();
    b.start();
    let uid = rustix::process::geteuid().as_raw();
    let cgroup = format!("/user.slice/user-{uid}.slice/user@{uid}.service{}", b.cgroup());
    let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
    assert!(own.contains(&format!("0::{cgroup}\n")), "{own}");
    let show =
        |names: &str| Run::new("systemctl").args(["--user", "show", &b.unit(), "--property", names]).ok().out;
    assert_eq!(show("ActiveState"), "ActiveState=active\n");
    let inside = b.exec(&["cat", "/proc/self/cgroup"]).ok().out;
    assert!(inside.contains("0::/\n"), "{inside}");
    b.brig("update").args(["--resources", "-", &b.id]).input(UNLIMITED_SWAP).ok();
    assert_eq!(show("MemorySwapMax"), "MemorySwapMax=infinity\n");
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    b.brig("resume").arg(&b.id).ok();
    // Without the variables, the socket is found all the same.
    b.brig("delete").args(["--force", &b.id]).no_env().ok();
    assert_eq!(show("LoadState"), "LoadState=not-found\n");
    assert!(host::cgroup_dirs(&cgroup).is_empty());
}
