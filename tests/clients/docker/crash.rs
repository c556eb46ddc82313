//! Daemons that are killed while containers run.

use brig_tests::host;

use crate::engine::Engine;

const TICKING: &str = "while echo tick; do sleep 0.1; done";

/// Without live-restore, the daemon ends at its start what it finds running.
#[test]
fn a_killed_daemon_ends_what_it_finds_again() {
    let engine = Engine::of_kind("");
    let container =
        engine.container(&["--memory=64m"], "trap '' TERM; sleep 989 & while sleep 0.1; do :; done");
    let restarted = engine.container(&["--restart=always"], TICKING);
    restarted.wait_for_log("tick");
    let (traces, before) = (container.traces(), restarted.traces());
    engine.tell("kill dockerd", "killed");
    assert!(host::is_alive(traces.pid), "the shim keeps it");
    engine.tell("start dockerd", "ready");
    host::eventually("the end", || container.state("Status") == "exited");
    traces.assert_gone();
    host::eventually("another life", || {
        restarted.state("Running") == true && restarted.state("Pid") != before.pid
    });
    assert!(!host::is_alive(before.pid));
    restarted.exec(&["true"]).ok();
    container.docker("start", &[]).ok();
    container.exec(&["true"]).ok();
}

#[test]
fn live_restore_keeps_containers() {
    let engine = Engine::of_kind("live-restore");
    let container = engine.container(&["--memory=64m", "--pids-limit=40"], TICKING);
    let paused = engine.container(&[], TICKING);
    let ends = engine.container(&[], "while [ ! -e /end ]; do sleep 0.1; done; exit 6");
    paused.docker("pause", &[]).ok();
    let pid = container.state("Pid");
    let last = ends.traces().pid;
    for victim in ["dockerd", "containerd"] {
        engine.tell(&format!("kill {victim}"), "killed");
        if victim == "dockerd" {
            // It ends while nobody looks.
            std::fs::write(format!("/proc/{last}/root/end"), "").unwrap();
            host::eventually("its end", || !host::is_alive(last));
        }
        engine.tell(&format!("start {victim}"), "ready");
        host::eventually("the container, again", || container.state("Running") == true);
        assert_eq!(container.state("Pid"), pid, "{victim}");
        host::eventually("an exec", || container.exec(&["true"]).run().status.success());
        assert_eq!(paused.state("Status"), "paused", "{victim}");
        container.docker("top", &[]).ok().says("sleep");
        container.docker("update", &["--pids-limit=50"]).ok();
    }
    host::eventually("what ended meanwhile", || ends.state("Status") == "exited");
    assert_eq!(ends.state("ExitCode"), 6);
    paused.docker("unpause", &[]).ok();
    paused.exec(&["true"]).ok();
    let traces = container.traces();
    container.docker("stop", &["--time=0"]).ok();
    traces.assert_gone();
}

/// The shim of one container is killed: containerd has the runtime kill and delete it, and the daemon hears of it.
#[test]
fn a_killed_shim_ends_its_container_only() {
    let engine = Engine::shared();
    let (victim, other) = (engine.container(&[], TICKING), engine.container(&[], TICKING));
    let traces = victim.traces();
    for shim in crate::engine::shims(&traces.id) {
        host::kill(shim.parse().unwrap());
    }
    host::eventually("the end", || victim.state("Status") == "exited");
    traces.assert_gone();
    other.exec(&["true"]).ok();
    victim.docker("start", &[]).ok();
    victim.exec(&["true"]).ok();
}

/// The container's first process is killed behind everybody's back.
#[test]
fn a_killed_init_is_noticed() {
    let engine = Engine::shared();
    let container = engine.container(&[], "sleep 988 & wait");
    let traces = container.traces();
    host::kill(traces.pid);
    assert_eq!(container.docker("wait", &[]).ok().line(), "137");
    traces.assert_gone();
    assert_eq!(container.state("OOMKilled"), false);
}
