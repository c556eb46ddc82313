//! Podman as an ordinary user, who has ids in `/etc/subuid` and no cgroups.

use std::sync::{Arc, Mutex, Weak};

use brig_tests::host;

use super::{Caller, Container, Podman, TESTER};
use crate::image;

fn podman() -> Arc<Podman> {
    static SHARED: Mutex<Weak<Podman>> = Mutex::new(Weak::new());
    Podman::shared_in(&SHARED, Caller::Tester, "")
}

#[test]
fn run_maps_the_user_to_root() {
    let podman = podman();
    let script = "id -u; cat /proc/self/uid_map | tr -s ' '; chown 5:5 /tmp && stat -c %u /tmp; exit 7";
    let run = podman.run(&["--rm"], script).run();
    run.exits(7).says(&format!("0\n 0 {TESTER} 1\n 1 300000 65536\n5"));
}

#[test]
fn keep_id_keeps_the_user() {
    let podman = podman();
    let run = podman
        .run(&["--rm", "--userns=keep-id"], "id -u; id -g; touch /dev/shm/a && stat -c %u /dev/shm/a")
        .ok();
    assert_eq!(run.out, format!("{TESTER}\n{TESTER}\n{TESTER}\n"));
}

#[test]
fn a_container_lives_and_dies() {
    let container = Container::of(podman(), &[], "trap 'exit 3' TERM; while sleep 0.1; do :; done");
    container.exec("echo inside; id -u; exit 9").run().exits(9).says("inside\n0");
    container.podman("exec", &["--tty"]).args(["tty"]).ok().says("/dev/pts/0");
    container.podman("exec", &["--user=5"]).args(["id", "-u"]).ok().says("5");
    container.podman("top", &[]).ok().says("PID");
    let pid: i32 = container.inspect("{{.State.Pid}}").parse().unwrap();
    container.podman("stop", &[]).ok();
    assert_eq!(container.inspect("{{.State.ExitCode}}"), "3");
    assert!(!host::is_alive(pid));
    container.podman("start", &[]).detached().ok();
    container.podman("kill", &[]).ok();
    assert_eq!(container.podman("wait", &[]).ok().line(), "137");
    container.podman("rm", &["--force"]).ok();
}

#[test]
fn what_cannot_be_executed_is_126_or_127() {
    let podman = podman();
    let run = |program: &str| podman.making("run").args(["--rm", image::NAME, program]).run();
    run("nosuch").exits(127).says("exec: \"nosuch\": executable file not found in $PATH");
    run("/etc/passwd").exits(126).says("exec: \"/etc/passwd\": permission denied");
}

#[test]
fn namespaces_can_be_those_of_others() {
    let podman = podman();
    let other = Container::of(Arc::clone(&podman), &[], "sleep 1000");
    let inside = other.exec("readlink /proc/self/ns/pid; readlink /proc/self/ns/user").ok();
    let flag = format!("--pid=container:{}", other.name);
    let joined = podman.run(&["--rm", &flag], "readlink /proc/self/ns/pid; readlink /proc/self/ns/user").ok();
    assert_eq!(joined.line(), inside.line());
    let host = podman.run(&["--rm", "--pid=host", "--network=host"], "readlink /proc/self/ns/net").ok();
    assert_eq!(host.line(), std::fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy());
}
