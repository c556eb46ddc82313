//! `check`: what is wrong with a bundle, all at once, and nothing about a bundle that is right.

mod clients;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use brig_tests::{Bundle, Finished, Run, Value, host, json, only_brig, runtime};

const ERROR: &str = "error";
const WARNING: &str = "warning";

/// `check` of the bundle in a directory.
fn check(dir: &Path) -> Run {
    Run::new(runtime()).args(["check", "--format", "json", "--bundle"]).arg(dir)
}

/// `check` by the driver that the bundles of this run are for.
fn check_with_driver(dir: &Path) -> Run {
    let driver = host::by_systemd().then_some("--systemd-cgroup");
    Run::new(runtime()).args(driver).args(["check", "--bundle"]).arg(dir)
}

/// What it found: path, severity, message and hint of each problem.
fn problems(finished: &Finished) -> Vec<[String; 4]> {
    let document: Value = serde_json::from_str(&finished.out).unwrap_or_else(|e| panic!("{e}: {finished}"));
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let list = document["problems"].as_array().unwrap();
    list.iter().map(|problem| ["path", "severity", "message", "hint"].map(|key| text(problem, key))).collect()
}

/// A fault: where it is planted and what, then where it is found, how bad it is, and a piece of what is said about it.
struct Fault {
    plant: fn(&mut Value),
    path: &'static str,
    severity: &'static str,
    says: &'static str,
}

const fn fault(
    plant: fn(&mut Value),
    path: &'static str,
    severity: &'static str,
    says: &'static str,
) -> Fault {
    Fault { plant, path, severity, says }
}

/// Adds to a list, at a place that other faults leave alone: what lies before it is filled with `filler`.
fn put(list: &mut Value, place: usize, filler: &Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    let list = list.as_array_mut().unwrap();
    while list.len() <= place {
        list.push(filler.clone());
    }
    list[place] = item;
}

fn mount(config: &mut Value, place: usize, item: Value) {
    let filler = json!({ "destination": "/tmp", "type": "tmpfs", "source": "tmpfs" });
    put(&mut config["mounts"], place, &filler, item);
}

fn rlimit(config: &mut Value, place: usize, item: Value) {
    put(
        &mut config["process"]["rlimits"],
        place,
        &json!({ "type": "RLIMIT_CORE", "hard": 0, "soft": 0 }),
        item,
    );
}

fn namespace(config: &mut Value, kind: &str, path: &str) {
    let list = config["linux"]["namespaces"].as_array_mut().unwrap();
    list.retain(|namespace| namespace["type"] != kind);
    list.push(json!({ "type": kind, "path": path }));
}

fn seccomp(config: &mut Value) -> &mut Value {
    let seccomp = &mut config["linux"]["seccomp"];
    if seccomp.is_null() {
        *seccomp = json!({ "defaultAction": "SCMP_ACT_ALLOW" });
    }
    seccomp
}

fn rule(config: &mut Value, place: usize, item: Value) {
    put(
        &mut seccomp(config)["syscalls"],
        place,
        &json!({ "names": ["sync"], "action": "SCMP_ACT_LOG" }),
        item,
    );
}

fn device(config: &mut Value, place: usize, item: Value) {
    put(&mut config["linux"]["devices"], place, &json!({ "path": "/dev/fifo", "type": "p" }), item);
}

fn device_rule(config: &mut Value, place: usize, item: Value) {
    let filler = json!({ "allow": false, "access": "rwm" });
    put(&mut config["linux"]["resources"]["devices"], place, &filler, item);
}

/// Faults that one `config.json` can have all together.
#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    fault(|c| c["ociVersion"] = json!("2.0.0"), "ociVersion", ERROR, "version 2.0.0"),
    fault(|c| c["root"]["read_only"] = json!(true), "root.read_only", WARNING, "did you mean \"readonly\"?"),
    fault(|c| c["mount"] = json!([]), "mount", WARNING, "did you mean \"mounts\"?"),
    fault(|c| c["process"]["cmd"] = json!([]), "process.cmd", WARNING, "it has no effect"),
    fault(|c| c["linux"]["resource"] = json!({}), "linux.resource", WARNING, "did you mean \"resources\"?"),
    fault(|c| c["mounts"][0]["optoins"] = json!([]), "mounts[0].optoins", WARNING, "did you mean \"options\"?"),
    fault(|c| c["annotations"]["a"] = json!(1), "annotations.a", ERROR, "expected a string, found 1"),
    fault(|c| c["process"]["cwd"] = json!("work"), "process.cwd", ERROR, "Cwd must be an absolute path"),
    fault(|c| c["process"]["args"] = json!(["no-such"]), "process.args[0]", ERROR,
        "exec: \"no-such\": executable file not found in $PATH"),
    fault(|c| put(&mut c["process"]["env"], 2, &json!("A=1"), json!("novalue")), "process.env[2]", ERROR, "missing '='"),
    fault(|c| put(&mut c["process"]["env"], 3, &json!("A=1"), json!("=x")), "process.env[3]", ERROR, "name cannot be empty"),
    fault(|c| c["process"]["user"]["uid"] = json!("root"), "process.user.uid", ERROR, "expected an integer"),
    fault(|c| c["process"]["user"]["gid"] = json!(4294967295_u32), "process.user.gid", ERROR, "invalid group id"),
    fault(|c| c["process"]["user"]["umask"] = json!(512), "process.user.umask", ERROR, "invalid umask"),
    fault(|c| c["process"]["capabilities"]["bounding"][0] = json!("CAP_FOO"), "process.capabilities", WARNING, "CAP_FOO"),
    fault(|c| c["process"]["capabilities"]["effective"] = json!(["CAP_SYS_TIME"]), "process.capabilities.effective", ERROR,
        "not permitted: [CAP_SYS_TIME]"),
    fault(|c| rlimit(c, 2, json!({ "type": "RLIMIT_X", "hard": 1, "soft": 1 })), "process.rlimits[2]", ERROR,
        "wrong rlimit value: RLIMIT_X"),
    fault(|c| rlimit(c, 3, json!({ "type": "RLIMIT_FSIZE", "hard": 1, "soft": 2 })), "process.rlimits[3]", ERROR,
        "soft limit 2 is above hard limit 1"),
    fault(|c| c["process"]["oomScoreAdj"] = json!(2000), "process.oomScoreAdj", ERROR, "2000 is not within"),
    fault(|c| c["process"]["scheduler"] = json!({ "policy": "SCHED_X" }), "process.scheduler.policy", ERROR, "SCHED_X"),
    fault(|c| c["process"]["ioPriority"] = json!({ "class": "X", "priority": 1 }), "process.ioPriority.class", ERROR,
        "invalid ioPriority.Class"),
    fault(|c| c["process"]["execCPUAffinity"] = json!({ "initial": "a-b" }), "process.execCPUAffinity.initial", ERROR,
        "bad CPU affinity"),
    fault(|c| c["process"]["apparmorProfile"] = json!("no-such-profile"), "process.apparmorProfile", ERROR,
        "unable to apply apparmor profile"),
    fault(|c| c["hostname"] = json!("x".repeat(65)), "hostname", ERROR, "at most 64 bytes"),
    fault(|c| c["domainname"] = json!("x".repeat(65)), "domainname", ERROR, "at most 64 bytes"),
    fault(|c| mount(c, 8, json!({ "destination": "/v", "source": "/no/such", "options": ["bind"] })), "mounts[8].source", ERROR,
        "open /no/such: no such file or directory"),
    fault(|c| mount(c, 9, json!({ "destination": "/v", "type": "tmpsf", "source": "t" })), "mounts[9].type", ERROR,
        "did you mean tmpfs?"),
    fault(|c| mount(c, 10, json!({ "destination": "/v", "source": "/", "options": ["bind", "size=1"] })), "mounts[10].options",
        ERROR, "filesystem-specific options"),
    fault(|c| mount(c, 11, json!({ "destination": "/proc/x", "type": "tmpfs", "source": "t" })), "mounts[11].destination",
        ERROR, "inside /proc"),
    fault(|c| mount(c, 12, json!({ "destination": "/", "type": "tmpfs", "source": "t" })), "mounts[12].destination", ERROR,
        "on the top of rootfs"),
    fault(|c| mount(c, 13, json!({ "destination": "/v", "type": "tmpfs", "source": "t", "options": ["sise=1m"] })),
        "mounts[13].options", ERROR, "sise=1m: invalid argument"),
    fault(|c| mount(c, 14, json!({ "destination": "/v", "type": "tmpfs", "source": "t", "options": ["idmap"] })), "mounts[14]",
        ERROR, "only supported for bind-mounts"),
    fault(|c| mount(c, 15, json!({ "destination": "/etc/passwd", "source": "/", "options": ["bind"] })),
        "mounts[15].destination", ERROR, "not a directory"),
    fault(|c| mount(c, 16, json!({ "destination": "v", "type": "tmpfs", "source": "t" })), "mounts[16].destination", WARNING,
        "is not absolute"),
    fault(|c| mount(c, 17, json!({ "destination": "/v", "source": "a\u{0}" })), "mounts[17]", ERROR, "null byte"),
    fault(|c| mount(c, 18, json!({ "destination": "/v", "source": "/" })), "mounts[18].type", ERROR, "add the option bind"),
    fault(|c| c["hooks"]["prestart"] = json!([{ "path": "hook" }]), "hooks.prestart[0].path", ERROR, "must be absolute"),
    fault(|c| c["hooks"]["createRuntime"] = json!([{ "path": "/bin/true", "timeout": 0 }]), "hooks.createRuntime[0].timeout",
        ERROR, "greater than zero"),
    fault(|c| c["hooks"]["poststop"] = json!([{ "path": "/no/such" }]), "hooks.poststop[0].path", ERROR,
        "no such file or directory"),
    fault(|c| c["hooks"]["createContainer"] = json!([{ "path": "/etc/passwd" }]), "hooks.createContainer[0].path", ERROR,
        "permission denied"),
    fault(|c| c["hooks"]["startContainer"] = json!([{ "path": "/no/such" }]), "hooks.startContainer[0].path", ERROR,
        "no such file or directory"),
    fault(|c| namespace(c, "netwrok", ""), "linux.namespaces[?].type", ERROR, "\"netwrok\""),
    fault(|c| namespace(c, "time", "/no/such"), "linux.namespaces[?].path", ERROR, "namespace path: lstat /no/such"),
    fault(|c| namespace(c, "ipc", "/proc/self/ns/net"), "linux.namespaces[?].path", ERROR, "is a network namespace, not one of type ipc"),
    fault(|c| { namespace(c, "time", "/no/such"); c["linux"]["timeOffsets"] = json!({ "monotonic": { "secs": 1 } }); },
        "linux.timeOffsets", ERROR, "you may only provide one"),
    fault(|c| c["linux"]["uidMappings"] = json!([{ "containerID": 0, "hostID": 0, "size": 1 }]), "linux.uidMappings", WARNING,
        "without a user namespace"),
    fault(|c| device(c, 1, json!({ "path": "/dev/x", "type": "z" })), "linux.devices[1].type", ERROR, "invalid device type"),
    fault(|c| device(c, 2, json!({ "path": "/dev/x", "type": "c", "major": -5, "minor": 1 })), "linux.devices[2].major", ERROR,
        "-5 is not within"),
    fault(|c| c["linux"]["sysctl"]["kernel.core_pattern"] = json!("x"), "linux.sysctl[\"kernel.core_pattern\"]", ERROR,
        "not in a separate kernel namespace"),
    fault(|c| c["linux"]["sysctl"]["kernel.hostname"] = json!("x"), "linux.sysctl[\"kernel.hostname\"]", ERROR, "conflicts"),
    fault(|c| c["linux"]["sysctl"]["net.ipv4.no_such"] = json!("1"), "linux.sysctl[\"net.ipv4.no_such\"]", WARNING,
        "no such file or directory"),
    fault(|c| device_rule(c, 1, json!({ "allow": true, "type": "z", "access": "r" })), "linux.resources.devices[1].type", ERROR,
        "invalid cgroup device type"),
    fault(|c| device_rule(c, 2, json!({ "allow": true, "type": "c" })), "linux.resources.devices[2].access", ERROR,
        "cannot be empty"),
    fault(|c| c["linux"]["resources"]["memory"]["limit"] = json!("64m"), "linux.resources.memory.limit", ERROR,
        "expected an integer"),
    fault(|c| c["linux"]["resources"]["cpu"]["cpus"] = json!("0-9999"), "linux.resources.cpu.cpus", ERROR,
        "this machine has no number"),
    fault(|c| c["linux"]["resources"]["unified"]["../x"] = json!("1"), "linux.resources.unified[\"../x\"]", ERROR,
        "must be a file name"),
    fault(|c| c["linux"]["resources"]["blockIO"]["throttleReadBpsDevice"] = json!([{ "major": 4000, "minor": 1, "rate": 1 }]),
        "linux.resources.blockIO.throttleReadBpsDevice[0]", ERROR, "no block device 4000:1"),
    fault(|c| c["linux"]["resources"]["hugepageLimits"] = json!([{ "pageSize": "3MB", "limit": 0 }]),
        "linux.resources.hugepageLimits[0].pageSize", ERROR, "no huge pages of 3MB"),
    fault(|c| seccomp(c)["architectures"] = json!(["SCMP_ARCH_X"]), "linux.seccomp.architectures[0]", ERROR, "not a valid arch"),
    fault(|c| seccomp(c)["flags"] = json!(["SECCOMP_FILTER_FLAG_X"]), "linux.seccomp.flags[0]", ERROR, "is not known"),
    fault(|c| rule(c, 1, json!({ "names": ["mkdir"], "action": "SCMP_ACT_X" })), "linux.seccomp.syscalls[1].action", ERROR,
        "not a valid action"),
    fault(|c| rule(c, 2, json!({ "names": ["mkdri"], "action": "SCMP_ACT_LOG" })), "linux.seccomp.syscalls[2].names[0]", WARNING,
        "did you mean mkdir?"),
    fault(|c| rule(c, 3, json!({ "names": ["mkdir"], "action": "SCMP_ACT_LOG",
        "args": [{ "index": 9, "value": 1, "op": "SCMP_CMP_EQ" }] })), "linux.seccomp.syscalls[3].args[0].index", ERROR, "9"),
    fault(|c| c["linux"]["maskedPaths"][0] = json!("proc/acpi"), "linux.maskedPaths[0]", WARNING, "is not absolute"),
    fault(|c| c["linux"]["rootfsPropagation"] = json!("open"), "linux.rootfsPropagation", ERROR, "open is not supported"),
    fault(|c| c["linux"]["memoryPolicy"] = json!({ "mode": "X" }), "linux.memoryPolicy.mode", ERROR, "invalid memory policy mode"),
    fault(|c| c["linux"]["personality"] = json!({ "domain": "BSD" }), "linux.personality.domain", ERROR, "invalid personality"),
    fault(|c| c["linux"]["netDevices"] = json!({ "nosuch0": {} }), "linux.netDevices[\"nosuch0\"]", ERROR, "no network device"),
    fault(|c| c["linux"]["intelRdt"] = json!({ "closID": "a/b" }), "linux.intelRdt.closID", ERROR, "invalid intelRdt.ClosID"),
    fault(|c| c["linux"]["cgroupsPath"] = json!("/.."), "linux.cgroupsPath", ERROR, "names no cgroup of its own"),
];

/// The places of a list are not known beforehand where a fault is one of several additions to it.
fn is_at(path: &str, expected: &str) -> bool {
    match expected.split_once('?') {
        None => path == expected,
        Some((before, after)) => {
            let between = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            between.is_some_and(|number| number.parse::<usize>().is_ok())
        }
    }
}

#[track_caller]
fn assert_found(found: &[[String; 4]], path: &str, severity: &str, says: &str) {
    let hit = found.iter().any(|[at, how, message, hint]| {
        is_at(at, path) && how == severity && (message.contains(says) || hint.contains(says))
    });
    assert!(hit, "no {severity} at {path} that says {says:?} in {found:#?}");
}

#[test]
fn sixty_faults_are_found_in_one_run() {
    only_brig("check", || {
        assert!(FAULTS.len() >= 60, "{}", FAULTS.len());
        let mut b = Bundle::default();
        for fault in FAULTS {
            (fault.plant)(&mut b.config);
        }
        b.write_config();
        let finished = check(b.path()).run();
        finished.exits(1);
        assert_eq!(finished.err, "");
        let found = problems(&finished);
        for fault in FAULTS {
            assert_found(&found, fault.path, fault.severity, fault.says);
        }
    });
}

#[test]
fn each_fault_is_found_alone_and_little_else() {
    only_brig("check", || {
        let mut b = Bundle::default();
        let right = b.config.clone();
        for fault in FAULTS {
            b.config = right.clone();
            (fault.plant)(&mut b.config);
            b.write_config();
            let finished = check(b.path()).run();
            let found = problems(&finished);
            assert_found(&found, fault.path, fault.severity, fault.says);
            let errors = found.iter().any(|[_, severity, ..]| severity == ERROR);
            finished.exits(i32::from(errors));
            assert!(errors || fault.severity == WARNING);
            // A fault may show in a second way, but does not set off a flood.
            assert!(found.len() <= 3, "{}: {found:#?}", fault.path);
        }
    });
}

/// Plants a fault, and expects that it is found.
#[track_caller]
fn finds(change: impl FnOnce(&mut Bundle), path: &str, says: &str) {
    let mut b = Bundle::default();
    change(&mut b);
    b.write_config();
    let finished = check(b.path()).run();
    finished.exits(1);
    assert_found(&problems(&finished), path, ERROR, says);
}

/// Makes a file in the root file system and has it run.
fn program(b: &mut Bundle, mode: u32, content: &[u8]) {
    let path = b.rootfs().join("bin/program");
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    b.args(&["/bin/program"]);
}

#[test]
fn programs_that_cannot_run_are_found() {
    only_brig("check", || {
        const AT: &str = "process.args[0]";
        finds(|b| program(b, 0o644, b"#!/bin/sh\n"), AT, "exec: \"/bin/program\": permission denied");
        finds(|b| program(b, 0o755, b"#!/no/shell -e\n"), AT, "not the interpreter that it names: /no/shell");
        finds(|b| program(b, 0o755, b"#!/bin/sh\r\ntrue\r\n"), AT, "carriage return");
        finds(|b| _ = b.args(&["/etc"]), AT, "exec: \"/etc\": is a directory");
        finds(|b| _ = b.args(&["/bin/nothing"]), AT, "stat /bin/nothing: no such file or directory");
        finds(|b| b.config["process"]["env"] = json!(["A=1"]), AT, "has no PATH to search");
        let own = fs::read(runtime()).unwrap();
        let foreign = |machine: u8| [&own[..18], &[machine, 0], &own[20..64]].concat();
        if fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|entries| entries.count() > 2) {
            return brig_tests::note("emulators may run programs for other machines");
        }
        finds(|b| program(b, 0o755, &foreign(22)), AT, "/bin/program is built for s390x");
        finds(|b| program(b, 0o755, b""), AT, "/bin/program is empty");
        finds(|b| program(b, 0o755, b"echo"), AT, "neither an ELF program nor a script");
    });
}

#[test]
fn programs_on_other_mounts_and_behind_links_are_found_there() {
    only_brig("check", || {
        let mut b = Bundle::default();
        let tools = b.path().join("tools");
        fs::create_dir_all(&tools).unwrap();
        fs::copy(b.rootfs().join("bin/busybox"), tools.join("tool")).unwrap();
        symlink("/tools/tool", b.rootfs().join("bin/link")).unwrap();
        b.mount(json!({ "destination": "/tools", "source": tools, "options": ["rbind"] }));
        b.mount(json!({ "destination": "/later", "type": "tmpfs", "source": "tmpfs" }));
        for args in [&["/tools/tool"][..], &["link"], &["/later/unknown"]] {
            b.args(args);
            b.write_config();
            let finished = check_with_driver(b.path()).args(["--format", "json"]).run();
            assert!(problems(&finished).is_empty(), "{args:?}: {finished}");
        }
        finds(|b| _ = b.args(&["/tools/tool"]), "process.args[0]", "no such file or directory");
    });
}

#[test]
fn files_that_are_not_there_or_not_what_they_should_be_are_found() {
    only_brig("check", || {
        finds(|b| b.config["root"]["path"] = json!("other"), "root.path", "no such file or directory");
        finds(
            |b| {
                symlink("rootfs", b.path().join("link")).unwrap();
                b.config["root"]["path"] = json!("link");
            },
            "root.path",
            "or a symlink",
        );
        finds(
            |b| {
                fs::remove_dir(b.rootfs().join("proc")).unwrap();
                symlink("/tmp", b.rootfs().join("proc")).unwrap();
            },
            "mounts[0].destination",
            "must be mounted on ordinary directory",
        );
        finds(|b| b.config["process"]["cwd"] = json!("/etc/passwd"), "process.cwd", "not a directory");
    });
}

#[test]
fn what_is_no_configuration_is_said() {
    only_brig("check", || {
        let dir = tempfile::tempdir().unwrap();
        let found = |code| {
            let finished = check(dir.path()).run();
            finished.exits(code);
            problems(&finished)
        };
        assert_found(&found(1), "config.json", ERROR, "JSON specification file config.json not found");
        let of = |text: &[u8]| {
            fs::write(dir.path().join("config.json"), text).unwrap();
            found(1)
        };
        assert_found(
            &of(b"{\"process\": {"),
            "config.json",
            ERROR,
            "EOF while parsing an object at line 1 column 13",
        );
        assert_found(&of(b"not json"), "config.json", ERROR, "invalid JSON");
        assert_found(&of(b"null"), "config.json", ERROR, "config cannot be null");
        let missing = of(b"{}");
        assert_found(&missing, "process", ERROR, "process property must not be empty");
        assert_found(&missing, "root", ERROR, "root must be specified");
        check(&dir.path().join("none")).exits_with(1, "no such file or directory");
    });
}

#[test]
fn a_cgroup_in_use_is_found() {
    only_brig("check", || {
        let other = Bundle::sleeping();
        other.start();
        let mut b = Bundle::default();
        b.config["linux"]["cgroupsPath"] = json!(other.cgroup());
        b.write_config();
        let finished = check(b.path()).run();
        finished.exits(1);
        assert_found(
            &problems(&finished),
            "linux.cgroupsPath",
            ERROR,
            "cgroup is not empty: 1 process(es) found",
        );
    });
}

#[test]
fn check_makes_nothing() {
    only_brig("check", || {
        let b = Bundle::default();
        b.write_config();
        let before = fs::read_dir(b.path()).unwrap().count();
        check(b.path()).ok();
        assert_eq!(fs::read_dir(b.path()).unwrap().count(), before);
        assert!(host::cgroup_dirs(&b.cgroup()).is_empty());
        assert!(!b.root.exists());
    });
}

/// `check` says what `create` then says, and `create` takes what `check` lets pass.
#[test]
fn create_agrees() {
    only_brig("check", || {
        let mut b = Bundle::default();
        let right = b.config.clone();
        for fault in
            FAULTS.iter().filter(|fault| fault.severity == ERROR && !fault.path.starts_with("hooks.p"))
        {
            b.config = right.clone();
            (fault.plant)(&mut b.config);
            let finished = b.brig("create").arg(&b.id).run();
            let start = if finished.code() == 0 { b.brig("start").arg(&b.id).run() } else { finished };
            assert_ne!(start.code(), 0, "{} is refused by check and taken by create", fault.path);
            b.delete();
        }
    });
}

#[test]
fn what_spec_writes_is_right() {
    only_brig("check", || {
        for args in [&[][..], &["--rootless"]] {
            let b = Bundle::default();
            Run::new(runtime()).arg("spec").args(args).dir(b.path()).ok();
            let finished = Run::new(runtime()).arg("check").dir(b.path()).ok();
            assert_eq!(finished.both(), "", "{args:?}");
        }
    });
}

#[test]
fn what_spec_writes_for_an_ordinary_user_is_right_for_them() {
    only_brig("check", || {
        let b = Bundle::default();
        let _ = fs::remove_file(b.path().join("config.json"));
        fs::set_permissions(b.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let brig = b.path().join("brig");
        fs::copy(runtime(), &brig).unwrap();
        let run = |args: &[&str]| Run::new(&brig).args(args).dir(b.path()).uid(65534, 65534).ok();
        run(&["spec", "--rootless"]);
        assert_eq!(run(&["check"]).both(), "");
    });
}

#[test]
fn the_table_is_for_people() {
    only_brig("check", || {
        let mut b = Bundle::default();
        b.config["linux"]["resource"] = json!({});
        b.config["process"]["cwd"] = json!("");
        b.write_config();
        let finished = check_with_driver(b.path()).run();
        finished.exits(1);
        let expected = "error: process.cwd: Cwd property must not be empty\n\
            warning: linux.resource: unknown member \"resource\", it has no effect\n    hint: did you mean \"resources\"?\n";
        assert_eq!(finished.out, expected);
        Run::new(runtime())
            .args(["check", "-b"])
            .arg(b.path())
            .args(["--format", "x"])
            .exits_with(1, "invalid format option");
    });
}
