//! `kill`, and what signals do to a container that waits for `start`.

use super::*;

#[test]
fn kill_sends_term_by_default() {
    let b = Bundle::sh("trap 'touch /got; exit 0' TERM; touch /ready; while :; do sleep 0.01; done");
    b.start();
    host::eventually("the trap", || b.rootfs().join("ready").exists());
    b.brig("kill").arg(&b.id).ok();
    b.wait_status("stopped");
    assert!(b.rootfs().join("got").exists());
}

#[test]
fn kill_takes_names_and_numbers() {
    let script = "trap 'touch /hup' HUP; trap 'touch /usr1' USR1; touch /ready; while :; do sleep 0.01; done";
    for (signal, file) in
        [("HUP", "hup"), ("SIGHUP", "hup"), ("sighup", "hup"), ("1", "hup"), ("usr1", "usr1")]
    {
        let b = Bundle::sh(script);
        b.start();
        host::eventually("the trap", || b.rootfs().join("ready").exists());
        b.brig("kill").args([&b.id, signal]).ok();
        host::eventually(signal, || b.rootfs().join(file).exists());
    }
}

#[test]
fn kill_with_zero_only_asks() {
    let b = Bundle::sleeping();
    b.start();
    b.brig("kill").args([&b.id, "0"]).ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn kill_refuses_what_is_no_signal() {
    let b = Bundle::sleeping();
    b.start();
    let kill = |signal: &str| b.brig("kill").args([&b.id, signal]).run();
    kill("FROB").exits(1).says("unknown signal").says("FROB");
    kill("999").exits(1).says("unable to signal init: invalid argument");
    assert_eq!(b.status(), "running");
}

#[test]
fn kill_of_what_has_stopped() {
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    b.brig("kill").args([&b.id, "KILL"]).run().exits(1).says("container not running");
}

#[test]
fn kill_all_of_what_has_stopped_succeeds() {
    // containerd's shim and podman pass the flag, which means nothing any more.
    let b = Bundle::default();
    b.start();
    b.wait_status("stopped");
    b.brig("kill").args(["--all", &b.id, "9"]).ok();
    b.brig("kill").args(["-a", &b.id, "TERM"]).ok();
}

#[test]
fn kill_reaches_only_the_first_process() {
    let b = Bundle::sh(
        "trap 'touch /first' USR1; sh -c 'trap \"touch /second\" USR1; touch /ready; while :; do sleep 0.01; done' & while :; do sleep 0.01; done",
    );
    b.start();
    host::eventually("the second process", || b.rootfs().join("ready").exists());
    b.brig("kill").args([&b.id, "USR1"]).ok();
    host::eventually("the first trap", || b.rootfs().join("first").exists());
    assert!(!b.rootfs().join("second").exists());
}

#[test]
fn kill_9_ends_all_where_the_pid_namespace_is_the_hosts() {
    since_runc((1, 2), "kill of all processes without --all", || {
        let mut b = Bundle::sh("sleep 1000 & sleep 1000 & touch /ready; exec sleep 1000");
        b.without_namespace("pid");
        b.start();
        // Not the fourth, which makes the file.
        host::eventually("all to be there", || b.rootfs().join("ready").exists() && b.members().len() == 3);
        let all = b.members();
        b.brig("kill").args([&b.id, "KILL"]).ok();
        host::eventually("all to end", || !all.iter().any(|&pid| host::is_alive(pid)));
    });
}

#[test]
fn other_signals_reach_only_the_first_where_the_pid_namespace_is_the_hosts() {
    let mut b = Bundle::sh("sleep 1000 & touch /ready; exec sleep 1000");
    b.without_namespace("pid");
    b.start();
    host::eventually("all to be there", || b.rootfs().join("ready").exists());
    b.brig("kill").args([&b.id, "TERM"]).ok();
    b.wait_status("stopped");
    assert_eq!(b.processes().len(), 1);
}

#[test]
fn a_created_container_ends_by_signals() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        let b = Bundle::sleeping();
        b.create();
        b.brig("kill").args([&b.id, signal]).ok();
        host::eventually(&format!("the end by {signal}, {code}"), || b.status() == "stopped");
        b.brig("delete").arg(&b.id).ok();
        b.assert_gone();
    }
}

#[test]
fn a_created_container_survives_other_signals() {
    let b = Bundle::sleeping();
    b.create();
    for signal in ["USR1", "USR2", "WINCH", "35"] {
        b.brig("kill").args([&b.id, signal]).ok();
    }
    b.brig("start").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
}
