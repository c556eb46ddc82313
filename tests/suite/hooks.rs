//! Hooks: when and where they run, what they are told, and what follows from their failure.

use std::fs;
use std::path::PathBuf;

use brig_tests::{Bundle, Value, better_than_runc, fails_before_runc, host, json};

const ALL: [&str; 6] =
    ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

/// A shell script as a hook.
fn script(text: &str) -> Value {
    json!({ "path": "/bin/sh", "args": ["sh", "-c", text], "env": ["PATH=/usr/bin:/bin:/usr/sbin:/sbin"] })
}

/// The log that all hooks of a bundle write, one line each: the kind and the state from standard input.
fn log(b: &Bundle) -> PathBuf {
    b.path().join("logs/log")
}

/// Adds a hook of each kind that writes to the log. The container sees the log at `/logs`.
fn log_all(b: &mut Bundle) {
    fs::create_dir_all(b.path().join("logs")).unwrap();
    let source = b.path().join("logs");
    b.mount(json!({ "destination": "/logs", "type": "bind", "source": source, "options": ["bind"] }));
    let mut hooks = json!({});
    for kind in ALL {
        let file = if kind == "startContainer" { PathBuf::from("/logs/log") } else { log(b) };
        hooks[kind] = json!([script(&format!("echo {kind} $(cat) >>{}", file.display()))]);
    }
    b.config["hooks"] = hooks;
}

/// The kinds and states in the log.
fn logged(b: &Bundle) -> Vec<(String, Value)> {
    let text = fs::read_to_string(log(b)).unwrap_or_default();
    text.lines()
        .map(|line| {
            let (kind, state) = line.split_once(' ').unwrap_or((line, "null"));
            (kind.to_owned(), serde_json::from_str(state).unwrap_or(Value::Null))
        })
        .collect()
}

fn kinds(b: &Bundle) -> Vec<String> {
    logged(b).into_iter().map(|(kind, _)| kind).collect()
}

/// Case 20: crun 2025, youki 3256.
#[test]
fn the_order_and_the_state() {
    if fails_before_runc((1, 2), "runs poststart hooks before the start") {
        return;
    }
    let mut b = Bundle::sleeping();
    log_all(&mut b);
    b.config["annotations"] = json!({ "a": "b" });
    b.create();
    assert_eq!(kinds(&b), ["prestart", "createRuntime", "createContainer"]);
    let pid = b.pid();
    b.brig("start").arg(&b.id).ok();
    host::eventually("startContainer and poststart", || kinds(&b).len() == 5);
    b.delete();
    let logged = logged(&b);
    let order: Vec<&str> = logged.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(order[..3], ALL[..3]);
    // runc does not wait for the former before it runs the latter.
    assert!(order.contains(&"startContainer") && order.contains(&"poststart"), "{order:?}");
    assert_eq!(order[5], "poststop");
    for (kind, state) in &logged {
        let (status, pid) = match kind.as_str() {
            "prestart" | "createRuntime" => ("creating", json!(pid)),
            "createContainer" => ("creating", json!(1)),
            "startContainer" => ("created", json!(1)),
            "poststart" => ("running", json!(pid)),
            _ => ("stopped", Value::Null),
        };
        assert_eq!(state["status"], status, "{kind}");
        assert_eq!(state["pid"], pid, "{kind}");
        assert_eq!(state["id"], b.id.as_str(), "{kind}");
        assert_eq!(state["bundle"], b.path().to_str().unwrap(), "{kind}");
        assert_eq!(state["annotations"], json!({ "a": "b" }), "{kind}");
        assert!(state["ociVersion"].is_string(), "{kind}");
    }
}

#[test]
fn start_container_comes_before_poststart() {
    better_than_runc_by_luck(|| {
        let mut b = Bundle::sleeping();
        log_all(&mut b);
        b.start();
        assert_eq!(kinds(&b), ALL[..5]);
    });
}

/// runc runs them side by side.
fn better_than_runc_by_luck(test: impl FnOnce()) {
    brig_tests::only_brig("runc wins or loses this race as it comes", test);
}

/// Case 21, first half: crun 1943; runc 4347, 5186.
#[test]
fn poststart_runs_after_the_program_began() {
    better_than_runc_by_luck(|| {
        for _ in 0..5 {
            let mut b = Bundle::sleeping();
            let out = b.path().join("out");
            let text = format!(
                "pid=$(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/'); cat /proc/$pid/comm >{}",
                out.display()
            );
            b.config["hooks"] = json!({ "poststart": [script(&text)] });
            b.start();
            assert_eq!(fs::read_to_string(&out).unwrap(), "sleep\n");
        }
    });
}

/// Case 21, second half.
#[test]
fn a_poststart_hook_that_fails_ends_the_container() {
    if fails_before_runc((1, 2), "does not say which kind of hook it was") {
        return;
    }
    let mut b = Bundle::sleeping();
    log_all(&mut b);
    b.config["hooks"]["poststart"] = json!([{ "path": "/bin/false" }]);
    let start = b.brig("run").args(["--detach", &b.id]).detached().run();
    start.exits(1).says("error running poststart hook #0: exit status 1");
    b.assert_gone();
    assert_eq!(kinds(&b).last().map(String::as_str), Some("poststop"));

    fs::remove_file(log(&b)).unwrap();
    b.create();
    b.brig("start").arg(&b.id).run().exits(1).says("error running poststart hook #0: exit status 1");
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    assert_eq!(kinds(&b).last().map(String::as_str), Some("poststop"));
}

/// Case 19: crun 1924, 2167.
#[test]
fn create_container_runs_before_the_change_of_root() {
    let mut b = Bundle::new(&["ls", "/"]);
    b.config["root"]["readonly"] = true.into();
    let out = b.path().join("out");
    let rootfs = b.rootfs();
    let text = format!(
        "mkdir {0}/made && pwd >{1} && cat /proc/self/mountinfo >>{1} && ls {0}/proc/self >/dev/null && readlink /proc/self/ns/mnt >>{1}",
        rootfs.display(),
        out.display()
    );
    b.config["hooks"] = json!({ "createContainer": [script(&text)] });
    let listing = b.run().ok().out;
    assert!(listing.lines().any(|name| name == "made"), "{listing}");
    let seen = fs::read_to_string(&out).unwrap();
    assert_eq!(seen.lines().next(), rootfs.to_str());
    for mount in ["/proc", "/dev", "/dev/shm", "/sys"] {
        assert!(seen.contains(&format!(" {}{mount} ", rootfs.display())), "{mount} is not in {seen}");
    }
    // The host's mounts are still there, in the container's mount namespace.
    let own = fs::read_link("/proc/self/ns/mnt").unwrap();
    assert_ne!(seen.lines().last(), own.to_str());
}

#[test]
fn hooks_of_the_host_run_on_the_host() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let text = format!(
        "readlink /proc/self/ns/mnt /proc/self/ns/net /proc/self/ns/uts >{}; pwd >>{0}",
        out.display()
    );
    b.config["hooks"] = json!({ "createRuntime": [script(&text)] });
    b.run().ok();
    let link = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().display().to_string();
    let expected = format!("{}\n{}\n{}\n{}\n", link("mnt"), link("net"), link("uts"), b.path().display());
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
}

#[test]
fn start_container_runs_in_the_container() {
    let mut b = Bundle::sh("cat /inside");
    b.config["process"]["cwd"] = "/tmp".into();
    let mut hook = script("{ pwd; readlink /proc/1/exe; cat /etc/passwd | head -1; } >/inside");
    hook["env"] = json!(["PATH=/bin"]);
    b.config["hooks"] = json!({ "startContainer": [hook] });
    let out = b.run().ok().out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("/tmp", "root:x:0:0:root:/root:/bin/sh"));
}

#[test]
fn several_hooks_run_one_after_the_other() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let hooks: Vec<Value> =
        (0..5).map(|n| script(&format!("sleep 0.0{}; echo {n} >>{}", 5 - n, out.display()))).collect();
    b.config["hooks"] = json!({ "createRuntime": hooks, "poststop": hooks });
    b.run().ok();
    assert_eq!(fs::read_to_string(&out).unwrap(), "0\n1\n2\n3\n4\n0\n1\n2\n3\n4\n");
}

#[test]
fn arguments_and_environment() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let text =
        format!("echo \"$0|$1|$2\" >{0}; env | grep -vE '^(PWD|OLDPWD|SHLVL|_)=' >>{0}", out.display());
    b.config["hooks"] = json!({ "createRuntime": [
        { "path": "/bin/sh", "args": ["name", "-c", text, "zero", "one", "two words"], "env": ["PATH=/bin:/usr/bin", "X=1"] }
    ]});
    b.run().env("LEAK", "yes").ok();
    let seen = fs::read_to_string(&out).unwrap();
    let mut lines: Vec<&str> = seen.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["zero|one|two words", "PATH=/bin:/usr/bin", "X=1"]);
}

#[test]
fn without_arguments_there_is_the_path() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let hook = b.path().join("hook");
    fs::write(&hook, format!("#!/bin/sh\necho $# $0 >{}\n", out.display())).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    b.config["hooks"] = json!({ "createRuntime": [{ "path": hook }] });
    b.run().ok();
    assert_eq!(fs::read_to_string(&out).unwrap(), format!("0 {}\n", hook.display()));
}

#[test]
fn a_failing_hook_before_start_undoes_the_container() {
    if fails_before_runc((1, 2), "does not say which kind of hook it was") {
        return;
    }
    for kind in ["prestart", "createRuntime", "createContainer"] {
        let mut b = Bundle::sleeping();
        log_all(&mut b);
        b.config["hooks"][kind] =
            json!([script("exit 0"), script("echo to out; echo to err >&2; exit 3"), script("exit 4")]);
        let create = b.brig("create").arg(&b.id).run();
        create.exits(1).says(&format!("error running {kind} hook #1: exit status 3"));
        create.says("stdout: to out").says("stderr: to err");
        b.assert_gone();
        assert_eq!(kinds(&b).last().map(String::as_str), Some("poststop"), "{kind}");
    }
}

#[test]
fn a_failing_start_container_hook_is_an_error_of_start() {
    better_than_runc("start succeeds", || {
        let mut b = Bundle::sleeping();
        let mut hook = script("echo to out; exit 3");
        hook["env"] = json!(["PATH=/bin"]);
        b.config["hooks"] = json!({ "startContainer": [hook] });
        b.create();
        let start = b.brig("start").arg(&b.id).run();
        start.exits(1).says("error running startContainer hook #0: exit status 3").says("to out");
        b.wait_status("stopped");
    });
}

#[test]
fn a_failing_poststop_hook_does_not_stop_the_others() {
    better_than_runc("stops at the first and fails", || {
        let mut b = Bundle::sleeping();
        let out = b.path().join("out");
        b.config["hooks"] =
            json!({ "poststop": [script("exit 3"), script(&format!("echo ran >{}", out.display()))] });
        b.start();
        b.brig("delete").args(["--force", &b.id]).ok();
        b.assert_gone();
        assert_eq!(fs::read_to_string(&out).unwrap(), "ran\n");
    });
}

#[test]
fn a_hook_that_takes_too_long_is_killed() {
    if fails_before_runc((1, 2), "does not say which kind of hook it was") {
        return;
    }
    for kind in ["createRuntime", "createContainer", "poststart"] {
        let mut b = Bundle::sleeping();
        let mut hook = script("exec sleep 1000");
        hook["timeout"] = 1.into();
        b.config["hooks"] = json!({ kind: [hook] });
        let run = b.brig("run").args(["-d", &b.id]).detached().run();
        run.exits(1)
            .says(&format!("error running {kind} hook #0"))
            .says("hook ran past specified timeout of 1.0s");
        b.assert_gone();
    }
}

#[test]
fn a_start_container_hook_that_takes_too_long_is_killed() {
    better_than_runc("start succeeds", || {
        let mut b = Bundle::sleeping();
        let mut hook = script("exec sleep 1000");
        hook["timeout"] = 1.into();
        b.config["hooks"] = json!({ "startContainer": [hook] });
        b.create();
        let start = b.brig("start").arg(&b.id).run();
        start.exits(1).says("startContainer hook #0").says("hook ran past specified timeout of 1.0s");
    });
}

#[test]
fn hooks_that_cannot_be() {
    better_than_runc("finds out when it runs them", || {
        for (hook, text) in [
            (json!({ "path": "relative/hook" }), "hooks.poststop[0].path"),
            (json!({ "path": "/bin/true", "timeout": 0 }), "hooks.poststop[0].timeout"),
            (json!({ "path": "/bin/true", "timeout": -1 }), "hooks.poststop[0].timeout"),
        ] {
            let mut b = Bundle::default();
            b.config["hooks"] = json!({ "poststop": [hook] });
            b.run().run().exits(1).says(text);
            b.assert_gone();
        }
    });
}

#[test]
fn a_hook_that_is_not_there() {
    if fails_before_runc((1, 2), "does not say which kind of hook it was") {
        return;
    }
    let mut b = Bundle::default();
    b.config["hooks"] = json!({ "createRuntime": [{ "path": "/no/such/hook" }] });
    b.run().run().exits(1).says("createRuntime hook #0").says("/no/such/hook: no such file or directory");
    b.assert_gone();
}

#[test]
fn a_hook_need_not_read_its_input() {
    let mut b = Bundle::default();
    b.config["annotations"] = json!({ "long": "x".repeat(300_000) });
    b.config["hooks"] =
        json!({ "createRuntime": [{ "path": "/bin/true" }], "poststop": [script("head -c 10 >/dev/null")] });
    b.run().ok();
}

#[test]
fn a_hook_gets_all_of_a_long_state() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    b.config["annotations"] = json!({ "long": "x".repeat(300_000) });
    b.config["hooks"] = json!({ "createRuntime": [script(&format!("cat >{}", out.display()))] });
    b.run().ok();
    let state: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(state["annotations"]["long"].as_str().map(str::len), Some(300_000));
}

#[test]
fn a_talkative_hook_does_not_block() {
    let mut b = Bundle::default();
    b.config["hooks"] =
        json!({ "createRuntime": [script("yes | head -c 500000; yes | head -c 500000 >&2")] });
    let finished = b.run().ok();
    assert_eq!(finished.both(), "");
}

#[test]
fn what_a_hook_leaves_running_is_not_waited_for() {
    if fails_before_runc((1, 2), "waits for all that hold the pipe") {
        return;
    }
    better_than_runc("waits for all that hold the pipe", || {
        let mut b = Bundle::default();
        let pid = b.path().join("pid");
        let text = format!("sleep 30 & echo $! >{}", pid.display());
        b.config["hooks"] = json!({ "createRuntime": [script(&text)] });
        let finished = b.run().limit(std::time::Duration::from_secs(20)).run();
        host::kill(fs::read_to_string(&pid).unwrap().trim().parse().unwrap());
        finished.exits(0);
    });
}

#[test]
fn a_hook_has_no_descriptors_but_its_own() {
    let mut b = Bundle::default();
    let out = b.path().join("out");
    b.config["hooks"] = json!({ "createRuntime": [script(&format!("ls /proc/self/fd >{}", out.display()))] });
    b.run().ok();
    // The shell's redirection, and the directory of ls.
    assert_eq!(fs::read_to_string(&out).unwrap(), "0\n1\n2\n3\n");
}

#[test]
fn hooks_see_the_cgroup_and_its_limits() {
    if !host::has_controller("pids") {
        return brig_tests::note("not checked: the pids controller is not here");
    }
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let file = b.cgroup_dir("pids").join("pids.max");
    b.config["linux"]["resources"]["pids"] = json!({ "limit": 123 });
    b.config["hooks"] =
        json!({ "createRuntime": [script(&format!("cat {} >{}", file.display(), out.display()))] });
    b.run().ok();
    assert_eq!(fs::read_to_string(&out).unwrap(), "123\n");
}

#[test]
fn a_hanging_poststart_hook_is_not_in_the_way_of_delete() {
    if fails_before_runc((1, 2), "runs poststart hooks before the start") {
        return;
    }
    let mut b = Bundle::sleeping();
    let started = b.path().join("started");
    b.config["hooks"] =
        json!({ "poststart": [script(&format!("touch {}; exec sleep 1000", started.display()))] });
    b.create();
    let start = b.brig("start").arg(&b.id).spawn();
    host::eventually("the hook", || started.exists());
    b.brig("delete").args(["--force", &b.id]).ok();
    drop(start);
    b.assert_gone();
}

#[test]
fn hooks_of_old_kinds_run_with_the_new() {
    // prestart is deprecated, and still what some toolkits use.
    let mut b = Bundle::default();
    let out = b.path().join("out");
    let hook = |text: &str| script(&format!("echo {text} >>{}", out.display()));
    b.config["hooks"] = json!({ "prestart": [hook("old")], "createRuntime": [hook("new")] });
    b.run().ok();
    assert_eq!(fs::read_to_string(&out).unwrap(), "old\nnew\n");
}
