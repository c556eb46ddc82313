//! Descriptors: CVE-2024-21626, and what else could be inherited.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use brig_tests::{Bundle, Run, Socket, json, runtime};

use crate::support::{SECRET, Victim, ended_in_order, naive_path};

/// Runs a program with directories and files of the host open, from 3 to 20, as a careless manager would.
fn with_host_fds(victim: &Victim, program: &std::path::Path) -> Run {
    let dir = victim.path().display();
    let opens: String = (3..=9).map(|n| format!("exec {n}<{dir}; ")).collect();
    // Above 9, only bash takes a number; the directories below are enough of them.
    let script = format!("{opens} exec \"$@\"");
    Run::new("bash").args(["-c", &script, "bash"]).arg(program)
}

fn on(victim: &Victim, b: &Bundle, command: &str) -> Run {
    b.write_config();
    let run = with_host_fds(victim, &runtime()).arg("--root").arg(&b.root).arg(command);
    if matches!(command, "create" | "run") { run.arg("--bundle").arg(b.path()) } else { run }
}

const LIST: &str = "for fd in /proc/self/fd/*; do echo ${fd##*/} $(readlink $fd); done";

#[test]
fn the_program_sees_no_other_descriptors() {
    let victim = Victim::new();
    let b = Bundle::new(&["sh", "-c", LIST]);
    let root = b.rootfs().to_string_lossy().into_owned();
    let broken = with_host_fds(&victim, naive_path()).args(["exec", &root, "/bin/sh", "-c", LIST]).ok();
    assert!(broken.out.lines().count() > 8, "{broken}");
    let numbers = |out: &str| -> Vec<i32> {
        let all = out.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
        // The shell's own, for the directory that it lists.
        all.filter(|n| *n < 3 || !out.lines().any(|l| l == format!("{n} /proc/1/fd") || l == format!("{n}")))
            .collect()
    };
    assert_eq!(numbers(&on(&victim, &b, "run").arg(&b.id).ok().out), [0, 1, 2]);
    let b = Bundle::sleeping();
    on(&victim, &b, "create").arg(&b.id).detached().ok();
    on(&victim, &b, "start").arg(&b.id).ok();
    let listed = on(&victim, &b, "exec").args([&b.id, "sh", "-c", LIST]).ok().out;
    let extra: Vec<&str> = listed.lines().filter(|l| l.contains(&*victim.path().to_string_lossy())).collect();
    assert_eq!(extra, Vec::<&str>::new());
    assert!(numbers(&listed).starts_with(&[0, 1, 2]), "{listed}");
}

/// While it waits for `start`, and for whoever looks at it from the host.
#[test]
fn a_created_container_holds_nothing_of_the_callers() {
    let victim = Victim::new();
    let b = Bundle::sleeping();
    on(&victim, &b, "create").arg(&b.id).detached().ok();
    for entry in fs::read_dir(format!("/proc/{}/fd", b.pid())).unwrap() {
        let target = fs::read_link(entry.unwrap().path()).unwrap();
        assert!(!target.starts_with(victim.path()), "{}", target.display());
        assert!(!target.is_dir(), "a directory: {}", target.display());
    }
}

#[test]
fn hooks_see_no_other_descriptors() {
    let victim = Victim::new();
    let mut b = Bundle::default();
    let hook = b.path().join("hook");
    let out = b.path().join("out");
    fs::write(&hook, format!("#!/bin/sh\nls -l /proc/self/fd >>{}\n", out.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let entry = json!([{ "path": hook }]);
    b.config["hooks"] = json!({ "prestart": entry, "createRuntime": entry, "createContainer": entry,
        "poststart": entry, "poststop": entry });
    on(&victim, &b, "run").arg(&b.id).ok();
    let seen = fs::read_to_string(&out).unwrap();
    assert!(seen.matches("total").count() == 5, "{seen}");
    assert!(!seen.contains(&*victim.path().to_string_lossy()), "{seen}");
    // The careless way: a shell that hands on what it has.
    let shell = with_host_fds(&victim, &hook).run();
    assert_eq!(shell.code(), 0);
    assert!(fs::read_to_string(&out).unwrap().contains(&*victim.path().to_string_lossy()));
}

/// Case 8.
#[test]
fn a_working_directory_by_descriptor() {
    let victim = Victim::new();
    for number in 3..=20 {
        let mut b = Bundle::new(&["cat", "file"]);
        b.config["process"]["cwd"] = json!(format!("/proc/self/fd/{number}"));
        let finished = on(&victim, &b, "run").arg(&b.id).run();
        ended_in_order(&finished);
        assert_ne!(finished.code(), 0, "{finished}");
        assert!(!finished.both().contains(SECRET), "{finished}");
        b.assert_gone();
    }
    let b = Bundle::sleeping();
    symlink_of_all(&b);
    on(&victim, &b, "create").arg(&b.id).detached().ok();
    on(&victim, &b, "start").arg(&b.id).ok();
    for number in 3..=20 {
        for cwd in [
            format!("/proc/self/fd/{number}"),
            format!("/fd{number}"),
            format!("/proc/thread-self/fd/{number}"),
        ] {
            let finished = on(&victim, &b, "exec").args(["--cwd", &cwd, &b.id, "cat", "file"]).run();
            assert_eq!(finished.code(), 255, "{finished}");
            assert!(!finished.both().contains(SECRET), "{finished}");
        }
    }
    // As a shell that hands on its descriptors does it.
    let script = format!("exec 3<{}; cd /proc/self/fd/3 && cat file", victim.path().display());
    assert_eq!(Run::new("bash").args(["-c", &script]).ok().out, SECRET);
}

fn symlink_of_all(b: &Bundle) {
    for number in 3..=20 {
        std::os::unix::fs::symlink(format!("/proc/self/fd/{number}"), b.rootfs().join(format!("fd{number}")))
            .unwrap();
    }
}

/// Arguments that name descriptors find none.
#[test]
fn arguments_by_descriptor() {
    let victim = Victim::new();
    for number in 3..=12 {
        let b = Bundle::new(&["cat", &format!("/proc/self/fd/{number}/file")]);
        let finished = on(&victim, &b, "run").arg(&b.id).run();
        assert_ne!(finished.code(), 0);
        assert!(!finished.both().contains(SECRET), "{finished}");
        let b = Bundle::new(&[&format!("/proc/self/fd/{number}/../../bin/sh"), "-c", "echo out"]);
        let finished = on(&victim, &b, "run").arg(&b.id).run();
        assert_ne!(finished.code(), 0);
        assert_eq!(finished.out, "");
    }
}

/// What goes over the sockets is the terminal and the pidfd, and whoever listens gets nothing else.
#[test]
fn sockets_carry_one_descriptor_of_their_kind() {
    let mut b = Bundle::sleeping();
    b.config["process"]["terminal"] = true.into();
    let (console, pidfds) = (Socket::new(b.path().join("c.sock")), Socket::new(b.path().join("p.sock")));
    let create =
        b.brig("create").arg("--console-socket").arg(&console.path).arg("--pidfd-socket").arg(&pidfds.path);
    create.arg(&b.id).detached().ok();
    for (socket, is) in [(&console, "/dev/pts/ptmx"), (&pidfds, "pidfd")] {
        let message = socket.receive();
        let [fd] = &message.fds[..] else { panic!("{message:?}") };
        let target = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(fd))).unwrap();
        assert!(
            target.to_string_lossy().contains(is) || target.to_string_lossy().contains("ptmx"),
            "{target:?}"
        );
    }
}
