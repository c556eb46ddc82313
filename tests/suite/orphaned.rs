//! What becomes of a container's process when the command in the foreground, or whoever it belongs to, is killed.

use brig_tests::{Bundle, Pty, Run, Socket, Spawned, better_than_runc, host, json};

fn with_terminal(mut b: Bundle) -> Bundle {
    b.config["process"]["terminal"] = true.into();
    b
}

fn on(pty: &Pty, run: Run) -> Spawned {
    run.stdin(pty.slave()).stdout(pty.slave()).stderr(pty.slave()).spawn()
}

/// SIGKILL, and the end of the command.
fn kill(mut run: Spawned) {
    run.child().kill().unwrap();
    run.child().wait().unwrap();
}

/// A process that says it lives each time it is asked, and one that ends by SIGHUP.
const ANSWERS: &str =
    "trap 'touch /hup' HUP; trap 'touch /usr1' USR1; touch /ready; while :; do sleep 0.05; done";

fn seen(b: &Bundle, name: &str) -> bool {
    b.rootfs().join(name).exists()
}

#[test]
fn a_run_without_a_terminal_goes_on() {
    let b = Bundle::sh(ANSWERS);
    let run = b.run().detached().spawn();
    host::eventually("the program", || seen(&b, "ready"));
    kill(run);
    assert_eq!(b.status(), "running");
    b.brig("kill").args([&b.id, "USR1"]).ok();
    host::eventually("an answer", || seen(&b, "usr1"));
    assert!(!seen(&b, "hup"));
    b.brig("kill").args([&b.id, "KILL"]).ok();
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
}

#[test]
fn an_exec_without_a_terminal_goes_on() {
    let b = Bundle::sleeping();
    b.start();
    let exec = b.exec(&["sh", "-c", ANSWERS]).detached().spawn();
    host::eventually("the program", || seen(&b, "ready"));
    kill(exec);
    let left = b.members();
    assert!(left.len() >= 2, "{left:?}");
    let pid = *left.iter().find(|&&pid| pid != b.pid()).unwrap();
    host::eventually("it to be nobody's child", || host::is_alive(pid));
    assert!(!seen(&b, "hup"));
    b.delete();
    b.assert_gone();
}

#[test]
fn output_goes_where_it_went() {
    // Directly, not through the command.
    let b = Bundle::sh("touch /ready; read line; echo after; exec sleep 1000");
    let out = b.path().join("out");
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let file = std::fs::File::create(&out).unwrap();
    let run = b.run().stdin(read).stdout(file).spawn();
    host::eventually("the program", || seen(&b, "ready"));
    kill(run);
    better_than_runc("copies it, so nobody does any more", move || {
        rustix::io::write(&write, b"\n").unwrap();
        host::eventually("the output", || std::fs::read_to_string(&out).is_ok_and(|text| text == "after\n"));
    });
}

#[test]
fn with_a_terminal_it_is_hung_up() {
    let b = with_terminal(Bundle::sh(ANSWERS));
    let pty = Pty::new();
    let run = on(&pty, b.run());
    host::eventually("the program", || seen(&b, "ready"));
    kill(run);
    // It lives as long as it wants to.
    host::eventually("the hang-up", || seen(&b, "hup"));
    assert_eq!(b.status(), "running");
    b.brig("kill").args([&b.id, "USR1"]).ok();
    host::eventually("an answer", || seen(&b, "usr1"));
    b.delete();
    b.assert_gone();
}

#[test]
fn an_exec_with_a_terminal_is_hung_up() {
    let b = Bundle::sleeping();
    b.start();
    let pty = Pty::new();
    let exec = on(&pty, b.brig("exec").args(["--tty", &b.id, "sh", "-c", "touch /ready; exec sleep 1000"]));
    host::eventually("the program", || seen(&b, "ready"));
    host::eventually("the two", || b.members().len() == 2);
    kill(exec);
    host::eventually("its end", || b.members().len() == 1);
    assert_eq!(b.status(), "running");
}

#[test]
fn a_manager_that_dies_with_the_command_changes_nothing() {
    let b = Bundle::sh(ANSWERS);
    b.write_config();
    // The shell is the manager; both are killed as a service manager does it, by their group.
    let script = "\"$@\" & echo $! >pid; wait";
    let manager = Run::new("setsid").args(["--wait", "sh", "-c", script, "sh"]).arg(brig_tests::runtime());
    let manager = manager.arg("--root").arg(&b.root).args(["run", "--bundle"]).arg(b.path()).arg(&b.id);
    let manager = manager.dir(b.path()).detached().spawn();
    host::eventually("the program", || seen(&b, "ready"));
    let pid: i32 = std::fs::read_to_string(b.path().join("pid")).unwrap().trim().parse().unwrap();
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid)).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    kill(manager);
    host::eventually("the end of the command", || !host::is_alive(pid));
    assert_eq!(b.status(), "running");
    b.brig("kill").args([&b.id, "USR1"]).ok();
    host::eventually("an answer", || seen(&b, "usr1"));
    b.delete();
    b.assert_gone();
}

#[test]
fn before_the_program_is_executed_it_ends_with_the_command() {
    let mut b = Bundle::sh("touch /ran; exec sleep 1000");
    b.config["hooks"] = json!({ "createRuntime": [{ "path": "/bin/sh", "args": ["sh", "-c", format!("touch {}/hook; sleep 1000", b.path().display())] }] });
    better_than_runc("leaves the hook", move || {
        let run = b.run().detached().spawn();
        host::eventually("the hook", || b.path().join("hook").exists());
        kill(run);
        host::eventually("the end of all", || b.processes().is_empty());
        assert!(!seen(&b, "ran"));
        b.delete();
        b.assert_gone();
    });
}

#[test]
fn whoever_has_the_pidfd_can_end_it() {
    if brig_tests::fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let b = Bundle::sleeping();
    let socket = Socket::new(b.path().join("socket"));
    let run = b.brig("run").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).detached().spawn();
    let pidfd = socket.receive().fds.remove(0);
    b.wait_status("running");
    kill(run);
    rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL).unwrap();
    b.wait_status("stopped");
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
}
