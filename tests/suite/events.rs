//! What a container uses, and what happens to it: `events` and `stats`.

use std::io::{BufRead, BufReader};

use brig_tests::{Bundle, Spawned, Value, host, is_other_runtime, json, note, only_brig};

fn stats(b: &Bundle) -> Value {
    let out = b.brig("events").args(["--stats", &b.id]).ok().out;
    assert!(out.ends_with('\n') && out.lines().count() == 1, "{out}");
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["type"], "stats");
    assert_eq!(record["id"], b.id.as_str());
    record["data"].clone()
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn one_record() {
    let mut b = Bundle::sh("head -c 1000000 /dev/zero >/file; sleep 1000 & exec sleep 1000");
    if host::has_controller("memory") {
        b.limit("memory", json!({ "limit": 64 << 20 }));
    }
    if host::has_controller("pids") {
        b.limit("pids", json!({ "limit": 33 }));
    }
    b.start();
    host::eventually("its processes", || b.members().len() == 2);
    let data = stats(&b);
    assert_eq!(
        names(&data),
        ["blkio", "cpu", "cpuset", "hugetlb", "intel_rdt", "memory", "network_interfaces", "pids"]
    );
    assert_eq!(data["network_interfaces"], Value::Null);
    assert_eq!(data["pids"]["current"], 2, "{data}");
    let usage = &data["cpu"]["usage"];
    assert!(usage["total"].as_u64() > Some(0), "{data}");
    assert!(usage["user"].is_u64() && usage["kernel"].is_u64(), "{data}");
    if host::has_controller("pids") {
        assert_eq!(data["pids"]["limit"], 33);
    }
    if host::has_controller("memory") {
        let memory = &data["memory"];
        assert_eq!(memory["usage"]["limit"], 64 << 20);
        assert!(memory["usage"]["usage"].as_u64() > Some(1 << 12), "{memory}");
        assert_eq!(memory["usage"]["failcnt"], 0);
        assert!(memory["raw"].as_object().unwrap().len() > 10, "{memory}");
        if host::is_cgroup_v2() {
            assert_eq!(memory["cache"], memory["raw"]["file"]);
        }
    }
    // Where it is measured: in the hybrid layout too.
    let told = host::is_cgroup_v2() || !is_other_runtime();
    if told && host::cgroup_dirs(&b.cgroup()).iter().any(|dir| dir.join("cpu.pressure").exists()) {
        for part in ["cpu", "memory", "blkio"] {
            let psi = &data[part]["psi"];
            assert!(psi["some"]["avg10"].is_number() && psi["full"]["total"].is_u64(), "{data}");
        }
    }
}

/// v1 tells more about processors.
#[test]
fn processors_of_v1() {
    if host::is_cgroup_v2() {
        return note("not run: for cgroup v1");
    }
    let b = Bundle::sleeping();
    b.start();
    let data = stats(&b);
    let cpus = data["cpu"]["usage"]["percpu"].as_array().unwrap().len();
    assert!(cpus > 0, "{data}");
    assert_eq!(data["cpu"]["usage"]["percpu_user"].as_array().unwrap().len(), cpus);
    assert_eq!(data["cpuset"]["sched_load_balance"], 1, "{data}");
    assert!(!data["cpuset"]["cpus"].as_array().unwrap().is_empty(), "{data}");
}

/// Lines of a command that goes on, as they come.
struct Lines(Spawned, BufReader<std::process::ChildStdout>);

impl Lines {
    fn new(mut spawned: Spawned) -> Self {
        let out = spawned.child().stdout.take().unwrap();
        Self(spawned, BufReader::new(out))
    }

    /// The next line; empty at the end.
    fn next(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn next_json(&mut self) -> Value {
        let line = self.next();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }
}

#[test]
fn records_in_intervals_until_the_container_is_no_more() {
    let b = Bundle::sleeping();
    b.start();
    let mut lines = Lines::new(b.brig("events").args(["--interval", "50ms", &b.id]).spawn());
    for _ in 0..3 {
        let record = lines.next_json();
        assert_eq!((&record["type"], &record["id"]), (&json!("stats"), &json!(b.id)));
        assert_eq!(record["data"]["pids"]["current"], 1);
    }
    b.delete();
    while !lines.next().is_empty() {}
    lines.0.finish().exits(0);
}

#[test]
fn kills_for_want_of_memory_are_told() {
    if !host::has_controller("memory") {
        return note("not run: no controller for memory");
    }
    let mut b = Bundle::sh(
        "while [ ! -e /go ]; do sleep 0.02; done
         dd if=/dev/zero of=/dev/null bs=64M count=1; echo $? >/status; exec sleep 1000",
    );
    b.limit("memory", json!({ "limit": 24 << 20, "swap": 24 << 20 })).start();
    // The first record shows that it watches.
    let mut lines = Lines::new(b.brig("events").args(["--interval", "100ms", &b.id]).spawn());
    assert_eq!(lines.next_json()["type"], "stats");
    std::fs::write(b.rootfs().join("go"), "").unwrap();
    let oom = loop {
        let record = lines.next_json();
        if record["type"] == "oom" {
            break record;
        }
    };
    assert_eq!(oom, json!({ "type": "oom", "id": b.id }));
    let status = b.rootfs().join("status");
    host::eventually("the end of the dd", || std::fs::read_to_string(&status).is_ok_and(|s| s == "137\n"));
    b.delete();
    while !lines.next().is_empty() {}
    lines.0.finish().exits(0);
}

#[test]
fn what_has_no_events() {
    let b = Bundle::default();
    b.brig("events").arg(&b.id).exits_with(1, "container does not exist");
    b.start();
    b.wait_status("stopped");
    b.brig("events").arg(&b.id).fails().says("is not running");
    b.brig("events").args(["--stats", &b.id]).fails().says("is not running");
    let refused = b.brig("events").args(["--interval", "0s", &b.id]).fails();
    refused.says("duration interval must be greater than 0");
}

#[test]
fn stats_for_people() {
    only_brig("has no stats", || {
        let mut b = Bundle::sleeping();
        if host::has_controller("memory") {
            b.limit("memory", json!({ "limit": 64 << 20 }));
        }
        b.start();
        let table = b.brig("stats").args(["--once", &b.id]).ok().out;
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 2, "{table}");
        let head = lines[0];
        for column in ["ID", "CPU", "MEM / LIMIT", "PIDS", "READ / WRITTEN", "THROTTLED", "PRESSURE"] {
            assert!(head.contains(column), "{table}");
        }
        assert!(lines[1].starts_with(&b.id) && lines[1].contains('%'), "{table}");
        assert!(
            lines[1].contains(if host::has_controller("memory") { "/ 64.0MiB" } else { "/ -" }),
            "{table}"
        );
        // Without a name it is all of them, and those that have ended are none.
        assert_eq!(b.brig("stats").arg("--once").ok().out.lines().count(), 2);
        b.brig("kill").args([&b.id, "KILL"]).ok();
        b.wait_status("stopped");
        assert_eq!(b.brig("stats").arg("--once").ok().out.lines().count(), 1);
        b.brig("stats").args(["--once", &b.id]).fails().says("is not running");
        b.brig("stats").args(["--once", "nobody"]).fails().says("container does not exist");
    });
}

#[test]
fn stats_for_programs() {
    only_brig("has no stats", || {
        let b = Bundle::sleeping();
        b.start();
        let stats = || b.brig("stats").args(["--format", "json", "--interval", "50ms"]);
        let once: Value = serde_json::from_str(&stats().arg("--once").ok().out).unwrap();
        assert_eq!(once[0]["id"], b.id.as_str());
        assert_eq!(once[0]["pids"]["current"], 1);
        let keys = ["cpu", "id", "io", "memory", "pids", "pressure", "throttling"];
        assert_eq!(names(&once[0]), keys);
        // Again and again, until the named container ends.
        let mut lines = Lines::new(stats().arg(&b.id).spawn());
        for _ in 0..3 {
            assert_eq!(lines.next_json()[0]["id"], b.id.as_str());
        }
        b.brig("kill").args([&b.id, "KILL"]).ok();
        while !lines.next().is_empty() {}
        lines.0.finish().exits(0);
    });
}

/// On a terminal each page takes the place of the one before.
#[test]
fn stats_on_a_terminal() {
    only_brig("has no stats", || {
        let b = Bundle::sleeping();
        b.start();
        let mut script = b.path().as_os_str().to_owned();
        script.push("/typescript");
        let command = format!(
            "{} --root {} stats --interval 50ms {}",
            brig_tests::runtime().display(),
            b.root.display(),
            b.id
        );
        let screen = brig_tests::Run::new("script").args(["-qec", &command]).arg(&script).spawn();
        host::eventually("three pages", || {
            std::fs::read_to_string(&script).unwrap_or_default().matches("\x1b[H").count() > 3
        });
        b.brig("kill").args([&b.id, "KILL"]).ok();
        screen.finish().exits(0);
    });
}
