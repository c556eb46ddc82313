//! Well-formed, but not to be done: refused before anything is made, with the path of what is wrong.

use super::*;

/// Changes of the configuration, and what is said about each. All of them are tried before the test fails.
#[derive(Default)]
struct Cases {
    failures: Vec<String>,
}

impl Cases {
    /// The configuration with other values at some paths.
    fn refused(&mut self, changes: &[(&str, Value)], texts: &[&str]) {
        let b = Bundle::default();
        let mut config = b.config.clone();
        for (path, value) in changes {
            *at(&mut config, path) = value.clone();
        }
        let finished = create(&b, &config.to_string());
        let said = texts.iter().all(|text| finished.err.contains(text));
        if finished.code() != 1 || !is_one_line(&finished) || !said || !b.leftovers().is_empty() {
            let changes: Vec<String> =
                changes.iter().map(|(path, value)| format!("{path} = {value}")).collect();
            let (code, err, left) = (finished.code(), finished.err, b.leftovers());
            self.failures.push(format!(
                "{}: {code}: {}, {left:?}, expected {texts:?}",
                changes.join(", "),
                err.trim()
            ));
        }
    }

    #[track_caller]
    fn end(self) {
        assert!(self.failures.is_empty(), "\n{}\n", self.failures.join("\n"));
    }
}

#[test]
fn process() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        cases.refused(&[("process.args", json!([]))], &["process.args"]);
        cases.refused(&[("process.args", json!([""]))], &["exec: \"\""]);
        cases.refused(&[("process.cwd", json!(""))], &["process.cwd"]);
        cases.refused(&[("process.cwd", json!("tmp"))], &["process.cwd"]);
        cases.refused(
            &[("process.rlimits", json!([{ "type": "RLIMIT_X", "hard": 1, "soft": 1 }]))],
            &["process.rlimits[0]", "RLIMIT_X"],
        );
        cases.refused(
            &[("process.rlimits", json!([{ "type": "RLIMIT_CORE", "hard": 1, "soft": 2 }]))],
            &["process.rlimits[0]"],
        );
        cases.refused(&[("process.oomScoreAdj", json!(1001))], &["process.oomScoreAdj"]);
        cases.refused(
            &[("process.scheduler", json!({ "policy": "SCHED_WHENEVER" }))],
            &["process.scheduler.policy"],
        );
        cases.refused(
            &[("process.ioPriority", json!({ "class": "IOPRIO_CLASS_X", "priority": 1 }))],
            &["process.ioPriority"],
        );
        cases.refused(&[("process.env", json!(["A\u{0}B=1"]))], &["process.env[0]"]);
        cases.refused(
            &[("process.execCPUAffinity", json!({ "initial": "x-" }))],
            &["process.execCPUAffinity.initial"],
        );
        cases.end();
    });
}

#[test]
fn root_and_mounts() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        cases.refused(&[("root.path", json!("nowhere"))], &["root.path"]);
        cases.refused(&[("root", Value::Null)], &["root"]);
        cases.refused(&[("mounts.0.destination", json!(""))], &["mounts[0]"]);
        cases.refused(&[("mounts.0.type", json!(""))], &["mounts[0]"]);
        let mapped =
            json!({ "destination": "/x", "type": "bind", "source": "/", "options": ["bind", "idmap"] });
        cases.refused(&[("mounts.0", mapped)], &["mounts[0]"]);
        cases.refused(&[("linux.rootfsPropagation", json!("sideways"))], &["linux.rootfsPropagation"]);
        cases.end();
    });
}

#[test]
fn namespaces() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        cases.refused(&[("linux.namespaces.0.type", json!("pidd"))], &["linux.namespaces[0]", "pidd"]);
        cases.refused(
            &[("linux.namespaces", json!([{ "type": "pid" }, { "type": "pid" }]))],
            &["linux.namespaces[1]"],
        );
        cases.refused(
            &[("linux.namespaces.0.path", json!("/nowhere"))],
            &["linux.namespaces", "/nowhere", "no such file or directory"],
        );
        // A user namespace without ids.
        cases.refused(&[("linux.namespaces.0", json!({ "type": "user" }))], &["linux.uidMappings"]);
        // A name of the host's own.
        let without = json!([{ "type": "pid" }, { "type": "mount" }, { "type": "network" }]);
        cases.refused(&[("linux.namespaces", without)], &["hostname"]);
        cases
            .refused(&[("linux.timeOffsets", json!({ "monotonic": { "secs": 1 } }))], &["linux.timeOffsets"]);
        cases.refused(
            &[("linux.sysctl", json!({ "vm.swappiness": "1" }))],
            &["linux.sysctl", "vm.swappiness"],
        );
        cases.end();
    });
}

#[test]
fn devices_and_filters() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        let device = |kind: &str| json!([{ "path": "/dev/x", "type": kind, "major": 1, "minor": 1 }]);
        cases.refused(&[("linux.devices", device("z"))], &["linux.devices[0]"]);
        cases.refused(
            &[("linux.resources.devices", json!([{ "allow": true, "type": "q", "access": "r" }]))],
            &["linux.resources.devices[0]"],
        );
        cases.refused(
            &[("linux.resources.devices", json!([{ "allow": true, "type": "c", "access": "x" }]))],
            &["linux.resources.devices[0]"],
        );
        let seccomp = |action: &str, op: &str| {
            json!({ "defaultAction": action, "syscalls": [{ "names": ["read"], "action": "SCMP_ACT_LOG",
                "args": [{ "index": 0, "value": 1, "op": op }] }] })
        };
        cases.refused(
            &[("linux.seccomp", seccomp("SCMP_ACT_PERHAPS", "SCMP_CMP_EQ"))],
            &["linux.seccomp.defaultAction"],
        );
        cases.refused(
            &[("linux.seccomp", seccomp("SCMP_ACT_ALLOW", "=="))],
            &["linux.seccomp.syscalls[0].args[0].op"],
        );
        let many = json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{ "names": ["read"],
            "action": "SCMP_ACT_LOG", "args": [{ "index": 6, "value": 1, "op": "SCMP_CMP_EQ" }] }] });
        cases.refused(&[("linux.seccomp", many)], &["linux.seccomp.syscalls[0].args[0].index"]);
        let arch = json!({ "defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_PDP11"] });
        cases.refused(&[("linux.seccomp", arch)], &["linux.seccomp.architectures[0]"]);
        cases.end();
    });
}

#[test]
fn limits() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        cases.refused(&[("linux.resources.cpu", json!({ "cpus": "0-" }))], &["linux.resources.cpu.cpus"]);
        cases.refused(
            &[("linux.resources.memory", json!({ "limit": 1000, "swap": 10 }))],
            &["linux.resources.memory"],
        );
        cases.refused(
            &[("linux.resources.hugepageLimits", json!([{ "pageSize": "3KB", "limit": 1 }]))],
            &["hugepageLimits"],
        );
        cases.refused(&[("linux.resources.unified", json!({ "../x": "1" }))], &["linux.resources.unified"]);
        cases.refused(&[("linux.personality", json!({ "domain": "LINUX128" }))], &["linux.personality"]);
        cases.refused(&[("linux.memoryPolicy", json!({ "mode": "MPOL_NONE" }))], &["linux.memoryPolicy"]);
        cases.end();
    });
}

#[test]
fn hooks() {
    only_brig("names no JSON path", || {
        let mut cases = Cases::default();
        cases.refused(
            &[("hooks", json!({ "createRuntime": [{ "path": "relative" }] }))],
            &["hooks.createRuntime[0]"],
        );
        cases.refused(&[("hooks", json!({ "poststop": [{ "path": "" }] }))], &["hooks.poststop[0]"]);
        cases.refused(
            &[("hooks", json!({ "createRuntime": [{ "path": "/bin/true", "timeout": 0 }] }))],
            &["hooks.createRuntime[0].timeout"],
        );
        cases.end();
    });
}
