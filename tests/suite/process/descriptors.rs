//! Descriptors and standard streams.

use super::*;

/// Case 8, the descriptors.
#[test]
fn the_process_has_three_descriptors() {
    let mut b = Bundle::new(&["ls", "/proc/self/fd"]);
    b.write_config();
    let run = Run::new("sh").args(["-c", "exec 3</ 4</etc 9>&1; exec \"$@\"", "sh"]);
    let run = run.arg(runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle");
    // The fourth is that of ls, for the directory.
    assert_eq!(run.arg(b.path()).arg(&b.id).ok().out, "0\n1\n2\n3\n");
    b.config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mkdir"], "action": "SCMP_ACT_ERRNO" }]
    });
    b.config["hooks"] = json!({ "startContainer": [{ "path": "/bin/true", "args": ["true"] }] });
    assert_eq!(b.run().ok().out, "0\n1\n2\n3\n");
}

#[test]
fn a_detached_process_has_three_descriptors() {
    let b = Bundle::sh("ls /proc/self/fd >/fds; exec sleep 1000");
    b.write_config();
    let run = Run::new("sh").args(["-c", "exec 3</ 4</etc 9>&1; exec \"$@\"", "sh"]);
    let run = run.arg(runtime()).arg("--root").arg(&b.root).args(["run", "-d", "--bundle"]);
    run.arg(b.path()).arg(&b.id).detached().ok();
    let fds = || fs::read_to_string(b.rootfs().join("fds")).unwrap_or_default();
    host::eventually("the list", || fds().lines().count() >= 4);
    assert_eq!(fds(), "0\n1\n2\n3\n");
}

#[test]
fn descriptors_are_preserved_when_asked_for() {
    let b = Bundle::sh("cat <&3; cat <&4; ls /proc/self/fd | wc -l");
    fs::write(b.path().join("three"), "three\n").unwrap();
    fs::write(b.path().join("four"), "four\n").unwrap();
    b.write_config();
    let run = move |fds: &str, preserve: &str| {
        let script = format!("exec {fds}; exec \"$@\"");
        let run = Run::new("sh").args(["-c", &script, "sh"]).dir(b.path()).arg(runtime());
        run.arg("--root").arg(&b.root).args(["run", "--preserve-fds", preserve, &b.id]).run()
    };
    // 0 to 4 and the one of ls. What the runtime itself has open is not passed for what is missing.
    assert_eq!(run("3<three 4<four 5</", "2").out, "three\nfour\n6\n");
    better_than_runc("passes a descriptor of its own", move || {
        for missing in [run("3<three", "2"), run("4<four", "2")] {
            missing.exits(1).says("unable to stat preserved-fd").says("bad file descriptor");
        }
    });
}

#[test]
fn sockets_of_socket_activation_are_passed() {
    let b = Bundle::sh("echo $LISTEN_FDS $LISTEN_PID $LISTEN_FDNAMES; cat <&3");
    fs::write(b.path().join("three"), "three\n").unwrap();
    b.write_config();
    let run = |pid: &str, extra: &[&str]| {
        let script = format!("exec 3<three; LISTEN_FDS=1 LISTEN_FDNAMES=a LISTEN_PID={pid} exec \"$@\"");
        let run = Run::new("sh").args(["-c", &script, "sh"]).dir(b.path()).arg(runtime());
        run.arg("--root").arg(&b.root).arg("run").args(extra).arg(&b.id).run()
    };
    assert_eq!(run("$$", &[]).out, "1 1\nthree\n");
    // They were meant for somebody else.
    let other = run("1", &[]);
    assert!(!other.out.contains("three") && other.code() != 0, "{other}");
}

#[test]
fn standard_streams_belong_to_the_user() {
    let mut b = Bundle::sh(
        "echo out >/proc/self/fd/1; stat -L -c %u /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2",
    );
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    let finished = b.run().input("").ok();
    assert_eq!(finished.out, "out\n1000\n1000\n1000\n");
}

#[test]
fn dev_null_of_the_host_becomes_the_containers() {
    let b = Bundle::sh(
        "stat -L -c %d /proc/self/fd/0 >/out; stat -c %d /dev/null >>/out; touch /done; exec sleep 1000",
    );
    b.brig("run").args(["-d", &b.id]).detached().ok();
    host::eventually("the end of the script", || b.rootfs().join("done").exists());
    let out = fs::read_to_string(b.rootfs().join("out")).unwrap();
    let devices: Vec<&str> = out.lines().collect();
    assert_eq!(devices[0], devices[1]);
    assert_eq!(fs::metadata("/dev/null").unwrap().uid(), 0);
}
