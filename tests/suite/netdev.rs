//! `linux.netDevices`. The host's network is a namespace of the test's own, so that nothing of it is left.

use std::fs;

use brig_tests::{Bundle, Finished, fails_before_runc, host, json, note, runtime};

/// Interfaces of the test's host: a pair of which `bt0` has addresses, a route, a size and an address of its own.
const SETUP: &str = "
    ip link add bt0 type veth peer name bt1
    ip link set bt0 mtu 1400 address 02:00:00:00:00:07
    ip addr add 192.0.2.1/24 dev bt0
    ip addr add 2001:db8::1/64 dev bt0 nodad
    ip addr add 198.51.100.1/32 scope link dev bt0
    ip link set bt0 up
    ip link set bt1 up
    ip route add 203.0.113.0/24 via 192.0.2.9 dev bt0
    ip route add 198.51.100.0/24 dev bt0 scope link
";

/// Runs the runtime, then a script, in a network namespace made by a script; `None` where no such interfaces can be made.
fn in_network(b: &Bundle, before: &str, after: &str) -> Option<Finished> {
    b.write_config();
    let probe = host_run("ip link add bt0 type veth peer name bt1");
    if probe.code() != 0 {
        note("not checked: no veth network interfaces can be made here");
        return None;
    }
    let (runtime, root, bundle) = (runtime(), b.root.display(), b.path().display());
    let runtime = runtime.display();
    let id = &b.id;
    Some(host_run(&format!(
        "set -e\n{before}\nset +e\n{runtime} --root {root} run --bundle {bundle} {id}; status=$?\n{after}\nexit $status"
    )))
}

fn host_run(script: &str) -> Finished {
    brig_tests::Run::new("unshare").args(["--net", "sh", "-c", script]).run()
}

#[test]
fn an_interface_keeps_what_it_has() {
    if fails_before_runc((1, 4), "knows no netDevices") || brig_tests::is_other_runtime() {
        return;
    }
    let mut b = Bundle::sh("ip addr show dev bt0; ip -6 addr show dev bt0; ip route; ip link show bt0");
    b.config["linux"]["netDevices"] = json!({ "bt0": {} });
    let Some(finished) = in_network(&b, SETUP, "ip link show bt0") else { return };
    finished.exits(0);
    for text in [
        "mtu 1400",
        "02:00:00:00:00:07",
        "inet 192.0.2.1/24",
        "2001:db8::1/64",
        ",UP",
        "203.0.113.0/24 via 192.0.2.9 dev bt0",
        "198.51.100.0/24 dev bt0 scope link",
        "192.0.2.0/24 dev bt0",
    ] {
        assert!(finished.out.contains(text), "{text}: {finished}");
    }
    // Only global addresses go along, and the interface is no longer on the host.
    assert!(!finished.out.contains("198.51.100.1/32"), "{finished}");
    assert!(finished.err.contains("bt0"), "{finished}");
    b.assert_gone();
}

#[test]
fn an_interface_gets_another_name() {
    if fails_before_runc((1, 4), "knows no netDevices") {
        return;
    }
    let mut b = Bundle::sh("ls /sys/class/net; ip addr show dev data0");
    b.config["linux"]["netDevices"] = json!({ "bt0": { "name": "data0" } });
    let Some(finished) = in_network(&b, SETUP, "") else { return };
    finished.exits(0);
    assert!(finished.out.starts_with("data0\nlo\n"), "{finished}");
    assert!(finished.out.contains("inet 192.0.2.1/24"), "{finished}");
}

#[test]
fn the_kernel_completes_a_template() {
    if fails_before_runc((1, 4), "knows no netDevices") || brig_tests::is_other_runtime() {
        return;
    }
    let mut b = Bundle::new(&["ls", "/sys/class/net"]);
    b.config["linux"]["netDevices"] = json!({ "bt0": { "name": "net%d" }, "bt1": { "name": "net%d" } });
    let Some(finished) = in_network(&b, SETUP, "") else { return };
    finished.exits(0);
    assert_eq!(finished.out, "lo\nnet0\nnet1\n");
}

#[test]
fn an_interface_in_a_user_namespace() {
    if fails_before_runc((1, 4), "knows no netDevices") {
        return;
    }
    let mut b = Bundle::new(&["ip", "addr", "show", "dev", "data0"]);
    b.in_user_namespace();
    b.config["linux"]["netDevices"] = json!({ "bt0": { "name": "data0" } });
    let Some(finished) = in_network(&b, SETUP, "") else { return };
    finished.exits(0);
    assert!(finished.out.contains("inet 192.0.2.1/24"), "{finished}");
}

#[test]
fn a_missing_interface_is_named_before_anything_is_made() {
    if fails_before_runc((1, 4), "knows no netDevices") || brig_tests::is_other_runtime() {
        return;
    }
    let mut b = Bundle::default();
    b.config["linux"]["netDevices"] = json!({ "no-such-link": {} });
    b.run().run().exits(1).says("linux.netDevices[\"no-such-link\"]").says("no such device");
    b.assert_gone();
}

#[test]
fn after_a_failure_the_interface_is_back_with_what_it_had() {
    if brig_tests::is_other_runtime() {
        return note("not run against another runtime: it leaves the interface in a namespace that is gone");
    }
    let mut b = Bundle::new(&["/no/such/program"]);
    b.config["linux"]["netDevices"] = json!({ "bt0": { "name": "data0" } });
    let Some(finished) = in_network(&b, SETUP, "ip addr show dev bt0; ip route") else { return };
    finished.exits(1).says("/no/such/program");
    for text in ["inet 192.0.2.1/24", "2001:db8::1/64", "mtu 1400", "203.0.113.0/24 via 192.0.2.9 dev bt0"] {
        assert!(finished.out.contains(text), "{text}: {finished}");
    }
    b.assert_gone();
}

#[test]
fn a_name_that_is_taken() {
    if fails_before_runc((1, 4), "knows no netDevices") || brig_tests::is_other_runtime() {
        return;
    }
    let inside = brig_tests::Run::new("unshare")
        .args(["--net", "sh", "-c", "ip link add bt0 type veth peer name bt9 && exec sleep 1000"])
        .spawn();
    let ns = format!("/proc/{}/ns/net", inside.pid());
    host::eventually("the namespace", || {
        let words = fs::read_to_string(format!("/proc/{}/cmdline", inside.pid())).unwrap_or_default();
        words.starts_with("sleep")
    });
    let mut b = Bundle::default();
    b.with_namespace("network", Some(&ns));
    b.config["linux"]["netDevices"] = json!({ "bt0": {} });
    let Some(finished) = in_network(&b, SETUP, "ip addr show dev bt0") else { return };
    finished.exits(1).says("linux.netDevices[\"bt0\"]").says("file exists");
    assert!(finished.out.contains("192.0.2.1/24"), "{finished}");
    b.assert_gone();
}
