//! From create to the end: what each command needs, and what it leads to.

use super::*;

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
fn the_waiting_process_has_a_telling_name() {
    let b = Bundle::sleeping();
    b.create();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", b.pid())).unwrap();
    assert!(name.trim_end().ends_with(":[2:INIT]"), "{name}");
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
