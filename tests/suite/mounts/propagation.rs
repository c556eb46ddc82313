//! Propagation of mounts between the host and the container.

use brig_tests::is_other_runtime;

use super::*;

/// The runtime's words on a mount made after the start, for a bind mount with these options: whether the container sees one of
/// the host, and the host one of the container.
fn both_ways(option: &str) -> (bool, bool) {
    let shared = SharedMount::new();
    for dir in ["host", "container"] {
        fs::create_dir(shared.path().join(dir)).unwrap();
    }
    let mut b = Bundle::sleeping();
    for set in ["bounding", "permitted", "effective"] {
        b.config["process"]["capabilities"][set] = json!(["CAP_SYS_ADMIN"]);
    }
    if option.ends_with("shared") {
        // As containers' engines do: or the mount would be a slave of the host's besides.
        b.config["linux"]["rootfsPropagation"] = "rshared".into();
    }
    b.mount(bind(shared.path(), "/data", &[option]));
    b.start();
    Run::new("mount").args(["-t", "tmpfs", "none"]).arg(shared.path().join("host")).ok();
    let inside = b.exec(&["grep", "-q", " /data/host ", "/proc/self/mountinfo"]).run().code() == 0;
    b.exec(&["mount", "-t", "tmpfs", "none", "/data/container"]).ok();
    let outside = !host::mounts_below(&shared.path().join("container")).is_empty();
    b.delete();
    (inside, outside)
}

/// Case 14: crun 2066, 2122; youki 3604.
#[test]
fn a_slave_sees_what_the_host_mounts() {
    assert_eq!(both_ways("rslave"), (true, false));
    assert_eq!(both_ways("slave"), (true, false));
}

/// Case 14.
#[test]
fn a_private_mount_sees_nothing() {
    assert_eq!(both_ways("rprivate"), (false, false));
    assert_eq!(both_ways("private"), (false, false));
}

/// Case 14.
#[test]
fn a_shared_mount_goes_both_ways() {
    assert_eq!(both_ways("rshared"), (true, true));
    assert_eq!(both_ways("shared"), (true, true));
}

#[test]
fn without_an_option_nothing_reaches_the_host() {
    assert!(!both_ways("rw").1);
}

#[test]
fn an_unbindable_mount() {
    let mut b = Bundle::default();
    let source = source(&b);
    b.mount(bind(&source, "/data", &["unbindable"]));
    assert!(seen(&mut b, "/data").is("unbindable"));
}

#[test]
fn the_propagation_of_the_root() {
    if fails_before_runc((1, 2), "forgets the propagation of the root") {
        return;
    }
    for (value, expected) in [
        ("shared", "shared:"),
        ("rshared", "shared:"),
        ("unbindable", "unbindable"),
        ("runbindable", "unbindable"),
    ] {
        let mut b = Bundle::default();
        b.config["linux"]["rootfsPropagation"] = value.into();
        if is_other_runtime() {
            // runc needs binds of what is unbindable by then.
            b.config["mounts"].as_array_mut().unwrap().retain(|m| m["type"] != "cgroup");
            b.config["linux"]["readonlyPaths"] = json!([]);
            b.config["linux"]["maskedPaths"] = json!([]);
        }
        let mount = seen(&mut b, "/");
        assert!(mount.is(expected), "{value}: {mount:?}");
    }
    for value in ["private", "rprivate", "slave", "rslave"] {
        let mut b = Bundle::default();
        b.config["linux"]["rootfsPropagation"] = value.into();
        let mount = seen(&mut b, "/");
        assert!(!mount.is("shared:"), "{value}: {mount:?}");
    }
    let mut b = Bundle::default();
    b.config["linux"]["rootfsPropagation"] = "frob".into();
    b.run().run().exits(1).says("rootfsPropagation=frob is not supported");
}

/// The root as a shared mount of the host, in a mount namespace of its own; compares the host's mounts after a command.
fn with_shared_root(b: &Bundle, before: &str, command: &str) -> (String, String) {
    b.write_config();
    let script = format!(
        "mount --make-rshared /; {before}; cat /proc/self/mountinfo >before; {command}; cat /proc/self/mountinfo >after"
    );
    let run = Run::new("unshare").args(["--mount", "--propagation", "private", "sh", "-ec", &script, "sh"]);
    run.arg(runtime()).arg(&b.id).dir(b.path()).ok();
    // Mounts of other tests, copied into this namespace, go when their directories do.
    let own = |line: &&str| !line.contains("/brig-test-") || line.contains(b.path().to_str().unwrap());
    let read = |name: &str| {
        let table = fs::read_to_string(b.path().join(name)).unwrap();
        table.lines().filter(own).collect::<Vec<_>>().join("\n")
    };
    (read("before"), read("after"))
}

#[test]
fn the_hosts_mounts_stay_as_they_are() {
    for value in ["", "shared", "rslave", "private"] {
        let mut b = Bundle::default();
        if !value.is_empty() {
            b.config["linux"]["rootfsPropagation"] = value.into();
        }
        let source = source(&b);
        b.mount(bind(&source, "/data", &["rslave"]));
        b.mount(tmpfs("/tmp/x", &["tmpcopyup"]));
        let (before, after) = with_shared_root(&b, "true", "\"$1\" --root state run \"$2\"");
        assert_eq!(before, after, "{value}: before, after");
    }
}

/// Case 15: youki 3733, and runc.
#[test]
fn without_a_mount_namespace_the_hosts_mounts_are_as_before() {
    better_than_runc("leaves mounts and changes propagation", || {
        let mut b = Bundle::new(&["cat", "/etc/passwd"]);
        b.without_namespace("mount");
        b.config["linux"]["maskedPaths"] = json!([]);
        b.config["linux"]["readonlyPaths"] = json!([]);
        let source = source(&b);
        b.mount(bind(&source, "/data", &[]));
        let (before, after) = with_shared_root(&b, "true", "\"$1\" --root state run \"$2\"");
        assert_eq!(before, after);
        let command =
            "\"$1\" --root state create \"$2\" >/dev/null; \"$1\" --root state delete --force \"$2\"";
        let (before, after) = with_shared_root(&b, "true", command);
        assert_eq!(before, after);
    });
}

#[test]
fn without_a_mount_namespace_the_root_is_changed_all_the_same() {
    let mut b = Bundle::sh("cat /data/file; ls /");
    b.without_namespace("mount");
    b.config["linux"]["maskedPaths"] = json!([]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    let source = source(&b);
    b.mount(bind(&source, "/data", &[]));
    b.write_config();
    // In a mount namespace of its own: runc leaves what it mounted.
    let run = Run::new("unshare").args(["--mount", "--propagation", "private"]).arg(runtime());
    let run = run.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
    let out = run.arg(&b.id).ok().out;
    assert!(out.starts_with("host\n"), "{out}");
    assert!(!out.contains("boot"), "{out}");
}

#[test]
fn without_a_mount_namespace_nothing_is_masked() {
    let mut b = Bundle::default();
    b.without_namespace("mount");
    b.run().run().exits(1).says("unable to restrict sys entries without a private MNT namespace");
    b.assert_gone();
}
