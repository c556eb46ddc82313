//! `delete`, by force or not, of whatever is there: see `docs/kill-safety.md`. The kill matrix has the moments between.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use brig_tests::{
    Bundle, Finished, Run, Socket, Spawned, Value, better_than_runc, host, json, note, only_brig,
    others_may_fail,
};

fn sleeping() -> Bundle {
    let b = Bundle::sleeping();
    b.start();
    b
}

fn delete(b: &Bundle) -> Finished {
    b.brig("delete").arg(&b.id).run()
}

fn delete_by_force(b: &Bundle) -> Finished {
    b.brig("delete").args(["--force", &b.id]).run()
}

fn record(b: &Bundle) -> PathBuf {
    b.root.join(&b.id).join("record.json")
}

/// A hook that says it is there and hangs.
fn hang(b: &Bundle, kind: &str) -> Value {
    let script = format!("touch {}/{kind}; exec sleep 1000", b.path().display());
    json!({ kind: [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] })
}

fn wait_for_hook(b: &Bundle, kind: &str) {
    host::eventually(kind, || b.path().join(kind).exists());
}

/// A `create` that hangs in a hook.
fn half_made(b: &mut Bundle) -> Spawned {
    b.config["hooks"] = hang(b, "createRuntime");
    let _ = fs::remove_file(b.path().join("createRuntime"));
    let create = b.brig("create").arg(&b.id).detached().spawn();
    wait_for_hook(b, "createRuntime");
    create
}

fn kill(mut command: Spawned) {
    command.child().kill().unwrap();
    command.child().wait().unwrap();
}

#[test]
fn records_that_say_nothing() {
    only_brig("the record is brig's own", || {
        for damage in ["missing", "empty", "truncated", "rubbish", "later", "older", "a directory", "a link"]
        {
            let b = sleeping();
            let (file, pid) = (record(&b), b.pid());
            let text = fs::read_to_string(&file).unwrap();
            let versioned = |version: u32| text.replace("\"version\":1,", &format!("\"version\":{version},"));
            match damage {
                "missing" => fs::remove_file(&file).unwrap(),
                "empty" => fs::write(&file, "").unwrap(),
                "truncated" => fs::write(&file, &text[..text.len() / 2]).unwrap(),
                "rubbish" => fs::write(&file, [0xff; 4096]).unwrap(),
                "later" => fs::write(&file, versioned(4711)).unwrap(),
                "older" => fs::write(&file, versioned(0)).unwrap(),
                "a directory" => {
                    fs::remove_file(&file).unwrap();
                    fs::create_dir(&file).unwrap();
                }
                _ => {
                    fs::remove_file(&file).unwrap();
                    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
                }
            }
            // Without force nothing is touched.
            assert_ne!(delete(&b).code(), 0, "{damage}");
            assert!(host::is_alive(pid), "{damage}");
            delete_by_force(&b).exits(0);
            assert!(!host::is_alive(pid), "{damage}");
            b.assert_gone();
            assert!(fs::metadata("/etc/passwd").is_ok());
            delete_by_force(&b).exits(0);
        }
    });
}

#[test]
fn a_record_of_another_user_is_not_believed() {
    only_brig("runc believes it", || {
        let b = sleeping();
        let pid = b.pid();
        chown(record(&b), Some(4711), None).unwrap();
        b.brig("state").arg(&b.id).run().exits(1).says("it belongs to user 4711");
        delete(&b).exits(1).says("it belongs to user 4711");
        assert!(host::is_alive(pid));
        // By its mark on the cgroup it is found all the same.
        delete_by_force(&b).exits(0);
        assert!(!host::is_alive(pid));
        b.assert_gone();
    });
}

#[test]
fn a_container_of_another_user_is_left_to_that_user() {
    only_brig("runc does as the record says", || {
        let b = sleeping();
        let (pid, dir) = (b.pid(), b.root.join(&b.id));
        chown(&dir, Some(4711), None).unwrap();
        for deleted in [delete(&b), delete_by_force(&b)] {
            deleted
                .exits(1)
                .says("it belongs to user 4711")
                .says("only the user who made a container may change it");
        }
        assert!(host::is_alive(pid) && record(&b).exists());
        chown(&dir, Some(0), None).unwrap();
    });
}

#[test]
fn a_directory_that_cannot_be_removed_at_first() {
    only_brig("the record is brig's own", || {
        for force in [true, false] {
            let mut b = Bundle::default();
            let poststop = b.path().join("poststop");
            let script = format!("echo x >>{}", poststop.display());
            b.config["hooks"] = json!({ "poststop": [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] });
            b.start();
            b.wait_status("stopped");
            let busy = b.root.join(&b.id).join("busy");
            fs::create_dir(&busy).unwrap();
            Run::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&busy).ok();
            let failed = if force { delete_by_force(&b) } else { delete(&b) };
            failed.exits(1).says("removing the record").says("device or resource busy");
            // All that it needs to go on is there.
            assert!(record(&b).exists() && !poststop.exists());
            assert_eq!(b.status(), "stopped");
            Run::new("umount").arg(&busy).ok();
            if force { delete_by_force(&b) } else { delete(&b) }.exits(0);
            b.assert_gone();
            assert_eq!(fs::read_to_string(&poststop).unwrap(), "x\n");
        }
    });
}

#[test]
fn while_it_is_being_created() {
    better_than_runc("knows no container before it is created", || {
        let mut b = Bundle::sleeping();
        for _ in 0..3 {
            let create = half_made(&mut b);
            delete(&b).exits(1).says("that is not stopped: creating");
            delete_by_force(&b).exits(0);
            assert_ne!(create.finish().code(), 0);
            b.assert_gone();
        }
    });
}

#[test]
fn at_any_moment_of_a_creation() {
    others_may_fail("leaves cgroups, or a container that it says it deleted", || {
        let b = Bundle::sleeping();
        b.write_config();
        for delay in 0..25 {
            let create = b.brig("create").arg(&b.id).detached().spawn();
            std::thread::sleep(std::time::Duration::from_millis(delay));
            delete_by_force(&b).exits(0);
            let created = create.finish();
            // Whoever comes first; what was created after the deletion is there.
            if created.code() == 0 && b.root.join(&b.id).exists() {
                assert_eq!(b.status(), "created");
                delete_by_force(&b).exits(0);
            }
            host::eventually("nothing to be left", || b.leftovers().is_empty());
        }
    });
}

#[test]
fn an_id_that_two_creations_and_deletions_fight_for() {
    only_brig("runc fails now and then", || {
        let b = Bundle::sleeping();
        b.write_config();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..15).for_each(|_| drop(b.brig("create").arg(&b.id).detached().run())));
                scope.spawn(|| (0..15).for_each(|_| assert_eq!(delete_by_force(&b).code(), 0)));
            }
        });
        delete_by_force(&b).exits(0);
        host::eventually("nothing to be left", || b.leftovers().is_empty());
    });
}

#[test]
fn without_force_what_was_abandoned() {
    better_than_runc("finds no record", || {
        let mut b = Bundle::sleeping();
        let create = half_made(&mut b);
        delete(&b).exits(1).says("that is not stopped: creating");
        kill(create);
        assert_eq!(b.status(), "stopped");
        delete(&b).exits(0);
        // The hook dies with the command that ran it, in its own time.
        host::eventually("nothing to be left", || b.leftovers().is_empty());
    });
}

#[test]
fn without_force_the_living_are_refused_and_nothing_is_killed() {
    let mut b = Bundle::sh("sleep 1000 & touch /ready; exec sleep 1000");
    b.without_namespace("pid");
    b.start();
    // Not the third, which makes the file.
    host::eventually("both", || b.rootfs().join("ready").exists() && b.members().len() == 2);
    let members = b.members();
    delete(&b).exits(1).says("that is not stopped: running");
    b.brig("pause").arg(&b.id).ok();
    delete(&b).exits(1).says("that is not stopped: paused");
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.members(), members);
    assert!(members.iter().all(|&pid| host::is_alive(pid)));
}

#[test]
fn hooks_that_hang() {
    better_than_runc("waits for them", || {
        // In start.
        let mut b = Bundle::sleeping();
        b.config["hooks"] = hang(&b, "poststart");
        b.create();
        let start = b.brig("start").arg(&b.id).spawn();
        wait_for_hook(&b, "poststart");
        delete_by_force(&b).exits(0);
        assert!(!b.root.join(&b.id).exists());
        kill(start);
        host::eventually("nothing to be left", || b.leftovers().is_empty());
        // In the container, before its program.
        let mut b = Bundle::sleeping();
        b.config["hooks"] = json!({ "startContainer": [{ "path": "/bin/sh", "args": ["sh", "-c", "touch /hook; exec sleep 1000"] }] });
        b.create();
        let start = b.brig("start").arg(&b.id).spawn();
        host::eventually("the hook", || b.rootfs().join("hook").exists());
        delete_by_force(&b).exits(0);
        assert_ne!(start.finish().code(), 0);
        b.assert_gone();
        // In the creation, in the container's namespaces.
        let mut b = Bundle::sleeping();
        b.config["hooks"] = hang(&b, "createContainer");
        let create = b.brig("create").arg(&b.id).detached().spawn();
        wait_for_hook(&b, "createContainer");
        delete_by_force(&b).exits(0);
        assert_ne!(create.finish().code(), 0);
        b.assert_gone();
        // In another deletion, which has done its work.
        let mut b = Bundle::sleeping();
        b.config["hooks"] = hang(&b, "poststop");
        b.start();
        let first = b.brig("delete").args(["--force", &b.id]).spawn();
        wait_for_hook(&b, "poststop");
        delete_by_force(&b).exits(0);
        kill(first);
        host::eventually("nothing to be left", || b.leftovers().is_empty());
    });
}

#[test]
fn a_poststop_hook_has_a_limit() {
    only_brig("what it says differs", || {
        let mut b = Bundle::sleeping();
        b.config["hooks"] = hang(&b, "poststop");
        b.config["hooks"]["poststop"][0]["timeout"] = 1.into();
        b.start();
        delete_by_force(&b).exits(0).says("hook ran past specified timeout of 1.0s");
        b.assert_gone();
    });
}

#[test]
fn frozen_in_every_way() {
    others_may_fail("does not thaw sub-cgroups", || {
        let freezers: &[(&str, &str, &str)] =
            &[("freezer", "freezer.state", "FROZEN"), ("", "cgroup.freeze", "1")];
        for below in [false, true] {
            for created in [false, true] {
                let b = Bundle::sh("sleep 1000 & exec sleep 1000");
                if created {
                    b.create()
                } else {
                    b.start()
                }
                let pid = b.pid();
                let mut frozen = false;
                for dir in host::cgroup_dirs(&b.cgroup()) {
                    let dir = if below { dir.join("below") } else { dir };
                    for (_, file, value) in freezers {
                        if below {
                            let _ = fs::create_dir(&dir);
                        }
                        if !dir.join(file).exists() {
                            continue;
                        }
                        if below {
                            fs::write(dir.join("cgroup.procs"), pid.to_string()).unwrap();
                        }
                        fs::write(dir.join(file), value).unwrap();
                        frozen = true;
                    }
                }
                assert!(frozen);
                delete_by_force(&b).exits(0);
                assert!(!host::is_alive(pid));
                b.assert_gone();
            }
        }
    });
}

#[test]
fn frozen_while_it_is_being_made() {
    better_than_runc("leaves a process that nobody can kill (4757)", || {
        let mut b = Bundle::sleeping();
        let create = half_made(&mut b);
        for dir in host::cgroup_dirs(&b.cgroup()) {
            for (file, value) in [("freezer.state", "FROZEN"), ("cgroup.freeze", "1")] {
                if dir.join(file).exists() {
                    fs::write(dir.join(file), value).unwrap();
                }
            }
        }
        kill(create);
        delete_by_force(&b).exits(0);
        b.assert_gone();
    });
}

#[test]
fn cgroups_that_the_container_has_made() {
    let mut b = Bundle::sh(
        "set -e; cd /sys/fs/cgroup; [ -e cgroup.procs ] || cd freezer; mkdir -p a/b c; (echo 0 >a/b/cgroup.procs; exec sleep 1000) & \
         (echo 0 >c/cgroup.procs; exec sleep 1000) & touch /ready; exec sleep 1000",
    );
    b.with_namespace("cgroup", None);
    let mounts = b.config["mounts"].as_array_mut().unwrap();
    for mount in mounts.iter_mut().filter(|mount| mount["destination"] == "/sys/fs/cgroup") {
        mount["options"] = json!(["nosuid", "noexec", "nodev", "relatime", "rw"]);
    }
    b.start();
    host::eventually("its cgroups", || b.rootfs().join("ready").exists());
    delete_by_force(&b).exits(0);
    b.assert_gone();
}

#[test]
fn a_terminal_that_is_on_its_way() {
    better_than_runc("leaves a half-made container", || {
        // The terminal has been sent, and nobody has taken it.
        let mut b = Bundle::sleeping();
        b.config["process"]["terminal"] = true.into();
        let console = Socket::new(b.path().join("console"));
        b.config["hooks"] = hang(&b, "createContainer");
        let create =
            b.brig("create").arg("--console-socket").arg(&console.path).arg(&b.id).detached().spawn();
        wait_for_hook(&b, "createContainer");
        assert!(console.has_connection());
        kill(create);
        delete_by_force(&b).exits(0);
        b.assert_gone();
        // It was created, and the receiver died with the terminal in its socket.
        b.config["hooks"] = json!({});
        b.brig("create").arg("--console-socket").arg(&console.path).arg(&b.id).detached().ok();
        drop(console);
        delete_by_force(&b).exits(0);
        b.assert_gone();
    });
}

#[test]
fn an_agent_that_does_nothing() {
    others_may_fail("leaves a half-made container", || {
        let mut b = Bundle::sh("touch /tmp/begun; mkdir /x");
        let agent = Socket::new(b.path().join("agent"));
        b.config["linux"]["seccomp"] = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "listenerPath": agent.path,
            "syscalls": [{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY" }],
        });
        // It has the listener, and the process waits for its answer.
        b.start();
        host::eventually("the program", || b.rootfs().join("tmp/begun").exists());
        let listener = agent.receive();
        delete_by_force(&b).exits(0);
        b.assert_gone();
        drop(listener);
        // Nobody accepts, and there is no room for one more connection: the creation waits for it.
        let crowd = agent.fill();
        let create = b.brig("create").arg(&b.id).detached().spawn();
        host::eventually("the container's process", || !b.members().is_empty());
        kill(create);
        delete_by_force(&b).exits(0);
        host::eventually("nothing to be left", || b.leftovers().is_empty());
        drop(crowd);
    });
}

#[test]
fn a_fork_bomb() {
    // Each process of it lives as long as it takes to start the next one, as an ordinary user who has a limit. Without a pid
    // namespace they are found by their cgroup only.
    for own_namespace in [true, false] {
        let mut b = Bundle::sh(
            "for i in $(seq 30); do sh /bomb & done; touch /tmp/ready; sleep 1000 & while :; do wait $!; done",
        );
        fs::write(b.rootfs().join("bomb"), "sh /bomb &\n").unwrap();
        if !own_namespace {
            b.without_namespace("pid");
        }
        let user = if own_namespace { 54321 } else { 54322 };
        b.config["process"]["user"] = json!({ "uid": user, "gid": user });
        b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NPROC", "soft": 3000, "hard": 3000 }]);
        fs::set_permissions(b.rootfs().join("tmp"), std::os::unix::fs::PermissionsExt::from_mode(0o1777))
            .unwrap();
        b.start();
        host::eventually("it to begin", || b.rootfs().join("tmp/ready").exists() && b.members().len() > 10);
        delete_by_force(&b).exits(0);
        b.assert_gone();
    }
}

#[test]
fn execs_that_come_in_all_the_time() {
    only_brig("runc leaves them", || {
        for own_namespace in [true, false] {
            let mut b = Bundle::sleeping();
            if !own_namespace {
                b.without_namespace("pid");
            }
            b.start();
            let stop = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                            let exec = b.brig("exec").args(["-d", "--exec-id", "x", &b.id]);
                            exec.args(["sleep", "1000"]).detached().run();
                            b.brig("exec").args(["-d", &b.id, "sleep", "1000"]).detached().run();
                        }
                    });
                }
                std::thread::sleep(std::time::Duration::from_millis(300));
                let deleted = delete_by_force(&b);
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                deleted.exits(0);
            });
            b.assert_gone();
        }
    });
}

/// A file system that answers no more, until it is dropped.
struct Stuck {
    server: Child,
    point: PathBuf,
}

impl Stuck {
    /// `None` where there is no FUSE.
    fn mount(point: PathBuf) -> Option<Self> {
        if !std::path::Path::new("/dev/fuse").exists() {
            note("not checked: there is no /dev/fuse");
            return None;
        }
        fs::create_dir(&point).unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_brig-test-helper"));
        server.arg("stuck").arg(&point).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n");
        Some(Self { server, point })
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = rustix::mount::unmount(&self.point, rustix::mount::UnmountFlags::DETACH);
    }
}

fn state_of(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('X')
}

/// Case 36, its last part.
#[test]
fn a_task_that_cannot_be_killed() {
    better_than_runc("says that it is gone, or nothing", || {
        for own_namespace in [true, false] {
            let mut b = Bundle::sh("touch /ready; exec cat /stuck/file");
            if !own_namespace {
                b.without_namespace("pid");
            }
            let Some(stuck) = Stuck::mount(b.rootfs().join("stuck")) else { return };
            b.start();
            host::eventually("the program", || b.rootfs().join("ready").exists());
            let pid = b.pid();
            host::eventually("it to wait", || {
                fs::read_to_string(format!("/proc/{pid}/wchan"))
                    .is_ok_and(|at| at.contains("fuse") || at.contains("request"))
            });
            let failed = b.brig("delete").args(["--force", "--timeout", "500ms", &b.id]).run();
            assert_eq!(state_of(pid), 'D', "{failed}");
            failed.exits(1);
            for text in [
                &format!("process {pid} (cat) in state D (uninterruptible)"),
                "request_wait_answer",
                &b.cgroup(),
            ] {
                failed.says(text);
            }
            // The record is there, and so is the next try.
            assert!(record(&b).exists());
            b.brig("delete").args(["--force", "--timeout", "100ms", &b.id]).run().exits(1).says("in state D");
            drop(stuck);
            delete_by_force(&b).exits(0);
            b.assert_gone();
        }
    });
}

#[test]
fn an_exec_that_cannot_be_killed() {
    only_brig("exec has no --timeout elsewhere", || {
        let b = Bundle::sleeping();
        let Some(stuck) = Stuck::mount(b.rootfs().join("stuck")) else { return };
        b.start();
        let exec = b.brig("exec").args(["--timeout", "300ms", &b.id, "cat", "/stuck/file"]).spawn();
        let finished = exec.finish();
        finished.exits(255).says("was killed and does not end").says("request_wait_answer");
        b.brig("delete")
            .args(["--force", "--timeout", "300ms", &b.id])
            .run()
            .exits(1)
            .says("(cat) in state D");
        drop(stuck);
        delete_by_force(&b).exits(0);
        b.assert_gone();
    });
}
