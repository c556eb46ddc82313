//! containerd as a kubelet uses it: pods, by the Container Runtime Interface.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use brig_tests::{Finished, Run, Value, host, json};

use crate::engine::{Engine, shims};
use crate::image;

/// `NamespaceMode`.
const POD: i32 = 0;
const CONTAINER: i32 = 1;
const NODE: i32 = 2;

/// A pod. Stopped and removed when dropped.
struct Pod {
    engine: Arc<Engine>,
    config: Value,
    id: String,
}

fn engine() -> Arc<Engine> {
    static SHARED: Mutex<Weak<Engine>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = shared.upgrade() {
        return engine;
    }
    let engine = Engine::of_kind("cri");
    let archive = engine.path().join("image.tar");
    let archive = archive.to_str().unwrap();
    let pause = ["import", "--change", "CMD [\"/bin/sleep\", \"100000\"]", "-", "pause:test"];
    engine.docker(&pause).input(image::archive()).ok();
    engine.docker(&["save", "--output", archive, image::NAME, "pause:test"]).ok();
    let ctr = Run::new("ctr").arg("--address").arg(engine.path().join("containerd.sock"));
    ctr.args(["--namespace", "k8s.io", "images", "import", "--snapshotter", "native", archive]).ok();
    *shared = Arc::downgrade(&engine);
    engine
}

fn call(engine: &Engine, method: &str, request: &Value) -> Finished {
    Run::new(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/cri"))
        .arg(engine.path().join("containerd.sock"))
        .arg(method)
        .input(request.to_string())
        .run()
}

#[track_caller]
fn answer(engine: &Engine, method: &str, request: &Value) -> Value {
    let finished = call(engine, method, request);
    assert!(finished.status.success(), "{method}: {finished}");
    serde_json::from_str(&finished.out).unwrap()
}

/// What a pod's RuntimeClass says, as it is documented.
fn handler() -> String {
    let class = crate::documented::snippet("Kubernetes", "yaml", &brig_tests::runtime());
    let line = class.lines().find_map(|line| line.strip_prefix("handler: "));
    line.unwrap().to_owned()
}

impl Pod {
    fn new(pid: i32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let engine = engine();
        let name = format!("pod{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let config = json!({
            "metadata": { "name": name, "uid": name, "namespace": "test" },
            "log_directory": engine.path(),
            "linux": {
                "cgroup_parent": engine.cgroup(),
                "security_context": { "namespace_options": { "network": NODE, "pid": pid } }
            }
        });
        let request = json!({ "config": config, "runtime_handler": handler() });
        let sandbox = answer(&engine, "RunPodSandbox", &request);
        let id = sandbox["pod_sandbox_id"].as_str().unwrap().to_owned();
        Self { engine, config, id }
    }

    /// A container that runs a shell script.
    fn container(&self, name: &str, pid: i32, script: &str) -> Container<'_> {
        let container = self.create(name, pid, &["sh", "-c", script]);
        answer(&self.engine, "StartContainer", &json!({ "container_id": container.id }));
        container
    }

    fn create(&self, name: &str, pid: i32, command: &[&str]) -> Container<'_> {
        let config = json!({
            "metadata": { "name": name },
            "image": { "image": format!("docker.io/library/{}", image::NAME) },
            "command": command,
            "log_path": format!("{name}-{}.log", self.id),
            "envs": [{ "key": "A", "value": "b" }],
            "linux": {
                "resources": { "memory_limit_in_bytes": 64 << 20, "cpu_shares": 512, "oom_score_adj": 900 },
                "security_context": { "namespace_options": { "network": NODE, "pid": pid }, "no_new_privs": true }
            }
        });
        let request = json!({ "pod_sandbox_id": self.id, "config": config, "sandbox_config": self.config });
        let created = answer(&self.engine, "CreateContainer", &request);
        Container { pod: self, id: created["container_id"].as_str().unwrap().to_owned() }
    }

    fn ids(&self) -> Value {
        json!({ "pod_sandbox_id": self.id })
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let stopped = call(&self.engine, "StopPodSandbox", &self.ids());
        let removed = call(&self.engine, "RemovePodSandbox", &self.ids());
        if std::thread::panicking() {
            return;
        }
        assert!(stopped.status.success(), "{stopped}");
        assert!(removed.status.success(), "{removed}");
        host::eventually("an end of the pod without a trace", || {
            shims(&self.id).is_empty()
                && host::cgroup_dirs(&format!("{}/{}", self.engine.cgroup(), self.id)).is_empty()
                && !image::exists(self.engine.path().join("runc/k8s.io").join(&self.id))
        });
    }
}

struct Container<'a> {
    pod: &'a Pod,
    id: String,
}

impl Container<'_> {
    #[track_caller]
    fn answer(&self, method: &str, mut request: Value) -> Value {
        request["container_id"] = json!(self.id);
        answer(&self.pod.engine, method, &request)
    }

    /// ExecSync of a shell script: exit status and output.
    #[track_caller]
    fn exec(&self, script: &str) -> (i64, String) {
        let answer = self.answer("ExecSync", json!({ "cmd": ["sh", "-c", script], "timeout": 30 }));
        let code = answer["exit_code"].as_i64().unwrap_or(0);
        (code, answer["stdout"].as_str().unwrap_or_default().trim_end().to_owned())
    }

    fn state(&self) -> Value {
        self.answer("ContainerStatus", json!({}))["status"].take()
    }

    fn cgroup(&self) -> String {
        format!("{}/{}", self.pod.engine.cgroup(), self.id)
    }
}

const SLEEP: &str = "exec sleep 985";

#[test]
fn a_container_of_a_pod_lives_and_dies() {
    let pod = Pod::new(CONTAINER);
    let container = pod.container("a", CONTAINER, "trap 'exit 4' TERM; while sleep 0.1; do :; done");
    assert_eq!(container.state()["state"], 1);
    assert_eq!(container.exec("echo $A; cat /proc/1/oom_score_adj; exit 7"), (7, "b\n900".into()));
    // It has namespaces of the pod and of its own.
    let ns = |kind: &str| container.exec(&format!("readlink /proc/self/ns/{kind}")).1;
    let of_host = |kind: &str| {
        std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().to_string_lossy().into_owned()
    };
    assert_eq!(ns("net"), of_host("net"));
    assert_ne!(ns("pid"), of_host("pid"));
    assert_ne!(ns("ipc"), of_host("ipc"));
    if host::has_controller("memory") && !host::is_cgroup_v2() {
        let file = host::cgroup_dir("memory", &container.cgroup()).join("memory.limit_in_bytes");
        let limit = || std::fs::read_to_string(&file).unwrap().trim().to_owned();
        assert_eq!(limit(), (64 << 20).to_string());
        container
            .answer("UpdateContainerResources", json!({ "linux": { "memory_limit_in_bytes": 96 << 20 } }));
        assert_eq!(limit(), (96 << 20).to_string());
    }
    let stats = container.answer("ContainerStats", json!({}))["stats"].take();
    assert_eq!(stats["attributes"]["id"], json!(container.id));
    assert!(stats["cpu"]["usage_core_nano_seconds"]["value"].as_u64() > Some(0), "{stats}");
    assert!(stats["memory"]["working_set_bytes"]["value"].as_u64() > Some(0), "{stats}");
    container.answer("StopContainer", json!({ "timeout": 20 }));
    let state = container.state();
    assert_eq!((&state["state"], &state["exit_code"]), (&json!(2), &json!(4)));
    container.answer("RemoveContainer", json!({}));
    host::eventually("the end of its cgroups", || host::cgroup_dirs(&container.cgroup()).is_empty());
}

#[test]
fn containers_share_the_pid_namespace_of_their_pod() {
    let pod = Pod::new(POD);
    let one = pod.container("one", POD, "sleep 984 & exec sleep 985");
    let other = pod.container("other", POD, SLEEP);
    let (code, seen) = other.exec("readlink /proc/self/ns/pid; ps -o args");
    assert_eq!(code, 0);
    assert_eq!(seen.lines().next(), Some(one.exec("readlink /proc/self/ns/pid").1.as_str()));
    for process in ["sleep 100000", "sleep 984", "sleep 985"] {
        assert!(seen.contains(process), "{seen}");
    }
    // The end of a container is the end of all of its own processes, and of no other's.
    one.answer("StopContainer", json!({ "timeout": 0 }));
    host::eventually("the end of sleep 984", || !other.exec("ps -o args").1.contains("sleep 984"));
    assert_eq!(other.state()["state"], 1);
    assert!(other.exec("ps -o args").1.contains("sleep 100000"));
}

/// What probes do: the time limit kills the process, and the container lives on.
#[test]
fn exec_sync_has_a_time_limit() {
    let pod = Pod::new(CONTAINER);
    let container = pod.container("a", CONTAINER, SLEEP);
    let request = json!({ "container_id": container.id, "cmd": ["sleep", "983"], "timeout": 1 });
    let finished = call(&pod.engine, "ExecSync", &request);
    assert!(!finished.status.success(), "{finished}");
    finished.says("timeout 1s exceeded");
    host::eventually("its end", || !container.exec("ps -o args").1.contains("sleep 983"));
    assert_eq!(container.exec("echo still there").1, "still there");
}

#[test]
fn what_cannot_be_executed_is_said() {
    let pod = Pod::new(CONTAINER);
    let container = pod.create("a", CONTAINER, &["nosuch"]);
    let started = call(&pod.engine, "StartContainer", &json!({ "container_id": container.id }));
    started.says("exec: \"nosuch\": executable file not found in $PATH");
    let state = container.state();
    assert_eq!((&state["state"], &state["reason"]), (&json!(2), &json!("StartError")));
    let other = pod.container("b", CONTAINER, SLEEP);
    let request = json!({ "container_id": other.id, "cmd": ["nosuch"], "timeout": 30 });
    call(&pod.engine, "ExecSync", &request).says("exec: \"nosuch\": executable file not found in $PATH");
}

#[test]
fn an_oom_kill_is_told() {
    if !host::has_controller("memory") {
        return brig_tests::note("not run: there is no memory controller");
    }
    let pod = Pod::new(CONTAINER);
    let container = pod.container("a", CONTAINER, "dd if=/dev/zero of=/dev/null bs=128M");
    host::eventually("the end", || container.state()["state"] == 2);
    let state = container.state();
    assert_eq!((&state["exit_code"], &state["reason"]), (&json!(137), &json!("OOMKilled")));
}
