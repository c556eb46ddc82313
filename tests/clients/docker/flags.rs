//! `docker run` with flags about who the container is to the host.

use std::fs;

use brig_tests::{Pty, Run, host};

use crate::engine::Engine;
use crate::image::NAME;

fn status(member: &str) -> String {
    format!("sed -n 's/^{member}:\t//p' /proc/self/status")
}

#[test]
fn a_privileged_container_may_all() {
    let engine = Engine::shared();
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let bounding = own.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
    let last: u32 = fs::read_to_string("/proc/sys/kernel/cap_last_cap").unwrap().trim().parse().unwrap();
    if u64::from_str_radix(bounding, 16).unwrap() != (2_u64 << last) - 1 {
        // Docker asks for all capabilities there are, whether or not it has them to give.
        let refused = engine.run(&["--privileged", "IMAGE", "true"]).run();
        refused.exits(125).says("unable to apply caps").says("operation not permitted");
        return brig_tests::note("no privileged container: not even this process may have all capabilities");
    }
    let script = format!(
        "{}; {}; {}; mount -t tmpfs none /mnt && echo mounted; ls /dev | wc -l; grep -c ' /sys .*rw,' /proc/mounts",
        status("CapEff"),
        status("CapBnd"),
        status("Seccomp")
    );
    let run = engine.run(&["--privileged", "IMAGE", "sh", "-c", &format!("mkdir /mnt; {script}")]).ok();
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[..4], [bounding, bounding, "0", "mounted"], "{run}");
    assert!(lines[4].parse::<usize>().unwrap() > 14, "the devices of the host: {run}");
    assert_eq!(lines[5], "1", "{run}");
    // An exec may be given more than its container.
    let container = engine.container(&["--cap-drop=ALL"], "sleep 1000");
    let exec = |flags: &[&str]| {
        container.docker("exec", flags).args(["sh", "-c", &status("CapEff")]).ok().line().to_owned()
    };
    assert_eq!(exec(&[]), "0000000000000000");
    assert_eq!(exec(&["--privileged"]), bounding);
}

#[test]
fn security_options() {
    let engine = Engine::shared();
    let unmasked =
        ["--security-opt=systempaths=unconfined", "IMAGE", "sh", "-c", "grep -c /proc/ /proc/mounts; true"];
    assert_eq!(engine.run(&unmasked).ok().line(), "0");
    assert_ne!(engine.run(&["IMAGE", "sh", "-c", "grep -c /proc/ /proc/mounts"]).ok().line(), "0");
    // A profile of one's own.
    let profile = tempfile::NamedTempFile::new().unwrap();
    let rules = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 36}]}"#;
    fs::write(profile.path(), rules).unwrap();
    let option = format!("--security-opt=seccomp={}", profile.path().display());
    engine.run(&[&option, "IMAGE", "mkdir", "/a"]).fails().says("File name too long");
    engine.run(&[&option, "IMAGE", "touch", "/a"]).ok();
}

#[test]
fn kinds_of_ipc() {
    let engine = Engine::shared();
    let other = engine.container(&["--ipc=shareable", "--shm-size=3m"], "echo here > /dev/shm/a; sleep 1000");
    let flag = format!("--ipc=container:{}", other.name);
    let script = "readlink /proc/self/ns/ipc; cat /dev/shm/a";
    let joined = engine.run(&[&flag, "IMAGE", "sh", "-c", script]).ok();
    assert_eq!(joined.line(), other.sh(script));
    assert_ne!(joined.out.lines().next(), fs::read_link("/proc/self/ns/ipc").unwrap().to_str());
    engine
        .run(&[
            "--ipc=none",
            "IMAGE",
            "sh",
            "-c",
            "ls -A /dev/shm | wc -l; grep -c ' /dev/shm ' /proc/mounts",
        ])
        .run()
        .says("0\n0");
    engine.run(&["--ipc=host", "IMAGE", "readlink", "/proc/self/ns/ipc"]).ok();
    engine
        .run(&["--cgroupns=private", "IMAGE", "cat", "/proc/self/cgroup"])
        .run()
        .says(if engine.cgroup().is_empty() { "" } else { ":/\n" });
}

#[test]
fn devices_are_those_asked_for() {
    let engine = Engine::shared();
    // Not one of those that every container has. The driver may be missing, but the refusal comes before.
    let dir = tempfile::tempdir().unwrap();
    let node = dir.path().join("node");
    Run::new("mknod").arg(&node).args(["c", "10", "229"]).ok();
    let refused = |rights: &str, script: &str| {
        let flag = format!("--device={}:/dev/asked:{rights}", node.display());
        let script = format!("({script}) 2>&1 | grep -c 'not permitted'; true");
        engine.run(&[&flag, "IMAGE", "sh", "-c", &script]).ok().line() == "1"
    };
    let (read, write, make) = (": < /dev/asked", ": > /dev/asked", "mknod /other c 10 229");
    assert!(!refused("r", read) && refused("r", write));
    assert!(refused("w", read) && !refused("w", write) && !refused("rwm", make));
    // One that the container makes itself is no way to the host's.
    let make = "mknod /dev/asked c 1 11 && cat /dev/asked";
    engine.run(&["IMAGE", "sh", "-c", make]).fails().says("Operation not permitted");
    let allowed = [
        "--device-cgroup-rule=c 1:5 rw",
        "IMAGE",
        "sh",
        "-c",
        "mknod /dev/asked c 1 5 && head -c 1 /dev/asked | wc -c",
    ];
    assert_eq!(engine.run(&allowed).ok().line(), "1");
}

#[test]
fn mounts_have_their_options() {
    let engine = Engine::shared();
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().display();
    let shows = |flag: &str, text: &str| {
        engine.run(&[flag, "IMAGE", "sh", "-c", "grep ' /data ' /proc/self/mountinfo"]).ok().says(text);
    };
    shows(&format!("--volume={source}:/data:ro"), " ro,");
    shows(&format!("--mount=type=bind,source={source},target=/data,readonly"), " ro,");
    shows(&format!("--mount=type=bind,source={source},target=/data,bind-propagation=rprivate"), "/data");
    shows("--mount=type=tmpfs,target=/data,tmpfs-size=1048576,tmpfs-mode=1770", "size=1024k,mode=1770");
    shows("--tmpfs=/data:noexec,nosuid,size=2m", "nosuid");
    // What is missing on the host is made with one flag, and an error with the other.
    let missing = dir.path().join("missing");
    engine
        .run(&[&format!("--mount=type=bind,source={},target=/data", missing.display()), "IMAGE", "true"])
        .run()
        .exits(125)
        .says("bind source path does not exist");
    engine.run(&[&format!("--volume={}:/data", missing.display()), "IMAGE", "true"]).ok();
    assert!(missing.is_dir());
    // Volumes of another container, and one that covers a file of the image.
    let holder = engine.container(&["--volume=/shared"], "echo it > /shared/file; sleep 1000");
    holder.sh("cat /shared/file");
    engine.run(&[&format!("--volumes-from={}", holder.name), "IMAGE", "cat", "/shared/file"]).ok().says("it");
}

/// Docker's `--init` reaps what its child leaves, and passes signals on.
#[test]
fn an_init_reaps() {
    let engine = Engine::shared();
    let container =
        engine.container(&["--init"], "trap 'exit 8' TERM; (sleep 0.1 &) ; while sleep 0.1; do :; done");
    host::eventually("no zombie", || {
        !container.sh("grep -hs '^State:' /proc/[0-9]*/status; true").contains("zombie")
    });
    container.docker("stop", &[]).ok();
    assert_eq!(container.state("ExitCode"), 8);
}

#[test]
fn other_limits() {
    let engine = Engine::shared();
    let flags = ["--ulimit=core=0", "--ulimit=nproc=500:600", "--ulimit=fsize=1048576"];
    let script = "ulimit -c; ulimit -p 2>/dev/null || ulimit -u; dd if=/dev/zero of=/big bs=2M count=1 2>&1; ls -l /big | awk '{print $5}'";
    let run = engine.run(&[&flags[..], &["IMAGE", "sh", "-c", script]].concat()).run();
    run.says("0\n500").says("1048576");
    if host::has_controller("pids") {
        let fork = "for n in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; wait";
        engine
            .run(&["--pids-limit=5", "IMAGE", "sh", "-c", fork])
            .fails()
            .says("Resource temporarily unavailable");
    }
    if host::has_controller("memory") && !host::is_cgroup_v2() {
        let files = "cd /sys/fs/cgroup/memory; cat memory.limit_in_bytes memory.memsw.limit_in_bytes memory.soft_limit_in_bytes memory.swappiness";
        let flags =
            ["--memory=64m", "--memory-swap=96m", "--memory-reservation=32m", "--memory-swappiness=7"];
        let run = engine.run(&[&flags[..], &["IMAGE", "sh", "-c", files]].concat()).ok();
        assert_eq!(run.line(), "67108864\n100663296\n33554432\n7");
    }
}

/// Keys that detach, and a terminal that somebody comes back to.
#[test]
fn one_can_detach_and_attach_again() {
    let engine = Engine::shared();
    let mut pty = Pty::new();
    let on = |run: Run, pty: &Pty| {
        let slave = pty.slave();
        run.stdin(pty.slave()).stdout(pty.slave()).with(|command| {
            command.stderr(slave);
        })
    };
    let run = engine.docker(&["run", "--interactive", "--tty", "--name=kept", NAME, "sh"]);
    let client = on(run, &pty).spawn();
    pty.write("A=kept; echo rea''dy\n");
    pty.expect("ready");
    // Ctrl-P Ctrl-Q, the second only once the first was read.
    pty.write("\u{10}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    pty.write("\u{11}");
    client.finish().exits(0);
    assert_eq!(engine.docker(&["inspect", "--format={{.State.Running}}", "kept"]).ok().line(), "true");
    let mut again = Pty::new();
    let client = on(engine.docker(&["attach", "kept"]), &again).spawn();
    again.write("echo still-$A; exit 4\n");
    again.expect("still-kept");
    client.finish().exits(4);
    engine.docker(&["rm", "kept"]).ok();
}

/// All containers of an engine in a user namespace.
#[test]
fn root_can_be_nobody_on_the_host() {
    let engine = Engine::of_kind("remapped");
    let script = "id -u; tr -s ' ' < /proc/self/uid_map; touch /file && stat -c %u /file";
    engine.run(&["IMAGE", "sh", "-c", script]).ok().says("0\n 0 200000 65536\n0");
    let own = ["--userns=host", "IMAGE", "readlink", "/proc/self/ns/user"];
    let of_host = fs::read_link("/proc/self/ns/user").unwrap();
    assert_eq!(engine.run(&own).ok().line(), of_host.to_str().unwrap());
    let container = engine.container(&["--memory=64m", "--pids-limit=40"], "sleep 1000");
    container.docker("exec", &["--user=5"]).args(["id", "-u"]).ok().says("5");
    let traces = container.traces();
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{}", traces.pid)).unwrap());
    assert_eq!(owner, 200_000);
    container.docker("pause", &[]).ok();
    container.docker("unpause", &[]).ok();
    container.docker("rm", &["--force"]).ok();
    traces.assert_gone();
}
