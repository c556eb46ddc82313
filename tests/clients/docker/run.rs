//! `docker run` with its flags.

use std::fs;

use brig_tests::{Pty, host};

use crate::engine::Engine;
use crate::image::{exists, show_limit};

#[test]
fn the_documented_configuration_makes_it_the_default() {
    let engine = Engine::of_kind("documented");
    assert_eq!(engine.docker(&["info", "--format={{.DefaultRuntime}}"]).ok().line(), "brig");
    let container = engine.container(&[], "sleep 1000");
    assert_eq!(container.inspect()["HostConfig"]["Runtime"], "brig");
    container.exec(&["true"]).ok();
    engine.run(&["--runtime=brig", "IMAGE", "true"]).ok();
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let engine = Engine::shared();
    engine.run(&["IMAGE", "sh", "-c", "echo hello; exit 7"]).run().exits(7).says("hello");
    engine.run(&["IMAGE", "true"]).run().exits(0);
}

/// The client makes its exit status from the text of the runtime's error.
#[test]
fn what_cannot_be_executed_is_126_or_127() {
    let engine = Engine::shared();
    engine
        .run(&["IMAGE", "nosuch"])
        .run()
        .exits(127)
        .says("exec: \"nosuch\": executable file not found in $PATH");
    engine
        .run(&["IMAGE", "/bin/nosuch"])
        .run()
        .exits(127)
        .says("exec: \"/bin/nosuch\": stat /bin/nosuch: no such file or directory");
    engine.run(&["IMAGE", "/etc/passwd"]).run().exits(126).says("exec: \"/etc/passwd\": permission denied");
}

#[test]
fn what_cannot_be_made_is_125() {
    let engine = Engine::shared();
    engine
        .run(&["--volume", "/etc/passwd:/etc", "IMAGE", "true"])
        .run()
        .exits(125)
        .says("not a directory")
        .says("Are you trying to mount a directory onto a file (or vice-versa)?");
    engine
        .run(&["--ulimit", "nofile=4000000000", "IMAGE", "true"])
        .run()
        .exits(125)
        .says("operation not permitted");
}

#[test]
fn limits_are_those_of_the_cgroup() {
    let engine = Engine::shared();
    let flags = ["--memory=64m", "--cpus=0.5", "--pids-limit=40", "--cpuset-cpus=0", "--cpu-shares=512"];
    let container = engine.container(&flags, "sleep 1000");
    let v2 = host::is_cgroup_v2();
    let limit = |controller: &str, v1: &str, on_v2: &str, value: &str| {
        if !host::has_controller(controller) {
            eprintln!("not tested: this machine has no controller {controller}");
            return;
        }
        let inside = container.sh(&show_limit(&format!("{controller}/{v1}"), on_v2));
        assert_eq!(inside, value, "{controller}, inside");
        let file = host::cgroup_dir(controller, &container.traces().cgroup).join(if v2 { on_v2 } else { v1 });
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), value, "{}", file.display());
    };
    limit("memory", "memory.limit_in_bytes", "memory.max", "67108864");
    limit("pids", "pids.max", "pids.max", "40");
    limit("cpuset", "cpuset.cpus", "cpuset.cpus", "0");
    if v2 {
        limit("cpu", "", "cpu.max", "50000 100000");
    } else {
        limit("cpu", "cpu.cfs_quota_us", "", "50000");
        limit("cpu", "cpu.shares", "", "512");
    }
}

#[test]
fn out_of_memory_is_reported() {
    if !host::has_controller("memory") {
        return;
    }
    let engine = Engine::shared();
    let container = engine.container(&["--memory=16m"], "dd if=/dev/zero of=/dev/null bs=64M");
    let status = container.docker("wait", &[]).ok();
    assert_eq!(status.line(), "137");
    assert_eq!(container.state("OOMKilled"), true);
}

#[test]
fn volumes_are_shared_with_the_host() {
    let engine = Engine::shared();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in"), "from the host").unwrap();
    let volume = |mode: &str| format!("--volume={}:/data:{mode}", dir.path().display());
    let script = "cat /data/in; echo from the container > /data/out";
    engine.run(&[&volume("rw"), "IMAGE", "sh", "-c", script]).ok().says("from the host");
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "from the container\n");
    engine
        .run(&[&volume("ro"), "IMAGE", "sh", "-c", "cat /data/in; touch /data/no"])
        .fails()
        .says("from the host")
        .says("Read-only file system");
    assert!(!exists(dir.path().join("no")));
}

#[test]
fn named_volumes_keep_files() {
    let engine = Engine::shared();
    engine.run(&["--volume=kept:/data", "IMAGE", "sh", "-c", "echo once > /data/file"]).ok();
    engine.run(&["--volume=kept:/data", "IMAGE", "cat", "/data/file"]).ok().says("once");
    engine.docker(&["volume", "rm", "kept"]).ok();
}

#[test]
fn a_terminal_is_one() {
    let engine = Engine::shared();
    let mut pty = Pty::new();
    pty.resize(91, 31);
    let run = engine.run(&["--interactive", "--tty", "IMAGE", "sh"]);
    let run = run.stdin(pty.slave()).stdout(pty.slave()).with(|command| {
        command.stderr(pty.slave());
    });
    let shell = run.spawn();
    // Written in two halves, so that what is waited for is not the echo of the command.
    pty.write("tty; echo rea''dy\n");
    pty.expect("ready");
    assert!(pty.seen.contains("/dev/pts/0"), "{:?}", pty.seen);
    // The size reaches the container in a call of its own, at some time after the start.
    pty.write("until stty size | grep '31 91'; do sleep 0.1; done; echo siz''ed\n");
    pty.expect("sized");
    pty.resize(120, 40);
    shell.signal(rustix::process::Signal::WINCH.as_raw());
    pty.write("until stty size | grep '40 120'; do sleep 0.1; done; echo resiz''ed\n");
    pty.expect("resized");
    pty.write("exit 5\n");
    shell.finish().exits(5);
}

#[test]
fn standard_input_is_passed_on() {
    let engine = Engine::shared();
    let text = "a line of text\n".repeat(20_000);
    let wc = engine.run(&["--interactive", "IMAGE", "wc", "-c"]).input(text.clone()).ok();
    assert_eq!(wc.line().trim(), text.len().to_string());
}

#[test]
fn the_user_is_as_asked() {
    let engine = Engine::shared();
    let id = "id; echo home=$HOME";
    engine
        .run(&["--user=user", "IMAGE", "sh", "-c", id])
        .ok()
        .says("uid=1000(user)")
        .says("50(staff)")
        .says("home=/home/user");
    engine
        .run(&["--user=1234:5678", "--group-add=99", "IMAGE", "sh", "-c", id])
        .ok()
        .says("uid=1234 gid=5678 groups=99,5678")
        .says("home=/");
}

#[test]
fn privileges_are_as_asked() {
    let engine = Engine::shared();
    let of_process = |flags: &[&str], member: &str| {
        let script = format!("sed -n 's/^{member}:\t//p' /proc/self/status");
        let run = engine.run(&[flags, &["IMAGE", "sh", "-c", &script]].concat()).ok();
        run.line().to_owned()
    };
    assert_eq!(of_process(&[], "CapEff"), "00000000a80425fb");
    assert_eq!(of_process(&["--cap-drop=ALL"], "CapBnd"), "0000000000000000");
    assert_eq!(of_process(&["--cap-drop=ALL", "--cap-add=NET_ADMIN"], "CapEff"), "0000000000001000");
    assert_eq!(of_process(&["--user=1000"], "CapEff"), "0000000000000000");
    assert_eq!(of_process(&[], "NoNewPrivs"), "0");
    assert_eq!(of_process(&["--security-opt=no-new-privileges"], "NoNewPrivs"), "1");
    assert_eq!(of_process(&[], "Seccomp"), "2");
    assert_eq!(of_process(&["--security-opt=seccomp=unconfined"], "Seccomp"), "0");
}

/// Docker's own profile, compiled by the runtime.
#[test]
fn the_default_seccomp_profile_holds() {
    let engine = Engine::shared();
    let unshare = ["IMAGE", "unshare", "-U", "true"];
    engine.run(&unshare).fails().says("Operation not permitted");
    engine.run(&[&["--security-opt=seccomp=unconfined"], &unshare[..]].concat()).ok();
}

#[test]
fn mounts_are_as_asked() {
    let engine = Engine::shared();
    let script = "touch /no; touch /tmp/yes && grep ' /tmp ' /proc/mounts";
    engine
        .run(&["--read-only", "--tmpfs=/tmp:size=1m,mode=1700", "IMAGE", "sh", "-c", script])
        .ok()
        .says("/no: Read-only file system")
        .says("size=1024k,mode=1700");
    engine.run(&["--shm-size=3m", "IMAGE", "grep", " /dev/shm ", "/proc/mounts"]).ok().says("size=3072k");
    // What Docker hides from containers.
    engine
        .run(&["IMAGE", "sh", "-c", "wc -c < /proc/keys; echo 0 > /proc/sys/kernel/panic"])
        .fails()
        .says("0\n")
        .says("Read-only");
}

#[test]
fn other_settings_are_as_asked() {
    let engine = Engine::shared();
    let shows = |flags: &[&str], script: &str, text: &str| {
        engine.run(&[flags, &["IMAGE", "sh", "-c", script]].concat()).ok().says(text);
    };
    shows(
        &["--hostname=here", "--domainname=there"],
        "hostname; cat /proc/sys/kernel/domainname",
        "here\nthere",
    );
    shows(&["--env=A=b c"], "echo \"<$A>\"", "<b c>");
    shows(&["--workdir=/made/for/it"], "pwd", "/made/for/it");
    shows(&["--ulimit=nofile=77:88"], "ulimit -n; ulimit -Hn", "77\n88");
    shows(
        &["--sysctl=net.ipv4.ip_unprivileged_port_start=99"],
        "cat /proc/sys/net/ipv4/ip_unprivileged_port_start",
        "99",
    );
    shows(&["--device=/dev/zero:/dev/nought:r"], "head -c 3 /dev/nought | wc -c", "3");
    shows(&["--init"], "cat /proc/1/comm", "docker-init");
    shows(&["--network=none"], "ls /sys/class/net | wc -l", "1");
    shows(&["--oom-score-adj=500"], "cat /proc/self/oom_score_adj", "500");
    engine.run(&["--entrypoint=echo", "IMAGE", "said", "so"]).ok().says("said so");
}

#[test]
fn namespaces_can_be_those_of_others() {
    let engine = Engine::shared();
    let other = engine.container(&[], "sleep 1000");
    let name = format!("container:{}", other.name);
    for kind in ["pid", "network", "ipc"] {
        let link = format!("readlink /proc/self/ns/{}", if kind == "network" { "net" } else { kind });
        let inside = other.sh(&link);
        let flag = format!("--{kind}={name}");
        let joined = engine.run(&[&flag, "IMAGE", "sh", "-c", &link]);
        // The ipc namespace of a container is its own unless it was made to be shared.
        if kind == "ipc" {
            continue;
        }
        assert_eq!(joined.ok().line(), inside, "{flag}");
    }
    for (flag, kind) in
        [("--pid=host", "pid"), ("--network=host", "net"), ("--ipc=host", "ipc"), ("--uts=host", "uts")]
    {
        let link = format!("/proc/self/ns/{kind}");
        let host = fs::read_link(&link).unwrap();
        let inside = engine.run(&[flag, "IMAGE", "readlink", &link]).ok();
        assert_eq!(inside.line(), host.to_string_lossy(), "{flag}");
    }
}

#[test]
fn images_are_built() {
    let engine = Engine::shared();
    let recipe =
        "FROM busybox:test\nRUN echo built > /made && id -u >> /made\nUSER user\nCMD [\"cat\", \"/made\"]\n";
    engine.docker(&["build", "--tag", "built:test", "-"]).input(recipe).ok();
    engine.docker(&["run", "--rm", "built:test"]).ok().says("built\n0");
    engine.docker(&["rmi", "built:test"]).ok();
}
