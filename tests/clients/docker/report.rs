//! What Docker tells of containers afterwards: events, `inspect`, exit statuses.

use brig_tests::host;

use crate::engine::{Container, Engine};
use crate::image::NAME;

/// A container that is created, not started.
fn created(engine: &std::sync::Arc<Engine>, flags: &[&str], command: &[&str]) -> Container {
    let id = engine.docker(&["create"]).args(flags).arg(NAME).args(command).ok();
    Container { engine: std::sync::Arc::clone(engine), name: id.line().to_owned() }
}

/// The daemon makes exit status and message from the text of the runtime's error.
#[test]
fn a_failed_start_is_explained() {
    let engine = Engine::shared();
    let newer = super::exec::newer_engine(&engine);
    for (flags, command, code, text) in [
        (&[][..], "nosuch", 127, "exec: \"nosuch\": executable file not found in $PATH"),
        (&[], "/no/such", 127, "exec: \"/no/such\": stat /no/such: no such file or directory"),
        (&[], "/etc/passwd", 126, "exec: \"/etc/passwd\": permission denied"),
        (&[], "/etc", 126, "exec: \"/etc\": is a directory"),
        (&["--volume=/etc/passwd:/etc"], "true", 127, "not a directory"),
        (&["--user=nobodyknows"], "true", 128, "unable to find user nobodyknows"),
        (&["--ulimit=nofile=4000000000"], "true", 128, "operation not permitted"),
    ] {
        let made = created(&engine, flags, &[command]);
        made.docker("start", &[]).fails().says(text);
        let state = made.inspect()["State"].take();
        assert_eq!(state["Status"], "created", "{command}");
        // Engines before 23 know fewer of the texts.
        let known = state["ExitCode"] == code || (!newer && state["ExitCode"] == 128);
        assert!(known, "{command}: {state}");
        let error = state["Error"].as_str().unwrap();
        assert!(error.contains(text), "{command}: {error}");
        made.traces().assert_gone();
    }
}

#[test]
fn a_program_that_the_kernel_refuses() {
    let engine = Engine::shared();
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/no/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let volume = format!("--volume={}:/data", dir.path().display());
    engine
        .run(&[&volume, "IMAGE", "/data/script"])
        .run()
        .exits(127)
        .says("exec /data/script: no such file or directory");
    std::fs::write(&script, "no program").unwrap();
    engine.run(&[&volume, "IMAGE", "/data/script"]).fails().says("exec format error");
}

/// The whole life, as `docker events` tells it.
#[test]
fn events_are_told() {
    let engine = Engine::shared();
    let limit = if host::has_controller("memory") { &["--memory=16m"][..] } else { &[] };
    let command = "while [ ! -e /go ]; do sleep 0.1; done; dd if=/dev/zero of=/dev/null bs=64M; exit 9";
    let container = created(&engine, limit, &["sh", "-c", command]);
    container.docker("start", &[]).ok();
    container.docker("pause", &[]).ok();
    container.docker("unpause", &[]).ok();
    container.sh("touch /go");
    container.docker("wait", &[]).ok();
    let filter = format!("container={}", container.name);
    let events = || {
        let until = engine.docker(&["info", "--format={{.SystemTime}}"]).ok();
        let list =
            ["events", "--since=1h", "--until", until.line(), "--filter", &filter, "--format={{.Action}}"];
        engine.docker(&list).ok().out
    };
    host::eventually("the last event", || events().contains("die"));
    let told = events();
    let mut expected = vec!["create", "start", "pause", "unpause", "exec_start", "exec_die", "die"];
    if host::has_controller("memory") {
        expected.insert(6, "oom");
    }
    let mut rest = told.lines();
    for event in expected.iter().filter(|event| **event != "oom") {
        assert!(rest.any(|line| line.starts_with(event)), "{event} is missing or late in {told}");
    }
    assert_eq!(told.contains("oom"), expected.contains(&"oom"), "{told}");
}

#[test]
fn many_at_once() {
    let many = if brig_tests::is_full() { 50 } else { 16 };
    let engine = Engine::shared();
    let runs: Vec<_> = (0..many)
        .map(|n| {
            let run = engine.run(&["--memory=32m", "--network=none", "IMAGE", "sh", "-c"]);
            run.arg(format!("echo number {n}; exit {n}")).limit(std::time::Duration::from_secs(240)).spawn()
        })
        .collect();
    for (n, run) in (0..).zip(runs) {
        run.finish().exits(n).says(&format!("number {n}"));
    }
    // And as many that live, with an exec in each, ended at once.
    let containers: Vec<Container> = (0..many).map(|_| engine.container(&[], "sleep 1000")).collect();
    let traces: Vec<_> = containers.iter().map(Container::traces).collect();
    let execs: Vec<_> = containers
        .iter()
        .map(|container| container.exec(&["hostname"]).limit(std::time::Duration::from_secs(240)).spawn())
        .collect();
    for (exec, trace) in execs.into_iter().zip(&traces) {
        assert!(trace.id.starts_with(exec.finish().line()));
    }
    let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
    let removed = engine.docker(&["rm", "--force"]).args(names);
    removed.limit(std::time::Duration::from_secs(240)).ok();
    traces.iter().for_each(crate::engine::Traces::assert_gone);
}

/// The classic builder runs a container for each step.
#[test]
fn builds_of_many_steps() {
    let engine = Engine::shared();
    let mut recipe = "FROM busybox:test\nARG WHO\nENV A=b\nWORKDIR /work\n".to_owned();
    for n in 0..6 {
        recipe += &format!("RUN echo {n} $A $WHO >> numbers\n");
    }
    recipe += "USER user\nRUN id -un > /tmp/who || id -u\n";
    let build = ["build", "--build-arg=WHO=me", "--memory=64m", "--network=none", "--tag=steps:test", "-"];
    engine.docker(&build).input(recipe).limit(std::time::Duration::from_secs(180)).ok();
    engine
        .docker(&["run", "--rm", "steps:test", "cat", "numbers"])
        .ok()
        .says("0 b me\n1 b me")
        .says("5 b me");
    let failing = "FROM busybox:test\nRUN exit 7\n";
    engine.docker(&["build", "-"]).input(failing).fails().says("returned a non-zero code: 7");
    engine.docker(&["rmi", "steps:test"]).ok();
}
