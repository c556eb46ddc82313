//! The life of a container: create, start, run, state, kill, list, delete.

use brig_tests::{
    Bundle, Run, Value, better_than_runc, fails_before_runc, host, is_older_runc, json, only_brig, runtime,
    since_runc,
};

#[test]
fn create_start_end_delete() {
    let b = Bundle::sh("exit 0");
    b.create();
    assert_eq!(b.status(), "created");
    b.brig("start").arg(&b.id).ok();
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
}

#[test]
fn the_program_does_not_run_before_start() {
    let b = Bundle::sh("touch /ran; exec sleep 1000");
    b.create();
    assert!(!b.rootfs().join("ran").exists());
    b.brig("start").arg(&b.id).ok();
    host::eventually("the program to run", || b.rootfs().join("ran").exists());
    assert_eq!(b.status(), "running");
}

#[test]
fn state_of_a_running_container() {
    let mut b = Bundle::sleeping();
    b.config["annotations"] = json!({ "org.example.a": "1", "b": "two=2" });
    b.start();
    let out = b.brig("state").arg(&b.id).ok().out;
    assert!(out.starts_with("{\n  \"ociVersion\""), "{out}");
    assert!(out.ends_with('}'), "{out}");
    let state: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(state["id"], b.id.as_str());
    assert_eq!(state["status"], "running");
    assert_eq!(state["bundle"], b.path().to_str().unwrap());
    assert_eq!(state["rootfs"], b.rootfs().to_str().unwrap());
    assert_eq!(state["owner"], "");
    assert_eq!(state["annotations"]["org.example.a"], "1");
    let pid = state["pid"].as_i64().unwrap();
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(words, b"sleep\x001000\0");
    let created = state["created"].as_str().unwrap();
    assert!(created.starts_with("20") && created.contains('T') && created.ends_with('Z'), "{created}");
}

#[test]
fn annotations_with_equals_signs_survive() {
    better_than_runc("keeps annotations as key=value", || {
        let mut b = Bundle::sleeping();
        b.config["annotations"] = json!({ "a=b": "c" });
        b.create();
        assert_eq!(b.state()["annotations"], json!({ "a=b": "c" }));
    });
}

#[test]
fn a_stopped_container_has_no_pid() {
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    assert_eq!(b.state()["pid"], 0);
}

#[test]
fn the_pid_of_a_created_container_is_the_programs() {
    let b = Bundle::sleeping();
    b.create();
    let pid = b.pid();
    b.brig("start").arg(&b.id).ok();
    assert_eq!(b.pid(), pid);
}

#[test]
fn run_gives_the_exit_status() {
    for code in [0, 1, 7, 255] {
        Bundle::sh(&format!("exit {code}")).run().run().exits(code);
    }
}

#[test]
fn run_gives_the_signal_as_128_and_its_number() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("USR1", 10)] {
        // Not from a pid 1, which ignores its own signals.
        let mut b = Bundle::sh(&format!("kill -{name} $$; sleep 10"));
        b.without_namespace("pid");
        b.run().run().exits(128 + number);
    }
}

#[test]
fn run_passes_input_and_output() {
    let b = Bundle::sh("cat; echo error >&2");
    let finished = b.run().input("one\ntwo\n").run();
    assert_eq!(finished.out, "one\ntwo\n");
    assert_eq!(finished.err, "error\n");
}

#[test]
fn run_passes_a_lot_of_output() {
    let b = Bundle::sh("seq 1 200000");
    let out = b.run().ok().out;
    assert_eq!(out.lines().count(), 200_000);
    assert_eq!(out.lines().last(), Some("200000"));
}

#[test]
fn run_deletes_the_container() {
    let b = Bundle::default();
    b.run().ok();
    b.assert_gone();
    // The id can be used again.
    b.run().ok();
}

#[test]
fn run_deletes_the_container_after_a_failure() {
    let b = Bundle::new(&["/nowhere"]);
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn run_keeps_the_container_when_told() {
    let b = Bundle::sh("exit 5");
    b.brig("run").args(["--keep", &b.id]).run().exits(5);
    assert_eq!(b.status(), "stopped");
    b.brig("delete").arg(&b.id).ok();
}

#[test]
fn run_detached_returns_while_the_program_runs() {
    let b = Bundle::sleeping();
    b.brig("run").args(["--detach", &b.id]).detached().ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn run_without_a_bundle_uses_the_current_directory() {
    let b = Bundle::sh("exit 3");
    b.runtime().arg("run").arg(&b.id).dir(b.path()).run().exits(3);
}

#[test]
fn create_with_a_relative_bundle_records_an_absolute_one() {
    let b = Bundle::sleeping();
    let create = b.runtime().args(["create", "--bundle", ".", &b.id]);
    create.dir(b.path()).detached().ok();
    assert_eq!(b.state()["bundle"], b.path().to_str().unwrap());
}

#[test]
fn an_id_is_taken_once() {
    let b = Bundle::sleeping();
    b.create();
    let again = b.brig("create").arg(&b.id).run();
    again.exits(1).says("container with given ID already exists");
    b.run().exits_with(1, "container with given ID already exists");
    assert_eq!(b.status(), "created");
}

#[test]
fn an_id_is_taken_by_any_entry_of_the_root() {
    let b = Bundle::default();
    std::fs::create_dir(&b.root).unwrap();
    std::fs::write(b.root.join(&b.id), "").unwrap();
    b.run().exits_with(1, "container with given ID already exists");
    std::fs::remove_file(b.root.join(&b.id)).unwrap();
}

#[test]
fn start_needs_a_created_container() {
    let b = Bundle::sleeping();
    b.start();
    let start = || b.brig("start").arg(&b.id).run();
    start().exits(1).says("cannot start an already running container");
    b.brig("kill").args([&b.id, "KILL"]).ok();
    b.wait_status("stopped");
    start().exits(1).says("cannot start a container that has stopped");
}

#[test]
fn a_paused_container_is_not_started() {
    let b = Bundle::sleeping();
    b.create();
    b.brig("pause").arg(&b.id).ok();
    assert_eq!(b.status(), "paused");
    let start = b.brig("start").arg(&b.id).run();
    start.exits(1).says("cannot start a container in the paused state");
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "created");
}

#[test]
fn kill_sends_term_by_default() {
    let b = Bundle::sh("trap 'touch /got; exit 0' TERM; touch /ready; while :; do sleep 0.01; done");
    b.start();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    b.brig("kill").arg(&b.id).ok();
    b.wait_status("stopped");
    assert!(b.rootfs().join("got").exists());
}

#[test]
fn kill_takes_names_and_numbers() {
    let script = "trap 'touch /hup' HUP; trap 'touch /usr1' USR1; touch /ready; while :; do sleep 0.01; done";
    for (signal, file) in
        [("HUP", "hup"), ("SIGHUP", "hup"), ("sighup", "hup"), ("1", "hup"), ("usr1", "usr1")]
    {
        let b = Bundle::sh(script);
        b.start();
        host::eventually("the trap", || b.rootfs().join("ready").exists());
        b.brig("kill").args([&b.id, signal]).ok();
        host::eventually(signal, || b.rootfs().join(file).exists());
    }
}

#[test]
fn kill_with_zero_only_asks() {
    let b = Bundle::sleeping();
    b.start();
    b.brig("kill").args([&b.id, "0"]).ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn kill_refuses_what_is_no_signal() {
    let b = Bundle::sleeping();
    b.start();
    let kill = |signal: &str| b.brig("kill").args([&b.id, signal]).run();
    kill("FROB").exits(1).says("unknown signal").says("FROB");
    kill("999").exits(1).says("unable to signal init: invalid argument");
    assert_eq!(b.status(), "running");
}

#[test]
fn kill_of_what_has_stopped() {
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    b.brig("kill").args([&b.id, "KILL"]).run().exits(1).says("container not running");
}

#[test]
fn kill_all_of_what_has_stopped_succeeds() {
    // containerd's shim and podman pass the flag, which means nothing any more.
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    b.brig("kill").args(["--all", &b.id, "9"]).ok();
    b.brig("kill").args(["-a", &b.id, "TERM"]).ok();
}

#[test]
fn kill_reaches_only_the_first_process() {
    let b = Bundle::sh(
        "trap 'touch /first' USR1; sh -c 'trap \"touch /second\" USR1; touch /ready; while :; do sleep 0.01; done' & while :; do sleep 0.01; done",
    );
    b.start();
    host::eventually("the second process", || b.rootfs().join("ready").exists());
    b.brig("kill").args([&b.id, "USR1"]).ok();
    host::eventually("the first trap", || b.rootfs().join("first").exists());
    assert!(!b.rootfs().join("second").exists());
}

#[test]
fn kill_9_ends_all_where_the_pid_namespace_is_the_hosts() {
    since_runc((1, 2), "kill of all processes without --all", || {
        let mut b = Bundle::sh("sleep 1000 & sleep 1000 & touch /ready; exec sleep 1000");
        b.without_namespace("pid");
        b.start();
        host::eventually("all to be there", || b.rootfs().join("ready").exists());
        let all = b.members();
        assert_eq!(all.len(), 3, "{all:?}");
        b.brig("kill").args([&b.id, "KILL"]).ok();
        host::eventually("all to end", || !all.iter().any(|&pid| host::is_alive(pid)));
    });
}

#[test]
fn other_signals_reach_only_the_first_where_the_pid_namespace_is_the_hosts() {
    let mut b = Bundle::sh("sleep 1000 & touch /ready; exec sleep 1000");
    b.without_namespace("pid");
    b.start();
    host::eventually("all to be there", || b.rootfs().join("ready").exists());
    b.brig("kill").args([&b.id, "TERM"]).ok();
    b.wait_status("stopped");
    assert_eq!(b.processes().len(), 1);
}

/// Case 37: runc 4040, 4102.
#[test]
fn delete_ends_what_init_left_in_the_hosts_pid_namespace() {
    since_runc((1, 2), "delete that ends what is left", || {
        let mut b = Bundle::sh("sleep 1000 & touch /ready; exec sleep 1000");
        b.without_namespace("pid");
        b.start();
        host::eventually("all to be there", || b.rootfs().join("ready").exists());
        b.brig("kill").args([&b.id, "TERM"]).ok();
        b.wait_status("stopped");
        let left = b.processes();
        assert_eq!(left.len(), 1);
        b.brig("delete").arg(&b.id).ok();
        b.assert_gone();
        assert!(!host::is_alive(left[0]));
    });
}

#[test]
fn a_created_container_ends_by_signals() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        let b = Bundle::sleeping();
        b.create();
        b.brig("kill").args([&b.id, signal]).ok();
        host::eventually(&format!("the end by {signal}, {code}"), || b.status() == "stopped");
        b.brig("delete").arg(&b.id).ok();
        b.assert_gone();
    }
}

#[test]
fn a_created_container_survives_other_signals() {
    let b = Bundle::sleeping();
    b.create();
    for signal in ["USR1", "USR2", "WINCH", "35"] {
        b.brig("kill").args([&b.id, signal]).ok();
    }
    b.brig("start").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn the_waiting_process_has_a_telling_name() {
    let b = Bundle::sleeping();
    b.create();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", b.pid())).unwrap();
    assert!(name.trim_end().ends_with(":[2:INIT]"), "{name}");
}

#[test]
fn delete_refuses_a_running_container() {
    let b = Bundle::sleeping();
    b.start();
    let delete = || b.brig("delete").arg(&b.id).run();
    let text = |status: &str| format!("cannot delete container {} that is not stopped: {status}", b.id);
    delete().exits(1).says(&text("running"));
    b.brig("pause").arg(&b.id).ok();
    delete().exits(1).says(&text("paused"));
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn delete_takes_a_created_container() {
    let b = Bundle::sleeping();
    b.create();
    let pid = b.pid();
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
    assert!(!host::is_alive(pid));
}

#[test]
fn delete_by_force_takes_a_running_and_a_paused_container() {
    for pause in [false, true] {
        let b = Bundle::sleeping();
        b.start();
        if pause {
            b.brig("pause").arg(&b.id).ok();
        }
        b.delete();
        b.assert_gone();
    }
}

#[test]
fn delete_by_force_of_nothing() {
    let b = Bundle::default();
    let finished = b.brig("delete").args(["--force", &b.id]).ok();
    assert_eq!(finished.both(), "");
}

#[test]
fn delete_by_force_removes_sub_cgroups() {
    let b = Bundle::sleeping();
    b.start();
    let controller = if host::is_cgroup_v2() { "" } else { "freezer" };
    let sub = b.cgroup_dir(controller).join("a/b/c");
    std::fs::create_dir_all(&sub).unwrap();
    let child = Run::new("sleep").arg("1000").spawn();
    std::fs::write(sub.join("cgroup.procs"), child.pid().to_string()).unwrap();
    // A process that is in the container's cgroup ends with it where the pid namespace does not end it.
    drop(child);
    b.delete();
    b.assert_gone();
}

#[test]
fn delete_removes_an_empty_directory() {
    // What a creator leaves that was killed early.
    let b = Bundle::default();
    std::fs::create_dir_all(b.root.join(&b.id)).unwrap();
    b.runtime().arg("list").ok();
    let state = b.brig("state").arg(&b.id).run();
    state.exits(1).says("container does not exist");
    b.brig("delete").args(["--force", &b.id]).ok();
    b.assert_gone();
}

#[test]
fn delete_by_force_does_without_a_readable_record() {
    better_than_runc("fails on a broken state.json", || {
        let b = Bundle::sleeping();
        b.start();
        let pid = b.pid();
        for entry in std::fs::read_dir(b.root.join(&b.id)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|x| x == "json") {
                std::fs::write(path, "{ \"id\": ").unwrap();
            }
        }
        b.brig("delete").args(["--force", &b.id]).ok();
        assert!(!b.root.join(&b.id).exists());
        // Where it was is only in the record; what follows from the id is another place.
        host::kill(pid);
        host::remove_cgroups(&b.cgroup());
    });
}

/// Cases 2 and its siblings in small; the kill matrix has them all.
#[test]
fn delete_by_force_after_a_creator_was_killed() {
    better_than_runc("leaks cgroups, or finds the directory without a state", || {
        let b = Bundle::sleeping();
        for delay in 0..20 {
            let mut create = b.brig("create").arg(&b.id).detached().spawn();
            std::thread::sleep(std::time::Duration::from_millis(delay));
            create.child().kill().unwrap();
            create.child().wait().unwrap();
            b.brig("delete").args(["--force", &b.id]).ok();
            host::eventually("nothing to be left", || b.leftovers().is_empty());
        }
    });
}

/// Case 3: runc 5151, 5153.
#[test]
fn a_created_container_outlives_the_session_of_its_creator() {
    let b = Bundle::sleeping();
    b.write_config();
    // The shell leads a session of its own, waits for the runtime in the background, and is gone afterwards.
    let create = Run::new("setsid").args(["--wait", "sh", "-c", "\"$@\" & wait $!", "sh"]);
    let create = create.arg(runtime()).arg("--root").arg(&b.root).arg("create");
    create.arg("--bundle").arg(b.path()).arg(&b.id).detached().ok();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(b.status(), "created");
    b.brig("start").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
}

/// Case 3, by a thread.
#[test]
fn a_created_container_outlives_the_thread_of_its_creator() {
    let b = Bundle::sleeping();
    std::thread::scope(|scope| {
        scope.spawn(|| b.create()).join().unwrap();
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(b.status(), "created");
    b.brig("start").arg(&b.id).ok();
}

#[test]
fn list_as_a_table() {
    let b = Bundle::sleeping();
    b.start();
    let out = b.runtime().arg("list").ok().out;
    let mut lines = out.lines();
    let titles: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(titles, ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"]);
    let cells: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let pid = b.pid().to_string();
    assert_eq!(cells[..4], [&b.id, &pid, "running", b.path().to_str().unwrap()]);
    assert_eq!(cells[5], "root");
    assert!(out.starts_with("ID "), "{out}");
}

#[test]
fn list_as_json_and_as_names() {
    let b = Bundle::sleeping();
    std::fs::create_dir(&b.root).unwrap();
    assert_eq!(b.runtime().args(["list", "-f", "json"]).ok().out.trim_end(), "null");
    b.create();
    let out = b.runtime().args(["list", "--format", "json"]).ok().out;
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list[0]["id"], b.id.as_str());
    assert_eq!(list[0]["status"], "created");
    assert_eq!(list[0]["owner"], "root");
    assert_eq!(b.runtime().args(["list", "-q"]).ok().out, format!("{}\n", b.id));
    let other = b.runtime().args(["list", "--format", "xml"]).run();
    other.exits(1).says("invalid format option");
}

#[test]
fn list_skips_what_it_cannot_read() {
    let b = Bundle::sleeping();
    b.create();
    std::fs::create_dir(b.root.join("broken")).unwrap();
    std::fs::write(b.root.join("file"), "").unwrap();
    let finished = b.runtime().args(["list", "-q"]).ok();
    assert_eq!(finished.out, format!("{}\n", b.id));
    assert!(!finished.err.contains("file"), "{finished}");
}

#[test]
fn a_foreground_run_relays_signals() {
    let b = Bundle::sh("trap 'exit 42' USR1; touch /ready; while :; do sleep 0.01; done");
    let run = b.run().spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    run.signal(10);
    run.finish().exits(42);
    b.assert_gone();
}

#[test]
fn a_foreground_exec_relays_signals() {
    let b = Bundle::sleeping();
    b.start();
    let script = "trap 'exit 42' TERM; touch /ready; while :; do sleep 0.01; done";
    let exec = b.exec(&["sh", "-c", script]).spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    exec.signal(15);
    exec.finish().exits(42);
    assert_eq!(b.status(), "running");
}

/// Case 26, second half: crun 1442.
#[test]
fn sigwinch_does_not_disturb_a_run_without_a_terminal() {
    let b = Bundle::sh("trap 'touch /winch' WINCH; touch /ready; cat; exit 5");
    let mut run = b.run().stdin(std::process::Stdio::piped()).spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    for _ in 0..3 {
        run.signal(28);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    drop(run.child().stdin.take());
    run.finish().exits(5);
    assert!(!b.rootfs().join("winch").exists());
}

#[test]
fn the_end_of_input_is_passed_on() {
    Bundle::sh("cat >/dev/null; exit 6").run().input("x").run().exits(6);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_a_run() {
    let b = Bundle::sh("yes | head -c 1000000; exit 3");
    let mut run = b.run().spawn();
    drop(run.child().stdout.take());
    let code = run.finish().code();
    // The program gets SIGPIPE or EPIPE, or its output is dropped; the run ends in any case.
    assert!(code == 3 || code >= 128, "{code}");
    b.assert_gone();
}

#[test]
fn the_bundle_can_be_changed_after_create() {
    let b = Bundle::sh("exec sleep 1000");
    b.create();
    std::fs::write(b.path().join("config.json"), "not json").unwrap();
    let plain = |command: &str| Run::new(runtime()).arg("--root").arg(&b.root).arg(command).arg(&b.id);
    plain("start").ok();
    plain("state").ok();
    plain("kill").arg("KILL").ok();
    host::eventually("the end", || plain("state").ok().out.contains("\"stopped\""));
    plain("delete").ok();
    b.assert_gone();
}

#[test]
fn the_bundle_can_be_removed_after_the_start() {
    let mut b = Bundle::sleeping();
    // Where its state is has to stay.
    let root = tempfile::tempdir().unwrap();
    b.root = root.path().to_owned();
    b.start();
    std::fs::remove_file(b.path().join("config.json")).unwrap();
    let plain = |args: &[&str]| Run::new(runtime()).arg("--root").arg(&b.root).args(args);
    plain(&["pause", &b.id]).ok();
    plain(&["resume", &b.id]).ok();
    plain(&["delete", "--force", &b.id]).ok();
    b.assert_gone();
}

#[test]
fn exec_goes_by_the_record_and_not_by_an_edited_config() {
    better_than_runc("reads config.json again", || {
        let mut b = Bundle::sleeping();
        b.config["process"]["env"] = json!(["PATH=/bin", "WHO=first"]);
        b.start();
        b.config["process"]["env"] = json!(["PATH=/bin", "WHO=second"]);
        let out = b.exec(&["sh", "-c", "echo $WHO"]).ok().out;
        assert_eq!(out, "first\n");
    });
}

#[test]
fn a_created_container_whose_program_is_gone_fails_at_start() {
    // Case 30, its last part.
    better_than_runc("start succeeds, the container dies", || {
        let b = Bundle::new(&["/bin/mine"]);
        std::fs::copy(b.rootfs().join("bin/busybox"), b.rootfs().join("bin/mine")).unwrap();
        b.create();
        std::fs::remove_file(b.rootfs().join("bin/mine")).unwrap();
        let start = b.brig("start").arg(&b.id).fails();
        start.says("no such file or directory");
        b.delete();
    });
}

#[test]
fn two_starts_at_once_start_once() {
    let b = Bundle::sh("echo x >>/started; exec sleep 1000");
    b.create();
    let both: Vec<_> = (0..2).map(|_| b.brig("start").arg(&b.id).spawn()).collect();
    let codes: Vec<i32> = both.into_iter().map(|start| start.finish().code()).collect();
    assert_eq!(codes.iter().filter(|&&code| code == 0).count(), 1, "{codes:?}");
    host::eventually("the program", || b.rootfs().join("started").exists());
    assert_eq!(std::fs::read_to_string(b.rootfs().join("started")).unwrap(), "x\n");
}

#[test]
fn two_creates_at_once_create_one() {
    if fails_before_runc((1, 2), "loses both now and then") {
        return;
    }
    let b = Bundle::sleeping();
    b.write_config();
    let both: Vec<_> = (0..2).map(|_| b.brig("create").arg(&b.id).detached().spawn()).collect();
    let codes: Vec<i32> = both.into_iter().map(|create| create.finish().code()).collect();
    assert_eq!(codes.iter().filter(|&&code| code == 0).count(), 1, "{codes:?}");
    assert_eq!(b.status(), "created");
}

#[test]
fn deletes_at_once() {
    better_than_runc_at_racing(|| {
        let b = Bundle::sleeping();
        b.start();
        let all: Vec<_> = (0..4).map(|_| b.brig("delete").args(["--force", &b.id]).spawn()).collect();
        for delete in all {
            delete.finish().exits(0);
        }
        b.assert_gone();
    });
}

/// runc wins or loses such a race as it comes.
fn better_than_runc_at_racing(test: impl FnOnce()) {
    only_brig("runc fails it now and then", test);
}

#[test]
fn the_state_is_readable_while_commands_work() {
    let b = Bundle::sh("sleep 0.2");
    let create = b.brig("create").arg(&b.id).detached().spawn();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|s| s != "created") {
        let state = b.brig("state").arg(&b.id).run();
        if state.code() == 0 {
            let state: Value = serde_json::from_str(&state.out).unwrap();
            seen.push(state["status"].as_str().unwrap().to_owned());
        } else {
            state.says("does not exist");
        }
    }
    create.finish().exits(0);
    let unexpected = seen.iter().find(|s| !["creating", "created", "stopped"].contains(&s.as_str()));
    assert!(unexpected.is_none() || is_older_runc((1, 2)), "{seen:?}");
}

/// Case 32: runc 4041, 4815, 5025.
#[test]
fn the_callers_cpu_affinity_is_not_inherited() {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return brig_tests::note("not checked: this machine has one CPU");
    }
    since_runc((1, 2), "a reset of the affinity", || {
        let b = Bundle::new(&["nproc"]);
        let all = b.run().ok().out;
        let run = Run::new("taskset").args(["-c", "0"]).arg(runtime()).arg("--root").arg(&b.root);
        let one = run.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).ok().out;
        assert_eq!(one, all);
        b.brig("run").args(["-d", &b.id]).detached().ok();
    });
}

/// Case 32, for exec.
#[test]
fn the_callers_cpu_affinity_is_not_inherited_by_exec() {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return brig_tests::note("not checked: this machine has one CPU");
    }
    since_runc((1, 2), "a reset of the affinity", || {
        let b = Bundle::sleeping();
        b.start();
        let all = b.exec(&["nproc"]).ok().out;
        let run = Run::new("taskset").args(["-c", "0"]).arg(runtime()).arg("--root").arg(&b.root);
        let one = run.args(["exec", &b.id, "nproc"]).ok().out;
        assert_eq!(one, all);
    });
}
