//! System call filters, as containers feel them. What every profile means is tested with the compiler.

use brig_tests::{Bundle, Socket, Value, is_other_runtime, json};

fn filtered(script: &str, seccomp: Value) -> Bundle {
    let mut b = Bundle::sh(script);
    b.config["linux"]["seccomp"] = seccomp;
    b
}

/// A filter that lets everything through but for these rules.
fn but(rules: Value) -> Value {
    json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules })
}

#[test]
fn a_call_is_denied_with_its_error() {
    let rule = |errno: Value| json!([{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno }]);
    let b = filtered("mkdir /x", but(rule(json!(95))));
    b.run().exits_with(1, "Operation not supported");
    let b = filtered("mkdir /x", but(rule(Value::Null)));
    b.run().exits_with(1, "Operation not permitted");
    let b =
        filtered("mkdir /x && rmdir /x", but(json!([{ "names": ["chroot"], "action": "SCMP_ACT_ERRNO" }])));
    b.run().ok();
}

/// Docker's profile: a list of what is allowed.
#[test]
fn the_default_action_is_for_all_that_is_not_named() {
    let docker: Value = serde_json::from_str(include_str!("check/bundles/docker-limits.json")).unwrap();
    let mut profile = docker["linux"]["seccomp"].clone();
    let b = filtered("grep ^Seccomp: /proc/self/status; unshare -m true", profile.clone());
    let finished = b.run().run();
    finished.says("Seccomp:\t2").says("Operation not permitted");
    profile["defaultErrnoRet"] = json!(95);
    let b = filtered("unshare -m true", profile);
    b.run().run().says("Operation not supported");
}

#[test]
fn arguments_decide() {
    // Signal 10 may not be sent; of the others, those with bit 1 may not be, which 12 has not.
    let when = |op: &str, value: u64, two: u64| {
        let arg = json!({ "index": 1, "value": value, "valueTwo": two, "op": op });
        but(json!([{ "names": ["kill"], "action": "SCMP_ACT_ERRNO", "args": [arg] }]))
    };
    let script = "trap : USR1 USR2; kill -USR1 $$ && echo 10; kill -USR2 $$ && echo 12; true";
    for (filter, expected) in [
        (when("SCMP_CMP_EQ", 10, 0), "12\n"),
        (when("SCMP_CMP_NE", 10, 0), "10\n"),
        (when("SCMP_CMP_GT", 10, 0), "10\n"),
        (when("SCMP_CMP_GE", 11, 0), "10\n"),
        (when("SCMP_CMP_LT", 12, 0), "12\n"),
        (when("SCMP_CMP_LE", 10, 0), "12\n"),
        (when("SCMP_CMP_MASKED_EQ", 2, 2), "12\n"),
    ] {
        let b = filtered(script, filter.clone());
        assert_eq!(b.run().ok().out, expected, "{filter}");
    }
}

#[test]
fn actions_have_their_effect() {
    let on_mkdir = |action: &str| but(json!([{ "names": ["mkdir", "mkdirat"], "action": action }]));
    for action in ["SCMP_ACT_KILL", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP"] {
        // SIGSYS is signal 31.
        let b = filtered("mkdir /x; echo $?", on_mkdir(action));
        assert_eq!(b.run().ok().line(), "159", "{action}");
    }
    for action in ["SCMP_ACT_LOG", "SCMP_ACT_ALLOW"] {
        filtered("mkdir /x", on_mkdir(action)).run().ok();
    }
    // Without a tracer the call is as good as not there.
    filtered("mkdir /x", on_mkdir("SCMP_ACT_TRACE")).run().exits_with(1, "not implemented");
}

/// The names of other architectures are skipped, and their calls are not a way around.
#[test]
fn architectures_are_added_to_the_native_one() {
    let mut filter =
        but(json!([{ "names": ["mkdir", "mkdirat", "socketcall"], "action": "SCMP_ACT_ERRNO" }]));
    let archs = if cfg!(target_arch = "x86_64") {
        json!(["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"])
    } else {
        json!(["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"])
    };
    filter["architectures"] = archs;
    filtered("mkdir /x", filter).run().exits_with(1, "Operation not permitted");
}

/// An agent gets the listener with what there is to know; when it goes away, calls that wait for it fail.
#[test]
fn an_agent_is_asked() {
    for flags in [json!([]), json!(["SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"])] {
        // Whether another runtime knows the flag depends on its libseccomp.
        if is_other_runtime() && flags != json!([]) {
            continue;
        }
        let mut b = Bundle::sh("mkdir /x");
        let agent = Socket::new(b.path().join("agent.sock"));
        b.config["annotations"] = json!({ "a": "b" });
        b.config["linux"]["seccomp"] = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "flags": flags,
            "listenerPath": agent.path,
            "listenerMetadata": "of the test",
            "syscalls": [{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY" }],
        });
        let running = b.run().spawn();
        let message = agent.receive();
        let text: Value = serde_json::from_slice(&message.data).unwrap();
        assert_eq!(text["metadata"], "of the test");
        assert_eq!(text["fds"], json!(["seccompFd"]));
        assert_eq!(text["state"]["id"], json!(b.id));
        assert_eq!(text["state"]["annotations"]["a"], "b");
        assert_eq!(message.fds.len(), 1);
        drop(message);
        running.finish().exits(1).says("not implemented");
    }
}

#[test]
fn an_agent_that_is_not_there() {
    let mut b = Bundle::sh("mkdir /x");
    b.config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "listenerPath": "/no/such.sock",
        "syscalls": [{ "names": ["mkdir"], "action": "SCMP_ACT_NOTIFY" }],
    });
    b.brig("create").arg(&b.id).exits_with(1, "/no/such.sock").says("no such file or directory");
    b.assert_gone();
}
