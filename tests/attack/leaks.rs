//! What the caller is must not become what the container is: signals, terminals, keys, environment, umask, CPUs, mask.

use std::fs;

use brig_tests::{Bundle, Run, json, note, runtime};

use crate::support::naive_path;

/// A caller with everything that could leak: ignored and blocked signals, a variable, a umask, one CPU.
fn messy(program: &std::path::Path) -> Run {
    // A shell's `trap ''` ignores; what is blocked, only env(1) of coreutils 8.31 can.
    let script = "trap '' HUP INT QUIT TERM USR1 PIPE; umask 0137; export CALLERS_SECRET=leaked; \
        exec taskset -c 0 env --block-signal=USR2,ALRM,CHLD \"$@\"";
    Run::new("sh").args(["-c", script, "sh"]).arg(program)
}

const LOOK: &str = "grep -E '^(SigIgn|SigBlk|Cpus_allowed_list|Groups|Seccomp|NoNewPrivs):' /proc/self/status; umask; env; \
    readlink /proc/self/fd/0; cat /proc/self/stat; pwd";

fn line(out: &str, name: &str) -> String {
    let found = out.lines().find_map(|line| line.strip_prefix(name));
    found.unwrap_or_else(|| panic!("no {name} in {out}")).trim().to_owned()
}

#[test]
fn nothing_of_the_caller_leaks_in() {
    let b = Bundle::new(&["sh", "-c", LOOK]);
    let root = b.rootfs().to_string_lossy().into_owned();
    let broken =
        messy(naive_path()).args(["exec", &root, "/bin/sh", "-c", LOOK]).env("PATH", "/bin:/usr/bin").run();
    assert!(broken.out.contains("CALLERS_SECRET=leaked"), "{broken}");
    assert_ne!(line(&broken.out, "SigIgn:"), "0000000000000000");
    assert_ne!(line(&broken.out, "SigBlk:"), "0000000000000000");
    assert!(broken.out.contains("0137"), "{broken}");

    b.write_config();
    let run =
        messy(&runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path()).arg(&b.id);
    assert_clean(&run.ok().out);
    let b = Bundle::sleeping();
    b.write_config();
    let create = messy(&runtime()).arg("--root").arg(&b.root).arg("create").arg("--bundle").arg(b.path());
    create.arg(&b.id).detached().ok();
    messy(&runtime()).arg("--root").arg(&b.root).args(["start", &b.id]).ok();
    let exec = messy(&runtime()).arg("--root").arg(&b.root).args(["exec", &b.id, "sh", "-c", LOOK]);
    assert_clean(&exec.ok().out);
    let status = fs::read_to_string(format!("/proc/{}/status", b.pid())).unwrap();
    for field in ["SigIgn:", "SigBlk:"] {
        assert_eq!(line(&status, field), "0000000000000000", "the first process");
    }
}

#[track_caller]
fn assert_clean(out: &str) {
    for field in ["SigIgn:", "SigBlk:"] {
        assert_eq!(line(out, field), "0000000000000000", "{out}");
    }
    assert!(out.lines().any(|line| line == "0022"), "{out}");
    assert!(!out.contains("CALLERS_SECRET"), "{out}");
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let all = line(&own, "Cpus_allowed_list:");
    if all == "0" {
        note("this machine has one CPU: its affinity could not be looked at");
    }
    assert_eq!(line(out, "Cpus_allowed_list:"), all, "{out}");
    assert_eq!(line(out, "Groups:"), "", "the caller's groups");
}

/// The terminal of the caller is not the container's, which otherwise could type on it (TIOCSTI).
#[test]
fn the_callers_terminal_is_not_the_containers() {
    const TTY: &str =
        "(: </dev/tty) 2>/dev/null && echo has one || echo has none; cut -d' ' -f7 /proc/self/stat";
    let mut b = Bundle::new(&["sh", "-c", TTY]);
    b.config["linux"]["devices"] =
        json!([{ "path": "/dev/tty", "type": "c", "major": 5, "minor": 0, "fileMode": 438 }]);
    b.write_config();
    let quoted = |words: &[&str]| words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
    let (runtime, root, dir) = (runtime(), b.root.clone(), b.path().to_owned());
    let command = quoted(&[
        &runtime.to_string_lossy(),
        "--root",
        &root.to_string_lossy(),
        "run",
        "--bundle",
        &dir.to_string_lossy(),
        &b.id,
    ]);
    // script(1) runs it on a terminal of its own.
    let on_terminal =
        |command: &str| Run::new("script").args(["-qec", command, "/dev/null"]).ok().out.replace('\r', "");
    assert_eq!(on_terminal("sh -c '(: </dev/tty) && echo has one'"), "has one\n", "the careless way");
    let out = on_terminal(&command);
    assert!(out.contains("has none\n0\n"), "{out}");
}

/// No variable of the runtime's own, and none twice.
#[test]
fn the_environment_is_what_was_asked_for() {
    let mut b = Bundle::new(&["/bin/env"]);
    b.config["process"]["env"] = json!(["A=1", "B=x=y", "A=2"]);
    let run = b.run().env("RUST_BACKTRACE", "1").env("LISTEN_FDNAMES", "x").env("NOTIFY_SOCKET", "/nowhere");
    let mut lines: Vec<String> = run.ok().out.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["A=2", "B=x=y", "HOME=/root"]);
}

/// Limits that the configuration names are the configuration's, also where the caller's are lower.
#[test]
fn limits_of_the_caller_do_not_bound_those_asked_for() {
    let mut b = Bundle::sh("ulimit -Hn; ulimit -Sn; ulimit -c");
    b.config["process"]["rlimits"] = json!([
        { "type": "RLIMIT_NOFILE", "hard": 4096, "soft": 2048 },
        { "type": "RLIMIT_CORE", "hard": 0, "soft": 0 }
    ]);
    b.write_config();
    let script = "ulimit -S -n 100; ulimit -c unlimited 2>/dev/null; exec \"$@\"";
    let run = Run::new("sh").args(["-c", script, "sh"]).arg(runtime()).arg("--root").arg(&b.root);
    assert_eq!(run.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).ok().out, "4096\n2048\n0\n");
}
