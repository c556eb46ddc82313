//! The root file system, read-only and masked paths, many of them.

use super::*;

#[test]
fn the_root_may_be_read_only() {
    let mut b = Bundle::sh("touch /x; touch /dev/shm/x && touch /tmp/x");
    b.config["root"]["readonly"] = true.into();
    b.mount(tmpfs("/tmp", &[]));
    let finished = b.run().ok();
    finished.says("Read-only file system");
    assert!(!b.rootfs().join("x").exists());
}

#[test]
fn the_root_has_to_be_there() {
    let mut b = Bundle::default();
    b.config["root"]["path"] = "nowhere".into();
    b.run().run().exits(1).says("invalid rootfs").says("no such file or directory");
    b.config.as_object_mut().unwrap().remove("root");
    b.run().run().exits(1).says("root must be specified");
    b.assert_gone();
}

#[test]
fn the_root_is_no_link() {
    let mut b = Bundle::default();
    symlink("rootfs", b.path().join("link")).unwrap();
    b.config["root"]["path"] = "link".into();
    b.run().run().exits(1).says("invalid rootfs: not an absolute path, or a symlink");
}

#[test]
fn the_root_may_be_absolute_or_the_bundle() {
    let mut b = Bundle::sh("exit 3");
    b.config["root"]["path"] = b.rootfs().to_str().unwrap().into();
    b.run().run().exits(3);
}

#[test]
fn the_host_is_out_of_sight() {
    let b = Bundle::sh("ls /; ls /..; cat /proc/1/mountinfo | grep -c . ; ls -d /proc/1/root/boot");
    let finished = b.run().fails();
    assert!(!finished.out.contains("boot"), "{finished}");
    let mut b = Bundle::default();
    // The old root is gone, not only covered.
    let text = table(&mut b);
    let first = text.lines().next().unwrap();
    assert_eq!(first.split(' ').nth(4), Some("/"), "{text}");
    assert!(!text.contains("/etc/hostname"), "{text}");
}

#[test]
fn without_pivot_root() {
    let mut b = Bundle::sh("ls / && cat /etc/passwd && ls /proc/1/root/");
    let out = b.brig("run").args(["--no-pivot", &b.id]).ok().out;
    assert!(!out.contains("boot"), "{out}");
    b.config["linux"]["rootfsPropagation"] = "private".into();
    let refused = b.brig("run").args(["--no-pivot", &b.id]).run();
    refused.exits(1).says("rootfsPropagation of [r]private is not safe without pivot_root");
}

#[test]
fn read_only_paths() {
    let mut b = Bundle::sh(
        "cat /ro/file && echo x >/proc/sys/net/ipv4/ip_forward; touch /ro/x || touch /ro/sub/y || exit 5",
    );
    fs::create_dir_all(b.rootfs().join("ro/sub")).unwrap();
    fs::write(b.rootfs().join("ro/file"), "read\n").unwrap();
    b.config["linux"]["readonlyPaths"] = json!(["/proc/sys", "/ro", "/not/there"]);
    let finished = b.run().run();
    finished.exits(5);
    assert_eq!(finished.out, "read\n");
    assert_eq!(finished.err.matches("Read-only file system").count(), 3, "{finished}");
}

#[test]
fn read_only_paths_keep_their_flags() {
    let mut b = Bundle::default();
    b.mount(tmpfs("/t", &["nosuid", "nodev", "noexec"]));
    b.config["linux"]["readonlyPaths"] = json!(["/t"]);
    let mount = seen(&mut b, "/t");
    for flag in ["ro", "nosuid", "nodev", "noexec"] {
        assert!(mount.has(flag), "{mount:?}");
    }
}

#[test]
fn masked_paths() {
    let mut b =
        Bundle::sh("cat /secret/file; ls -a /dir; touch /dir/x; cat /proc/kcore | wc -c; ls /not 2>&1");
    fs::create_dir(b.rootfs().join("secret")).unwrap();
    fs::create_dir(b.rootfs().join("dir")).unwrap();
    fs::write(b.rootfs().join("secret/file"), "secret\n").unwrap();
    fs::write(b.rootfs().join("dir/file"), "secret\n").unwrap();
    b.config["linux"]["maskedPaths"] = json!(["/secret/file", "/dir", "/proc/kcore", "/not/there", "/dir"]);
    let finished = b.run().run();
    assert!(!finished.both().contains("secret\n"), "{finished}");
    assert_eq!(finished.out.lines().take(3).collect::<Vec<_>>(), [".", "..", "0"]);
    assert!(finished.err.contains("Read-only file system"), "{finished}");
}

#[test]
fn a_masked_path_cannot_be_uncovered() {
    let mut b = Bundle::sh("umount /dir; cat /dir/file");
    fs::create_dir(b.rootfs().join("dir")).unwrap();
    fs::write(b.rootfs().join("dir/file"), "secret\n").unwrap();
    b.config["linux"]["maskedPaths"] = json!(["/dir"]);
    let finished = b.run().fails();
    assert!(!finished.out.contains("secret"), "{finished}");
}

/// Case 39: runc 5177; k8s 138512.
#[test]
fn two_hundred_mounts_with_sixty_four_descriptors() {
    let mut b = Bundle::sh("cat /m/0/file /m/199/file; grep -c ' /m/' /proc/self/mountinfo");
    let source = source(&b);
    for n in 0..200 {
        b.mount(bind(&source, &format!("/m/{n}"), &["ro"]));
    }
    b.config["process"]["rlimits"] = json!([]);
    b.write_config();
    let run = Run::new("sh").args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).arg(runtime());
    let run = run.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
    assert_eq!(run.arg(&b.id).ok().out, "host\nhost\n200\n");
}

/// Case 39.
#[test]
fn six_hundred_masked_directories_are_one_file_system() {
    let mut b = Bundle::default();
    let mut paths = Vec::new();
    for n in 0..600 {
        fs::create_dir_all(b.rootfs().join(format!("masked/{n}"))).unwrap();
        paths.push(format!("/masked/{n}"));
    }
    b.config["linux"]["maskedPaths"] = json!(paths);
    let table = table(&mut b);
    let devices = |line: &str| line.split(' ').nth(2).unwrap().to_owned();
    let mut masked: Vec<String> =
        table.lines().filter(|line| line.contains(" /masked/")).map(devices).collect();
    assert_eq!(masked.len(), 600);
    masked.sort();
    masked.dedup();
    if is_old() {
        return note("not checked: one file system for all since runc 1.5");
    }
    assert_eq!(masked.len(), 1);
}

fn is_old() -> bool {
    brig_tests::is_older_runc((1, 5))
}
