//! User namespaces: new and joined ones, what they may not do, and brig inside of one.

use std::fs;
use std::os::unix::fs::MetadataExt;

use brig_tests::{Bundle, Run, json, note, others_may_fail, runtime, since_runc};

#[test]
fn ids_are_mapped() {
    let mut b =
        Bundle::sh("id -u; cat /proc/self/uid_map | tr -s ' '; touch /tmp/made; stat -c %u /etc/passwd");
    b.in_user_namespace();
    let out = b.run().ok().out;
    assert_eq!(out, "0\n 0 100000 65536\n0\n");
    assert_eq!(fs::metadata(b.rootfs().join("tmp/made")).unwrap().uid(), 100_000);
}

#[test]
fn the_user_is_one_of_the_namespace() {
    let mut b = Bundle::sh("id -u; id -g; id -G");
    b.in_user_namespace();
    b.config["process"]["user"] = json!({ "uid": 5, "gid": 6, "additionalGids": [7, 8] });
    assert_eq!(b.run().ok().out, "5\n6\n6 7 8\n");
    b.config["process"]["user"] = json!({ "uid": 70_000, "gid": 0 });
    b.run().run().exits(1).explains("cannot setuid to unmapped uid 70000 in user namespace");
    b.config["process"]["user"] = json!({ "uid": 0, "gid": 70_000 });
    b.run().run().exits(1).explains("cannot setgid to unmapped gid 70000 in user namespace");
    b.assert_gone();
}

#[test]
fn devices_are_bound_from_the_host() {
    let mut b = Bundle::sh(
        "for d in null zero full random urandom tty; do stat -c '%n %t:%T %F' /dev/$d; done; echo x > /dev/null && head -c 3 /dev/zero | wc -c; grep -c ' /dev/null ' /proc/self/mountinfo",
    );
    b.in_user_namespace();
    let out = b.run().ok().out;
    for line in [
        "/dev/null 1:3",
        "/dev/zero 1:5",
        "/dev/full 1:7",
        "/dev/random 1:8",
        "/dev/urandom 1:9",
        "/dev/tty 5:0",
    ] {
        assert!(out.contains(&format!("{line} character special file")), "{out}");
    }
    assert!(out.ends_with("3\n1\n"), "{out}");
}

#[test]
fn exec_is_in_the_namespace() {
    let mut b = Bundle::sleeping();
    b.in_user_namespace();
    b.start();
    let own = fs::read_link(format!("/proc/{}/ns/user", b.pid())).unwrap();
    let seen = b.exec(&["sh", "-c", "id -u; readlink /proc/self/ns/user"]).ok().out;
    assert_eq!(seen, format!("0\n{}\n", own.display()));
    let exec = b.brig("exec").args(["--user", "5:6", &b.id, "sh", "-c", "id -u; id -g"]).ok();
    assert_eq!(exec.out, "5\n6\n");
}

#[test]
fn namespaces_of_another_container_are_joined() {
    let mut a = Bundle::sleeping();
    a.in_user_namespace();
    a.start();
    let mut b = Bundle::sh("readlink /proc/self/ns/user; readlink /proc/self/ns/net; id -u");
    b.in_user_namespace();
    for (kind, file) in [("user", "user"), ("network", "net"), ("ipc", "ipc"), ("uts", "uts")] {
        b.with_namespace(kind, Some(&format!("/proc/{}/ns/{file}", a.pid())));
    }
    b.config.as_object_mut().unwrap().remove("hostname");
    let linux = b.config["linux"].as_object_mut().unwrap();
    linux.remove("uidMappings");
    linux.remove("gidMappings");
    let link =
        |file: &str| fs::read_link(format!("/proc/{}/ns/{file}", a.pid())).unwrap().display().to_string();
    assert_eq!(b.run().ok().out, format!("{}\n{}\n0\n", link("user"), link("net")));
}

#[test]
fn a_network_of_the_host_with_a_joined_user_namespace() {
    // The one can be joined only before, the other only after.
    let host = Run::new("unshare").args(["--net", "sleep", "1000"]).spawn();
    let link = |pid: &str, file: &str| fs::read_link(format!("/proc/{pid}/ns/{file}")).unwrap();
    let pid = host.pid().to_string();
    brig_tests::host::eventually("the namespace", || link(&pid, "net") != link("self", "net"));
    let mut a = Bundle::sleeping();
    a.in_user_namespace();
    a.start();
    let mut b = Bundle::sh("readlink /proc/self/ns/user; readlink /proc/self/ns/net");
    b.in_user_namespace();
    b.with_namespace("user", Some(&format!("/proc/{}/ns/user", a.pid())));
    b.with_namespace("network", Some(&format!("/proc/{pid}/ns/net")));
    // The kernel lets nobody mount a sysfs who does not own the network.
    b.config["mounts"]
        .as_array_mut()
        .unwrap()
        .retain(|m| m["destination"] != "/sys" && m["type"] != "cgroup");
    let expected =
        format!("{}\n{}\n", link(&a.pid().to_string(), "user").display(), link(&pid, "net").display());
    assert_eq!(b.run().ok().out, expected);
}

#[test]
fn time_offsets_with_a_user_namespace() {
    since_runc((1, 2), "time namespaces", || {
        if !std::path::Path::new("/proc/self/ns/time").exists() {
            return note("not checked: this kernel has no time namespaces");
        }
        let mut b = Bundle::sh("cat /proc/self/timens_offsets | tr -s ' '");
        b.in_user_namespace();
        b.with_namespace("time", None);
        b.config["linux"]["timeOffsets"] = json!({ "boottime": { "secs": 77, "nanosecs": 5 } });
        assert_eq!(b.run().ok().out, "monotonic 0 0\nboottime 77 5\n");
    });
}

#[test]
fn where_sysfs_may_not_be_mounted_the_hosts_is_bound() {
    others_may_fail("fails where it is not rootless", || {
        let mut b = Bundle::sh(
            "grep ' /sys ' /proc/self/mountinfo | head -1; ls /sys/class/net | head -1; touch /sys/x 2>&1 || echo read-only",
        );
        b.in_user_namespace();
        b.without_namespace("network");
        b.config["mounts"].as_array_mut().unwrap().retain(|m| m["type"] != "cgroup");
        let finished = b.run().ok();
        assert!(finished.out.contains(" ro,"), "{finished}");
        assert!(finished.out.ends_with("read-only\n"), "{finished}");
        if !brig_tests::is_other_runtime() {
            finished
                .says("sysfs may not be mounted in this user namespace")
                .says("the host's /sys is bound instead");
        }
    });
}

#[test]
fn a_bind_mount_from_a_closed_directory() {
    let mut b = Bundle::new(&["cat", "/mnt/file"]);
    b.in_user_namespace();
    let closed = b.path().join("closed");
    fs::create_dir_all(closed.join("dir")).unwrap();
    fs::write(closed.join("dir/file"), "found\n").unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let source = closed.join("dir");
    b.mount(json!({ "destination": "/mnt", "source": source, "options": ["bind"] }));
    assert_eq!(b.run().ok().out, "found\n");
}

#[test]
fn the_terminal_belongs_to_the_user() {
    let mut b = Bundle::sh("stat -c '%u:%g' $(tty)");
    b.in_user_namespace();
    b.config["process"]["terminal"] = json!(true);
    b.config["process"]["user"] = json!({ "uid": 5, "gid": 6 });
    let script = format!(
        "{} --root {} run --bundle {} {}",
        runtime().display(),
        b.root.display(),
        b.path().display(),
        b.id
    );
    b.write_config();
    let out = Run::new("script").args(["-qec", &script, "/dev/null"]).ok().out;
    assert!(out.contains("5:5"), "{out:?}");
}

#[test]
fn mappings_that_cannot_be() {
    let mut b = Bundle::default();
    b.with_namespace("user", None);
    b.run().run().exits(1).explains("no namespace path to join nor mappings to apply specified");
    b.in_user_namespace();
    b.config["linux"]["uidMappings"] = json!([{ "containerID": 1, "hostID": 100_000, "size": 10 }]);
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn inside_another_user_namespace() {
    let mut b = Bundle::sh(
        "id -u; tr -s ' ' < /proc/self/uid_map; echo > /dev/null && echo written; mknod /tmp/n c 1 3 2>/dev/null || echo refused",
    );
    // One id is mapped there, and no group 5.
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if let Some(options) = mount["options"].as_array_mut() {
            options.retain(|option| option != "gid=5");
        }
    }
    b.write_config();
    let run = Run::new("unshare").args(["--user", "--map-root-user", "--mount", "--propagation", "private"]);
    let run =
        run.arg(runtime()).arg("--root").arg(&b.root).args(["run", "--bundle"]).arg(b.path()).arg(&b.id);
    let finished = run.run();
    finished.exits(0);
    assert_eq!(finished.out, "0\n 0 0 1\nwritten\nrefused\n");
    b.assert_gone();
}
