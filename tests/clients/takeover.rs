//! Swapping in place: containers that Debian's runc has made and that run on when brig takes over its root.

use std::fs;
use std::path::PathBuf;

use brig_tests::{Bundle, Run, Value, host, json, only_brig};

/// A container of runc's.
struct Taken {
    bundle: Bundle,
    /// runc's record, which brig must not change.
    record: String,
}

fn runc() -> PathBuf {
    let dirs = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let found = dirs.iter().map(|dir| PathBuf::from(dir).join("runc")).find(|path| path.exists());
    std::env::var_os("RUNC").map(PathBuf::from).or(found).expect("runc is missing")
}

impl Taken {
    /// Has runc create the container, and start it unless it is to wait.
    fn new(bundle: Bundle, command: &[&str]) -> Self {
        bundle.write_config();
        let made = Run::new(runc()).arg("--root").arg(&bundle.root).args(command);
        made.arg("--bundle").arg(bundle.path()).arg(&bundle.id).detached().ok();
        let record = fs::read_to_string(bundle.root.join(&bundle.id).join("state.json")).unwrap();
        Self { bundle, record }
    }

    fn running(bundle: Bundle) -> Self {
        Self::new(bundle, &["run", "--detach"])
    }

    fn runc(&self, command: &str) -> Run {
        Run::new(runc()).arg("--root").arg(&self.bundle.root).arg(command).arg(&self.bundle.id)
    }

    fn brig(&self, command: &str) -> Run {
        self.bundle.brig(command).arg(&self.bundle.id)
    }

    /// `exec` of a shell script that succeeds.
    fn sh(&self, script: &str) -> String {
        self.bundle.exec(&["sh", "-c", script]).ok().line().to_owned()
    }

    fn runc_state(&self) -> Value {
        serde_json::from_str(&self.runc("state").ok().out).unwrap()
    }

    #[track_caller]
    fn assert_left_alone(&self) {
        let now = fs::read_to_string(self.bundle.root.join(&self.bundle.id).join("state.json")).unwrap();
        assert_eq!(now, self.record, "brig has changed runc's record");
    }
}

fn taken_over(test: impl FnOnce()) {
    only_brig("brig is to take over from runc", test);
}

const POLITE: &str = "trap 'exit 5' TERM; echo ready > /ready; while sleep 0.1; do :; done";

fn polite() -> Taken {
    let taken = Taken::running(Bundle::sh(POLITE));
    host::eventually("the container's trap", || taken.bundle.rootfs().join("ready").exists());
    taken
}

#[test]
fn state_and_list_show_what_runc_shows() {
    taken_over(|| {
        let mut bundle = Bundle::sleeping();
        bundle.config["annotations"] = json!({ "org.example.a": "b=c" });
        let taken = Taken::running(bundle);
        let (theirs, ours) = (taken.runc_state(), taken.bundle.state());
        for member in ["id", "pid", "status", "bundle", "rootfs", "created", "annotations", "ociVersion"] {
            assert_eq!(ours[member], theirs[member], "{member}");
        }
        let list =
            |run: Run| -> Value { serde_json::from_str(&run.args(["--format", "json"]).ok().out).unwrap() };
        let theirs = list(Run::new(runc()).arg("--root").arg(&taken.bundle.root).arg("list"));
        let ours = list(taken.bundle.brig("list"));
        for member in ["id", "pid", "status", "bundle", "created", "owner"] {
            assert_eq!(ours[0][member], theirs[0][member], "{member}");
        }
        let pids: Value =
            serde_json::from_str(&taken.bundle.brig("ps").args(["--format=json", &taken.bundle.id]).ok().out)
                .unwrap();
        assert_eq!(pids, json!([taken.bundle.pid()]));
        taken.brig("events").arg("--stats").ok().says("\"memory\"");
        taken.assert_left_alone();
    });
}

#[test]
fn exec_joins_as_runc_would() {
    taken_over(|| {
        let mut bundle = Bundle::sleeping();
        bundle.config["process"]["env"].as_array_mut().unwrap().push(json!("A=from the bundle"));
        bundle.config["process"]["cwd"] = json!("/tmp");
        bundle.config["process"]["user"] =
            json!({ "uid": 0, "gid": 50, "umask": 0o77, "additionalGids": [60] });
        bundle.config["linux"]["seccomp"] = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
            "syscalls": [{ "names": ["chmod", "fchmodat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95 }]
        });
        let taken = Taken::running(bundle);
        // What the kernel says of a process that each of them adds is the same, but for its pids and its times.
        let about = "cat /proc/self/cgroup; for ns in /proc/self/ns/*; do readlink $ns; done; pwd; id; echo $A $HOME; ulimit -a;
            grep -E '^(Cap|NoNew|Seccomp:|Uid|Gid|Groups)' /proc/self/status; cat /proc/self/oom_score_adj; chmod 700 /tmp 2>&1; true";
        let theirs = taken.runc("exec").args(["sh", "-c", about]).ok();
        assert!(theirs.out.contains("Operation not supported"), "{theirs}");
        assert_eq!(taken.sh(about), theirs.line());
        // Which runc 1.1 forgets.
        assert_eq!(taken.sh("umask"), "0077");
        taken.bundle.exec(&["sh", "-c", "exit 9"]).run().exits(9);
        taken
            .bundle
            .brig("exec")
            .args(["--user=1000:7", "--env=A=flag", &taken.bundle.id, "sh", "-c", "id -u; id -g; echo $A"])
            .ok()
            .says("1000\n7\nflag");
        taken.bundle.exec(&["nosuch"]).run().exits(255).says("executable file not found in $PATH");
        taken.assert_left_alone();
    });
}

/// As the shim and conmon do it: then the bundle's configuration is not needed.
#[test]
fn exec_of_a_described_process_needs_no_bundle() {
    taken_over(|| {
        let taken = Taken::running(Bundle::sleeping());
        let file = taken.bundle.path().join("process.json");
        let process = json!({ "user": { "uid": 5, "gid": 6 }, "args": ["sh", "-c", "id -u; pwd; exit 3"],
            "env": ["PATH=/bin"], "cwd": "/tmp" });
        fs::write(&file, process.to_string()).unwrap();
        let config = taken.bundle.path().join("config.json");
        let exec = || Run::new(brig_tests::runtime()).arg("--root").arg(&taken.bundle.root).arg("exec");
        fs::remove_file(&config).unwrap();
        exec().arg("--process").arg(&file).arg(&taken.bundle.id).run().exits(3).says("5\n/tmp");
        exec()
            .args([&taken.bundle.id, "true"])
            .run()
            .exits(255)
            .says("config.json: no such file or directory");
    });
}

#[test]
fn kill_and_delete_end_it() {
    taken_over(|| {
        let taken = polite();
        taken.brig("delete").fails().says("that is not stopped: running");
        taken.bundle.brig("kill").args([&taken.bundle.id, "TERM"]).ok();
        taken.bundle.wait_status("stopped");
        assert_eq!(taken.runc_state()["status"], "stopped");
        taken.brig("kill").fails().says("container not running");
        taken.assert_left_alone();
        taken.brig("delete").ok();
        taken.bundle.assert_gone();
        taken.runc("state").fails().says("container does not exist");
    });
}

#[test]
fn delete_by_force_ends_it_whatever_its_state() {
    taken_over(|| {
        let running = Taken::running(Bundle::sh("trap '' TERM; setsid sleep 992 & sleep 991"));
        running.bundle.delete();
        running.bundle.assert_gone();
        let paused = Taken::running(Bundle::sleeping());
        paused.runc("pause").ok();
        paused.bundle.delete();
        paused.bundle.assert_gone();
        let created = Taken::new(Bundle::sleeping(), &["create"]);
        created.bundle.delete();
        created.bundle.assert_gone();
        let mut bundle = Bundle::sh("sleep 992 & sleep 991");
        bundle.without_namespace("pid");
        let without_pid_namespace = Taken::running(bundle);
        without_pid_namespace.bundle.delete();
        without_pid_namespace.bundle.assert_gone();
    });
}

#[test]
fn pause_and_resume_are_seen_by_both() {
    taken_over(|| {
        let taken = polite();
        taken.brig("pause").ok();
        assert_eq!(
            (taken.bundle.status().as_str(), &taken.runc_state()["status"]),
            ("paused", &json!("paused"))
        );
        taken.bundle.exec(&["true"]).run().exits(255).says("cannot exec in a paused container");
        taken.brig("resume").ok();
        assert_eq!(
            (taken.bundle.status().as_str(), &taken.runc_state()["status"]),
            ("running", &json!("running"))
        );
        taken.runc("pause").ok();
        assert_eq!(taken.bundle.status(), "paused");
        taken.brig("resume").ok();
        assert_eq!(taken.sh("echo alive"), "alive");
        taken.assert_left_alone();
    });
}

#[test]
fn update_changes_its_limits() {
    taken_over(|| {
        if !host::has_controller("memory") || !host::has_controller("cpu") || host::is_cgroup_v2() {
            return brig_tests::note("not run: it needs the controllers memory and cpu of cgroup v1");
        }
        let mut bundle = Bundle::sleeping();
        bundle.config["linux"]["resources"]["memory"] = json!({ "limit": 64 << 20, "swap": 128 << 20 });
        bundle.config["linux"]["resources"]["cpu"] = json!({ "quota": 50000, "period": 100000 });
        let taken = Taken::running(bundle);
        let limit = |controller: &str, file: &str| {
            fs::read_to_string(taken.bundle.cgroup_dir(controller).join(file)).unwrap().trim().to_owned()
        };
        let update = |flags: &[&str]| taken.bundle.brig("update").args(flags).arg(&taken.bundle.id).ok();
        update(&["--memory", "96M", "--pids-limit", "33"]);
        assert_eq!(limit("memory", "memory.limit_in_bytes"), (96 << 20).to_string());
        assert_eq!(limit("memory", "memory.memsw.limit_in_bytes"), (128 << 20).to_string());
        assert_eq!(limit("pids", "pids.max"), "33");
        // What was changed before is known: runc's record has it no more.
        update(&["--memory-swap", "160M"]);
        assert_eq!(limit("memory", "memory.limit_in_bytes"), (96 << 20).to_string());
        assert_eq!(limit("memory", "memory.memsw.limit_in_bytes"), (160 << 20).to_string());
        update(&["--cpu-quota", "30000"]);
        assert_eq!(
            (limit("cpu", "cpu.cfs_quota_us"), limit("cpu", "cpu.cfs_period_us")),
            ("30000".into(), "100000".into())
        );
        // It is still runc's.
        assert_eq!(taken.sh("head -c 1 /dev/zero | wc -c"), "1");
        taken.assert_left_alone();
    });
}

#[test]
fn what_waits_for_start_is_started() {
    taken_over(|| {
        let taken = Taken::new(Bundle::sh(POLITE), &["create"]);
        assert_eq!(taken.bundle.status(), "created");
        assert_eq!(taken.sh("echo early"), "early");
        taken.brig("start").ok();
        assert_eq!(
            (taken.bundle.status().as_str(), &taken.runc_state()["status"]),
            ("running", &json!("running"))
        );
        host::eventually("its program", || taken.bundle.rootfs().join("ready").exists());
        taken.brig("start").fails().says("cannot start an already running container");
    });
}

#[test]
fn a_user_namespace_is_no_hindrance() {
    taken_over(|| {
        let mut bundle = Bundle::sleeping();
        bundle.in_user_namespace();
        let taken = Taken::running(bundle);
        assert_eq!(taken.sh("id -u; cat /proc/self/uid_map | tr -s ' '"), "0\n 0 100000 65536");
        taken.bundle.delete();
        taken.bundle.assert_gone();
    });
}

/// brig can be taken away again.
#[test]
fn runc_can_go_on_with_it() {
    taken_over(|| {
        let taken = polite();
        taken.sh("true");
        taken.brig("pause").ok();
        taken.brig("resume").ok();
        taken.bundle.brig("update").args(["--pids-limit", "33", &taken.bundle.id]).ok();
        taken.runc("exec").args(["echo", "runc's"]).ok().says("runc's");
        taken.runc("kill").arg("TERM").ok();
        host::eventually("its end", || taken.runc_state()["status"] == "stopped");
        taken.runc("delete").ok();
        taken.bundle.assert_gone();
    });
}

#[test]
fn hooks_of_its_end_are_run() {
    taken_over(|| {
        let mut bundle = Bundle::sleeping();
        let seen = bundle.path().join("seen");
        let script = format!("cat > {}", seen.display());
        bundle.config["hooks"] = json!({ "poststop": [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] });
        let taken = Taken::running(bundle);
        taken.bundle.delete();
        let state: Value = serde_json::from_str(&fs::read_to_string(seen).unwrap()).unwrap();
        assert_eq!((&state["id"], &state["status"]), (&json!(taken.bundle.id), &json!("stopped")));
    });
}

#[test]
fn a_damaged_record_is_named() {
    taken_over(|| {
        let taken = Taken::running(Bundle::sleeping());
        let file = taken.bundle.root.join(&taken.bundle.id).join("state.json");
        fs::write(&file, &taken.record[..taken.record.len() / 2]).unwrap();
        taken.brig("state").fails().says("runc's record cannot be read");
        fs::write(&file, &taken.record).unwrap();
        taken.bundle.delete();
        taken.bundle.assert_gone();
    });
}
