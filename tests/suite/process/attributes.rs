//! Limits, capabilities, names, scheduling.

use super::*;

#[test]
fn limits() {
    let mut b = Bundle::sh("grep -E 'open files|core file|pending signals' /proc/self/limits");
    b.config["process"]["rlimits"] = json!([
        { "type": "RLIMIT_NOFILE", "soft": 100, "hard": 200 },
        { "type": "RLIMIT_CORE", "soft": 0, "hard": 4096 },
        { "type": "RLIMIT_SIGPENDING", "soft": 7, "hard": 7 },
    ]);
    let out = b.run().ok().out;
    let lines: Vec<Vec<&str>> =
        out.lines().map(|line| line[26..].split_whitespace().take(2).collect()).collect();
    assert_eq!(lines, [["0", "4096"], ["100", "200"], ["7", "7"]]);
}

#[test]
fn limits_that_do_not_exist() {
    let mut b = Bundle::default();
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_FROB", "soft": 1, "hard": 1 }]);
    b.run().run().exits(1).says("RLIMIT_FROB");
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NOFILE", "soft": 100, "hard": 10 }]);
    b.run().run().exits(1);
    b.assert_gone();
}

#[test]
fn five_sets_of_capabilities() {
    let mut b = Bundle::sh("grep ^Cap /proc/self/status");
    b.config["process"]["capabilities"] = json!({
        "bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW", "CAP_SYS_CHROOT"],
        "permitted": ["CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW"],
        "effective": ["CAP_CHOWN", "CAP_KILL"],
        "inheritable": ["CAP_NET_RAW"],
        "ambient": ["CAP_NET_RAW"],
    });
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    // Not root: after the execve only what is ambient is left, and the bounding and inheritable sets.
    let out = b.run().ok().out;
    let sets: Vec<u64> = out
        .lines()
        .map(|line| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap())
        .collect();
    let (chown, kill, raw, chroot) = (1, 1 << 5, 1 << 13, 1 << 18);
    // Inheritable, permitted, effective, bounding, ambient.
    assert_eq!(sets, [raw, raw, raw, chown | kill | raw | chroot, raw]);
}

#[test]
fn capabilities_of_root() {
    let mut b = Bundle::sh("grep ^Cap /proc/self/status");
    // An execve by root gives it all of the bounding set.
    let out = b.run().ok().out;
    let sets: Vec<&str> = out.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    let default = format!("{:016x}", (1_u64 << 29) | (1 << 5) | (1 << 10));
    let none = format!("{:016x}", 0);
    assert_eq!(sets, [&none, &default, &default, &default, &none]);
    b.config["process"]["capabilities"] = json!({});
    let out = b.run().ok().out;
    assert!(out.lines().all(|line| line.ends_with(&none)), "{out}");
}

#[test]
fn without_capabilities_in_the_config_there_are_none() {
    if fails_before_runc((1, 2), "does it right") {
        return;
    }
    let mut b = Bundle::sh("grep ^CapEff /proc/self/status");
    b.config["process"].as_object_mut().unwrap().remove("capabilities");
    better_than_runc("keeps those of the caller since 1.2", move || {
        assert!(b.run().ok().line().ends_with("0000000000000000"));
    });
}

#[test]
fn unknown_capabilities_are_let_pass() {
    let mut b = Bundle::default();
    b.config["process"]["capabilities"]["bounding"] = json!(["CAP_KILL", "CAP_FROB"]);
    b.run().ok();
}

#[test]
fn no_new_privileges() {
    let mut b = Bundle::default();
    assert_eq!(status(&mut b, "NoNewPrivs"), "1");
    b.config["process"]["noNewPrivileges"] = false.into();
    assert_eq!(status(&mut b, "NoNewPrivs"), "0");
}

#[test]
fn oom_score() {
    let mut b = Bundle::new(&["cat", "/proc/self/oom_score_adj"]);
    b.config["process"]["oomScoreAdj"] = 321.into();
    assert_eq!(b.run().ok().line(), "321");
    b.config["process"].as_object_mut().unwrap().remove("oomScoreAdj");
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(b.run().ok().line(), own.trim_end());
}

#[test]
fn a_session_keyring_of_its_own() {
    let mut b = Bundle::new(&["cat", "/proc/keys"]);
    b.config["linux"]["maskedPaths"] = json!([]);
    let out = b.run().run();
    if out.err.contains("No such file") {
        return note("not checked: this kernel has no /proc/keys");
    }
    assert!(out.out.contains(&format!("_ses.{}", b.id)), "{out}");
    // Rings die some time after their container: this one has to have another name.
    b.id.push_str("-shared");
    let shared = b.brig("run").args(["--no-new-keyring", &b.id]).run();
    assert!(!shared.out.contains(&format!("_ses.{}", b.id)), "{shared}");
}

#[test]
fn personality() {
    since_runc((1, 2), "personality", || {
        let mut b = Bundle::new(&["uname", "-m"]);
        let native = b.run().ok().out;
        b.config["linux"]["personality"] = json!({ "domain": "LINUX32" });
        let other = b.run().ok().out;
        if cfg!(target_arch = "x86_64") {
            assert_eq!((native.trim(), other.trim()), ("x86_64", "i686"));
        } else {
            assert_ne!(native, other);
        }
        b.config["linux"]["personality"] = json!({ "domain": "VMS" });
        b.run().run().exits(1).says("invalid personality domain");
    });
}

#[test]
fn host_and_domain_name() {
    let mut b = Bundle::sh("hostname; cat /proc/sys/kernel/domainname");
    b.config["hostname"] = "some.name".into();
    let before = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    since_runc((1, 2), "domainname", || {
        b.config["domainname"] = "some.domain".into();
        assert_eq!(b.run().ok().out, "some.name\nsome.domain\n");
    });
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), before);
    b.without_namespace("uts");
    b.config.as_object_mut().unwrap().remove("domainname");
    b.run().run().exits(1).says("unable to set hostname without a private UTS namespace");
}

#[test]
fn scheduler() {
    since_runc((1, 2), "process.scheduler", || {
        let mut b = Bundle::sh("cut -d' ' -f41,19 /proc/self/stat");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "nice": 7 });
        // nice, and the number of SCHED_BATCH.
        assert_eq!(b.run().ok().line(), "7 3");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "nice": 77 });
        b.run().run().exits(1).says("invalid scheduler.nice");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "priority": 3 });
        b.run().run().exits(1).says("scheduler.priority can only be specified for");
        b.config["process"]["scheduler"] = json!({ "policy": "SCHED_FROB" });
        b.run().run().exits(1).says("SCHED_FROB");
    });
}

#[test]
fn io_priority() {
    since_runc((1, 2), "process.ioPriority", || {
        let mut b = Bundle::sh("ionice -p $$");
        b.config["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 6 });
        assert_eq!(b.run().ok().line(), "best-effort: prio 6");
        b.config["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 8 });
        b.run().run().exits(1).says("invalid ioPriority.Priority");
        b.config["process"]["ioPriority"] = json!({ "class": "FROB", "priority": 1 });
        b.run().run().exits(1).says("invalid ioPriority.Class");
    });
}

#[test]
fn an_lsm_that_is_not_there_is_an_error() {
    let lsm = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    let mut b = Bundle::default();
    if lsm.contains("apparmor") {
        note("not checked: this host has AppArmor");
    } else {
        b.config["process"]["apparmorProfile"] = "frob".into();
        b.run().run().exits(1).says("apparmor");
        b.assert_gone();
    }
    if lsm.contains("selinux") {
        return note("not checked: this host has SELinux");
    }
    b.config["process"].as_object_mut().unwrap().remove("apparmorProfile");
    b.config["process"]["selinuxLabel"] = "system_u:system_r:container_t:s0".into();
    let finished = b.run().run();
    finished.exits(1);
    finished.says("selinux label is specified in config, but selinux is disabled or not supported");
    b.assert_gone();
}
