//! Every kind of mount and every option.

use super::*;

#[test]
fn the_default_mounts() {
    let table = table(&mut Bundle::default());
    for (point, fstype, options) in [
        ("/proc", "proc", &["rw"][..]),
        ("/dev", "tmpfs", &["rw", "nosuid"]),
        ("/dev/pts", "devpts", &["rw", "nosuid", "noexec"]),
        ("/dev/shm", "tmpfs", &["rw", "nosuid", "nodev", "noexec"]),
        ("/dev/mqueue", "mqueue", &["rw", "nosuid", "nodev", "noexec"]),
        ("/sys", "sysfs", &["ro", "nosuid", "nodev", "noexec"]),
    ] {
        let mount = MountLine::find(&table, point).unwrap_or_else(|| panic!("{point} is not in {table}"));
        assert_eq!(mount.fstype, fstype);
        assert!(options.iter().all(|o| mount.has(o)), "{mount:?}");
    }
    let shm = MountLine::find(&table, "/dev/shm").unwrap();
    assert!(shm.fs_options.iter().any(|o| o == "size=65536k"), "{shm:?}");
    assert_eq!(shm.source, "shm");
    let pts = MountLine::find(&table, "/dev/pts").unwrap();
    assert!(
        ["gid=5", "mode=620", "ptmxmode=666"].iter().all(|o| pts.fs_options.iter().any(|p| p == o)),
        "{pts:?}"
    );
}

#[test]
fn a_directory_is_bound() {
    let mut b = Bundle::sh("cat /data/file && echo container >/data/new");
    let source = source(&b);
    b.mount(bind(&source, "/data", &[]));
    assert_eq!(b.run().ok().out, "host\n");
    assert_eq!(fs::read_to_string(source.join("new")).unwrap(), "container\n");
}

#[test]
fn a_bound_directory_may_be_read_only() {
    let mut b = Bundle::sh("cat /data/file; echo x >/data/new");
    let source = source(&b);
    b.mount(bind(&source, "/data", &["ro"]));
    let finished = b.run().fails();
    finished.says("Read-only file system");
    assert!(!source.join("new").exists());
}

#[test]
fn a_file_is_bound() {
    let mut b = Bundle::sh("cat /etc/file /etc/passwd");
    let source = source(&b).join("file");
    b.mount(bind(&source, "/etc/file", &["ro"]));
    b.mount(bind(&source, "/etc/passwd", &["ro"]));
    assert_eq!(b.run().ok().out, "host\nhost\n");
    // Made to be mounted on.
    let made = fs::metadata(b.rootfs().join("etc/file")).unwrap();
    assert_eq!(made.len(), 0);
    since_runc((1, 2), "files that are not executable", || {
        assert_eq!(made.permissions().mode() & 0o777, 0o644);
    });
}

#[test]
fn missing_mount_points_are_made() {
    let mut b = Bundle::default();
    let source = source(&b);
    b.mount(bind(&source, "/a/b/c", &[]));
    b.mount(tmpfs("/x/y", &[]));
    b.run().ok();
    for dir in ["a", "a/b", "a/b/c", "x/y"] {
        let made = fs::metadata(b.rootfs().join(dir)).unwrap();
        assert!(made.is_dir());
        assert_eq!((made.permissions().mode() & 0o777, made.uid()), (0o755, 0));
    }
}

#[test]
fn the_source_has_to_be_there() {
    let mut b = Bundle::default();
    b.mount(bind("/no/such/source", "/data", &[]));
    let finished = b.run().run();
    finished.exits(1).says("/no/such/source").says("no such file or directory");
    b.assert_gone();
}

#[test]
fn a_directory_is_not_bound_on_a_file_nor_the_other_way_round() {
    let mut b = Bundle::default();
    let source = source(&b);
    b.mount(bind(&source, "/etc/passwd", &[]));
    b.run().run().exits(1).says("not a directory");
    let mut b = Bundle::default();
    b.mount(bind(source.join("file"), "/etc", &[]));
    // docker gives a hint when it reads this.
    assert_ne!(b.run().run().code(), 0);
    b.assert_gone();
}

#[test]
fn a_relative_source_is_in_the_bundle() {
    let mut b = Bundle::new(&["cat", "/data/file"]);
    source(&b);
    b.mount(bind("source", "/data", &[]));
    assert_eq!(b.run().ok().out, "host\n");
}

#[test]
fn a_source_that_is_a_link_is_followed_on_the_host() {
    let mut b = Bundle::new(&["cat", "/data/file"]);
    let source = source(&b);
    symlink(&source, b.path().join("link")).unwrap();
    b.mount(bind(b.path().join("link"), "/data", &[]));
    assert_eq!(b.run().ok().out, "host\n");
}

#[test]
fn the_option_makes_a_bind_mount_whatever_the_type() {
    for kind in ["bind", "none", "", "frob"] {
        let mut b = Bundle::new(&["cat", "/data/file"]);
        let source = source(&b);
        let mut mount = bind(&source, "/data", &[]);
        mount["type"] = kind.into();
        b.mount(mount);
        assert_eq!(b.run().ok().out, "host\n", "{kind}");
    }
}

#[test]
fn a_target_need_not_be_absolute() {
    let mut b = Bundle::new(&["cat", "/data/file"]);
    let source = source(&b);
    b.mount(bind(&source, "data", &[]));
    assert_eq!(b.run().ok().out, "host\n");
}

#[test]
fn dots_in_a_target_do_not_lead_out() {
    let mut b = Bundle::new(&["cat", "/data/file"]);
    let source = source(&b);
    b.mount(bind(&source, "/../../data/../data", &[]));
    assert_eq!(b.run().ok().out, "host\n");
    assert!(!b.path().join("data").exists());
}

#[test]
fn flags_of_bind_mounts() {
    for (options, expected) in [
        (&["nosuid"][..], &["rw", "nosuid", "relatime"][..]),
        (&["nodev"], &["rw", "nodev", "relatime"]),
        (&["noexec"], &["rw", "noexec", "relatime"]),
        (&["ro"], &["ro", "relatime"]),
        (&["noatime"], &["rw", "noatime"]),
        (&["nodiratime", "noatime"], &["rw", "noatime", "nodiratime"]),
        (&["strictatime"], &["rw"]),
        (&["relatime", "nosuid", "nodev", "noexec", "ro"], &["ro", "nosuid", "nodev", "noexec", "relatime"]),
        // A later option undoes an earlier one.
        (&["nosuid", "suid", "ro", "rw", "noexec"], &["rw", "noexec", "relatime"]),
        (&["nodev", "dev", "exec"], &["rw", "relatime"]),
    ] {
        let mut b = Bundle::default();
        let source = source(&b);
        b.mount(bind(&source, "/data", options));
        let mut mount = seen(&mut b, "/data");
        let mut expected: Vec<&str> = expected.to_vec();
        mount.options.sort();
        expected.sort_unstable();
        assert_eq!(mount.options, expected, "{options:?}");
    }
}

#[test]
fn symlinks_need_not_be_followed_in_a_mount() {
    since_runc((1, 2), "nosymfollow", || {
        let mut b = Bundle::default();
        let source = source(&b);
        b.mount(bind(&source, "/data", &["nosymfollow"]));
        assert!(seen(&mut b, "/data").has("nosymfollow"));
    });
}

#[test]
fn flags_that_the_source_has_are_cleared_by_name() {
    if fails_before_runc((1, 2), "keeps the flags") {
        return;
    }
    let shared = SharedMount::new();
    let inner = shared.path().join("inner");
    fs::create_dir(&inner).unwrap();
    Run::new("mount").args(["-t", "tmpfs", "-o", "nosuid,nodev,noexec", "none"]).arg(&inner).ok();
    let mut b = Bundle::default();
    b.mount(bind(&inner, "/kept", &[]));
    b.mount(bind(&inner, "/cleared", &["exec", "suid", "dev"]));
    let table = table(&mut b);
    let kept = MountLine::find(&table, "/kept").unwrap();
    assert!(kept.has("nosuid") && kept.has("nodev") && kept.has("noexec"), "{kept:?}");
    let cleared = MountLine::find(&table, "/cleared").unwrap();
    assert!(!cleared.has("nosuid") && !cleared.has("nodev") && !cleared.has("noexec"), "{cleared:?}");
}

/// Case 18: runc 5098, 5114, youki 3467.
#[test]
fn recursive_access_time_attributes() {
    since_runc((1, 2), "recursive attributes", || {
        for (option, has, lacks) in [
            ("rnoatime", "noatime", "relatime"),
            ("rrelatime", "relatime", "noatime"),
            ("ratime", "relatime", "noatime"),
            ("rnodiratime", "nodiratime", "noatime"),
        ] {
            let mut b = Bundle::default();
            let source = source(&b);
            b.mount(bind(&source, "/data", &[option]));
            let mount = seen(&mut b, "/data");
            assert!(mount.has(has) && !mount.has(lacks), "{option}: {mount:?}");
        }
    });
    since_runc((1, 2), "recursive attributes that do not contradict each other", || {
        for option in ["rnostrictatime", "rstrictatime"] {
            let mut b = Bundle::default();
            let source = source(&b);
            b.mount(bind(&source, "/data", &[option]));
            let mount = seen(&mut b, "/data");
            assert_eq!(mount.has("relatime"), option == "rnostrictatime", "{option}: {mount:?}");
        }
    });
}

/// A mount with another one in it.
fn nested() -> SharedMount {
    let shared = SharedMount::new();
    let sub = shared.path().join("sub");
    fs::create_dir(&sub).unwrap();
    Run::new("mount").args(["-t", "tmpfs", "none"]).arg(&sub).ok();
    shared
}

#[test]
fn recursive_attributes_reach_the_mounts_below() {
    for (option, flag) in [("rro", "ro"), ("rnosuid", "nosuid"), ("rnodev", "nodev"), ("rnoexec", "noexec")] {
        let nested = nested();
        let mut b = Bundle::default();
        b.mount(bind(nested.path(), "/data", &[option]));
        let table = table(&mut b);
        for point in ["/data", "/data/sub"] {
            let mount = MountLine::find(&table, point).unwrap();
            assert!(mount.has(flag), "{option}: {mount:?}");
        }
    }
}

#[test]
fn plain_attributes_do_not_reach_the_mounts_below() {
    let nested = nested();
    let mut b = Bundle::sh("touch /data/sub/x && ! touch /data/x");
    b.mount(bind(nested.path(), "/data", &["ro"]));
    b.run().ok();
}

#[test]
fn bind_without_r_leaves_out_the_mounts_below() {
    let nested = nested();
    let mut b = Bundle::default();
    b.mount(json!({ "destination": "/data", "type": "bind", "source": nested.path(), "options": ["bind"] }));
    b.mount(bind(nested.path(), "/all", &[]));
    let table = table(&mut b);
    assert!(MountLine::find(&table, "/data/sub").is_none());
    assert!(MountLine::find(&table, "/all/sub").is_some());
}

#[test]
fn a_bind_mount_has_no_options_of_a_file_system() {
    since_runc((1, 2), "a check of options", || {
        let mut b = Bundle::default();
        let source = source(&b);
        b.mount(bind(&source, "/data", &["size=5"]));
        let finished = b.run().run();
        finished.exits(1).says("bind mounts cannot have any filesystem-specific options applied");
    });
}

#[test]
fn a_tmpfs_looks_like_the_directory_below() {
    if fails_before_runc((1, 2), "overrides the mode") {
        return;
    }
    let mut b = Bundle::new(&["stat", "-c", "%a", "/sticky", "/given", "/new"]);
    for dir in ["sticky", "given"] {
        fs::create_dir(b.rootfs().join(dir)).unwrap();
        fs::set_permissions(b.rootfs().join(dir), fs::Permissions::from_mode(0o1733)).unwrap();
    }
    b.mount(tmpfs("/sticky", &[]));
    b.mount(tmpfs("/given", &["mode=0710"]));
    b.mount(tmpfs("/new", &[]));
    let modes = b.run().ok().out;
    let modes: Vec<&str> = modes.lines().collect();
    assert_eq!(modes[..2], ["1733", "710"]);
}

#[test]
fn options_of_a_tmpfs() {
    let mut b = Bundle::default();
    b.mount(tmpfs("/t", &["size=1m", "nr_inodes=99", "uid=7", "nosuid", "noexec"]));
    let mount = seen(&mut b, "/t");
    for option in ["size=1024k", "nr_inodes=99", "uid=7"] {
        assert!(mount.fs_options.iter().any(|o| o == option), "{mount:?}");
    }
    assert!(mount.has("nosuid") && mount.has("noexec"), "{mount:?}");
}

#[test]
fn an_option_that_the_file_system_does_not_know() {
    let mut b = Bundle::default();
    b.mount(tmpfs("/t", &["frob=1"]));
    let finished = b.run().run();
    finished.exits(1).says("invalid argument");
    b.assert_gone();
}

#[test]
fn defaults_means_nothing() {
    better_than_runc("hands it to the file system, which refuses it", || {
        let mut b = Bundle::default();
        b.mount(tmpfs("/t", &["defaults", "size=1m"]));
        b.run().ok();
    });
}

#[test]
fn a_read_only_tmpfs_takes_mounts_first() {
    let mut b = Bundle::sh("cat /t/below/file && ! touch /t/x");
    let source = source(&b);
    b.mount(tmpfs("/t", &["ro"]));
    b.mount(bind(&source, "/t/below", &[]));
    b.run().ok();
}

#[test]
fn a_read_only_dev_has_its_devices() {
    let mut b = Bundle::sh("echo x >/dev/null && ! touch /dev/x");
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if mount["destination"] == "/dev" {
            mount["options"] = json!(["nosuid", "mode=755", "ro"]);
        }
    }
    b.run().ok();
}

#[test]
fn tmpcopyup() {
    let mut b = Bundle::sh(
        "cat /data/file /data/dir/inner && stat -c '%a %u:%g' /data/file /data/dir && readlink /data/link && touch /data/new",
    );
    let dir = b.rootfs().join("data");
    fs::create_dir_all(dir.join("dir")).unwrap();
    fs::write(dir.join("file"), "file\n").unwrap();
    fs::write(dir.join("dir/inner"), "inner\n").unwrap();
    fs::set_permissions(dir.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(dir.join("dir"), fs::Permissions::from_mode(0o711)).unwrap();
    symlink("/somewhere/else", dir.join("link")).unwrap();
    b.mount(tmpfs("/data", &["tmpcopyup", "nosuid"]));
    assert_eq!(b.run().ok().out, "file\ninner\n640 0:0\n711 0:0\n/somewhere/else\n");
    assert!(!dir.join("new").exists());
}

#[test]
fn tmpcopyup_does_not_follow_links_out() {
    let mut b = Bundle::sh("cat /data/link");
    let victim = b.path().join("secret");
    fs::write(&victim, "secret\n").unwrap();
    fs::create_dir(b.rootfs().join("data")).unwrap();
    symlink(&victim, b.rootfs().join("data/link")).unwrap();
    b.mount(tmpfs("/data", &["tmpcopyup"]));
    let finished = b.run().run();
    assert!(!finished.out.contains("secret"), "{finished}");
}

#[test]
fn a_file_system_by_its_own_type() {
    let mut b = Bundle::sh("cat /merged/low /merged/up && touch /merged/new");
    for (dir, name) in [("lower", "low"), ("upper", "up"), ("work", "")] {
        fs::create_dir(b.path().join(dir)).unwrap();
        if !name.is_empty() {
            fs::write(b.path().join(dir).join(name), format!("{name}\n")).unwrap();
        }
    }
    let p = b.path().display();
    let options = [format!("lowerdir={p}/lower"), format!("upperdir={p}/upper"), format!("workdir={p}/work")];
    let mount =
        json!({ "destination": "/merged", "type": "overlay", "source": "overlay", "options": options });
    b.mount(mount);
    let finished = b.run().run();
    if finished.err.contains("no such device") {
        return note("not checked: this kernel has no overlay file system");
    }
    assert_eq!(finished.out, "low\nup\n");
    assert!(b.path().join("upper/new").exists());
}

#[test]
fn a_file_system_that_does_not_exist() {
    let mut b = Bundle::default();
    b.mount(json!({ "destination": "/x", "type": "frobfs", "source": "x" }));
    b.run().run().exits(1).says("/x").says("no such device");
    b.assert_gone();
}

#[test]
fn a_mount_of_no_type() {
    let mut b = Bundle::default();
    b.mount(json!({ "destination": "/x", "source": "/etc" }));
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn options_of_procfs() {
    let mut b = Bundle::default();
    b.mount(json!({ "destination": "/other", "type": "proc", "source": "proc", "options": ["hidepid=2", "ro", "nosuid"] }));
    let mount = seen(&mut b, "/other");
    assert!(mount.has("ro") && mount.has("nosuid"), "{mount:?}");
    assert!(mount.fs_options.iter().any(|o| o.starts_with("hidepid=")), "{mount:?}");
}

#[test]
fn procfs_is_that_of_the_container() {
    let b = Bundle::sh("exec ls -d /proc/1 /proc/[0-9]*");
    assert_eq!(b.run().ok().out, "/proc/1\n/proc/1\n");
}

#[test]
fn what_is_mounted_can_be_changed() {
    let mut b = Bundle::sh("! touch /data/x && grep ' /data ' /proc/self/mountinfo");
    let source = source(&b);
    b.mount(bind(&source, "/data", &[]));
    b.mount(json!({ "destination": "/data", "source": source, "type": "none", "options": ["remount", "bind", "ro", "nodev"] }));
    let out = b.run().ok().out;
    let mount = MountLine::find(&out, "/data").unwrap();
    assert!(mount.has("ro") && mount.has("nodev"), "{mount:?}");
}

#[test]
fn ids_of_a_bind_mount_are_mapped() {
    since_runc((1, 2), "mappings without a user namespace", || {
        let mut b = Bundle::new(&["stat", "-c", "%u:%g", "/mapped/file", "/plain/file"]);
        let source = source(&b);
        std::os::unix::fs::chown(source.join("file"), Some(1000), Some(2000)).unwrap();
        b.mount(bind(&source, "/plain", &[]));
        let mut mount = bind(&source, "/mapped", &[]);
        mount["uidMappings"] = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
        mount["gidMappings"] = json!([{ "containerID": 0, "hostID": 200_000, "size": 65536 }]);
        b.mount(mount);
        assert_eq!(b.run().ok().out, "101000:202000\n1000:2000\n");
    });
}

#[test]
fn mappings_come_in_pairs_and_on_bind_mounts() {
    since_runc((1, 2), "mappings of mounts", || {
        let map = json!([{ "containerID": 0, "hostID": 1, "size": 1 }]);
        let mut b = Bundle::default();
        let source = source(&b);
        let mut mount = bind(&source, "/data", &[]);
        mount["uidMappings"] = map.clone();
        b.mount(mount);
        b.run().run().exits(1).says("id-mapped mounts must have both uid and gid mappings specified");
        let mut b = Bundle::default();
        let mut mount = tmpfs("/data", &[]);
        mount["uidMappings"] = map.clone();
        mount["gidMappings"] = map;
        b.mount(mount);
        b.run().run().exits(1).says("id-mapped mounts are only supported for bind-mounts");
    });
}

#[test]
fn the_cgroup_mount_of_v1() {
    if host::is_cgroup_v2() {
        return note("not checked: there is only cgroup v2 here");
    }
    let mut b =
        Bundle::sh("ls /sys/fs/cgroup; cat /sys/fs/cgroup/pids/cgroup.procs; ! mkdir /sys/fs/cgroup/pids/x");
    let out = b.run().ok().out;
    let lines: Vec<&str> = out.lines().collect();
    for controller in ["cpu", "memory", "pids", "devices", "freezer"] {
        assert!(lines.contains(&controller), "{out}");
    }
    // The container's own cgroup, with its process.
    assert!(lines.contains(&"1"), "{out}");
    let table = table(&mut b);
    let mount = MountLine::find(&table, "/sys/fs/cgroup/pids").unwrap();
    assert!(mount.has("ro") && mount.has("nosuid") && mount.has("noexec") && mount.has("nodev"), "{mount:?}");
}

#[test]
fn the_cgroup_mount_of_v1_with_a_cgroup_namespace() {
    if host::is_cgroup_v2() {
        return note("not checked: there is only cgroup v2 here");
    }
    let mut b = Bundle::sh("grep pids: /proc/self/cgroup; cat /sys/fs/cgroup/pids/cgroup.procs");
    b.with_namespace("cgroup", None);
    let out = b.run().ok().out;
    let first = out.lines().next().unwrap();
    assert!(first.ends_with(":/"), "{out}");
    assert!(out.lines().any(|line| line == "1"), "{out}");
}

#[test]
fn the_cgroup_mount_of_v2() {
    if !host::is_cgroup_v2() {
        return note("not checked: cgroup v1 is mounted here");
    }
    let mut b = Bundle::sh("cat /sys/fs/cgroup/cgroup.procs; ! mkdir /sys/fs/cgroup/x");
    let out = b.run().ok().out;
    assert!(out.lines().any(|line| line == "1"), "{out}");
    let mount = seen(&mut b, "/sys/fs/cgroup");
    assert_eq!(mount.fstype, "cgroup2");
    assert!(mount.has("ro") && mount.has("nosuid") && mount.has("noexec") && mount.has("nodev"), "{mount:?}");
}

#[test]
fn the_cgroup_mount_may_be_writable() {
    let mut b = Bundle::default();
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if mount["type"] == "cgroup" {
            mount["options"] = json!(["nosuid", "noexec", "nodev", "relatime", "rw"]);
        }
    }
    b.with_namespace("cgroup", None);
    let dir = if host::is_cgroup_v2() { "/sys/fs/cgroup/x" } else { "/sys/fs/cgroup/pids/x" };
    b.args(&["mkdir", dir]);
    // Sub-cgroups that the workload makes go with the container.
    b.run().ok();
    b.assert_gone();
}
