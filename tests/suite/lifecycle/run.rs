//! `run`, and commands that stay in the foreground.

use super::*;

#[test]
fn run_gives_the_exit_status() {
    for code in [0, 1, 7, 255] {
        Bundle::sh(&format!("exit {code}")).run().run().exits(code);
    }
}

#[test]
fn run_gives_the_signal_as_128_and_its_number() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("USR1", 10)] {
        // Not from a pid 1, which ignores its own signals.
        let mut b = Bundle::sh(&format!("kill -{name} $$; sleep 10"));
        b.without_namespace("pid");
        b.run().run().exits(128 + number);
    }
}

#[test]
fn run_passes_input_and_output() {
    let b = Bundle::sh("cat; echo error >&2");
    let finished = b.run().input("one\ntwo\n").run();
    assert_eq!(finished.out, "one\ntwo\n");
    assert_eq!(finished.err, "error\n");
}

#[test]
fn run_passes_a_lot_of_output() {
    let b = Bundle::sh("seq 1 200000");
    let out = b.run().ok().out;
    assert_eq!(out.lines().count(), 200_000);
    assert_eq!(out.lines().last(), Some("200000"));
}

#[test]
fn run_deletes_the_container() {
    let b = Bundle::default();
    b.run().ok();
    b.assert_gone();
    // The id can be used again.
    b.run().ok();
}

#[test]
fn run_deletes_the_container_after_a_failure() {
    let b = Bundle::new(&["/nowhere"]);
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn run_keeps_the_container_when_told() {
    let b = Bundle::sh("exit 5");
    b.brig("run").args(["--keep", &b.id]).run().exits(5);
    assert_eq!(b.status(), "stopped");
    b.brig("delete").arg(&b.id).ok();
}

#[test]
fn run_detached_returns_while_the_program_runs() {
    let b = Bundle::sleeping();
    b.brig("run").args(["--detach", &b.id]).detached().ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn run_without_a_bundle_uses_the_current_directory() {
    let b = Bundle::sh("exit 3");
    b.runtime().arg("run").arg(&b.id).dir(b.path()).run().exits(3);
}

#[test]
fn a_foreground_run_relays_signals() {
    let b = Bundle::sh("trap 'exit 42' USR1; touch /ready; while :; do sleep 0.01; done");
    let run = b.run().spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    run.signal(10);
    run.finish().exits(42);
    b.assert_gone();
}

#[test]
fn a_foreground_exec_relays_signals() {
    let b = Bundle::sleeping();
    b.start();
    let script = "trap 'exit 42' TERM; touch /ready; while :; do sleep 0.01; done";
    let exec = b.exec(&["sh", "-c", script]).spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    exec.signal(15);
    exec.finish().exits(42);
    assert_eq!(b.status(), "running");
}

/// Case 26, second half: crun 1442.
#[test]
fn sigwinch_does_not_disturb_a_run_without_a_terminal() {
    let b = Bundle::sh("trap 'touch /winch' WINCH; touch /ready; cat; exit 5");
    let mut run = b.run().stdin(std::process::Stdio::piped()).spawn();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    for _ in 0..3 {
        run.signal(28);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    drop(run.child().stdin.take());
    run.finish().exits(5);
    assert!(!b.rootfs().join("winch").exists());
}

#[test]
fn the_end_of_input_is_passed_on() {
    Bundle::sh("cat >/dev/null; exit 6").run().input("x").run().exits(6);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_a_run() {
    let b = Bundle::sh("yes | head -c 1000000; exit 3");
    let mut run = b.run().spawn();
    drop(run.child().stdout.take());
    let code = run.finish().code();
    // The program gets SIGPIPE or EPIPE, or its output is dropped; the run ends in any case.
    assert!(code == 3 || code >= 128, "{code}");
    b.assert_gone();
}
