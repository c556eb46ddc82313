//! Annotations that change what a runtime does: crun's, and those that are refused.

use std::fs;

use brig_tests::{Bundle, Run, Socket, better_than_runc, is_other_runtime, json, note, runtime};

fn with(b: &mut Bundle, key: &str, value: &str) {
    b.config["annotations"] = json!({ key: value });
}

#[test]
fn the_callers_groups_stay() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::sh("id -G; exec sleep 1000");
    with(&mut b, "run.oci.keep_original_groups", "1");
    b.write_config();
    let caller = |b: &Bundle, command: &str| {
        let run = Run::new("setpriv").args(["--groups", "7,8"]).arg(runtime());
        run.arg("--root").arg(&b.root).arg(command)
    };
    caller(&b, "create").arg("--bundle").arg(b.path()).arg(&b.id).detached().ok();
    b.brig("start").arg(&b.id).ok();
    assert_eq!(caller(&b, "exec").arg(&b.id).args(["id", "-G"]).ok().line(), "0 7 8");
    let status = fs::read_to_string(format!("/proc/{}/status", b.pid())).unwrap();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
    assert_eq!(groups.split_whitespace().collect::<Vec<_>>(), ["7", "8"]);
    b.delete();
    with(&mut b, "run.oci.keep_original_groups", "0");
    b.config["process"]["args"] = json!(["id", "-G"]);
    b.write_config();
    assert_eq!(caller(&b, "run").arg("--bundle").arg(b.path()).arg(&b.id).ok().line(), "0");
    with(&mut b, "run.oci.keep_original_groups", "1");
    b.config["process"]["user"]["additionalGids"] = json!([9]);
    b.run().run().exits(1).says("process.user.additionalGids");
}

#[test]
fn unknown_system_calls_can_be_an_error() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::default();
    b.config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mkdir", "frobnicate"], "action": "SCMP_ACT_ERRNO" }],
    });
    b.run().ok();
    with(&mut b, "run.oci.seccomp_fail_unknown_syscall", "1");
    b.run().run().exits(1).says("linux.seccomp.syscalls[0].names[1]").says("frobnicate");
    b.assert_gone();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_filter_that_comes_compiled() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::sh("mkdir /tmp/d || echo refused; exec sleep 1000");
    // Load the number; if it is that of mkdir(2), 83, answer EPERM, else let it through.
    let filter = "IAAAAAAAAAAVAAABUwAAAAYAAAABAAUABgAAAAAA/38=";
    with(&mut b, "run.oci.seccomp_bpf_data", filter);
    b.start();
    b.brig("exec").args([&b.id, "mkdir", "/tmp/d"]).run().exits(1).says("Operation not permitted");
    b.delete();
    with(&mut b, "run.oci.seccomp_bpf_data", "not base64!");
    b.run().run().exits(1).says("run.oci.seccomp_bpf_data").says("base64");
}

#[test]
fn an_agent_that_an_annotation_names() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::sleeping();
    let socket = Socket::new(b.path().join("agent"));
    b.config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["mkdir"], "action": "SCMP_ACT_NOTIFY" }],
    });
    b.run().run().exits(1).says("seccomp listenerPath is not set");
    with(&mut b, "run.oci.seccomp.receiver", socket.path.to_str().unwrap());
    b.start();
    let message = socket.receive();
    let told: brig_tests::Value = serde_json::from_slice(&message.data).unwrap();
    assert_eq!((told["fds"][0].as_str(), message.fds.len()), (Some("seccompFd"), 1));
    assert_eq!(told["pid"].as_i64(), Some(b.pid().into()));
}

#[test]
fn a_pidfd_goes_to_the_receiver() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::sleeping();
    let socket = Socket::new(b.path().join("receiver"));
    with(&mut b, "run.oci.pidfd_receiver", socket.path.to_str().unwrap());
    b.start();
    let message = socket.receive();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&message.fds[0]);
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
    assert!(info.contains(&format!("Pid:\t{}\n", b.pid())), "{info}");
}

#[test]
fn output_of_hooks_goes_to_files() {
    if is_other_runtime() {
        return note("crun's annotation, which runc does not know");
    }
    let mut b = Bundle::default();
    let (out, err) = (b.path().join("out"), b.path().join("err"));
    fs::write(&out, "before\n").unwrap();
    b.config["annotations"] = json!({ "run.oci.hooks.stdout": out, "run.oci.hooks.stderr": err });
    let hook = |name: &str| json!([{ "path": "/bin/sh", "args": ["sh", "-c", format!("echo {name}; echo {name} >&2")] }]);
    b.config["hooks"] = json!({
        "createRuntime": hook("createRuntime"),
        "createContainer": hook("createContainer"),
        "poststart": hook("poststart"),
        "poststop": hook("poststop"),
    });
    b.run().ok();
    let all = "createRuntime\ncreateContainer\npoststart\npoststop\n";
    assert_eq!(fs::read_to_string(&out).unwrap(), format!("before\n{all}"));
    assert_eq!(fs::read_to_string(&err).unwrap(), all);
}

#[test]
fn what_cannot_be_done_is_refused() {
    better_than_runc("it passes over what it does not know", || {
        for (key, text) in [
            ("org.criu.config", "checkpoint and restore are not supported"),
            ("run.oci.handler", "handlers are not supported"),
            ("run.oci.seccomp.plugins", "plugins are not supported"),
            ("run.oci.delegate-cgroup", "a cgroup is delegated by"),
            ("run.oci.systemd.force_cgroup_v1", "cgroups are mounted as the host has them"),
            ("run.oci.mount_context_type", "is none of context, fscontext, defcontext, rootcontext"),
        ] {
            let mut b = Bundle::default();
            with(&mut b, key, "x");
            b.run().run().exits(1).says(key).says(text);
            b.assert_gone();
        }
    });
}
