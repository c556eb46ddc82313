//! Pid files, and pidfds handed over by a socket.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use brig_tests::{Bundle, Run, Socket, better_than_runc, fails_before_runc, host, runtime};
use rustix::process::{Signal, pidfd_send_signal};

fn pid_of(fd: impl AsFd) -> i32 {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd())).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap();
    line.trim().parse().unwrap()
}

/// Case 42: create.bats, buildkit PR 3754.
#[test]
fn a_pid_file_is_complete_when_the_command_returns() {
    for command in ["create", "run"] {
        let b = Bundle::sleeping();
        let file = b.path().join("pid");
        let run = b.brig(command).arg("--pid-file").arg(&file);
        let run = if command == "run" { run.arg("--detach") } else { run };
        run.arg(&b.id).detached().ok();
        // Digits, and not even a newline: shims parse it strictly.
        assert_eq!(fs::read_to_string(&file).unwrap(), b.pid().to_string());
        assert!(host::is_alive(b.pid()));
    }
}

/// Case 42: relative paths.
#[test]
fn a_pid_file_is_relative_to_where_the_command_was_started() {
    let b = Bundle::sleeping();
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("rel")).unwrap();
    let run = b.brig("create").args(["--pid-file", "rel/path", &b.id]);
    run.dir(here.path()).detached().ok();
    assert_eq!(fs::read_to_string(here.path().join("rel/path")).unwrap(), b.pid().to_string());
    assert_eq!(fs::read_dir(here.path().join("rel")).unwrap().count(), 1);
}

/// Case 42: atomic.
#[test]
fn a_pid_file_replaces_an_old_one_by_rename() {
    let b = Bundle::sleeping();
    let file = b.path().join("pid");
    fs::write(&file, "99999999 an old one").unwrap();
    let old = fs::metadata(&file).unwrap().ino();
    b.brig("create").arg("--pid-file").arg(&file).arg(&b.id).detached().ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), b.pid().to_string());
    assert_ne!(fs::metadata(&file).unwrap().ino(), old);
}

/// Case 42: what cannot be written.
#[test]
fn a_pid_file_that_cannot_be_written_is_an_error() {
    for (command, detach) in [("create", false), ("run", true), ("run", false)] {
        let b = Bundle::sleeping();
        let run = b.brig(command).args(["--pid-file", "/no/such/dir/pid"]);
        let run = if detach { run.arg("--detach") } else { run };
        run.arg(&b.id).run().exits(1).says("no such file or directory");
        b.assert_gone();
    }
}

#[test]
fn a_pid_file_of_exec_that_cannot_be_written_is_an_error() {
    let b = Bundle::sleeping();
    b.start();
    let run = b.brig("exec").args(["--detach", "--pid-file", "/no/such/dir/pid"]);
    run.args([&b.id, "sleep", "1000"]).run().exits(255).says("no such file or directory");
    host::eventually("the end of the process", || b.members().len() == 1);
}

#[test]
fn what_a_crash_left_beside_a_pid_file_is_not_in_the_way() {
    better_than_runc("has one fixed temporary name", || {
        let b = Bundle::sleeping();
        let file = b.path().join("pid");
        fs::write(b.path().join(".pid"), "").unwrap();
        b.brig("create").arg("--pid-file").arg(&file).arg(&b.id).detached().ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), b.pid().to_string());
    });
}

/// Case 42: in a user namespace.
#[test]
fn a_pid_file_holds_the_hosts_pid() {
    let mut b = Bundle::sleeping();
    b.in_user_namespace();
    let file = b.path().join("pid");
    b.brig("create").arg("--pid-file").arg(&file).arg(&b.id).detached().ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), b.pid().to_string());
}

#[test]
fn a_reader_sees_no_half_written_pid_file() {
    let b = Bundle::sleeping();
    let file = b.path().join("pid");
    let mut create = b.brig("create").arg("--pid-file").arg(&file).arg(&b.id).detached().spawn();
    let mut seen = None;
    while create.child().try_wait().unwrap().is_none() {
        if let Ok(text) = fs::read_to_string(&file) {
            assert!(!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()), "{text:?}");
            seen = Some(text);
        }
    }
    create.finish().exits(0);
    assert_eq!(seen.unwrap_or_else(|| fs::read_to_string(&file).unwrap()), b.pid().to_string());
}

#[test]
fn a_socket_gets_a_pidfd_of_the_container() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    for command in ["create", "run"] {
        let b = Bundle::sleeping();
        let socket = Socket::new(b.path().join("pidfd"));
        let run = b.brig(command).arg("--pidfd-socket").arg(&socket.path);
        let run = if command == "run" { run.arg("--detach") } else { run };
        run.arg(&b.id).detached().ok();
        let message = socket.receive();
        assert_eq!(message.data, b"standard");
        assert_eq!(message.fds.len(), 1);
        assert_eq!(pid_of(&message.fds[0]), b.pid());
        if command == "create" {
            b.brig("start").arg(&b.id).ok();
        }
        pidfd_send_signal(&message.fds[0], Signal::KILL).unwrap();
        b.wait_status("stopped");
    }
}

#[test]
fn a_socket_gets_a_pidfd_of_an_exec() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    let socket = Socket::new(b.path().join("pidfd"));
    let file = b.path().join("pid");
    let run = b.brig("exec").arg("--pidfd-socket").arg(&socket.path).args(["-d", "--pid-file"]).arg(&file);
    run.args([&b.id, "sleep", "1000"]).detached().ok();
    let message = socket.receive();
    assert_eq!(message.data, b"setns");
    assert_eq!(message.fds.len(), 1);
    let pid: i32 = fs::read_to_string(&file).unwrap().parse().unwrap();
    assert_eq!(pid_of(&message.fds[0]), pid);
    pidfd_send_signal(&message.fds[0], Signal::KILL).unwrap();
    host::eventually("the end of the process", || !host::is_alive(pid));
    assert_eq!(b.status(), "running");
}

#[test]
fn pidfd_sockets_that_cannot_be_reached() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let b = Bundle::sleeping();
    let create = b.brig("create").args(["--pidfd-socket", "/no/such", &b.id]).run();
    create.exits(1).says("failed to dail /no/such: dial unix /no/such: connect: no such file or directory");
    b.assert_gone();
    b.start();
    let exec = b.brig("exec").args(["--pidfd-socket", "/no/such", &b.id, "true"]).run();
    exec.exits(255).says("dial unix /no/such: connect: no such file or directory");
}

#[test]
fn a_pidfd_of_a_process_in_a_joined_pid_namespace() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let a = Bundle::sleeping();
    a.start();
    let mut b = Bundle::sleeping();
    b.with_namespace("pid", Some(&format!("/proc/{}/ns/pid", a.pid())));
    let socket = Socket::new(b.path().join("pidfd"));
    b.brig("create").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).detached().ok();
    assert_eq!(pid_of(&socket.receive().fds[0]), b.pid());
}

#[test]
fn a_pid_file_in_a_directory_that_is_a_link() {
    let b = Bundle::sleeping();
    fs::create_dir(b.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", b.path().join("link")).unwrap();
    let run = Run::new(runtime()).arg("--root").arg(&b.root).arg("create").arg("--bundle").arg(b.path());
    b.write_config();
    run.arg("--pid-file").arg(b.path().join("link/pid")).arg(&b.id).detached().ok();
    assert_eq!(fs::read_to_string(b.path().join("real/pid")).unwrap(), b.pid().to_string());
}
