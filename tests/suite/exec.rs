//! `exec`: one more process in a container.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use brig_tests::{
    Bundle, Finished, Run, Value, better_than_runc, fails_before_runc, host, json, only_brig,
    others_may_fail, runtime, since_runc,
};

fn sleeping() -> Bundle {
    let b = Bundle::sleeping();
    b.start();
    b
}

/// `exec` with flags before the container and a command after it.
fn exec(b: &Bundle, flags: &[&str], command: &[&str]) -> Finished {
    b.brig("exec").args(flags).arg(&b.id).args(command).run()
}

/// `exec --process` with this process.
fn exec_file(b: &Bundle, process: &Value, flags: &[&str]) -> Finished {
    let file = b.path().join("process.json");
    fs::write(&file, process.to_string()).unwrap();
    b.brig("exec").arg("--process").arg(&file).args(flags).arg(&b.id).run()
}

fn status(text: &str, key: &str) -> String {
    let line =
        text.lines().find(|line| line.starts_with(&format!("{key}:"))).unwrap_or_else(|| panic!("{text}"));
    line.split_once(':').unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_exit_status() {
    let b = sleeping();
    for code in [0, 1, 7, 254] {
        exec(&b, &[], &["sh", "-c", &format!("exit {code}")]).exits(code);
    }
    for (name, number) in [("KILL", 9), ("TERM", 15), ("USR1", 10)] {
        exec(&b, &[], &["sh", "-c", &format!("kill -{name} $$; sleep 10")]).exits(128 + number);
    }
}

#[test]
fn failures_of_the_runtime_are_255() {
    let b = sleeping();
    for (command, text) in [
        (&["frob"][..], "exec: \"frob\": executable file not found in $PATH"),
        (&["/no/frob"], "exec: \"/no/frob\": stat /no/frob: no such file or directory"),
        (&["/etc/passwd"], "exec: \"/etc/passwd\": permission denied"),
    ] {
        exec(&b, &[], command).exits(255).says(text);
    }
    since_runc((1, 2), "a text for directories", || {
        exec(&b, &[], &["/etc"]).exits(255).says("exec: \"/etc\": is a directory");
    });
    since_runc((1, 2), "this text", || {
        exec(&b, &[], &[]).says("exec args cannot be empty");
    });
    exec(&b, &["--cwd", "/no/such"], &["true"]).exits(255).says("no such file or directory");
    exec(&b, &["--frob"], &["true"]).exits(1);
}

#[test]
fn a_command_that_only_the_last_step_finds_out_about() {
    if fails_before_runc((1, 2), "exits with 1 then") {
        return;
    }
    let b = sleeping();
    fs::write(b.rootfs().join("script"), "#!/no/interpreter\n").unwrap();
    fs::write(b.rootfs().join("rubbish"), "\x7fELF rubbish").unwrap();
    for name in ["script", "rubbish"] {
        fs::set_permissions(b.rootfs().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    exec(&b, &[], &["/script"]).exits(255).says("no such file or directory");
    exec(&b, &[], &["/rubbish"]).exits(255).says("exec format error");
}

#[test]
fn input_and_output() {
    let b = sleeping();
    let finished = b.exec(&["sh", "-c", "cat; echo error >&2"]).input("one\ntwo\n").ok();
    assert_eq!((finished.out.as_str(), finished.err.as_str()), ("one\ntwo\n", "error\n"));
    let out = b.exec(&["seq", "1", "100000"]).ok().out;
    assert_eq!(out.lines().last(), Some("100000"));
}

#[test]
fn a_created_container_can_be_joined() {
    let b = Bundle::sleeping();
    b.create();
    assert_eq!(exec(&b, &[], &["echo", "here"]).out, "here\n");
    assert_eq!(b.status(), "created");
    b.brig("start").arg(&b.id).ok();
}

#[test]
fn a_stopped_container_cannot() {
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    exec(&b, &[], &["true"]).exits(255).says("cannot exec in a stopped container");
}

#[test]
fn a_paused_container_cannot_unless_told() {
    let b = sleeping();
    b.brig("pause").arg(&b.id).ok();
    let text = "cannot exec in a paused container (use --ignore-paused to override)";
    exec(&b, &[], &["true"]).exits(255).says(text);
    let mut waiting = b.brig("exec").args(["--ignore-paused", &b.id, "echo", "at last"]).spawn();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(waiting.child().try_wait().unwrap().is_none());
    b.brig("resume").arg(&b.id).ok();
    let finished = waiting.finish();
    finished.exits(0);
    assert_eq!(finished.out, "at last\n");
}

/// Case 23: CVE-2026-30892 crun.
#[test]
fn the_user_is_exactly_the_one_that_is_named() {
    let b = sleeping();
    let who = |user: &str| exec(&b, &["--user", user], &["grep", "-E", "^(Uid|Gid):", "/proc/self/status"]);
    let mut users = vec![("1:2", 1_u32, 2), ("1000", 1000, 0), ("0:5", 0, 5)];
    only_brig("runc stops at 2147483647", || users.push(("4294967294:1", 4_294_967_294, 1)));
    for (user, uid, gid) in users {
        let out = who(user).out;
        assert_eq!(status(&out, "Uid"), format!("{uid} {uid} {uid} {uid}"));
        assert_eq!(status(&out, "Gid"), format!("{gid} {gid} {gid} {gid}"));
    }
    for user in ["1abc", "-1", "abc", "1:", "1:x", ":", ":1", "1:2:3", "0x1", "1.0", " 1"] {
        let finished = who(user);
        assert_ne!(finished.code(), 0, "{finished}");
        assert_eq!(finished.out, "", "{finished}");
    }
    since_runc((1, 2), "these texts", || {
        who("abc").exits(255).says("bad uid: strconv.Atoi: parsing \"abc\": invalid syntax");
        who("1:abc").exits(255).says("bad gid: strconv.Atoi: parsing \"abc\": invalid syntax");
    });
}

/// Case 23: numbers that wrap, and none.
#[test]
fn a_user_out_of_range_is_nobody() {
    let b = sleeping();
    better_than_runc("takes 2^32 for root and an empty text for absent", move || {
        for user in ["4294967296", "4294967297", "18446744073709551616", "1:4294967296", ""] {
            let finished = exec(&b, &["-u", user], &["id", "-u"]);
            assert_ne!(finished.code(), 0, "{finished}");
            assert_eq!(finished.out, "");
        }
    });
}

#[test]
fn groups_are_added() {
    let mut b = Bundle::sleeping();
    b.config["process"]["user"] = json!({ "uid": 0, "gid": 0, "additionalGids": [7] });
    b.start();
    let out = exec(&b, &["-g", "8", "-g", "9"], &["cat", "/proc/self/status"]);
    assert_eq!(status(&out.out, "Groups"), "7 8 9");
    since_runc((1, 4), "two names of one flag in one command", || {
        let out = exec(&b, &["-g", "8", "--additional-gids", "9"], &["cat", "/proc/self/status"]);
        assert_eq!(status(&out.out, "Groups"), "7 8 9");
    });
    exec(&b, &["-g", "-1"], &["true"]).exits(255).says("additional-gids must be a positive number -1");
}

#[test]
fn the_environment() {
    let mut b = Bundle::sleeping();
    b.config["process"]["env"] = json!(["PATH=/bin", "A=1", "B=2"]);
    b.start();
    let out = exec(&b, &["-e", "B=3", "-e", "C=4", "-e", "C=5"], &["/bin/env"]).out;
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=1", "B=3", "C=5", "HOME=/root", "PATH=/bin"]);
    // A user's home is that user's.
    let out = exec(&b, &["-u", "1000", "-e", "X=y"], &["sh", "-c", "echo $HOME"]).out;
    assert_eq!(out, "/home/user\n");
    since_runc((1, 3), "a check of the environment", || {
        exec(&b, &["-e", "NOVALUE"], &["true"]).exits(255).says("invalid environment variable");
    });
}

#[test]
fn the_working_directory() {
    let mut b = Bundle::sleeping();
    b.config["process"]["cwd"] = "/tmp".into();
    b.start();
    assert_eq!(exec(&b, &[], &["pwd"]).out, "/tmp\n");
    assert_eq!(exec(&b, &["--cwd", "/etc"], &["pwd"]).out, "/etc\n");
    // It is not made, as that of create is.
    exec(&b, &["--cwd", "/made"], &["pwd"]).exits(255);
    assert!(!b.rootfs().join("made").exists());
    exec(&b, &["--cwd", "tmp"], &["pwd"]).exits(255).says("Cwd must be an absolute path");
}

/// Case 8, for exec: CVE-2024-21626.
#[test]
fn the_working_directory_cannot_be_a_descriptor_of_the_host() {
    let b = sleeping();
    for fd in 3..=20 {
        let run = Run::new("sh").args(["-c", "exec 3</ 7</etc 8</tmp; exec \"$@\"", "sh"]).arg(runtime());
        let run =
            run.arg("--root").arg(&b.root).args(["exec", "--cwd", &format!("/proc/self/fd/{fd}"), &b.id]);
        let finished = run.args(["sh", "-c", "pwd; ls"]).run();
        finished.exits(255);
        assert_eq!(finished.out, "");
    }
}

#[test]
fn capabilities() {
    let b = sleeping();
    let default = format!("{:016x}", (1_u64 << 29) | (1 << 5) | (1 << 10));
    let out = exec(&b, &[], &["cat", "/proc/self/status"]).out;
    assert_eq!(status(&out, "CapBnd"), default);
    assert_eq!(status(&out, "CapEff"), default);
    let with_raw = format!("{:016x}", (1_u64 << 29) | (1 << 5) | (1 << 10) | (1 << 13));
    let out = exec(&b, &["--cap", "CAP_NET_RAW"], &["cat", "/proc/self/status"]).out;
    for set in ["CapBnd", "CapEff", "CapPrm"] {
        assert_eq!(status(&out, set), with_raw, "{set}");
    }
    // CVE-2022-29162.
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(status(&out, set), format!("{:016x}", 0), "{set}");
    }
}

#[test]
fn no_new_privileges() {
    let mut b = Bundle::sleeping();
    b.config["process"]["noNewPrivileges"] = false.into();
    b.start();
    let nnp = |flags: &[&str]| status(&exec(&b, flags, &["cat", "/proc/self/status"]).out, "NoNewPrivs");
    assert_eq!(nnp(&[]), "0");
    assert_eq!(nnp(&["--no-new-privs"]), "1");
    let b = sleeping();
    assert_eq!(status(&exec(&b, &[], &["cat", "/proc/self/status"]).out, "NoNewPrivs"), "1");
}

/// Case 24: crun, youki.
#[test]
fn what_holds_for_the_container_holds_for_its_execs() {
    if fails_before_runc((1, 2), "forgets the umask, and raises the soft limit of descriptors") {
        return;
    }
    let mut b = Bundle::sleeping();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000, "umask": 0o77 });
    b.config["process"]["cwd"] = "/tmp".into();
    b.config["process"]["oomScoreAdj"] = 222.into();
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NOFILE", "soft": 77, "hard": 88 }]);
    b.config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO" }]
    });
    fs::set_permissions(b.rootfs().join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    b.start();
    let script = "id -u; pwd; umask; cat /proc/self/oom_score_adj; ulimit -n; ulimit -Hn; \
                  grep ^Seccomp: /proc/self/status; mkdir /tmp/d 2>&1";
    let finished = exec(&b, &[], &["sh", "-c", script]);
    let lines: Vec<&str> = finished.out.lines().collect();
    assert_eq!(lines[..7], ["1000", "/tmp", "0077", "222", "77", "88", "Seccomp:\t2"]);
    assert!(lines[7].contains("Operation not permitted"), "{finished}");
    assert_eq!(b.exec(&["hostname"]).ok().line(), "brig-test");
}

/// Case 26, first half: crun 1642.
#[test]
fn a_session_of_its_own() {
    let b = sleeping();
    let out = exec(&b, &[], &["cut", "-d ", "-f1,5,6", "/proc/self/stat"]).out;
    let ids: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(ids[0], ids[2], "{out}");
    assert_ne!(ids[0], "1");
}

#[test]
fn three_descriptors() {
    let b = sleeping();
    let run = |script: &str, flags: &[&str], command: &str| {
        let run =
            Run::new("sh").args(["-c", &format!("{script}; exec \"$@\""), "sh"]).dir(b.path()).arg(runtime());
        run.arg("--root").arg(&b.root).arg("exec").args(flags).args([&b.id, "sh", "-c", command]).run()
    };
    assert_eq!(run("exec 3</ 4</etc 9>&1", &[], "ls /proc/self/fd").out, "0\n1\n2\n3\n");
    fs::write(b.path().join("three"), "three\n").unwrap();
    let out = run("exec 3<three 4</etc", &["--preserve-fds", "1"], "cat <&3; ls /proc/self/fd").out;
    assert_eq!(out, "three\n0\n1\n2\n3\n4\n");
    // Socket activation is for the container's own process.
    let out = run(
        "exec 3<three; LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID",
        &[],
        "echo $LISTEN_FDS; ls /proc/self/fd",
    )
    .out;
    assert_eq!(out, "\n0\n1\n2\n3\n");
}

#[test]
fn a_process_from_a_file() {
    if fails_before_runc((1, 2), "raises the soft limit of descriptors") {
        return;
    }
    let b = sleeping();
    let process = json!({
        "user": { "uid": 1000, "gid": 1001, "additionalGids": [5] },
        "args": ["sh", "-c", "cat /proc/self/status; pwd; echo $A; ulimit -n; exit 9"],
        "env": ["PATH=/bin", "A=file"],
        "cwd": "/tmp",
        "rlimits": [{ "type": "RLIMIT_NOFILE", "soft": 55, "hard": 66 }],
        "capabilities": { "bounding": ["CAP_KILL"] },
        "noNewPrivileges": true,
    });
    let finished = exec_file(&b, &process, &[]);
    finished.exits(9);
    assert!(finished.out.ends_with("/tmp\nfile\n55\n"), "{finished}");
    assert_eq!(status(&finished.out, "Uid"), "1000 1000 1000 1000");
    assert_eq!(status(&finished.out, "Gid"), "1001 1001 1001 1001");
    assert_eq!(status(&finished.out, "Groups"), "5");
    assert_eq!(status(&finished.out, "CapBnd"), format!("{:016x}", 1 << 5));
    assert_eq!(status(&finished.out, "NoNewPrivs"), "1");
}

#[test]
fn what_a_file_leaves_out() {
    let mut b = Bundle::sleeping();
    b.config["process"]["env"] = json!(["PATH=/bin", "A=container"]);
    b.start();
    let process = json!({ "args": ["/bin/sh", "-c", "echo \"$A\"; cat /proc/self/status"], "cwd": "/" });
    let finished = exec_file(&b, &process, &[]);
    finished.exits(0);
    assert!(finished.out.starts_with('\n'), "{finished}");
    // Not inherited; capabilities are.
    assert_eq!(status(&finished.out, "NoNewPrivs"), "0");
    assert_eq!(status(&finished.out, "CapBnd"), format!("{:016x}", (1_u64 << 29) | (1 << 5) | (1 << 10)));
}

#[test]
fn files_that_are_no_process() {
    let b = sleeping();
    exec_file(&b, &json!({ "args": ["true"] }), &[]).exits(255).says("Cwd property must not be empty");
    exec_file(&b, &json!({ "args": ["true"], "cwd": "x" }), &[])
        .exits(255)
        .says("Cwd must be an absolute path");
    exec_file(&b, &json!({ "args": [], "cwd": "/" }), &[]).exits(255).says("args must not be empty");
    exec_file(&b, &json!({ "args": "true", "cwd": "/" }), &[]).exits(255);
    b.brig("exec")
        .args(["-p", "/no/such/file", &b.id])
        .run()
        .exits(255)
        .says("/no/such/file: no such file or directory");
    fs::write(b.path().join("half"), "{ \"args\": [\"tr").unwrap();
    b.brig("exec").arg("-p").arg(b.path().join("half")).arg(&b.id).run().exits(255);
}

#[test]
fn detached() {
    others_may_fail("returns before the program is executed", || {
        let b = sleeping();
        let pid_file = b.path().join("pid");
        let run = b.brig("exec").args(["--detach", "--pid-file"]).arg(&pid_file);
        let finished = run.args([&b.id, "sleep", "2000"]).detached().ok();
        assert_eq!(finished.both(), "");
        let text = fs::read_to_string(&pid_file).unwrap();
        let pid: i32 = text.parse().unwrap();
        assert_eq!(fs::read(format!("/proc/{pid}/cmdline")).unwrap(), b"sleep\x002000\0");
        assert!(b.members().contains(&pid));
        let link = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
        assert_eq!(link(pid), link(b.pid()));
        b.delete();
        assert!(!host::is_alive(pid));
    });
}

#[test]
fn a_process_from_a_file_detached() {
    // As containerd and conmon call it; the file is gone right afterwards.
    let b = sleeping();
    let pid_file = b.path().join("pid");
    let file = b.path().join("process.json");
    fs::write(&file, json!({ "args": ["sleep", "2000"], "cwd": "/", "env": ["PATH=/bin"] }).to_string())
        .unwrap();
    let run = b.brig("exec").arg("--process").arg(&file).args(["--detach", "--pid-file"]).arg(&pid_file);
    run.arg(&b.id).detached().ok();
    fs::remove_file(&file).unwrap();
    let pid: i32 = fs::read_to_string(&pid_file).unwrap().parse().unwrap();
    assert!(host::is_alive(pid));
}

#[test]
fn a_detached_process_that_cannot_be_executed() {
    let b = sleeping();
    let pid_file = b.path().join("pid");
    let run = b.brig("exec").args(["--detach", "--pid-file"]).arg(&pid_file);
    run.args([&b.id, "/no/such"]).run().exits(255).says("no such file or directory");
    assert!(!pid_file.exists());
    assert_eq!(b.members().len(), 1);
}

#[test]
fn a_process_belongs_to_the_containers_cgroup() {
    let b = sleeping();
    let own = fs::read_to_string(format!("/proc/{}/cgroup", b.pid())).unwrap();
    let pid_file = b.path().join("pid");
    let run = b.brig("exec").args(["-d", "--pid-file"]).arg(&pid_file);
    run.args([&b.id, "sleep", "2000"]).detached().ok();
    let pid = fs::read_to_string(&pid_file).unwrap();
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap(), own);
    assert!(own.contains(&b.cgroup()), "{own}");
}

#[test]
fn a_process_in_a_sub_cgroup() {
    let b = sleeping();
    let (controller, flag) = if host::is_cgroup_v2() { ("", "sub/one") } else { ("pids", "pids:sub/one") };
    let sub = b.cgroup_dir(controller).join("sub/one");
    fs::create_dir_all(&sub).unwrap();
    let pid_file = b.path().join("pid");
    let run = b.brig("exec").args(["-d", "--cgroup", flag, "--pid-file"]).arg(&pid_file);
    run.args([&b.id, "sleep", "2000"]).detached().ok();
    let pid = fs::read_to_string(&pid_file).unwrap();
    let procs = fs::read_to_string(sub.join("cgroup.procs")).unwrap();
    assert!(procs.lines().any(|line| line == pid), "{procs}");
}

#[test]
fn sub_cgroups_that_cannot_be() {
    let b = sleeping();
    let (controller, escape) = if host::is_cgroup_v2() { ("", "../..") } else { ("pids", "pids:../..") };
    let _ = controller;
    let refused = exec(&b, &["--cgroup", escape], &["true"]);
    refused.exits(255);
    since_runc((1, 2), "this text", || {
        refused.says("bad sub cgroup path");
    });
    exec(&b, &["--cgroup", "frob:x"], &["true"]).exits(255);
    exec(&b, &["--cgroup", "no/such/sub"], &["true"]).exits(255).says("no such file or directory");
    assert_eq!(b.members().len(), 1);
}

#[test]
fn the_end_of_the_container_ends_it() {
    let b = sleeping();
    let exec = b.exec(&["sh", "-c", "touch /began; exec sleep 1000"]).spawn();
    host::eventually("the process", || b.rootfs().join("began").exists());
    b.delete();
    exec.finish().exits(137);
}

#[test]
fn execs_at_once() {
    others_may_fail("1.5 loses one now and then (exec failed: EOF)", || {
        if fails_before_runc((1, 2), "loses one now and then") {
            return;
        }
        let b = sleeping();
        let all: Vec<_> = (0..12).map(|n| b.exec(&["sh", "-c", &format!("echo {n}")]).spawn()).collect();
        for (n, exec) in all.into_iter().enumerate() {
            let finished = exec.finish();
            finished.exits(0);
            assert_eq!(finished.out, format!("{n}\n"));
        }
    });
}

#[test]
fn in_the_hosts_pid_namespace() {
    let mut b = Bundle::sleeping();
    b.without_namespace("pid");
    b.start();
    let finished = b.exec(&["sh", "-c", "echo $$; cat /proc/1/comm"]).ok();
    let init = fs::read_to_string("/proc/1/comm").unwrap();
    assert_eq!(finished.out.lines().nth(1), Some(init.trim_end()));
}

#[test]
fn without_a_mount_namespace_it_is_in_the_containers_root() {
    if fails_before_runc((9, 0), "leaves mounts on the host: not for this machine") {
        return;
    }
    let mut b = Bundle::sleeping();
    b.without_namespace("mount");
    b.config["linux"]["maskedPaths"] = json!([]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    b.start();
    let out = b.exec(&["ls", "/"]).ok().out;
    assert!(out.contains("proc") && !out.contains("boot"), "{out}");
    b.delete();
    b.assert_gone();
}

#[test]
fn the_process_file_wins_over_flags() {
    let b = sleeping();
    let process =
        json!({ "args": ["sh", "-c", "echo $A; id -u"], "cwd": "/", "env": ["PATH=/bin", "A=file"] });
    let finished = exec_file(&b, &process, &["-e", "A=flag", "-u", "1000"]);
    assert_eq!(finished.out, "file\n0\n");
}

#[test]
fn the_callers_signals_are_not_inherited() {
    let b = sleeping();
    better_than_runc("ignores one of its own", move || {
        let run = Run::new("sh").args(["-c", "trap '' HUP INT QUIT PIPE; exec \"$@\"", "sh"]).arg(runtime());
        let run = run.arg("--root").arg(&b.root).args(["exec", &b.id, "cat", "/proc/self/status"]);
        let out = run.ok().out;
        assert_eq!(status(&out, "SigIgn"), "0000000000000000");
        assert_eq!(status(&out, "SigBlk"), "0000000000000000");
    });
}
