//! `docker exec`.

use brig_tests::Pty;

use crate::engine::Engine;

#[test]
fn more_processes_join_the_container() {
    let engine = Engine::shared();
    let container = engine.container(&["--env=A=b", "--workdir=/tmp"], "sleep 1000");
    container.exec(&["sh", "-c", "echo $A; pwd; cat; exit 9"]).run().exits(9).says("b\n/tmp");
    container
        .docker("exec", &["--user=1000:50", "--env=A=c", "--workdir=/bin"])
        .args(["sh", "-c", "id; echo $A; pwd"])
        .ok()
        .says("uid=1000(user) gid=50(staff)")
        .says("c\n/bin");
    let input =
        container.docker("exec", &["--interactive"]).args(["wc", "-c"]).input("x".repeat(100_000)).ok();
    assert_eq!(input.line().trim(), "100000");
    // All of them are in the container's cgroup and namespaces.
    assert_eq!(container.sh("cat /proc/self/cgroup"), container.sh("cat /proc/1/cgroup"));
    assert_eq!(
        container.sh("ls -l /proc/self/ns | sed 's/.*>//'"),
        container.sh("ls -l /proc/1/ns | sed 's/.*>//'")
    );
}

#[test]
fn a_terminal_is_one() {
    let engine = Engine::shared();
    let container = engine.container(&[], "sleep 1000");
    let mut pty = Pty::new();
    let run = container.docker("exec", &["--interactive", "--tty"]).args(["sh"]);
    let run = run.stdin(pty.slave()).stdout(pty.slave()).with(|command| {
        command.stderr(pty.slave());
    });
    let shell = run.spawn();
    pty.write("tty; echo rea''dy\n");
    pty.expect("ready");
    assert!(pty.seen.contains("/dev/pts/0"), "{:?}", pty.seen);
    pty.write("exit 6\n");
    shell.finish().exits(6);
}

#[test]
fn what_cannot_be_executed_is_said() {
    let engine = Engine::shared();
    let container = engine.container(&[], "sleep 1000");
    container
        .exec(&["nosuch"])
        .run()
        .exits(if newer_engine(&engine) { 127 } else { 126 })
        .says("exec: \"nosuch\": executable file not found in $PATH");
    container.exec(&["/etc/passwd"]).run().exits(126).says("exec: \"/etc/passwd\": permission denied");
    container
        .docker("exec", &["--workdir=/nosuch"])
        .args(["true"])
        .run()
        .says("chdir to cwd (\"/nosuch\")")
        .says("no such file or directory");
    // The container has not suffered.
    container.exec(&["true"]).ok();
}

/// Engines before 23 gave 126 for all that an exec could not execute.
pub fn newer_engine(engine: &Engine) -> bool {
    let version = engine.docker(&["version", "--format", "{{.Server.Version}}"]).ok();
    let major: u32 = version.line().split('.').next().unwrap().parse().unwrap();
    major >= 23
}

#[test]
fn processes_in_the_background_end_with_the_container() {
    let engine = Engine::shared();
    let container = engine.container(&[], "sleep 1000");
    let traces = container.traces();
    container.docker("exec", &["--detach"]).args(["sleep", "999"]).ok();
    brig_tests::host::eventually("sleep 999", || container.docker("top", &[]).ok().out.contains("sleep 999"));
    container.docker("rm", &["--force"]).ok();
    traces.assert_gone();
}

#[test]
fn many_at_once() {
    let engine = Engine::shared();
    let container = engine.container(&[], "sleep 1000");
    let runs: Vec<_> = (0..20)
        .map(|n| container.exec(&["sh", "-c", &format!("echo number {n}; exit {n}")]).spawn())
        .collect();
    for (n, run) in runs.into_iter().enumerate() {
        run.finish().exits(i32::try_from(n).unwrap()).says(&format!("number {n}"));
    }
}
