//! Execs as things with a name: listed, waited for, signalled, timed, with a cgroup of their own.

use std::fs;
use std::path::PathBuf;

use brig_tests::{Bundle, Finished, Run, Spawned, Value, host, is_other_runtime, note, only_brig};

fn sleeping() -> Bundle {
    let b = Bundle::sleeping();
    b.start();
    b
}

/// `exec` with flags, whose process is detached.
fn detached(b: &Bundle, flags: &[&str], command: &[&str]) -> Finished {
    b.brig("exec").arg("--detach").args(flags).arg(&b.id).args(command).detached().run()
}

/// `exec` with flags in the foreground.
fn exec(b: &Bundle, flags: &[&str], command: &[&str]) -> Run {
    b.brig("exec").args(flags).arg(&b.id).args(command)
}

/// Names of the execs that `ps` shows.
fn names(b: &Bundle) -> Vec<String> {
    let out = b.brig("ps").args(["--execs", "--format", "json", &b.id]).ok().out;
    ids(&serde_json::from_str(&out).unwrap())
}

fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter().map(|exec| exec["id"].as_str().unwrap().to_owned()).collect()
}

fn pid_of(b: &Bundle, exec: &str) -> i32 {
    let out = b.brig("ps").args(["--execs", "--format", "json", &b.id]).ok().out;
    let list: Value = serde_json::from_str(&out).unwrap();
    let found = list.as_array().unwrap().iter().find(|found| found["id"] == exec).unwrap();
    i32::try_from(found["pid"].as_i64().unwrap()).unwrap()
}

fn kill(b: &Bundle, flags: &[&str], signal: &str) -> Finished {
    b.brig("kill").args(flags).args([&b.id, signal]).run()
}

fn wait_for_file(b: &Bundle, name: &str) {
    host::eventually(name, || b.rootfs().join(name).exists());
}

fn ends(run: Spawned, code: i32) -> Finished {
    let finished = run.finish();
    finished.exits(code);
    finished
}

/// Where an exec's own cgroup is.
fn own_cgroup(b: &Bundle, exec: &str) -> Option<PathBuf> {
    let dirs = host::cgroup_dirs(&format!("{}/brig-exec-{exec}", b.cgroup()));
    dirs.into_iter().next()
}

fn has_v2() -> bool {
    let has = host::hierarchies().iter().any(|dir| dir.join("cgroup.controllers").exists());
    if !has {
        note("not checked: there is no cgroup v2 here");
    }
    has
}

#[test]
fn the_living_are_listed_by_name() {
    only_brig("execs have no names elsewhere", || {
        let b = sleeping();
        assert!(names(&b).is_empty());
        for name in ["two", "one"] {
            detached(&b, &["--exec-id", name], &["sleep", "1000"]).exits(0);
        }
        detached(&b, &[], &["sleep", "1000"]).exits(0);
        assert_eq!(names(&b), ["one", "two"]);
        assert_eq!(ids(&b.state()["execs"]), ["one", "two"]);
        let json = b.runtime().args(["list", "--format", "json"]).ok().out;
        assert_eq!(ids(&serde_json::from_str::<Value>(&json).unwrap()[0]["execs"]), ["one", "two"]);
        for table in [b.runtime().args(["list", "--execs"]), b.brig("ps").args(["--execs", &b.id])] {
            let out = table.ok().out;
            let rows: Vec<Vec<&str>> = out.lines().map(|row| row.split_whitespace().collect()).collect();
            assert_eq!(rows[0], ["ID", "EXEC", "PID", "STARTED", "COMMAND"]);
            assert_eq!((rows[1][0], rows[1][1], rows[2][1]), (b.id.as_str(), "one", "two"));
            assert_eq!(rows[1][4..], ["sleep", "1000"]);
        }
        let exec = &b.state()["execs"][0];
        let pid = exec["pid"].as_i64().unwrap();
        assert_eq!(fs::read(format!("/proc/{pid}/cmdline")).unwrap(), b"sleep\x001000\0");
        assert_eq!(exec["args"], brig_tests::json!(["sleep", "1000"]));
        let started = exec["started"].as_str().unwrap();
        assert!(started.starts_with("20") && started.ends_with('Z'), "{started}");
        kill(&b, &["--exec-id", "one"], "KILL").exits(0);
        host::eventually("its end", || names(&b) == ["two"]);
        b.brig("kill").args([&b.id, "KILL"]).ok();
        b.wait_status("stopped");
        host::eventually("the end of the other", || names(&b).is_empty());
    });
}

#[test]
fn what_is_in_the_foreground_has_its_name_while_it_runs() {
    only_brig("execs have no names elsewhere", || {
        let b = sleeping();
        let run = exec(&b, &["--exec-id", "e"], &["sh", "-c", "touch /began; read line; exit 4"]);
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let run = run.stdin(read).spawn();
        wait_for_file(&b, "began");
        assert_eq!(names(&b), ["e"]);
        exec(&b, &["--exec-id", "e"], &["true"])
            .run()
            .exits(255)
            .says("exec with given ID already exists: e");
        drop(write);
        ends(run, 4);
        assert!(names(&b).is_empty());
        assert!(!b.root.join(&b.id).join("execs/e.json").exists());
        exec(&b, &["--exec-id", "e"], &["sh", "-c", "exit 5"]).run().exits(5);
    });
}

#[test]
fn a_name_is_free_after_failures_and_kills() {
    only_brig("execs have no names elsewhere", || {
        let b = sleeping();
        exec(&b, &["--exec-id", "e"], &["/no/such"]).run().exits(255);
        for name in ["", "a/b", ".."] {
            assert_ne!(exec(&b, &["--exec-id", name], &["true"]).run().code(), 0);
        }
        // Killed at some moment or other, it has no process, or one that goes on under its name.
        for delay in 0..15 {
            let run = exec(&b, &["--exec-id", "e"], &["sleep", "1000"]).detached().spawn();
            std::thread::sleep(std::time::Duration::from_millis(2 * delay));
            drop(run);
            if names(&b) == ["e"] {
                kill(&b, &["--exec-id", "e"], "KILL").exits(0);
                host::eventually("its end", || names(&b).is_empty());
            }
            host::eventually("all to end", || b.members().len() == 1);
            exec(&b, &["--exec-id", "e"], &["true"]).ok();
        }
    });
}

#[test]
fn one_of_many_gets_the_name() {
    only_brig("execs have no names elsewhere", || {
        let b = sleeping();
        let all: Vec<_> = (0..6)
            .map(|_| exec(&b, &["-d", "--exec-id", "e"], &["sleep", "1000"]).detached().spawn())
            .collect();
        let codes: Vec<i32> = all.into_iter().map(|run| run.finish().code()).collect();
        assert_eq!(codes.iter().filter(|&&code| code == 0).count(), 1, "{codes:?}");
        assert_eq!(names(&b), ["e"]);
        host::eventually("one process more", || b.members().len() == 2);
    });
}

#[test]
fn kill_by_name_reaches_that_process_only() {
    only_brig("execs have no names elsewhere", || {
        let script =
            |n: u32| format!("trap 'touch /got-{n}' USR1; touch /ready-{n}; while :; do sleep 0.05; done");
        let b = Bundle::sh(&script(0));
        b.start();
        for n in 1..3 {
            detached(&b, &["--exec-id", &format!("e{n}")], &["sh", "-c", &script(n)]).exits(0);
        }
        (0..3).for_each(|n| wait_for_file(&b, &format!("ready-{n}")));
        kill(&b, &["--exec-id", "e1"], "USR1").exits(0);
        wait_for_file(&b, "got-1");
        kill(&b, &["--pid", &pid_of(&b, "e2").to_string()], "USR1").exits(0);
        wait_for_file(&b, "got-2");
        assert!(!b.rootfs().join("got-0").exists());
        kill(&b, &["--exec-id", "none"], "USR1").exits(1).says("exec none does not exist");
        kill(&b, &["--exec-id", "e1"], "999").exits(1).says("invalid argument");
        kill(&b, &["--exec-id", "e1"], "0").exits(0);
    });
}

#[test]
fn kill_by_pid_refuses_what_is_not_the_containers() {
    only_brig("kill has no --pid elsewhere", || {
        let (a, b) = (sleeping(), sleeping());
        let stranger = Run::new("sleep").arg("1000").spawn();
        let own = i32::try_from(std::process::id()).unwrap();
        for pid in [stranger.pid(), a.pid(), own, 1, i32::MAX] {
            for flags in [&["--pid", &pid.to_string()][..], &["--tree", "--pid", &pid.to_string()]] {
                kill(&b, flags, "KILL").exits(1).says("is not in the container: no such process");
            }
        }
        assert!(host::is_alive(stranger.pid()) && a.status() == "running");
        kill(&b, &["--pid", &b.pid().to_string()], "KILL").exits(0);
        b.wait_status("stopped");
    });
}

/// A process that starts others, which lose it; all make themselves known.
const FAMILY: &str = "sleep 1000 & sh -c 'sleep 1000 & wait' & (sh -c 'sleep 1000 &' &); touch /family; wait";

#[test]
fn a_tree_is_killed_by_descent() {
    only_brig("kill has no --tree elsewhere", || {
        let b = sleeping();
        let script = "sleep 1000 & sh -c 'sleep 1000 & wait' & touch /family; wait";
        detached(&b, &["--exec-id", "e"], &["sh", "-c", script]).exits(0);
        wait_for_file(&b, "family");
        host::eventually("all of them", || b.members().len() == 5);
        let before = b.pid();
        kill(&b, &["--exec-id", "e", "--tree"], "KILL").exits(0);
        host::eventually("their end", || b.members() == [before]);
        detached(&b, &["--exec-id", "e"], &["sh", "-c", script]).exits(0);
        host::eventually("all of them", || b.members().len() == 5);
        kill(&b, &["--pid", &pid_of(&b, "e").to_string(), "--tree"], "KILL").exits(0);
        host::eventually("their end", || b.members() == [before]);
        kill(&b, &["--tree"], "KILL").exits(1).says("--tree needs --exec-id or --pid");
    });
}

#[test]
fn a_tree_gets_any_signal() {
    only_brig("kill has no --tree elsewhere", || {
        let b = sleeping();
        let child = "trap 'touch /child; exit' USR1; touch /family; while :; do sleep 0.05; done";
        let script =
            format!("trap 'touch /parent; exit' USR1; sh -c '{child}' & while :; do sleep 0.05; done")
                .replace("'touch /child; exit'", "\"touch /child; exit\"");
        detached(&b, &["--exec-id", "e"], &["sh", "-c", &script]).exits(0);
        wait_for_file(&b, "family");
        kill(&b, &["--exec-id", "e", "--tree"], "USR1").exits(0);
        wait_for_file(&b, "parent");
        wait_for_file(&b, "child");
        assert_eq!(b.status(), "running");
    });
}

#[test]
fn a_cgroup_of_its_own_holds_all_that_it_starts() {
    if is_other_runtime() || !has_v2() {
        return;
    }
    let b = sleeping();
    let before = b.pid();
    detached(&b, &["--exec-id", "e", "--exec-cgroup"], &["sh", "-c", FAMILY]).exits(0);
    wait_for_file(&b, "family");
    let procs = own_cgroup(&b, "e").unwrap().join("cgroup.procs");
    host::eventually("all of them", || fs::read_to_string(&procs).unwrap().lines().count() == 5);
    // The second of two has another one.
    detached(&b, &["--exec-id", "f", "--exec-cgroup"], &["sleep", "1000"]).exits(0);
    kill(&b, &["--exec-id", "e", "--tree"], "KILL").exits(0);
    host::eventually("their end", || fs::read_to_string(&procs).is_ok_and(|text| text.is_empty()));
    assert_eq!(names(&b), ["f"]);
    // Those that had lost their parents, too: the container's first process and the other exec are left.
    let mut left = vec![before, pid_of(&b, "f")];
    left.sort_unstable();
    host::eventually("nobody else to be left", || processes_of(&b) == left);
    assert!(own_cgroup(&b, "e").is_none(), "a look removes it");
    b.delete();
    b.assert_gone();
}

/// All processes in the container's cgroups, also below.
fn processes_of(b: &Bundle) -> Vec<i32> {
    let mut all = b.processes();
    all.sort_unstable();
    all
}

#[test]
fn what_outlives_an_exec_keeps_its_name() {
    if is_other_runtime() || !has_v2() {
        return;
    }
    let b = sleeping();
    let script = "(sh -c 'sleep 1000 &' &); exit 6";
    exec(&b, &["--exec-id", "e", "--exec-cgroup"], &["sh", "-c", script]).detached().run().exits(6);
    // It is not alive, but what it left can be found by its name, until there is nothing.
    assert!(names(&b).is_empty());
    exec(&b, &["--exec-id", "e"], &["true"]).run().exits(255).says("already exists");
    kill(&b, &["--exec-id", "e"], "KILL").exits(1).says("process already finished");
    kill(&b, &["--exec-id", "e", "--tree"], "KILL").exits(0);
    host::eventually("the end of the rest", || b.processes() == [b.pid()]);
    exec(&b, &["--exec-id", "e", "--exec-cgroup"], &["true"]).ok();
    assert!(own_cgroup(&b, "e").is_none());
}

#[test]
fn a_time_limit() {
    only_brig("exec has no --timeout elsewhere", || {
        let b = sleeping();
        let flags = ["--timeout", "300ms"];
        exec(&b, &flags, &["sh", "-c", "exit 7"]).run().exits(7);
        exec(&b, &flags, &["/no/such"]).run().exits(255);
        let finished = exec(&b, &flags, &["sh", "-c", "trap '' TERM INT; sleep 1000 & wait"]).run();
        finished.exits(124).says("exec timed out after 300ms: the process and what it started were killed");
        host::eventually("their end", || b.members() == [b.pid()]);
        assert!(names(&b).is_empty());
        if has_v2() {
            exec(&b, &flags, &["sh", "-c", FAMILY]).run().exits(124);
            assert_eq!(processes_of(&b), [b.pid()]);
        }
        for (flags, text) in [
            (&["--timeout", "0"][..], "--timeout must be greater than 0"),
            (&["--timeout", "soon"], "invalid value"),
            (&["--timeout", "1s", "-d"], "--timeout needs a command that stays in the foreground"),
        ] {
            let finished = exec(&b, flags, &["true"]).run();
            finished.says(text);
            assert_ne!(finished.code(), 0);
        }
    });
}

#[test]
fn a_time_limit_in_a_paused_container() {
    only_brig("exec has no --timeout elsewhere", || {
        let b = sleeping();
        b.brig("pause").arg(&b.id).ok();
        let flags = ["--ignore-paused", "--timeout", "300ms"];
        exec(&b, &flags, &["true"]).run().exits(124).says("exec timed out after 300ms");
        // It paused while the command was at work.
        b.brig("resume").arg(&b.id).ok();
        let run = exec(&b, &["--timeout", "2s"], &["sh", "-c", "touch /began; sleep 1000"]).spawn();
        wait_for_file(&b, "began");
        b.brig("pause").arg(&b.id).ok();
        ends(run, 124);
        assert_eq!(b.status(), "paused");
        b.brig("resume").arg(&b.id).ok();
        host::eventually("nobody else to be left", || processes_of(&b) == [b.pid()]);
    });
}

/// An exec that waits for a paused container can be told to end.
#[test]
fn an_exec_into_a_paused_container_ends_by_a_signal() {
    only_brig("runc cannot be ended then but by SIGKILL", || {
        let b = sleeping();
        b.brig("pause").arg(&b.id).ok();
        for (signal, code) in [(15, 143), (2, 130)] {
            let run = exec(&b, &["--ignore-paused", "--exec-id", "e"], &["true"]).spawn();
            host::eventually("the process", || processes_of(&b).len() > 1);
            run.signal(signal);
            ends(run, code);
        }
        assert_eq!(b.status(), "paused");
        host::eventually("nobody else to be left", || processes_of(&b) == [b.pid()]);
        b.brig("resume").arg(&b.id).ok();
        exec(&b, &["--exec-id", "e"], &["true"]).ok();
    });
}

#[test]
fn wait_tells_how_it_ended() {
    only_brig("there is no wait elsewhere", || {
        let b = Bundle::sh("read line </gate-9; exit 9");
        for n in [8, 9] {
            Run::new("mkfifo").arg(b.rootfs().join(format!("gate-{n}"))).ok();
        }
        b.start();
        let wait = || b.brig("wait");
        detached(&b, &["--exec-id", "e"], &["sh", "-c", "read line </gate-8; exit 8"]).exits(0);
        detached(&b, &["--exec-id", "k"], &["sleep", "1000"]).exits(0);
        let waits = [
            wait().args(["--exec-id", "e", &b.id]),
            wait().args([&b.id, "--exec-id", "k"]),
            wait().arg(&b.id),
        ];
        let waits = waits.map(Run::spawn);
        kill(&b, &["--exec-id", "k"], "KILL").exits(0);
        let go = |n| fs::write(b.rootfs().join(format!("gate-{n}")), "\n").unwrap();
        // One after the other: the end of the first process kills the others.
        let [e, k, init] = waits;
        go(8);
        let (e, k) = (e.finish(), k.finish());
        go(9);
        let ended = [e, k, init.finish()];
        b.wait_status("stopped");
        if ended[0].out == "unknown\n" {
            for ended in &ended {
                ended.exits(125);
            }
            return note("statuses not checked: this kernel's pidfds do not tell them");
        }
        for (ended, code) in ended.iter().zip([8, 137, 9]) {
            ended.exits(code);
            assert_eq!(ended.out, format!("{code}\n"));
        }
        // Afterwards nobody knows.
        let late = wait().arg(&b.id).run();
        late.exits(125);
        assert_eq!(late.out, "unknown\n");
    });
}

#[test]
fn wait_for_nobody() {
    only_brig("there is no wait elsewhere", || {
        let b = Bundle::default();
        b.brig("wait").arg(&b.id).run().exits(1).says("container does not exist");
        b.create();
        b.brig("wait").args(["--exec-id", "e", &b.id]).run().exits(1).says("exec e does not exist");
        let wait = b.brig("wait").arg(&b.id).spawn();
        b.brig("start").arg(&b.id).ok();
        let ended = wait.finish();
        assert!(["0\n", "unknown\n"].contains(&ended.out.as_str()), "{ended}");
    });
}

#[test]
fn the_end_of_the_container_takes_execs_with_it() {
    only_brig("execs have no names elsewhere", || {
        for host_pids in [false, true] {
            let mut b = Bundle::sleeping();
            if host_pids {
                b.without_namespace("pid");
            }
            b.start();
            let mut flags = vec!["--exec-id", "e"];
            if has_v2() {
                flags.push("--exec-cgroup");
            }
            detached(&b, &flags, &["sh", "-c", FAMILY]).exits(0);
            wait_for_file(&b, "family");
            b.delete();
            b.assert_gone();
        }
    });
}
