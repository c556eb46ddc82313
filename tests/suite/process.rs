//! What the container's process is like: identity, environment, limits, privileges, descriptors, signals.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use brig_tests::{Bundle, Run, better_than_runc, fails_before_runc, host, json, note, runtime, since_runc};

/// The value of a line of `/proc/self/status`, of a process that does not change it.
fn status(b: &mut Bundle, key: &str) -> String {
    b.args(&["grep", &format!("^{key}:"), "/proc/self/status"]);
    let out = b.run().ok().out;
    out.split_once(':').unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn user_and_groups() {
    let mut b = Bundle::sh("grep -E '^(Uid|Gid|Groups):' /proc/self/status");
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 2000, "additionalGids": [3000, 4000] });
    let out = b.run().ok().out;
    assert_eq!(
        out.split_whitespace().collect::<Vec<_>>().join(" "),
        "Uid: 1000 1000 1000 1000 Gid: 2000 2000 2000 2000 Groups: 3000 4000"
    );
}

#[test]
fn the_callers_groups_are_dropped() {
    let mut b = Bundle::default();
    b.write_config();
    b.args(&["grep", "^Groups:", "/proc/self/status"]);
    let with_groups = Run::new("setpriv").args(["--groups", "12345,54321"]).arg(runtime());
    b.write_config();
    let run = with_groups.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
    assert_eq!(run.arg(&b.id).ok().out.trim(), "Groups:");
}

#[test]
fn umask() {
    let mut b = Bundle::sh("umask");
    assert_eq!(b.run().ok().line(), "0022");
    b.config["process"]["user"]["umask"] = 0o77.into();
    assert_eq!(b.run().ok().line(), "0077");
}

/// Case 10: runc 4688, 4693, crun OCPBUGS-45016.
#[test]
fn home_comes_from_the_containers_passwd() {
    let mut b = Bundle::sh("echo $HOME");
    b.config["process"]["user"] = json!({ "uid": 4242, "gid": 0 });
    fs::write(b.rootfs().join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nc:x:4242:4242::/home/c:/bin/sh\n")
        .unwrap();
    assert_eq!(b.run().ok().out, "/home/c\n");
    b.config["process"]["user"] = json!({ "uid": 4243, "gid": 0 });
    assert_eq!(b.run().ok().out, "/\n", "without an entry");
    fs::remove_file(b.rootfs().join("etc/passwd")).unwrap();
    assert_eq!(b.run().ok().out, "/\n", "without a file");
    b.config["process"]["env"] = json!(["PATH=/bin", "HOME=/given"]);
    assert_eq!(b.run().ok().out, "/given\n");
}

#[test]
fn a_passwd_that_leads_out_is_not_followed() {
    let mut b = Bundle::sh("echo $HOME");
    b.config["process"]["user"] = json!({ "uid": 4242, "gid": 0 });
    let outside = tempfile::tempdir_in("/tmp").unwrap();
    let victim = outside.path().join("passwd");
    fs::write(&victim, "c:x:4242:4242::/outside:/bin/sh\n").unwrap();
    let inside = b.rootfs().join("etc/passwd");
    fs::remove_file(&inside).unwrap();
    symlink(&victim, &inside).unwrap();
    assert_eq!(b.run().ok().out, "/\n");
    fs::remove_file(&inside).unwrap();
    Run::new("mkfifo").arg(&inside).ok();
    // Neither may a fifo without a writer hold it up.
    better_than_runc("opens whatever is there", move || {
        let run = b.run().limit(std::time::Duration::from_secs(10)).run();
        assert_eq!(run.out, "/\n");
    });
}

/// Case 11: runc 4711.
#[test]
fn the_last_of_equal_variables_wins_and_an_empty_home_is_none() {
    let mut b = Bundle::new(&["/bin/env"]);
    let mut env = |list: &[&str]| {
        b.config["process"]["env"] = json!(list);
        let mut lines: Vec<String> = b.run().ok().out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(env(&["A=1", "B=2", "A=3", "HOME=/h"]), ["A=3", "B=2", "HOME=/h"]);
    assert_eq!(env(&["HOME=/a", "HOME=/b"]), ["HOME=/b"]);
    since_runc((1, 3), "an empty HOME is replaced", || {
        assert_eq!(env(&["HOME=", "HOME="]), ["HOME=/root"]);
        assert_eq!(env(&["HOME="]), ["HOME=/root"]);
    });
}

/// Case 11, the value with a newline.
#[test]
fn a_newline_in_a_variable_is_kept() {
    let mut b = Bundle::sh("echo \"$A\"");
    b.config["process"]["env"] = json!(["PATH=/bin", "A=one\ntwo", "EMPTY="]);
    assert_eq!(b.run().ok().out, "one\ntwo\n");
}

#[test]
fn the_environment_is_that_of_the_config() {
    let mut b = Bundle::new(&["/bin/env"]);
    b.config["process"]["env"] = json!(["HOME=/x", "ONLY=this"]);
    let out = b.run().env("LEAKED", "no").ok().out;
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["HOME=/x", "ONLY=this"]);
}

#[test]
fn variables_that_are_none() {
    since_runc((1, 3), "a check of the environment", || {
        let mut b = Bundle::default();
        for entry in ["NOVALUE", "=x"] {
            b.config["process"]["env"] = json!(["PATH=/bin", entry]);
            b.run().run().exits(1).says("invalid environment variable");
            b.assert_gone();
        }
    });
}

#[test]
fn a_bare_name_is_looked_for_in_the_containers_path() {
    let mut b = Bundle::new(&["mine"]);
    fs::create_dir_all(b.rootfs().join("opt/x")).unwrap();
    symlink("/bin/busybox", b.rootfs().join("opt/x/true")).unwrap();
    b.args(&["true"]);
    b.config["process"]["env"] = json!(["PATH=/opt/none:/opt/x"]);
    b.run().ok();
    b.config["process"]["env"] = json!(["PATH=/opt/none"]);
    let text = "exec: \"true\": executable file not found in $PATH";
    b.run().run().exits(1).says("executable file not found in $PATH").says("true");
    assert!(b.run().run().err.replace('\\', "").contains(text));
    // The caller's PATH does not count.
    b.config["process"]["env"] = json!(["A=b"]);
    b.run().run().exits(1).says("executable file not found in $PATH");
}

/// Case 30: crun 1664, 1671; runc 3238. The names.
#[test]
fn a_name_that_begins_with_a_dot_is_found() {
    let mut b = Bundle::new(&[".hidden"]);
    symlink("busybox", b.rootfs().join("bin/.hidden")).unwrap();
    fs::write(b.rootfs().join("bin/.script"), "#!/bin/sh\nexit 9\n").unwrap();
    fs::set_permissions(b.rootfs().join("bin/.script"), fs::Permissions::from_mode(0o755)).unwrap();
    b.args(&[".script"]);
    b.run().run().exits(9);
}

/// Case 30: what cannot be executed.
#[test]
fn programs_that_cannot_be_executed() {
    let mut b = Bundle::default();
    fs::write(b.rootfs().join("plain"), "#!/bin/sh\n").unwrap();
    let mut run = |args: &[&str]| {
        b.args(args);
        let finished = b.run().run();
        b.assert_gone();
        finished.exits(1);
        finished.err.replace('\\', "")
    };
    for (program, text) in [
        ("/missing", "exec: \"/missing\": stat /missing: no such file or directory"),
        ("/etc/passwd/x", "exec: \"/etc/passwd/x\": stat /etc/passwd/x: not a directory"),
        ("/plain", "exec: \"/plain\": permission denied"),
        ("nothing", "exec: \"nothing\": executable file not found in $PATH"),
    ] {
        let err = run(&[program]);
        assert!(err.contains(text), "{err}");
    }
    since_runc((1, 2), "a text for directories", || {
        let err = run(&["/etc"]);
        assert!(err.contains("exec: \"/etc\": is a directory"), "{err}");
    });
}

/// Case 30: interpreters. What only the last execve finds out is an error of `start`.
#[test]
fn a_missing_interpreter_is_reported_by_start() {
    better_than_runc("start succeeds, the container ends with 255", || {
        let mut b = Bundle::new(&["/script"]);
        let write = |b: &Bundle, text: &str| {
            fs::write(b.rootfs().join("script"), text).unwrap();
            fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        };
        for (text, says) in [
            ("#!/no/interpreter\n", "no such file or directory"),
            ("#!/bin/sh\r\nexit 0\n", "no such file or directory"),
            ("\x7fELF rubbish", "exec format error"),
        ] {
            write(&b, text);
            b.create();
            b.brig("start").arg(&b.id).run().exits(1).says(says);
            b.delete();
            b.run().run().exits(1).says(says);
            b.assert_gone();
        }
        b.args(&["true"]);
    });
}

/// Case 30: whose fault it is.
#[test]
#[ignore = "bug: only a hint says that it is about an interpreter, and not which"]
fn a_missing_interpreter_is_named() {
    better_than_runc("says nothing about interpreters", || {
        let b = Bundle::new(&["/script"]);
        fs::write(b.rootfs().join("script"), "#!/no/interpreter\n").unwrap();
        fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        b.run().run().exits(1).says("/no/interpreter");
    });
}

#[test]
fn the_working_directory_is_made() {
    let mut b = Bundle::sh("pwd; stat -c '%a %u' .");
    b.config["process"]["cwd"] = "/made/on/the/way".into();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    assert_eq!(b.run().ok().out, "/made/on/the/way\n755 0\n");
    assert!(b.rootfs().join("made/on/the/way").is_dir());
}

#[test]
fn a_working_directory_of_the_user_alone() {
    let mut b = Bundle::sh("pwd");
    let dir = b.rootfs().join("private");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&dir, Some(1000), Some(1000)).unwrap();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    b.config["process"]["cwd"] = "/private".into();
    assert_eq!(b.run().ok().out, "/private\n");
}

#[test]
fn a_working_directory_that_the_user_may_not_enter() {
    let mut b = Bundle::sh("pwd");
    let dir = b.rootfs().join("closed");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    b.config["process"]["cwd"] = "/closed".into();
    // runc enters with its own privileges; the specification wants the process to be there.
    let finished = b.run().run();
    assert!(finished.code() == 0 || finished.err.contains("permission denied"), "{finished}");
}

#[test]
fn a_working_directory_that_is_a_link_is_followed_inside() {
    let mut b = Bundle::sh("pwd");
    symlink("/tmp", b.rootfs().join("link")).unwrap();
    b.config["process"]["cwd"] = "/link".into();
    assert_eq!(b.run().ok().out, "/tmp\n");
}

#[test]
fn a_working_directory_that_is_a_file() {
    let mut b = Bundle::sh("pwd");
    b.config["process"]["cwd"] = "/etc/passwd".into();
    b.run().run().exits(1).says("not a directory");
    b.assert_gone();
}

#[test]
fn the_working_directory_is_absolute() {
    let mut b = Bundle::default();
    b.config["process"]["cwd"] = "tmp".into();
    b.run().run().exits(1).says("Cwd must be an absolute path");
    b.config["process"]["cwd"] = "".into();
    b.run().run().exits(1).says("Cwd property must not be empty");
}

/// Case 8: CVE-2024-21626.
#[test]
fn the_working_directory_cannot_be_a_descriptor_of_the_host() {
    let mut b = Bundle::sh("pwd; cat /etc/hostname");
    for fd in 3..=20 {
        b.config["process"]["cwd"] = format!("/proc/self/fd/{fd}").into();
        b.write_config();
        // Directories of the host are open in the runtime.
        let run = Run::new("sh").args(["-c", "exec 3</ 7</etc 8</tmp; exec \"$@\"", "sh"]);
        let run = run.arg(runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle");
        let finished = run.arg(b.path()).arg(&b.id).run();
        finished.exits(1);
        assert_eq!(finished.out, "");
        b.assert_gone();
    }
}

/// Case 8, through a link in the image.
#[test]
fn the_working_directory_cannot_be_a_link_to_a_descriptor() {
    let mut b = Bundle::sh("pwd");
    symlink("/proc/self/fd/7", b.rootfs().join("workdir")).unwrap();
    b.config["process"]["cwd"] = "/workdir".into();
    b.write_config();
    let run = Run::new("sh").args(["-c", "exec 7</etc; exec \"$@\"", "sh"]);
    let run = run.arg(runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle");
    let finished = run.arg(b.path()).arg(&b.id).run();
    finished.exits(1);
    assert_eq!(finished.out, "");
}

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
fn limits() {
    let mut b = Bundle::sh("grep -E 'open files|core file|pending signals' /proc/self/limits");
    b.config["process"]["rlimits"] = json!([
        { "type": "RLIMIT_NOFILE", "soft": 100, "hard": 200 },
        { "type": "RLIMIT_CORE", "soft": 0, "hard": 4096 },
        { "type": "RLIMIT_SIGPENDING", "soft": 7, "hard": 7 },
    ]);
    let out = b.run().ok().out;
    let lines: Vec<Vec<&str>> =
        out.lines().map(|line| line[26..].split_whitespace().take(2).collect()).collect();
    assert_eq!(lines, [["0", "4096"], ["100", "200"], ["7", "7"]]);
}

#[test]
fn limits_that_do_not_exist() {
    let mut b = Bundle::default();
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_FROB", "soft": 1, "hard": 1 }]);
    b.run().run().exits(1).says("RLIMIT_FROB");
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NOFILE", "soft": 100, "hard": 10 }]);
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn five_sets_of_capabilities() {
    let mut b = Bundle::sh("grep ^Cap /proc/self/status");
    b.config["process"]["capabilities"] = json!({
        "bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW", "CAP_SYS_CHROOT"],
        "permitted": ["CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW"],
        "effective": ["CAP_CHOWN", "CAP_KILL"],
        "inheritable": ["CAP_NET_RAW"],
        "ambient": ["CAP_NET_RAW"],
    });
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    // Not root: after the execve only what is ambient is left, and the bounding and inheritable sets.
    let out = b.run().ok().out;
    let sets: Vec<u64> = out
        .lines()
        .map(|line| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap())
        .collect();
    let (chown, kill, raw, chroot) = (1, 1 << 5, 1 << 13, 1 << 18);
    // Inheritable, permitted, effective, bounding, ambient.
    assert_eq!(sets, [raw, raw, raw, chown | kill | raw | chroot, raw]);
}

#[test]
fn capabilities_of_root() {
    let mut b = Bundle::sh("grep ^Cap /proc/self/status");
    // An execve by root gives it all of the bounding set.
    let out = b.run().ok().out;
    let sets: Vec<&str> = out.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    let default = format!("{:016x}", (1_u64 << 29) | (1 << 5) | (1 << 10));
    let none = format!("{:016x}", 0);
    assert_eq!(sets, [&none, &default, &default, &default, &none]);
    b.config["process"]["capabilities"] = json!({});
    let out = b.run().ok().out;
    assert!(out.lines().all(|line| line.ends_with(&none)), "{out}");
}

#[test]
fn without_capabilities_in_the_config_there_are_none() {
    if fails_before_runc((1, 2), "does it right") {
        return;
    }
    let mut b = Bundle::sh("grep ^CapEff /proc/self/status");
    b.config["process"].as_object_mut().unwrap().remove("capabilities");
    better_than_runc("keeps those of the caller since 1.2", move || {
        assert!(b.run().ok().line().ends_with("0000000000000000"));
    });
}

#[test]
fn unknown_capabilities_are_let_pass() {
    let mut b = Bundle::default();
    b.config["process"]["capabilities"]["bounding"] = json!(["CAP_KILL", "CAP_FROB"]);
    b.run().ok();
}

#[test]
fn no_new_privileges() {
    let mut b = Bundle::default();
    assert_eq!(status(&mut b, "NoNewPrivs"), "1");
    b.config["process"]["noNewPrivileges"] = false.into();
    assert_eq!(status(&mut b, "NoNewPrivs"), "0");
}

#[test]
fn oom_score() {
    let mut b = Bundle::new(&["cat", "/proc/self/oom_score_adj"]);
    b.config["process"]["oomScoreAdj"] = 321.into();
    assert_eq!(b.run().ok().line(), "321");
    b.config["process"].as_object_mut().unwrap().remove("oomScoreAdj");
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(b.run().ok().line(), own.trim_end());
}

#[test]
fn a_session_keyring_of_its_own() {
    let mut b = Bundle::new(&["cat", "/proc/keys"]);
    b.config["linux"]["maskedPaths"] = json!([]);
    let out = b.run().run();
    if out.err.contains("No such file") {
        return note("not checked: this kernel has no /proc/keys");
    }
    assert!(out.out.contains(&format!("_ses.{}", b.id)), "{out}");
    // Rings die some time after their container: this one has to have another name.
    b.id.push_str("-shared");
    let shared = b.brig("run").args(["--no-new-keyring", &b.id]).run();
    assert!(!shared.out.contains(&format!("_ses.{}", b.id)), "{shared}");
}

#[test]
fn personality() {
    since_runc((1, 2), "personality", || {
        let mut b = Bundle::new(&["uname", "-m"]);
        let native = b.run().ok().out;
        b.config["linux"]["personality"] = json!({ "domain": "LINUX32" });
        let other = b.run().ok().out;
        if cfg!(target_arch = "x86_64") {
            assert_eq!((native.trim(), other.trim()), ("x86_64", "i686"));
        } else {
            assert_ne!(native, other);
        }
        b.config["linux"]["personality"] = json!({ "domain": "VMS" });
        b.run().run().exits(1).says("invalid personality domain");
    });
}

#[test]
fn host_and_domain_name() {
    let mut b = Bundle::sh("hostname; cat /proc/sys/kernel/domainname");
    b.config["hostname"] = "some.name".into();
    let before = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    since_runc((1, 2), "domainname", || {
        b.config["domainname"] = "some.domain".into();
        assert_eq!(b.run().ok().out, "some.name\nsome.domain\n");
    });
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), before);
    b.without_namespace("uts");
    b.config.as_object_mut().unwrap().remove("domainname");
    b.run().run().exits(1).says("unable to set hostname without a private UTS namespace");
}

#[test]
fn scheduler() {
    since_runc((1, 2), "process.scheduler", || {
        let mut b = Bundle::sh("cut -d' ' -f41,19 /proc/self/stat");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "nice": 7 });
        // nice, and the number of SCHED_BATCH.
        assert_eq!(b.run().ok().line(), "7 3");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "nice": 77 });
        b.run().run().exits(1).says("invalid scheduler.nice");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "priority": 3 });
        b.run().run().exits(1).says("scheduler.priority can only be specified for");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_FROB" });
        b.run().run().exits(1).says("SCHED_FROB");
    });
}

#[test]
fn io_priority() {
    since_runc((1, 2), "process.ioPriority", || {
        let mut b = Bundle::sh("ionice -p $$");
        b.config["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 6 });
        assert_eq!(b.run().ok().line(), "best-effort: prio 6");
        b.config["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 8 });
        b.run().run().exits(1).says("invalid ioPriority.Priority");
        b.config["process"]["ioPriority"] = json!({ "class": "FROB", "priority": 1 });
        b.run().run().exits(1).says("invalid ioPriority.Class");
    });
}

/// The `Sig` lines of a process that does nothing about signals, its runtime started by this prefix.
fn signals(b: &Bundle, prefix: &[&str], detach: bool) -> Vec<String> {
    let run = Run::new(prefix[0]).args(&prefix[1..]).arg(runtime()).arg("--root").arg(&b.root).arg("run");
    let run = if detach { run.arg("--detach").detached() } else { run };
    let finished = run.arg("--bundle").arg(b.path()).arg(&b.id).ok();
    let text = if detach {
        host::eventually("the file", || {
            fs::read_to_string(b.rootfs().join("out")).is_ok_and(|t| t.contains("done"))
        });
        fs::read_to_string(b.rootfs().join("out")).unwrap()
    } else {
        finished.out
    };
    b.brig("delete").args(["--force", &b.id]).ok();
    let of = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or(&text).to_owned();
    vec![of("SigBlk:"), of("SigIgn:")]
}

const CLEAN: [&str; 2] = ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"];

#[test]
fn the_callers_ignored_signals_are_not_inherited() {
    let ignoring = ["sh", "-c", "trap '' HUP INT QUIT USR1 PIPE; exec \"$@\"", "sh"];
    better_than_runc("ignores one of its own, and those of the caller when detached", move || {
        let mut b = Bundle::new(&["grep", "^Sig", "/proc/self/status"]);
        b.write_config();
        assert_eq!(signals(&b, &ignoring, false), CLEAN);
        b.args(&["sh", "-c", "grep ^Sig /proc/self/status >/out; echo done >>/out"]);
        b.write_config();
        assert_eq!(signals(&b, &ignoring, true), CLEAN);
    });
}

#[test]
fn the_callers_blocked_signals_are_not_inherited() {
    let blocking = ["env", "--block-signal=HUP,USR1,TERM"];
    if Run::new(blocking[0]).args([blocking[1], "true"]).run().code() != 0 {
        return note("not checked: env of this host blocks no signals");
    }
    better_than_runc("inherits the mask", move || {
        let mut b = Bundle::new(&["grep", "^Sig", "/proc/self/status"]);
        b.write_config();
        assert_eq!(signals(&b, &blocking, false), CLEAN);
        b.args(&["sh", "-c", "grep ^Sig /proc/self/status >/out; echo done >>/out"]);
        b.write_config();
        assert_eq!(signals(&b, &blocking, true), CLEAN);
    });
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

#[test]
fn the_process_leads_a_session() {
    let mut b = Bundle::sh("exec cut -d' ' -f1,5,6 /proc/self/stat");
    assert_eq!(b.run().ok().line(), "1 1 1");
    b.without_namespace("pid");
    let out = b.run().ok().out;
    let ids: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(ids[0], ids[2]);
}

#[test]
fn an_lsm_that_is_not_there_is_an_error() {
    let lsm = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    let mut b = Bundle::default();
    if lsm.contains("apparmor") {
        note("not checked: this host has AppArmor");
    } else {
        b.config["process"]["apparmorProfile"] = "frob".into();
        b.run().run().exits(1).says("apparmor");
        b.assert_gone();
    }
    if lsm.contains("selinux") {
        return note("not checked: this host has SELinux");
    }
    b.config["process"].as_object_mut().unwrap().remove("apparmorProfile");
    b.config["process"]["selinuxLabel"] = "system_u:system_r:container_t:s0".into();
    let finished = b.run().run();
    finished.exits(1);
    finished.says("selinux label is specified in config, but selinux is disabled or not supported");
    b.assert_gone();
}

#[test]
fn the_waiting_process_is_no_way_to_the_runtime() {
    // CVE-2019-5736: what could be written to through it is not the runtime's file.
    let b = Bundle::sleeping();
    b.create();
    let exe = format!("/proc/{}/exe", b.pid());
    let runtime = fs::metadata(runtime()).unwrap();
    let image = fs::metadata(&exe).unwrap();
    // runc may show a read-only mount of its file.
    let writable = fs::OpenOptions::new().append(true).open(&exe).is_ok();
    assert!((image.dev(), image.ino()) != (runtime.dev(), runtime.ino()) || !writable);
    assert!(!writable);
}

#[test]
fn self_exe_as_the_program_does_not_reach_the_runtime() {
    let before = fs::read(runtime()).unwrap();
    let mut b = Bundle::new(&["/proc/self/exe", "--no-such-flag"]);
    let finished = b.run().limit(std::time::Duration::from_secs(20)).run();
    assert_ne!(finished.code(), 0, "{finished}");
    fs::write(b.rootfs().join("script"), "#!/proc/self/exe\n").unwrap();
    fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    b.args(&["/script"]);
    assert_ne!(b.run().limit(std::time::Duration::from_secs(20)).run().code(), 0);
    assert_eq!(fs::read(runtime()).unwrap(), before);
}

#[test]
fn arguments_arrive_as_they_are() {
    let args = ["printf", "%s|", "", "a b", "ü", "new\nline", "*", "$HOME", "--"];
    let out = Bundle::new(&args).run().ok().out;
    assert_eq!(out, "|a b|ü|new\nline|*|$HOME|--|");
}

#[test]
fn a_long_list_of_arguments_and_variables() {
    let mut b = Bundle::sh("echo $# ${#LONG}");
    let mut args = vec!["sh".to_owned(), "-c".to_owned(), "echo $# ${#LONG}".to_owned(), "sh".to_owned()];
    args.extend((0..5000).map(|n| format!("argument number {n}")));
    b.config["process"]["args"] = json!(args);
    b.config["process"]["env"] = json!(["PATH=/bin", format!("LONG={}", "x".repeat(100_000))]);
    assert_eq!(b.run().ok().line(), "5000 100000");
}
