//! The command line: parser, help, version, exit codes.

use brig_tests::{Bundle, Finished, Run, Value, host, only_brig, runtime, since_runc};

fn run(args: &[&str]) -> Finished {
    Run::new(runtime()).args(args).run()
}

fn program() -> String {
    runtime().file_name().unwrap().to_string_lossy().into_owned()
}

/// Expects a help text for this command on standard output, and success.
#[track_caller]
fn is_help(finished: &Finished, command: &str) {
    finished.exits(0);
    let mut lines = finished.out.lines();
    assert_eq!(lines.next(), Some("NAME:"), "{finished}");
    let title = format!("   {} {command}", program());
    let second = lines.next().unwrap();
    assert!(second.starts_with(title.trim_end()), "{second}");
    assert!(second.contains(" - "), "{second}");
    assert_eq!(finished.err, "");
}

#[test]
fn no_arguments_print_the_help() {
    is_help(&run(&[]), "");
}

#[test]
fn help_has_four_forms() {
    for form in ["help", "h", "--help", "-h", "-help"] {
        is_help(&run(&[form]), "");
    }
}

#[test]
fn every_command_has_help() {
    let commands = [
        "create", "run", "start", "exec", "kill", "delete", "list", "ps", "pause", "resume", "state",
        "update", "events", "spec", "features",
    ];
    let top = run(&["--help"]).out;
    for command in commands {
        is_help(&run(&[command, "--help"]), command);
        is_help(&run(&[command, "-h"]), command);
        is_help(&run(&["help", command]), command);
        let listed = top.lines().any(|line| line.trim_start().starts_with(command));
        assert!(listed, "{command} is not in {top}");
    }
}

#[test]
fn checkpoint_has_help() {
    // So clients find out whether there is such a command.
    is_help(&run(&["checkpoint", "--help"]), "checkpoint");
}

#[test]
fn the_internal_command_is_not_in_the_help() {
    let top = run(&["--help"]).out;
    assert!(!top.lines().any(|line| line.trim_start().starts_with("init")), "{top}");
}

#[test]
fn help_shows_flags_with_their_defaults() {
    let help = run(&["events", "--help"]).out;
    assert!(help.contains("--interval"), "{help}");
    assert!(help.contains("5s"), "{help}");
}

#[test]
fn unknown_command() {
    let finished = run(&["frobnicate"]);
    finished.exits(3);
    assert_eq!(finished.out, "");
    assert!(finished.err.contains("No help topic for 'frobnicate'"), "{finished}");
}

#[test]
fn unknown_flag() {
    for args in [&["--frobnicate", "list"][..], &["list", "--frobnicate"]] {
        let finished = run(args);
        finished.exits(1);
        assert!(finished.out.contains("NAME:"), "{finished}");
        finished.says("Incorrect Usage").says("flag provided but not defined: -frobnicate");
    }
}

#[test]
fn a_flag_without_its_value() {
    // The first is how podman finds out what a runtime can do.
    for flag in [&["restore", "--lsm-mount-context"][..], &["create", "--bundle"], &["create", "-b"]] {
        let finished = run(flag);
        finished.exits(1);
        finished.says("flag needs an argument: -");
        finished.says(flag[1]);
    }
}

#[test]
fn a_value_that_does_not_fit() {
    let finished = run(&["create", "--preserve-fds", "x", "c"]);
    finished.exits(1).says("invalid value \"x\" for flag -preserve-fds");
    let finished = run(&["run", "--detach=maybe", "c"]);
    finished.exits(1).says("\"maybe\" for");
    let finished = run(&["events", "--interval", "7", "c"]);
    finished.exits(1).says("invalid value \"7\" for flag -interval");
}

#[test]
fn the_number_of_operands() {
    for (args, needs) in [
        (&["state"][..], "requires exactly 1 argument"),
        (&["state", "a", "b"], "requires exactly 1 argument"),
        (&["create", "a", "b"], "requires exactly 1 argument"),
        (&["delete"], "requires exactly 1 argument"),
        (&["list", "a"], "requires exactly 0 argument"),
        (&["kill"], "a minimum of 1 argument"),
        (&["ps"], "a minimum of 1 argument"),
        (&["exec"], "a minimum of 1 argument"),
    ] {
        let finished = run(args);
        finished.exits(1);
        assert!(finished.out.starts_with("Incorrect Usage."), "{finished}");
        finished.says(args[0]);
        assert!(finished.err.contains(needs), "{finished}");
    }
}

#[test]
fn one_dash_is_as_good_as_two() {
    let b = Bundle::sh("exit 3");
    for dashes in ["-bundle", "--bundle", "-b", "--b"] {
        let run = b.runtime().arg("run").arg(dashes).arg(b.path()).arg(&b.id);
        run.run().exits(3);
    }
    for dashes in ["-quiet", "--quiet", "-q", "--q"] {
        b.runtime().args(["list", dashes]).ok();
    }
}

#[test]
fn values_stand_after_an_equals_sign_or_a_blank() {
    let b = Bundle::sh("exit 3");
    let bundle = b.path().display();
    for flag in [format!("--bundle={bundle}"), format!("-b={bundle}")] {
        b.runtime().args(["run", &flag, &b.id]).run().exits(3);
    }
}

#[test]
fn switches_take_a_value_only_after_an_equals_sign() {
    let b = Bundle::sh("exit 3");
    for off in ["--detach=false", "-d=0", "--detach=F", "-d=FALSE", "--d=f"] {
        b.brig("run").args([off, &b.id]).run().exits(3);
    }
    for on in ["--force", "--force=true", "-f=1", "-f=T"] {
        b.runtime().args(["delete", on, "nobody"]).ok();
    }
    // The next word is the container's id.
    b.runtime().args(["delete", "--force", "true"]).ok();
}

#[test]
fn short_flags_are_not_bundled_and_have_no_glued_values() {
    run(&["exec", "-td", "c", "true"]).exits(1).says("flag provided but not defined: -td");
    run(&["list", "-fjson"]).exits(1).says("flag provided but not defined: -fjson");
    let b = Bundle::default();
    std::fs::create_dir(&b.root).unwrap();
    b.runtime().args(["list", "-f=json"]).ok();
    b.runtime().args(["list", "-f", "json"]).ok();
}

#[test]
fn long_flags_are_not_abbreviated() {
    run(&["list", "--form", "json"]).exits(1).says("flag provided but not defined: -form");
}

#[test]
fn the_last_of_two_values_wins() {
    let b = Bundle::sh("exit 3");
    let run = b.runtime().args(["run", "--bundle", "/nowhere", "--bundle"]);
    run.arg(b.path()).arg(&b.id).run().exits(3);
    // conmon-rs passes global flags twice.
    let twice = Run::new(runtime()).arg("--root").arg(b.path().join("no")).arg("--root").arg(&b.root);
    twice.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).run().exits(3);
}

#[test]
fn flags_that_repeat_add_up_and_commas_are_not_split() {
    let b = Bundle::sleeping();
    b.start();
    let exec = b.brig("exec").args(["-e", "A=1,B=2", "-e", "C=3", &b.id]);
    let out = exec.args(["sh", "-c", "echo \"$A|$B|$C\""]).ok().out;
    assert_eq!(out, "1,B=2||3\n");
}

#[test]
fn two_dashes_end_the_flags() {
    let b = Bundle::sleeping();
    b.start();
    since_runc((1, 2), "-- after the container", || {
        let out = b.exec(&["--", "echo", "-e", "x"]).ok().out;
        assert_eq!(out, "x\n");
    });
    let out = b.brig("exec").args(["--", &b.id, "echo", "y"]).ok().out;
    assert_eq!(out, "y\n");
    b.brig("delete").args(["--force", "--", &b.id]).ok();
}

#[test]
fn flags_may_follow_the_operand() {
    let b = Bundle::sleeping();
    let run = b.runtime().args(["run", &b.id, "--detach", "--bundle"]).arg(b.path());
    run.detached().ok();
    b.brig("delete").args([&b.id, "--force"]).ok();
    b.assert_gone();
}

#[test]
fn exec_kill_and_ps_pass_on_what_follows_the_container() {
    let b = Bundle::sleeping();
    b.start();
    let out = b.exec(&["ls", "-d", "--", "/etc"]).ok().out;
    assert_eq!(out, "/etc\n");
    let table = b.brig("ps").args([&b.id, "-o", "pid,comm"]).ok().out;
    assert_eq!(table.split_whitespace().collect::<Vec<_>>()[..2], ["PID", "COMMAND"]);
    b.brig("kill").args([&b.id, "-9"]).run().says("invalid argument");
    b.brig("kill").args([&b.id, "9"]).ok();
}

#[test]
fn global_flags_are_also_taken_after_the_command() {
    only_brig("runc takes them only before the command", || {
        let b = Bundle::sh("exit 3");
        b.write_config();
        let run = Run::new(runtime()).arg("run").arg("--root").arg(&b.root);
        run.arg("--bundle").arg(b.path()).arg(&b.id).run().exits(3);
        assert!(b.root.exists());
    });
}

#[test]
fn version() {
    for flag in ["--version", "-v"] {
        let finished = run(&[flag]);
        finished.exits(0);
        assert_eq!(finished.err, "");
        let mut lines = finished.out.lines();
        let first = lines.next().unwrap();
        let number = first.strip_prefix("runc version ").expect(first);
        let numbers: Vec<&str> = number.split(['-', '+']).next().unwrap().split('.').collect();
        assert_eq!(numbers.len(), 3, "{first}");
        assert!(numbers.iter().all(|n| n.parse::<u32>().is_ok()), "{first}");
        let rest: Vec<&str> = lines.collect();
        // moby takes the last line with this word.
        assert!(!rest.iter().any(|line| line.contains("version")), "{finished}");
        assert!(rest.iter().any(|line| line.starts_with("spec: 1.")), "{finished}");
    }
}

#[test]
fn features() {
    since_runc((1, 2), "features as they are today", || {
        let finished = run(&["features"]);
        finished.exits(0);
        assert_eq!(finished.err, "");
        assert!(finished.out.ends_with("}\n") && finished.out.contains("\n    \""), "{finished}");
        let features: Value = serde_json::from_str(&finished.out).unwrap();
        assert_eq!(features["ociVersionMin"], "1.0.0");
        let hooks =
            ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];
        assert_eq!(features["hooks"], serde_json::json!(hooks));
        let has = |list: &Value, word: &str| list.as_array().unwrap().iter().any(|w| w == word);
        for option in ["rro", "rbind", "tmpcopyup", "nosymfollow", "rslave"] {
            assert!(has(&features["mountOptions"], option), "{option}");
        }
        let linux = &features["linux"];
        assert!(has(&linux["namespaces"], "time"));
        assert!(has(&linux["capabilities"], "CAP_CHECKPOINT_RESTORE"));
        assert!(has(&linux["seccomp"]["actions"], "SCMP_ACT_NOTIFY"));
        assert_eq!(linux["mountExtensions"]["idmap"]["enabled"], true);
        assert_eq!(linux["cgroup"]["v1"], true);
        assert_eq!(linux["cgroup"]["v2"], true);
    });
}

/// What `spec` wrote, in a directory of its own.
fn spec(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let finished = Run::new(runtime()).arg("spec").args(args).dir(dir.path()).ok();
    assert_eq!(finished.both(), "");
    let text = std::fs::read_to_string(dir.path().join("config.json")).unwrap();
    assert!(text.starts_with("{\n\t\"ociVersion\""), "{text}");
    assert!(text.ends_with('}'), "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn spec_writes_a_config() {
    let spec = spec(&[]);
    assert_eq!(spec["process"]["terminal"], true);
    assert_eq!(spec["process"]["args"], serde_json::json!(["sh"]));
    assert_eq!(spec["process"]["cwd"], "/");
    assert_eq!(spec["root"], serde_json::json!({ "path": "rootfs", "readonly": true }));
    assert_eq!(spec["hostname"], "runc");
    let targets: Vec<&str> =
        spec["mounts"].as_array().unwrap().iter().map(|m| m["destination"].as_str().unwrap()).collect();
    let all = ["/proc", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/sys", "/sys/fs/cgroup"];
    assert_eq!(targets, all);
    let namespaces: Vec<&str> = spec["linux"]["namespaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ns| ns["type"].as_str().unwrap())
        .collect();
    let mut expected = vec!["pid", "network", "ipc", "uts", "mount"];
    if host::is_cgroup_v2() {
        expected.push("cgroup");
    }
    assert_eq!(namespaces, expected);
}

#[test]
fn spec_for_the_rootless() {
    let spec = spec(&["--rootless"]);
    let linux = &spec["linux"];
    let has = |kind: &str| linux["namespaces"].as_array().unwrap().iter().any(|ns| ns["type"] == kind);
    assert!(has("user") && !has("network"), "{linux}");
    assert_eq!(linux["uidMappings"][0]["size"], 1);
    assert!(linux["resources"].is_null() || linux["resources"] == serde_json::json!({}), "{linux}");
    let sys = spec["mounts"].as_array().unwrap().iter().find(|m| m["destination"] == "/sys").unwrap();
    assert!(sys["options"].as_array().unwrap().iter().any(|o| o == "rbind"), "{sys}");
}

#[test]
fn spec_does_not_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), "mine").unwrap();
    let finished = Run::new(runtime()).arg("spec").arg("--bundle").arg(dir.path()).fails();
    finished.exits(1).says("exists. Remove it first");
    assert_eq!(std::fs::read_to_string(dir.path().join("config.json")).unwrap(), "mine");
}

#[test]
fn what_spec_writes_can_be_run() {
    let mut b = Bundle::default();
    let cgroup = b.cgroups_path();
    b.config = spec(&[]);
    b.config["process"]["terminal"] = false.into();
    b.config["linux"]["cgroupsPath"] = cgroup.into();
    b.args(&["sh", "-c", "hostname; id -u; touch /x || exit 4"]);
    let finished = b.run().run();
    finished.exits(4).says("Read-only file system");
    assert_eq!(finished.out, "runc\n0\n");
}

#[test]
fn path_and_home_may_be_missing() {
    let b = Bundle::sleeping();
    b.create();
    for args in [&["start"][..], &["pause"], &["resume"], &["state"], &["kill"], &["delete", "--force"]] {
        b.runtime().args(args).arg(&b.id).no_env().ok();
    }
    b.assert_gone();
}

#[test]
fn the_root_cannot_be_the_hosts() {
    since_runc((1, 2), "a check of the root", || {
        for root in ["/", "/..", "//"] {
            run(&["--root", root, "list"]).exits(1).says("Option --root argument should not be set to /");
        }
    });
}

#[test]
fn a_root_that_is_given_has_to_be_there_for_list() {
    since_runc((1, 2), "a root that is not made by every command", || {
        let b = Bundle::default();
        let finished = b.runtime().arg("list").run();
        finished.exits(1).says("/state: no such file or directory");
        assert!(!b.root.exists());
    });
}

#[test]
fn the_default_root_need_not_be_there() {
    // An empty /run, in a mount namespace of its own.
    let script = "mount -t tmpfs none /run && exec \"$@\"";
    let list = Run::new("unshare").args(["--mount", "sh", "-c", script, "sh"]);
    let finished = list.arg(runtime()).arg("list").ok();
    assert!(finished.out.starts_with("ID "), "{finished}");
    assert_eq!(finished.err, "");
}

#[test]
fn users_have_their_root_in_xdg_runtime_dir() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    std::os::unix::fs::chown(dir.path(), Some(1000), Some(1000)).unwrap();
    // The runtime itself may lie where others cannot get at it.
    let copy = dir.path().join("runtime");
    std::fs::copy(runtime(), &copy).unwrap();
    let list = || Run::new(&copy).arg("list").uid(1000, 1000).env("XDG_RUNTIME_DIR", dir.path());
    list().ok();
    let mode = dir.path().join("runc").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o1700);
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let finished = list().env("XDG_RUNTIME_DIR", &closed).fails();
    finished.says("the path in $XDG_RUNTIME_DIR must be writable by the user");
}

#[test]
fn ids_are_checked_by_every_command() {
    let b = Bundle::default();
    let commands = [
        &["state"][..],
        &["kill"],
        &["start"],
        &["delete"],
        &["pause"],
        &["resume"],
        &["ps"],
        &["update"],
        &["events", "--stats"],
        &["exec"],
    ];
    for command in commands {
        for id in ["../x", "a/b", "a b", "a:b", "ü"] {
            let rest: &[&str] = if command[0] == "exec" { &["true"] } else { &[] };
            let args = [command, &[id], rest].concat();
            b.runtime().args(args).fails().says("invalid container ID format");
        }
    }
}

#[test]
fn ids_are_checked_by_create() {
    let b = Bundle::default();
    for id in ["../x", "a/b", ".", "..", "a b", "a%"] {
        b.brig("create").arg(id).run().exits(1).says("invalid container ID format");
    }
    b.brig("create").arg("").run().exits(1).says("cannot be empty");
}

#[test]
fn commands_on_what_does_not_exist() {
    let b = Bundle::default();
    for command in [
        &["state"][..],
        &["kill"],
        &["start"],
        &["delete"],
        &["pause"],
        &["resume"],
        &["ps"],
        &["update"],
        &["events", "--stats"],
    ] {
        let finished = b.runtime().args(command).arg("nobody").run();
        finished.exits(1).says("container does not exist");
        assert_eq!(finished.out, "", "{finished}");
    }
    let exec = b.runtime().args(["exec", "nobody", "true"]).run();
    exec.exits(255).says("container does not exist");
}

#[test]
fn rootless_is_true_false_or_auto() {
    let b = Bundle::default();
    let run = |value: &str| {
        let run = Run::new(runtime()).arg("--rootless").arg(value).arg("--root").arg(&b.root);
        run.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).run()
    };
    b.write_config();
    run("maybe").exits(1).says("invalid syntax");
    for value in ["auto", "false", "true", "0"] {
        run(value).exits(0);
    }
}

#[test]
fn the_systemd_driver_needs_systemd() {
    if std::path::Path::new("/run/systemd/system").is_dir() {
        return brig_tests::note("not checked: this host runs systemd");
    }
    let mut b = Bundle::default();
    b.config["linux"]["cgroupsPath"] = "system.slice:brig:test".into();
    b.write_config();
    let run = Run::new(runtime()).arg("--systemd-cgroup").arg("--root").arg(&b.root);
    let finished = run.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).run();
    finished.exits(1);
    finished.says("systemd not running on this host, cannot use systemd cgroups manager");
    b.assert_gone();
}

#[test]
fn flags_of_other_times_and_runtimes_are_taken() {
    only_brig("flags of other versions and of crun", || {
        let b = Bundle::sh("exit 3");
        b.write_config();
        let run = Run::new(runtime()).args(["--criu", "/usr/sbin/criu", "--cgroup-manager=cgroupfs"]);
        let run = run.arg("--root").arg(&b.root).arg("run").arg("--bundle").arg(b.path());
        run.arg(&b.id).run().exits(3);
    });
}
