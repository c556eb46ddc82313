//! Users, groups and the environment.

use super::*;

#[test]
fn user_and_groups() {
    let mut b = Bundle::sh("grep -E '^(Uid|Gid|Groups):' /proc/self/status");
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 2000, "additionalGids": [3000, 4000] });
    let out = b.run().ok().out;
    assert_eq!(
        out.split_whitespace().collect::<Vec<_>>().join(" "),
        "Uid: 1000 1000 1000 1000 Gid: 2000 2000 2000 2000 Groups: 3000 4000"
    );
}

#[test]
fn the_callers_groups_are_dropped() {
    let mut b = Bundle::default();
    b.write_config();
    b.args(&["grep", "^Groups:", "/proc/self/status"]);
    let with_groups = Run::new("setpriv").args(["--groups", "12345,54321"]).arg(runtime());
    b.write_config();
    let run = with_groups.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
    assert_eq!(run.arg(&b.id).ok().out.trim(), "Groups:");
}

#[test]
fn umask() {
    let mut b = Bundle::sh("umask");
    assert_eq!(b.run().ok().line(), "0022");
    b.config["process"]["user"]["umask"] = 0o77.into();
    assert_eq!(b.run().ok().line(), "0077");
}

/// Case 10: runc 4688, 4693, crun OCPBUGS-45016.
#[test]
fn home_comes_from_the_containers_passwd() {
    let mut b = Bundle::sh("echo $HOME");
    b.config["process"]["user"] = json!({ "uid": 4242, "gid": 0 });
    fs::write(b.rootfs().join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nc:x:4242:4242::/home/c:/bin/sh\n")
        .unwrap();
    assert_eq!(b.run().ok().out, "/home/c\n");
    b.config["process"]["user"] = json!({ "uid": 4243, "gid": 0 });
    assert_eq!(b.run().ok().out, "/\n", "without an entry");
    fs::remove_file(b.rootfs().join("etc/passwd")).unwrap();
    assert_eq!(b.run().ok().out, "/\n", "without a file");
    b.config["process"]["env"] = json!(["PATH=/bin", "HOME=/given"]);
    assert_eq!(b.run().ok().out, "/given\n");
}

#[test]
fn a_passwd_that_leads_out_is_not_followed() {
    let mut b = Bundle::sh("echo $HOME");
    b.config["process"]["user"] = json!({ "uid": 4242, "gid": 0 });
    let outside = tempfile::tempdir_in("/tmp").unwrap();
    let victim = outside.path().join("passwd");
    fs::write(&victim, "c:x:4242:4242::/outside:/bin/sh\n").unwrap();
    let inside = b.rootfs().join("etc/passwd");
    fs::remove_file(&inside).unwrap();
    symlink(&victim, &inside).unwrap();
    assert_eq!(b.run().ok().out, "/\n");
    fs::remove_file(&inside).unwrap();
    Run::new("mkfifo").arg(&inside).ok();
    // Neither may a fifo without a writer hold it up.
    better_than_runc("opens whatever is there", move || {
        let run = b.run().limit(std::time::Duration::from_secs(10)).run();
        assert_eq!(run.out, "/\n");
    });
}

/// Case 11: runc 4711.
#[test]
fn the_last_of_equal_variables_wins_and_an_empty_home_is_none() {
    let mut b = Bundle::new(&["/bin/env"]);
    let mut env = |list: &[&str]| {
        b.config["process"]["env"] = json!(list);
        let mut lines: Vec<String> = b.run().ok().out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(env(&["A=1", "B=2", "A=3", "HOME=/h"]), ["A=3", "B=2", "HOME=/h"]);
    assert_eq!(env(&["HOME=/a", "HOME=/b"]), ["HOME=/b"]);
    since_runc((1, 3), "an empty HOME is replaced", || {
        assert_eq!(env(&["HOME=", "HOME="]), ["HOME=/root"]);
        assert_eq!(env(&["HOME="]), ["HOME=/root"]);
    });
}

/// Case 11, the value with a newline.
#[test]
fn a_newline_in_a_variable_is_kept() {
    let mut b = Bundle::sh("echo \"$A\"");
    b.config["process"]["env"] = json!(["PATH=/bin", "A=one\ntwo", "EMPTY="]);
    assert_eq!(b.run().ok().out, "one\ntwo\n");
}

#[test]
fn the_environment_is_that_of_the_config() {
    let mut b = Bundle::new(&["/bin/env"]);
    b.config["process"]["env"] = json!(["HOME=/x", "ONLY=this"]);
    let out = b.run().env("LEAKED", "no").ok().out;
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["HOME=/x", "ONLY=this"]);
}

#[test]
fn variables_that_are_none() {
    since_runc((1, 3), "a check of the environment", || {
        let mut b = Bundle::default();
        for entry in ["NOVALUE", "=x"] {
            b.config["process"]["env"] = json!(["PATH=/bin", entry]);
            b.run().run().exits(1).says("invalid environment variable");
            b.assert_gone();
        }
    });
}
