//! Configurations at every edge. Each is refused with a message or works; nothing hangs, panics or is left.

use std::fs;
use std::time::{Duration, Instant};

use brig_fuzz::mutate::{Random, mutate_document};
use brig_tests::{Bundle, Finished, Run, Value, host, json, note, runtime};

use crate::support::{ended_in_order, rounds};

/// Creates from these bytes, and takes away what came of it.
fn create_raw(b: &Bundle, config: &[u8]) -> Finished {
    fs::write(b.path().join("config.json"), config).unwrap();
    let create = Run::new(runtime()).arg("--root").arg(&b.root).arg("create").arg("--bundle").arg(b.path());
    let finished = create.arg(&b.id).detached().limit(Duration::from_secs(120)).run();
    ended_in_order(&finished);
    if finished.code() != 0 {
        b.assert_gone();
    }
    Run::new(runtime()).arg("--root").arg(&b.root).args(["delete", "--force", &b.id]).ok();
    b.assert_gone();
    finished
}

fn create(b: &Bundle) -> Finished {
    create_raw(b, b.config.to_string().as_bytes())
}

/// Every number of the configuration at every edge.
#[test]
fn integers() {
    const EDGES: [&str; 12] = [
        "-1",
        "0",
        "-0",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e400",
    ];
    let mut b = Bundle::sleeping();
    b.config["process"]["oomScoreAdj"] = json!(4711);
    b.config["process"]["user"]["umask"] = json!(4711);
    b.config["process"]["user"]["additionalGids"] = json!([4711]);
    b.config["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 4711 });
    b.config["process"]["consoleSize"] = json!({ "height": 4711, "width": 4711 });
    b.config["linux"]["resources"] = json!({
        "devices": [{ "allow": true, "type": "c", "major": 4711, "minor": 4711, "access": "r" }],
        "memory": { "limit": 4711, "swap": 4711, "reservation": 4711, "swappiness": 4711 },
        "cpu": { "shares": 4711, "quota": 4711, "period": 4711, "burst": 4711, "idle": 4711 },
        "pids": { "limit": 4711 },
        "blockIO": { "weight": 4711 }
    });
    b.config["linux"]["devices"] = json!([{ "path": "/dev/x", "type": "c", "major": 4711, "minor": 4711, "uid": 4711, "gid": 4711, "fileMode": 4711 }]);
    b.config["process"]["user"]["uid"] = json!(4711);
    b.config["process"]["user"]["gid"] = json!(4711);
    b.config["process"]["rlimits"] = json!([{ "type": "RLIMIT_NOFILE", "hard": 4711, "soft": 4711 }]);
    let text = b.config.to_string();
    let places: Vec<usize> = text.match_indices("4711").map(|(at, _)| at).collect();
    assert!(places.len() > 25);
    let mut refused = 0;
    for (place, edge) in places
        .iter()
        .flat_map(|p| EDGES.iter().map(move |e| (*p, *e)))
        .step_by(if rounds(0, 1) == 1 { 1 } else { 5 })
    {
        // The others have values that work.
        let other = |text: &str| text.replace("4711", "10");
        let config = format!("{}{edge}{}", other(&text[..place]), other(&text[place + 4..]));
        refused += usize::from(create_raw(&b, config.as_bytes()).code() != 0);
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn long_strings() {
    for megabytes in [1, 10] {
        let long = "a".repeat(megabytes << 20);
        for which in 0..9 {
            let mut b = Bundle::default();
            let c = &mut b.config;
            match which {
                0 => c["process"]["args"] = json!([long]),
                1 => c["process"]["env"] = json!([format!("A={long}")]),
                2 => c["process"]["cwd"] = json!(format!("/{long}")),
                3 => c["root"]["path"] = json!(long),
                4 => c["hostname"] = json!(long),
                5 => c["linux"]["cgroupsPath"] = json!(format!("/brig-test/{long}")),
                6 => c["annotations"] = json!({ "a": long }),
                7 => c["mounts"][1]["options"] = json!([format!("mode={long}")]),
                _ => c["linux"]["maskedPaths"] = json!([format!("/{long}")]),
            }
            let finished = create(&b);
            // Annotations are only carried along; an argument list that long is an error at `start`.
            assert!(matches!(which, 0 | 1 | 6 | 8) || finished.code() == 1, "{which}");
            assert!(
                finished.both().len() < 64 << 10,
                "{which}: a message of {} bytes",
                finished.both().len()
            );
        }
    }
}

#[test]
fn nul_bytes() {
    let nul = "a\0b";
    for which in 0..12 {
        let mut b = Bundle::default();
        let c = &mut b.config;
        match which {
            0 => c["process"]["args"] = json!(["/bin/true", nul]),
            1 => c["process"]["env"] = json!([nul]),
            2 => c["process"]["cwd"] = json!(format!("/{nul}")),
            3 => c["root"]["path"] = json!(nul),
            4 => c["linux"]["cgroupsPath"] = json!(format!("/brig-test/{nul}")),
            5 => c["mounts"]
                .as_array_mut()
                .unwrap()
                .push(json!({ "destination": format!("/{nul}"), "type": "tmpfs" })),
            6 => c["mounts"][1]["source"] = json!(nul),
            7 => c["mounts"][1]["options"] = json!([format!("mode={nul}")]),
            8 => c["linux"]["maskedPaths"] = json!([format!("/{nul}")]),
            9 => {
                c["linux"]["devices"] =
                    json!([{ "path": format!("/dev/{nul}"), "type": "c", "major": 1, "minor": 3 }])
            }
            10 => c["linux"]["sysctl"] = json!({ "net.ipv4.ip_forward": nul }),
            _ => c["hooks"] = json!({ "createRuntime": [{ "path": format!("/{nul}") }] }),
        }
        let finished = create(&b);
        assert_eq!(finished.code(), 1, "{which}: {finished}");
    }
}

#[test]
fn nesting_and_duplicates() {
    let mut b = Bundle::default();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [100, 1_000, 100_000] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let config = b.config.to_string().replacen('{', &format!("{{\"annotations\":{deep},"), 1);
            assert_eq!(create_raw(&b, config.as_bytes()).code(), 1);
            let config = b.config.to_string().replacen('{', &format!("{{\"unknown\":{deep},"), 1);
            create_raw(&b, config.as_bytes());
        }
    }
    // Of duplicates the last counts, also for whoever checks it.
    b.config["process"]["args"] = json!(["/bin/true"]);
    let text = b.config.to_string();
    let twice = text.replacen("\"cwd\":\"/\"", "\"cwd\":\"/\",\"cwd\":\"relative\"", 1);
    assert_ne!(text, twice);
    create_raw(&b, twice.as_bytes()).exits(1).says("cwd");
    for text in ["", "null", "[]", "{}", "{\"ociVersion\":\"1.0.0\"}", "\u{feff}{}", "{", "\"", "nul"] {
        assert_eq!(create_raw(&b, text.as_bytes()).code(), 1, "{text}");
    }
    for bytes in [&b"\xff\xfe{}"[..], b"\0", &[b'['; 1 << 20]] {
        assert_eq!(create_raw(&b, bytes).code(), 1);
    }
}

/// A hundred thousand of what there usually are ten.
#[test]
fn a_hundred_thousand_of_everything() {
    let many = rounds(20_000, 100_000);
    for which in [
        "mounts",
        "devices",
        "env",
        "args",
        "masked",
        "readonly",
        "rules",
        "seccomp",
        "annotations",
        "rlimits",
        "gids",
        "unified",
    ] {
        let begun = Instant::now();
        let mut b = Bundle::sleeping();
        let c = &mut b.config;
        match which {
            "mounts" => c["mounts"] = (0..many).map(|i| json!({ "destination": format!("/m{}", i % 50), "type": "tmpfs", "source": "x", "options": ["size=4k"] })).collect(),
            "devices" => c["linux"]["devices"] = (0..many).map(|i| json!({ "path": format!("/dev/n{}", i % 999), "type": "c", "major": 1, "minor": i % 255 })).collect(),
            "env" => c["process"]["env"] = (0..many).map(|i| json!(format!("V{i}=x"))).collect(),
            "args" => c["process"]["args"] = (0..many).map(|_| json!("/bin/true")).collect(),
            "masked" => c["linux"]["maskedPaths"] = (0..many).map(|i| json!(format!("/p{i}"))).collect(),
            "readonly" => c["linux"]["readonlyPaths"] = (0..many).map(|i| json!(format!("/p{i}"))).collect(),
            "rules" => c["linux"]["resources"]["devices"] = (0..many).map(|i| json!({ "allow": i % 2 == 0, "type": "c", "major": i, "minor": i % 7, "access": "rw" })).collect(),
            "seccomp" => c["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": (0..many).map(|i| json!({
                "names": ["read"], "action": "SCMP_ACT_ERRNO", "args": [{ "index": 0, "value": i, "op": "SCMP_CMP_EQ" }] })).collect::<Vec<_>>() }),
            "annotations" => c["annotations"] = (0..many).map(|i| (format!("a{i}"), json!("b"))).collect::<serde_json::Map<_, _>>().into(),
            "rlimits" => c["process"]["rlimits"] = (0..many).map(|_| json!({ "type": "RLIMIT_NOFILE", "hard": 9, "soft": 9 })).collect(),
            "gids" => c["process"]["user"]["additionalGids"] = (0..many).map(|i| json!(i)).collect(),
            _ => c["linux"]["resources"]["unified"] = (0..many).map(|i| (format!("memory.x{i}"), json!("b"))).collect::<serde_json::Map<_, _>>().into(),
        }
        let finished = create(&b);
        note(&format!(
            "{which}: exit status {} after {:.1} s",
            finished.code(),
            begun.elapsed().as_secs_f64()
        ));
    }
}

/// An image without anything that there usually is, not even a place for procfs.
#[test]
fn an_image_with_nothing_in_it() {
    let mut b = Bundle::sleeping();
    b.config["mounts"] = json!([]);
    for hidden in ["maskedPaths", "readonlyPaths"] {
        b.config["linux"][hidden] = json!([]);
    }
    fs::remove_dir_all(b.rootfs()).unwrap();
    fs::create_dir(b.rootfs()).unwrap();
    // The program is missing, and that is the one complaint.
    create(&b).exits(1).says("executable file not found in $PATH");
    b.config["linux"]["sysctl"] = json!({ "net.no.such_thing": "1" });
    create(&b).exits(1).says("sysctl \"net.no.such_thing\"").says("no such file or directory");
}

/// Names that go into paths: they lead nowhere else.
#[test]
fn cgroup_names() {
    let sentinel = "/brig-test/sentinel-of-attacks";
    for path in [
        "../../../x",
        "/../../..",
        "/",
        "..",
        ".",
        "/brig-test/../../../../etc",
        "a/../..",
        "//",
        "/brig-test/./..",
    ] {
        let mut b = Bundle::sleeping();
        let own = format!("brig-test-{}", b.id);
        b.config["linux"]["cgroupsPath"] = json!(format!("{path}/{sentinel}/../{own}").replace("//", "/"));
        b.brig("create").arg(&b.id).detached().run();
        b.delete();
        let mut b = Bundle::sleeping();
        b.config["linux"]["cgroupsPath"] = json!(path);
        let finished = b.brig("create").arg(&b.id).detached().run();
        ended_in_order(&finished);
        b.delete();
    }
    for unified in ["../x", "a/b", "/etc/passwd", "..", ".", "", "memory.max\0", "cgroup.procs/../../x"] {
        let mut b = Bundle::sleeping();
        b.config["linux"]["resources"]["unified"] = json!({ unified: "1" });
        assert_eq!(create(&b).code(), 1, "{unified:?}");
    }
}

#[test]
fn ids_and_paths_at_their_limits() {
    let b = Bundle::default();
    for (length, good) in
        [(1, true), (64, true), (200, true), (255, true), (256, false), (4096, false), (100_000, false)]
    {
        let id = "i".repeat(length);
        let mut named = Bundle::sleeping();
        named.config["linux"]["cgroupsPath"] = json!(b.cgroup());
        named.write_config();
        let create = Run::new(runtime())
            .arg("--root")
            .arg(&named.root)
            .arg("create")
            .arg("--bundle")
            .arg(named.path());
        let finished = create.arg(&id).detached().run();
        ended_in_order(&finished);
        assert_eq!(finished.code() == 0, good, "{length}: {finished}");
        let deleted =
            Run::new(runtime()).arg("--root").arg(&named.root).args(["delete", "--force", &id]).run();
        ended_in_order(&deleted);
        assert!(deleted.code() == 0 || !good, "{deleted}");
        assert!(host::cgroup_dirs(&b.cgroup()).is_empty());
    }
    for length in [255, 256, 4000, 4095, 4096, 5000] {
        let mut b = Bundle::default();
        let parts: String = (0..length / 100 + 1).map(|_| format!("/{}", "d".repeat(99))).collect();
        b.mount(json!({ "destination": &parts[..length], "type": "tmpfs", "source": "tmpfs" }));
        create(&b);
        let mut b = Bundle::default();
        b.config["process"]["cwd"] = json!(&parts[..length]);
        create(&b);
    }
}

#[test]
fn hooks_by_relative_paths() {
    for point in ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"] {
        for path in ["hook", "./hook", "../hook", ""] {
            let mut b = Bundle::default();
            fs::write(b.path().join("hook"), "#!/bin/sh\ntouch ran\n").unwrap();
            b.config["hooks"] = json!({ point: [{ "path": path }] });
            let finished = create(&b);
            assert_eq!(finished.code(), 1, "{point} {path:?}: {finished}");
            assert!(!b.path().join("ran").exists());
        }
    }
}

/// Case 23: CVE-2026-30892. The very ids that were named, or none.
#[test]
fn users_of_exec() {
    let b = Bundle::sleeping();
    b.start();
    for (user, ids) in [
        ("0", "0 0"),
        ("1:2", "1 2"),
        ("65534", "65534 0"),
        ("4294967294:4294967294", "4294967294 4294967294"),
    ] {
        let exec = b.brig("exec").args(["-u", user, &b.id, "sh", "-c", "echo $(id -u) $(id -g)"]);
        assert_eq!(exec.ok().line(), ids, "{user}");
    }
    let bad = [
        "1abc",
        "-1",
        "4294967295",
        "4294967296",
        "",
        ":",
        "1:",
        ":1",
        "1:2:3",
        " 1",
        "1 ",
        "0x1",
        "1e3",
        "+-1",
        "٣",
        "root",
        "18446744073709551616",
        "18446744073709551617",
        "1:4294967296",
        "1:-1",
        "1\n",
    ];
    for user in bad {
        let finished = b.brig("exec").args(["-u", user, &b.id, "id"]).run();
        ended_in_order(&finished);
        assert_ne!(finished.code(), 0, "{user:?}: {finished}");
        assert!(!finished.out.contains("uid="), "{user:?}: {finished}");
    }
    for gid in ["-1", "4294967295", "4294967296", "x"] {
        let finished = b.brig("exec").args(["-g", gid, &b.id, "id"]).run();
        assert_ne!(finished.code(), 0, "{gid}: {finished}");
    }
}

/// The whole program on mutated configurations, for as long as `ATTACK_SECONDS` says. What could harm this machine is put right
/// after each mutation: namespaces, the place of the cgroup, hooks, and where the root file system is.
#[test]
fn mutated_configurations() {
    let seconds =
        std::env::var("ATTACK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(rounds(12, 1800) as u64);
    let seed = std::env::var("ATTACK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let b = Bundle::sleeping();
    let seeds: Vec<Value> = seeds(&b);
    let mut random = Random::new(seed);
    let (mut runs, mut made, begun) = (0_u64, 0_u64, Instant::now());
    while begun.elapsed() < Duration::from_secs(seconds) {
        runs += 1;
        let mut config = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(2) {
            mutate_document(&mut config, &seeds, &mut random);
        }
        make_harmless(&mut config, &b);
        let text = config.to_string();
        let finished = create_raw(&b, text.as_bytes());
        made += u64::from(finished.code() == 0);
        assert!(
            !finished.both().trim().is_empty() || finished.code() == 0,
            "no word about what is wrong with {text}"
        );
    }
    assert!(made > 0);
    note(&format!(
        "{runs} configurations (seed {seed}), {made} of them were good for a container; {} s of CPU time",
        cpu_seconds()
    ));
}

/// Seconds that this process and those that it has waited for have used until now. Containers are not among them.
fn cpu_seconds() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    // USER_HZ, the same on all machines that this runs on.
    ticks / 100
}

fn seeds(b: &Bundle) -> Vec<Value> {
    let mut full = b.config.clone();
    full["process"]["terminal"] = json!(false);
    full["process"]["oomScoreAdj"] = json!(100);
    full["process"]["ioPriority"] = json!({ "class": "IOPRIO_CLASS_BE", "priority": 4 });
    full["process"]["scheduler"] = json!({ "policy": "SCHED_BATCH", "nice": 5 });
    full["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [{ "names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [{ "index": 0, "value": 1, "op": "SCMP_CMP_EQ" }] }] });
    full["linux"]["devices"] = json!([{ "path": "/dev/x", "type": "c", "major": 1, "minor": 3, "fileMode": 438, "uid": 0, "gid": 0 }]);
    full["linux"]["sysctl"] = json!({ "net.ipv4.ip_forward": "0" });
    full["linux"]["resources"] = json!({ "pids": { "limit": 100 }, "memory": { "limit": 100_000_000 }, "cpu": { "shares": 512 },
        "devices": [{ "allow": false, "access": "rwm" }] });
    let mut user = b.config.clone();
    user["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "user" }));
    user["linux"]["uidMappings"] = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
    user["linux"]["gidMappings"] = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
    vec![b.config.clone(), full, user]
}

fn make_harmless(config: &mut Value, b: &Bundle) {
    let Some(members) = config.as_object_mut() else { return };
    members.remove("hooks");
    if let Some(root) = members.get_mut("root").and_then(Value::as_object_mut) {
        root.insert("path".to_owned(), json!("rootfs"));
    }
    if let Some(process) = members.get_mut("process").and_then(Value::as_object_mut) {
        // Real-time priority would take the machine.
        process.remove("scheduler");
    }
    let Some(linux) = members.entry("linux").or_insert(json!({})).as_object_mut() else { return };
    linux.insert("cgroupsPath".to_owned(), json!(b.cgroup()));
    for dangerous in ["netDevices", "intelRdt", "rootfsPropagation"] {
        linux.remove(dangerous);
    }
    let needed = ["mount", "pid", "network", "ipc", "uts"];
    let user = linux.get("namespaces").is_some_and(|n| n.to_string().contains("\"user\""));
    let kinds = needed.into_iter().chain(user.then_some("user"));
    linux.insert("namespaces".to_owned(), kinds.map(|kind| json!({ "type": kind })).collect());
    if let Some(mounts) = members.get_mut("mounts").and_then(Value::as_array_mut) {
        // Block devices and file systems of the network, by a chance.
        mounts.retain(|m| !m["source"].as_str().is_some_and(|s| s.starts_with("/dev")));
    }
}
