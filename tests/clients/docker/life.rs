//! A container's life after `docker run`, and its end.

use brig_tests::host;

use crate::engine::Engine;
use crate::image::show_limit;

/// Says when it is ready, and answers SIGTERM.
const POLITE: &str = "trap 'echo leaving; exit 3' TERM; echo ready; while sleep 0.1; do :; done";

#[test]
fn stop_start_and_restart() {
    let engine = Engine::shared();
    let container = engine.container(&[], POLITE);
    container.wait_for_log("ready");
    container.docker("stop", &[]).ok();
    container.docker("logs", &[]).ok().says("leaving");
    assert_eq!(container.state("ExitCode"), 3);
    assert_eq!(container.state("Status"), "exited");
    container.docker("start", &[]).ok();
    assert_eq!(container.state("Running"), true);
    let first = container.state("Pid");
    container.docker("restart", &["--time=1"]).ok();
    assert_eq!(container.state("Running"), true);
    assert_ne!(container.state("Pid"), first);
}

#[test]
fn kill_sends_signals() {
    let engine = Engine::shared();
    let container = engine.container(&[], "trap 'echo got it' USR1; echo ready; while sleep 0.1; do :; done");
    container.wait_for_log("ready");
    container.docker("kill", &["--signal=USR1"]).ok();
    container.wait_for_log("got it");
    container.docker("kill", &[]).ok();
    assert_eq!(container.docker("wait", &[]).ok().line(), "137");
    assert_eq!(container.state("OOMKilled"), false);
}

#[test]
fn pause_and_unpause() {
    let engine = Engine::shared();
    let container = engine.container(&[], "while true; do date +%s%N > /now; done");
    container.docker("pause", &[]).ok();
    assert_eq!(container.state("Status"), "paused");
    container.exec(&["true"]).fails().says("paused");
    let now =
        || std::fs::read_to_string(format!("/proc/{}/root/now", container.state("Pid"))).unwrap_or_default();
    let (before, after) = (now(), now());
    assert_eq!(before, after, "something runs in a paused container");
    container.docker("unpause", &[]).ok();
    assert_eq!(container.state("Status"), "running");
    host::eventually("a change", || now() != after);
}

#[test]
fn top_stats_logs_and_attach() {
    let engine = Engine::shared();
    let container = engine.container(&["--memory=64m"], "sleep 999 & while echo tick; do sleep 0.1; done");
    container.wait_for_log("tick");
    container.docker("top", &[]).ok().says("sleep 999").says("PID");
    container.docker("top", &[]).args(["-o", "pid,comm"]).ok().says("COMMAND").says("sleep");
    let stats = container.docker("stats", &["--no-stream", "--format={{.PIDs}} {{.MemUsage}}"]).ok();
    if host::has_controller("pids") {
        assert!(stats.line().starts_with(['2', '3']), "{stats}");
    }
    if host::has_controller("memory") {
        stats.says("/ 64MiB");
    }
    let seen = tempfile::NamedTempFile::new().unwrap();
    let attached = container.docker("attach", &["--no-stdin"]).stdout(seen.reopen().unwrap()).spawn();
    host::eventually("output", || std::fs::read_to_string(seen.path()).unwrap().contains("tick"));
    container.docker("kill", &[]).ok();
    attached.finish().exits(137);
}

#[test]
fn update_changes_limits() {
    let engine = Engine::shared();
    let container = engine.container(&["--memory=64m", "--pids-limit=40"], "sleep 1000");
    container
        .docker("update", &["--memory=96m", "--memory-swap=96m", "--pids-limit=50", "--cpu-quota=30000"])
        .ok();
    let limit = |controller: &str, v1: &str, v2: &str, value: &str| {
        if host::has_controller(controller) {
            assert_eq!(container.sh(&show_limit(&format!("{controller}/{v1}"), v2)), value);
        }
    };
    limit("memory", "memory.limit_in_bytes", "memory.max", "100663296");
    limit("pids", "pids.max", "pids.max", "50");
    let quota = if host::is_cgroup_v2() { "30000 100000" } else { "30000" };
    limit("cpu", "cpu.cfs_quota_us", "cpu.max", quota);
    // Devices are as they were.
    container.exec(&["sh", "-c", "head -c 1 /dev/zero > /dev/null"]).ok();
}

#[test]
fn health_checks_run() {
    let engine = Engine::shared();
    let flags = ["--health-cmd=test -e /well", "--health-interval=200ms", "--health-retries=1"];
    let container = engine.container(&flags, "sleep 1000");
    host::eventually("ill health", || container.state("Health")["Status"] == "unhealthy");
    container.sh("touch /well");
    host::eventually("health", || container.state("Health")["Status"] == "healthy");
}

#[test]
fn restart_policies_work() {
    let engine = Engine::shared();
    let container = engine.container(&["--restart=on-failure:2"], "echo again; exit 1");
    host::eventually("the last try", || {
        container.inspect()["RestartCount"] == 2 && container.state("Status") == "exited"
    });
    assert_eq!(container.docker("logs", &[]).ok().out.matches("again").count(), 3);
}

#[test]
fn rm_force_leaves_nothing_of_a_running_container() {
    let engine = Engine::shared();
    let flags = ["--memory=64m", "--cpus=0.5", "--pids-limit=40", "--tmpfs=/tmp", "--volume=/data"];
    // Processes that left their session, ignore signals, and forked on.
    let script = "trap '' TERM HUP; setsid sleep 998 & (sleep 997 & exec sleep 996) & echo ready; while true; do sleep 1; done";
    let container = engine.container(&flags, script);
    container.wait_for_log("ready");
    let traces = container.traces();
    assert!(traces.left().len() > 3, "a running container has left no trace? {:?}", traces.left());
    container.docker("rm", &["--force", "--volumes"]).ok();
    traces.assert_gone();
}

#[test]
fn rm_force_leaves_nothing_of_a_paused_container() {
    let engine = Engine::shared();
    let container = engine.container(&[], POLITE);
    let traces = container.traces();
    container.docker("pause", &[]).ok();
    container.docker("rm", &["--force"]).ok();
    traces.assert_gone();
}

#[test]
fn rm_leaves_nothing_of_an_exited_container() {
    let engine = Engine::shared();
    let container = engine.container(&[], POLITE);
    container.wait_for_log("ready");
    let traces = container.traces();
    container.docker("stop", &[]).ok();
    traces.assert_gone();
    container.docker("rm", &[]).ok();
    traces.assert_gone();
}

#[test]
fn a_container_that_failed_to_start_leaves_nothing() {
    let engine = Engine::shared();
    let id = engine.docker(&["create", crate::image::NAME, "nosuch"]).ok();
    engine.docker(&["start", id.line()]).fails().says("executable file not found");
    let container =
        crate::engine::Container { engine: std::sync::Arc::clone(&engine), name: id.line().to_owned() };
    let traces = container.traces();
    traces.assert_gone();
    container.docker("rm", &[]).ok();
    traces.assert_gone();
}
