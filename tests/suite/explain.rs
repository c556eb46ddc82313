//! The failures that happen most: each says in one line what is wrong, with the phrase that clients look for, and in a
//! second line, which clients do not mix up with it, what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use brig_tests::{Bundle, Finished, Run, Value, host, json, note, only_brig, runtime};

/// Runs a command with a log, and expects that it fails with this message and this advice.
#[track_caller]
fn explains(b: &Bundle, run: Run, message: &str, hint: &str) -> Finished {
    let finished = run.run();
    assert_ne!(finished.code(), 0, "{finished}");
    let log = b.path().join("log.json");
    let text = fs::read_to_string(&log).unwrap();
    fs::remove_file(log).unwrap();
    // One record, or clients that read the file as one object show nothing.
    let record: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let of = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    assert!(of("msg").contains(message), "{message:?} is not in {record}");
    assert!(of("hint").contains(hint), "{hint:?} is not in {record}");
    assert!(!hint.is_empty() && !of("msg").contains(hint), "the advice is part of the message: {record}");
    assert_eq!(of("msg").lines().count(), 1, "{record}");
    assert_eq!(finished.err, format!("{}\nhint: {}\n", of("msg"), of("hint")));
    finished
}

/// The runtime with a log in the bundle.
fn logged(b: &Bundle) -> Run {
    b.runtime().args(["--log-format", "json", "--log"]).arg(b.path().join("log.json"))
}

fn create(b: &Bundle) -> Run {
    logged(b).args(["create", "--bundle"]).arg(b.path()).arg(&b.id).detached()
}

fn run(b: &Bundle) -> Run {
    logged(b).args(["run", "--bundle"]).arg(b.path()).arg(&b.id)
}

/// With this change, `create` fails and leaves nothing.
#[track_caller]
fn create_explains(change: impl FnOnce(&mut Bundle), message: &str, hint: &str) {
    let mut b = Bundle::default();
    change(&mut b);
    explains(&b, create(&b), message, hint).exits(1).says("runc create failed: ");
    b.assert_gone();
}

fn program(b: &mut Bundle, mode: u32, content: &[u8]) {
    let path = b.rootfs().join("bin/program");
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    b.args(&["/bin/program"]);
}

/// With this program, `start` fails.
#[track_caller]
fn start_explains(content: &[u8], message: &str, hint: &str) {
    let mut b = Bundle::default();
    program(&mut b, 0o755, content);
    b.create();
    explains(&b, logged(&b).args(["start", &b.id]), message, hint).exits(1);
    b.delete();
    // And so does exec.
    b.args(&["sleep", "1000"]);
    b.start();
    explains(&b, logged(&b).args(["exec", &b.id, "/bin/program"]), message, hint).exits(255);
}

#[test]
fn a_program_that_is_not_there() {
    only_brig("hints", || {
        create_explains(
            |b| _ = b.args(&["nosuch"]),
            "unable to start container process: error during container init: exec: \"nosuch\": executable file not found in $PATH",
            "PATH of process.env",
        );
        create_explains(
            |b| _ = b.args(&["/bin/nosuch"]),
            "exec: \"/bin/nosuch\": stat /bin/nosuch: no such file or directory",
            "the root file system has no such file",
        );
    });
}

#[test]
fn a_program_without_permission_or_a_directory() {
    only_brig("hints", || {
        create_explains(
            |b| program(b, 0o644, b"#!/bin/sh\n"),
            "exec: \"/bin/program\": permission denied",
            "no execute permission for the container's user (chmod +x)",
        );
        create_explains(|b| _ = b.args(&["/etc"]), "exec: \"/etc\": is a directory", "must name a program");
    });
}

#[test]
fn an_interpreter_that_is_missing() {
    only_brig("hints", || {
        start_explains(
            b"#!/no/python3 -u\nprint()\n",
            "exec /bin/program: no such file or directory",
            "/bin/program is there, but not the interpreter that it names: /no/python3",
        );
    });
}

#[test]
fn a_linker_that_is_missing() {
    only_brig("hints", || {
        // A shell of the host, linked against a libc that the image does not have.
        let shell = fs::read("/bin/sh").unwrap();
        if !shell.windows(8).any(|word| word == b"/ld-linu") {
            return note("the host's shell is static");
        }
        start_explains(
            &shell,
            "exec /bin/program: no such file or directory",
            "interpreter that it names: /lib",
        );
    });
}

#[test]
fn a_script_with_windows_line_ends() {
    only_brig("hints", || {
        start_explains(
            b"#!/bin/sh\r\ntrue\r\n",
            "exec /bin/program: no such file or directory",
            "ends with a carriage return, so the kernel looks for \"/bin/sh\\r\": save the script with Unix line ends",
        );
    });
}

#[test]
fn a_program_for_another_machine() {
    only_brig("hints", || {
        let own = fs::read(runtime()).unwrap();
        let foreign = [&own[..18], &[22, 0], &own[20..256]].concat();
        start_explains(
            &foreign,
            "exec /bin/program: exec format error",
            &format!("/bin/program is built for s390x, this machine is {}", std::env::consts::ARCH),
        );
        start_explains(b"echo\n", "exec format error", "neither an ELF program nor a script with a #! line");
    });
}

#[test]
fn a_mount_whose_source_is_missing() {
    only_brig("hints", || {
        create_explains(
            |b| _ = b.mount(json!({ "destination": "/v", "source": "/no/such", "options": ["bind"] })),
            "mounts[7]: the source of the bind mount: open /no/such: no such file or directory",
            "make it on the host",
        );
    });
}

#[test]
fn a_root_file_system_that_is_missing() {
    only_brig("hints", || {
        create_explains(
            |b| b.config["root"]["path"] = json!("nowhere"),
            "invalid rootfs: stat ",
            "root.path must name an existing directory",
        );
    });
}

#[test]
fn a_configuration_that_is_missing_or_broken() {
    only_brig("hints", || {
        let b = Bundle::default();
        let ours = create(&b);
        fs::remove_file(b.path().join("config.json")).unwrap();
        explains(&b, ours, "JSON specification file config.json not found", "spec command");
        let ours = create(&b);
        fs::write(b.path().join("config.json"), "{\"process\":{\"cwd\":7}}").unwrap();
        explains(&b, ours, "config.json: process.cwd: expected a string, found 7", "brig check shows all");
    });
}

#[test]
fn a_memory_limit_that_is_too_low() {
    only_brig("hints", || {
        if !host::has_controller("memory") {
            return note("there is no memory controller");
        }
        let mut b = Bundle::sleeping();
        b.config["linux"]["resources"]["memory"] = json!({ "limit": 16384 });
        let finished = create(&b).run();
        finished.exits(1).says("emory limit").says("hint: ").says("512 KB");
        b.assert_gone();
    });
}

#[test]
fn no_more_processes() {
    only_brig("hints", || {
        if !host::has_controller("pids") {
            return note("there is no pids controller");
        }
        let mut b = Bundle::sleeping();
        b.config["linux"]["resources"]["pids"] = json!({ "limit": 1 });
        b.start();
        explains(
            &b,
            logged(&b).args(["exec", &b.id, "true"]),
            "resource temporarily unavailable",
            "the limit of processes is reached: linux.resources.pids.limit",
        )
        .exits(255);
    });
}

#[test]
fn an_id_that_is_taken() {
    only_brig("hints", || {
        let b = Bundle::sleeping();
        b.create();
        explains(
            &b,
            create(&b),
            "container with given ID already exists",
            "choose another id, or remove that one",
        );
    });
}

#[test]
fn a_cgroup_that_is_in_use() {
    if host::by_systemd() {
        return note("not run: a unit is not chosen by its cgroup");
    }
    only_brig("hints", || {
        let other = Bundle::sleeping();
        other.start();
        let mut b = Bundle::default();
        b.config["linux"]["cgroupsPath"] = json!(other.cgroup());
        explains(
            &b,
            create(&b),
            "container's cgroup is not empty: 1 process(es) found",
            "another linux.cgroupsPath",
        );
        other.brig("pause").arg(&other.id).ok();
        b.config["linux"]["cgroupsPath"] = json!(format!("{}/below", other.cgroup()));
        let says = create(&b).run();
        other.brig("resume").arg(&other.id).ok();
        says.exits(1).says("frozen").says("hint: somebody has paused it");
    });
}

#[test]
fn a_terminal_without_a_socket() {
    only_brig("hints", || {
        create_explains(
            |b| b.config["process"]["terminal"] = json!(true),
            "cannot allocate tty if runc will detach without setting console socket",
            "give --console-socket",
        );
        let mut b = Bundle::default();
        b.config["process"]["terminal"] = json!(true);
        let run = create(&b).args(["--console-socket", "/no/such.sock"]);
        explains(
            &b,
            run,
            "dial unix /no/such.sock: connect: no such file or directory",
            "listen on the socket before",
        );
    });
}

#[test]
fn a_hook_that_fails() {
    only_brig("hints", || {
        create_explains(
            |b| {
                b.config["hooks"]["createRuntime"] =
                    json!([{ "path": "/bin/sh", "args": ["sh", "-c", "echo no >&2; exit 3"] }])
            },
            "error running createRuntime hook #0: exit status 3, stdout: , stderr: no",
            "the hook itself failed",
        );
        create_explains(
            |b| b.config["hooks"]["prestart"] = json!([{ "path": "/no/hook" }]),
            "error running prestart hook #0: fork/exec /no/hook: no such file or directory",
            "hooks.prestart[0].path must name an executable file",
        );
    });
}

#[test]
fn ids_that_are_not_mapped() {
    only_brig("hints", || {
        create_explains(
            |b| {
                b.in_user_namespace();
                b.config["process"]["user"]["uid"] = json!(70_000);
            },
            "cannot setuid to unmapped uid 70000 in user namespace",
            "linux.uidMappings must cover the user",
        );
    });
}

#[test]
fn what_the_kernel_does_not_have() {
    only_brig("hints", || {
        create_explains(
            |b| b.config["linux"]["sysctl"] = json!({ "net.ipv4.no_such": "1" }),
            "writing sysctls: sysctl \"net.ipv4.no_such\": ",
            "this kernel has no such parameter",
        );
        if !Path::new("/sys/module/apparmor").exists() {
            create_explains(
                |b| b.config["process"]["apparmorProfile"] = json!("x"),
                "unable to apply apparmor profile: apparmor is disabled or not supported",
                "leave the profile out",
            );
        }
        if !host::is_cgroup_v2() {
            create_explains(
                |b| b.config["linux"]["resources"]["unified"] = json!({ "memory.high": "1G" }),
                "invalid configuration: cannot use unified on cgroup v1",
                "the other members of linux.resources",
            );
        }
        create_explains(
            |b| _ = b.without_namespace("uts"),
            "unable to set hostname without a private UTS namespace",
            "add {\"type\": \"uts\"} to linux.namespaces",
        );
    });
}

/// The runtime under a filter that answers this errno to these calls.
fn without(b: &Bundle, errno: i32, calls: &str) -> Run {
    b.write_config();
    Run::new(env!("CARGO_BIN_EXE_brig-test-helper"))
        .args(["without", &errno.to_string(), calls])
        .arg(runtime())
        .arg("--root")
        .arg(&b.root)
        .args(["--log-format", "json", "--log"])
        .arg(b.path().join("log.json"))
        .args(["create", "--bundle"])
        .arg(b.path())
        .arg(&b.id)
        .detached()
}

#[test]
fn a_kernel_that_is_too_old() {
    only_brig("hints", || {
        let b = Bundle::default();
        let run = without(&b, 38, "clone3");
        explains(&b, run, "clone3", "clone3 needs Linux 5.3, and brig 5.10");
        b.assert_gone();
    });
}

#[test]
fn a_filter_that_is_refused() {
    only_brig("hints", || {
        let mut b = Bundle::default();
        b.config["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW" });
        let run = without(&b, 1, "seccomp");
        explains(
            &b,
            run,
            "error loading seccomp filter: operation not permitted",
            "a filter that is around the caller forbids it",
        );
        b.assert_gone();
    });
}

#[test]
fn namespaces_that_are_refused() {
    only_brig("hints", || {
        let b = Bundle::default();
        let run = without(&b, 1, "clone3");
        explains(
            &b,
            run,
            "operation not permitted",
            "new namespaces need CAP_SYS_ADMIN, or a user namespace",
        );
        b.assert_gone();
    });
}

#[test]
fn a_limit_above_the_callers() {
    only_brig("hints", || {
        let mut b = Bundle::default();
        b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NOFILE", "hard": 4096, "soft": 1024 }]);
        b.write_config();
        // Without CAP_SYS_RESOURCE, as in a container.
        let run = Run::new("setpriv")
            .args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "prlimit", "--nofile=2048"])
            .arg(runtime())
            .arg("--root")
            .arg(&b.root)
            .args(["--log-format", "json", "--log"])
            .arg(b.path().join("log.json"))
            .args(["create", "--bundle"])
            .arg(b.path())
            .arg(&b.id);
        explains(
            &b,
            run,
            "error setting rlimit type 7: operation not permitted",
            "a hard limit above the caller's needs CAP_SYS_RESOURCE",
        );
    });
}

#[test]
fn systemd_that_is_not_there() {
    only_brig("hints", || {
        if Path::new("/run/systemd/system").exists() {
            return note("systemd is running");
        }
        let mut b = Bundle::default();
        b.config["linux"]["cgroupsPath"] = json!("system.slice:brig-test:x");
        let run = b.runtime().args(["--systemd-cgroup", "create", "--bundle"]).arg(b.path()).arg(&b.id).run();
        run.exits(1)
            .says("systemd not running on this host, cannot use systemd cgroups manager")
            .says("leave --systemd-cgroup out");
    });
}

#[test]
fn no_delegation() {
    only_brig("hints", || {
        let mut b = Bundle::default();
        let map = json!([{ "containerID": 0, "hostID": 65534, "size": 1 }]);
        b.with_namespace("user", None);
        b.without_namespace("network");
        b.config["linux"]["uidMappings"] = map.clone();
        b.config["linux"]["gidMappings"] = map;
        b.config["linux"]["resources"] = json!({ "pids": { "limit": 10 } });
        b.config["mounts"][2]["options"] = json!(["newinstance"]);
        fs::set_permissions(b.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let brig = b.path().join("brig");
        fs::copy(runtime(), &brig).unwrap();
        b.write_config();
        let run = Run::new(&brig)
            .arg("--root")
            .arg(b.path().join("users"))
            .args(["create", "--bundle"])
            .arg(b.path())
            .arg(&b.id)
            .uid(65534, 65534)
            .run();
        run.exits(1).says("permission denied").says("/brig-test").says("have one delegated");
    });
}

/// As within a container of Docker's: parts of /proc are covered, so the kernel gives a user namespace no procfs of its own.
#[test]
fn a_proc_that_is_masked() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if mounts.lines().filter(|line| line.contains(" - proc ")).count() > 1 {
        return note("not run: there is another procfs, which is enough for the kernel");
    }
    only_brig("hints", || {
        let mut b = Bundle::new(&["cat", "/proc/self/comm"]);
        b.in_user_namespace();
        b.write_config();
        let log = b.path().join("log.json");
        let cover = "mount --bind /dev/null /proc/cmdline && exec \"$@\"";
        let run = Run::new("unshare").args(["--mount", "sh", "-c", cover, "sh"]).arg(runtime());
        let run = run.arg("--root").arg(&b.root).args(["--log-format", "json", "--log"]).arg(&log);
        let finished = run.args(["run", "--bundle"]).arg(b.path()).arg(&b.id).run();
        let text = fs::read_to_string(&log).unwrap_or_default();
        finished.exits(0);
        assert!(text.contains("proc may not be mounted in this user namespace"), "{text}");
        assert!(text.contains("the host's /proc is bound instead"), "{text}");
    });
}

/// A container that was not started keeps its phrase and the exit status, whatever is said besides.
#[test]
fn what_clients_look_for_stays_in_the_first_line() {
    only_brig("hints", || {
        let b = Bundle::new(&["nosuch"]);
        let first = |run: Run| run.run().err.lines().next().unwrap_or_default().to_owned();
        assert!(first(run(&b)).ends_with("exec: \"nosuch\": executable file not found in $PATH"));
        let b = Bundle::default();
        let gone = logged(&b).args(["kill", &b.id]).run();
        assert_eq!(gone.err, "container does not exist\n");
    });
}
