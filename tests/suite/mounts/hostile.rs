//! Root file systems that want out.

use super::*;

/// A directory of the host that has to stay as it is.
struct Victim {
    dir: tempfile::TempDir,
}

impl Victim {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("brig-victim-").tempdir_in("/tmp").unwrap();
        fs::write(dir.path().join("file"), "untouched").unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    #[track_caller]
    fn assert_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["file"]);
        assert_eq!(fs::read_to_string(self.path().join("file")).unwrap(), "untouched");
    }
}

fn only_proc(b: &mut Bundle) {
    b.config["mounts"] = json!([{ "destination": "/proc", "type": "proc", "source": "proc" }]);
}

/// Case 4: CVE-2026-41579 runc, CVE-2026-47766 crun.
#[test]
fn a_dev_that_is_a_link_to_the_host() {
    if fails_before_runc((1, 5), "is CVE-2026-41579") {
        return;
    }
    let absolute = Victim::new();
    for target in [
        absolute.path().to_owned(),
        Path::new("../../../../../..").join(absolute.path().strip_prefix("/").unwrap()),
    ] {
        let mut b = Bundle::sh("ls -l /dev/");
        only_proc(&mut b);
        fs::remove_dir(b.rootfs().join("dev")).unwrap();
        symlink(&target, b.rootfs().join("dev")).unwrap();
        // Resolved in the root file system, or refused.
        let finished = b.run().run();
        absolute.assert_untouched();
        if finished.code() == 0 {
            let inside = b.rootfs().join(absolute.path().strip_prefix("/").unwrap());
            assert!(inside.join("null").exists(), "{finished}");
        }
    }
}

/// Case 4: the same with what is mounted in it.
#[test]
fn mounts_in_a_dev_that_is_a_link_to_the_host() {
    if fails_before_runc((1, 5), "is CVE-2026-41579") {
        return;
    }
    let victim = Victim::new();
    let mut b = Bundle::default();
    b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
    fs::remove_dir(b.rootfs().join("dev")).unwrap();
    symlink(victim.path(), b.rootfs().join("dev")).unwrap();
    b.run().run();
    victim.assert_untouched();
}

/// Case 5: CVE-2025-31133.
#[test]
fn a_null_that_is_a_link() {
    let mut b = Bundle::sh("cat /masked; echo owned >/masked; exit 0");
    let dev = b.path().join("mydev");
    fs::create_dir(&dev).unwrap();
    symlink("/proc/sys/kernel/core_pattern", dev.join("null")).unwrap();
    fs::write(b.rootfs().join("masked"), "").unwrap();
    b.config["mounts"] =
        json!([{ "destination": "/proc", "type": "proc", "source": "proc" }, bind(&dev, "/dev", &[])]);
    b.config["linux"]["maskedPaths"] = json!(["/masked"]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    since_runc((1, 3), "a check of the null device", || {
        b.run().run().exits(1);
        b.assert_gone();
    });
    assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), before);
}

/// Case 5: another device instead.
#[test]
fn a_null_that_is_another_file() {
    let mut b = Bundle::sh("cat /masked");
    let dev = b.path().join("mydev");
    fs::create_dir(&dev).unwrap();
    fs::write(dev.join("null"), "no device").unwrap();
    fs::write(b.rootfs().join("masked"), "secret").unwrap();
    b.config["mounts"] =
        json!([{ "destination": "/proc", "type": "proc", "source": "proc" }, bind(&dev, "/dev", &[])]);
    b.config["linux"]["maskedPaths"] = json!(["/masked"]);
    since_runc((1, 3), "a check of the null device", || {
        b.run().run().exits(1);
        b.assert_gone();
    });
}

/// Case 7: CVE-2025-52881.
#[test]
fn nothing_is_mounted_over_the_files_that_are_written() {
    if fails_before_runc((1, 2), "mounts over what is in procfs") {
        return;
    }
    for target in ["/proc/self/attr", "/proc/sys", "/proc/1", "/proc/thread-self/attr", "/proc/sys/net"] {
        let mut b = Bundle::default();
        b.mount(tmpfs(target, &[]));
        b.run().run().exits(1).says("cannot be mounted because it is inside /proc");
        b.assert_gone();
    }
}

/// Case 7: the same through a link in the image.
#[test]
fn nothing_is_mounted_in_proc_through_a_link() {
    if fails_before_runc((1, 2), "mounts over what is in procfs") {
        return;
    }
    let mut b = Bundle::default();
    symlink("/proc/sys", b.rootfs().join("innocent")).unwrap();
    b.mount(tmpfs("/innocent/net", &[]));
    let finished = b.run().run();
    finished.exits(1);
    b.assert_gone();
}

/// Case 7: a fake `/proc`.
#[test]
fn a_fake_proc_is_refused() {
    let mut b = Bundle::default();
    let fake = b.path().join("fake");
    fs::create_dir_all(fake.join("self/attr")).unwrap();
    b.config["mounts"] = json!([bind(&fake, "/proc", &[])]);
    b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_unprivileged_port_start": "0" });
    b.run().run().exits(1);
    let mut b = Bundle::default();
    b.config["mounts"] = json!([tmpfs("/proc", &[])]);
    b.run().run().exits(1);
    b.assert_gone();
}

/// Case 7: without any `/proc`, files of the image are not what is written.
#[test]
fn sysctls_are_not_written_into_the_image() {
    if fails_before_runc((1, 3), "writes wherever /proc leads") {
        return;
    }
    let mut b = Bundle::sleeping();
    b.config["mounts"] = json!([]);
    b.config["linux"]["maskedPaths"] = json!([]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_unprivileged_port_start": "77" });
    let fake = b.rootfs().join("proc/sys/net/ipv4/ip_unprivileged_port_start");
    fs::create_dir_all(fake.parent().unwrap()).unwrap();
    fs::write(&fake, "1024\n").unwrap();
    let started = b.brig("create").arg(&b.id).detached().run();
    assert_eq!(fs::read_to_string(&fake).unwrap(), "1024\n");
    // It was written to the real one, or refused.
    if started.code() == 0 {
        let mut other = Bundle::new(&["cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start"]);
        other.with_namespace("network", Some(&format!("/proc/{}/ns/net", b.pid())));
        assert_eq!(other.run().ok().out, "77\n");
    }
}

/// Case 9: runc 4968, 4972; incus 2623. The calls of the new mount API are refused, as in a nested container.
#[test]
fn without_the_new_mount_api() {
    let mut b = Bundle::sh("cat /proc/sys/net/ipv4/ip_unprivileged_port_start /data/file");
    b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_unprivileged_port_start": "0" });
    let source = source(&b);
    b.mount(bind(&source, "/data", &["ro", "nosuid"]));
    b.mount(tmpfs("/t", &["size=1m"]));
    b.write_config();
    for (errno, calls) in [
        ("1", "fsopen,fsmount,open_tree"),
        ("38", "fsopen,fsmount,open_tree,move_mount,mount_setattr,fspick,fsconfig"),
    ] {
        let run =
            Run::new(env!("CARGO_BIN_EXE_brig-test-helper")).args(["without", errno, calls]).arg(runtime());
        let run = run.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
        assert_eq!(run.arg(&b.id).ok().out, "0\nhost\n");
    }
}

/// Case 17: runc mounts.bats, crun 1761.
#[test]
fn a_target_through_an_absolute_link_stays_inside() {
    let victim = Victim::new();
    let mut b = Bundle::sh("touch /link/deep/x; grep -c ' - tmpfs tmpfs' /proc/self/mountinfo");
    symlink(victim.path(), b.rootfs().join("link")).unwrap();
    b.mount(tmpfs("/link/deep", &[]));
    b.run().run();
    victim.assert_untouched();
    assert!(b.rootfs().join(victim.path().strip_prefix("/").unwrap()).join("deep").is_dir());
}

/// Case 17.
#[test]
fn a_target_that_is_a_dangling_link() {
    let victim = Victim::new();
    let outside = victim.path().join("made");
    let mut b = Bundle::sh("cat /target");
    let source = source(&b);
    symlink(&outside, b.rootfs().join("target")).unwrap();
    b.mount(bind(source.join("file"), "/target", &[]));
    let finished = b.run().run();
    victim.assert_untouched();
    if finished.code() == 0 {
        assert_eq!(finished.out, "host\n");
    }
    let mut b = Bundle::sh("cat /target/file");
    symlink("dangling/on/the/way", b.rootfs().join("target")).unwrap();
    b.mount(bind(&source, "/target", &[]));
    assert_eq!(b.run().ok().out, "host\n");
    assert!(b.rootfs().join("dangling/on/the/way").is_dir());
}

/// Case 17.
#[test]
fn a_proc_or_sys_that_is_a_link_is_refused() {
    for dir in ["proc", "sys"] {
        let b = Bundle::default();
        fs::remove_dir(b.rootfs().join(dir)).unwrap();
        fs::create_dir(b.rootfs().join("elsewhere")).unwrap();
        symlink("/elsewhere", b.rootfs().join(dir)).unwrap();
        b.run().run().exits(1).says("must be mounted on ordinary directory");
        b.assert_gone();
    }
}

#[test]
fn links_that_lead_in_circles() {
    let mut b = Bundle::default();
    symlink("b", b.rootfs().join("a")).unwrap();
    symlink("a", b.rootfs().join("b")).unwrap();
    b.mount(tmpfs("/a/x", &[]));
    b.run().run().exits(1).says("too many levels of symbolic links");
    b.assert_gone();
}

#[test]
fn nothing_is_mounted_over_the_root() {
    let victim = Victim::new();
    for target in ["/", "/tmp/..", "/."] {
        let mut b = Bundle::default();
        b.mount(bind(victim.path(), target, &[]));
        b.run().run().exits(1);
        b.assert_gone();
    }
    let mut b = Bundle::default();
    symlink("/", b.rootfs().join("link")).unwrap();
    b.mount(bind(victim.path(), "/link", &[]));
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn files_of_procfs_may_be_covered() {
    let mut b = Bundle::new(&["cat", "/proc/uptime"]);
    let source = source(&b).join("file");
    b.mount(bind(&source, "/proc/uptime", &["ro"]));
    assert_eq!(b.run().ok().out, "host\n");
}

#[test]
fn the_working_directory_is_made_inside() {
    let victim = Victim::new();
    let mut b = Bundle::new(&["pwd"]);
    symlink(victim.path(), b.rootfs().join("link")).unwrap();
    b.config["process"]["cwd"] = "/link/made".into();
    b.run().run();
    victim.assert_untouched();
}

#[test]
fn devices_are_made_inside() {
    let victim = Victim::new();
    let mut b = Bundle::default();
    symlink(victim.path(), b.rootfs().join("link")).unwrap();
    b.config["linux"]["devices"] =
        json!([{ "path": "/link/null", "type": "c", "major": 1, "minor": 3, "fileMode": 0o666 }]);
    b.run().run();
    victim.assert_untouched();
}

#[test]
fn masked_and_read_only_paths_are_looked_for_inside() {
    let victim = Victim::new();
    let mut b = Bundle::default();
    symlink(victim.path(), b.rootfs().join("link")).unwrap();
    b.config["linux"]["maskedPaths"] = json!(["/link", "/link/file"]);
    b.config["linux"]["readonlyPaths"] = json!(["/link"]);
    b.run().run();
    victim.assert_untouched();
    assert!(host::mounts_below(victim.path()).is_empty());
}
