//! Pods and `kube play`, where there is only cgroup v2: on a host that lacks a hierarchy of cgroup v1, Podman fails to remove its own
//! pods.

use std::fs;
use std::sync::{Arc, Mutex, Weak};

use brig_tests::host;

use super::{Caller, Podman};
use crate::image;

fn podman() -> Arc<Podman> {
    static SHARED: Mutex<Weak<Podman>> = Mutex::new(Weak::new());
    Podman::shared_in(&SHARED, Caller::Root, "v2")
}

#[test]
fn containers_of_a_pod_share_namespaces() {
    let podman = podman();
    let pod =
        ["pod", "create", "--name=shared", "--share=pid,ipc,uts", "--hostname=of-the-pod", "--cgroup-parent"];
    podman.podman(&pod).arg(&podman.cgroup).ok();
    let run = |args: &[&str]| podman.podman(&["run", "--pod=shared"]).args(args);
    run(&["--detach", "--name=one", image::NAME, "sleep", "981"]).detached().ok();
    run(&["--rm", image::NAME, "sh", "-c", "ps -o args; hostname; readlink /proc/self/ns/pid"])
        .ok()
        .says("sleep 100000")
        .says("sleep 981")
        .says("of-the-pod");
    podman.podman(&["pod", "top", "shared"]).ok().says("sleep 981");
    podman.podman(&["pod", "pause", "shared"]).ok();
    podman.podman(&["pod", "unpause", "shared"]).ok();
    podman.podman(&["exec", "one", "true"]).ok();
    let pid = podman.podman(&["inspect", "--format={{.State.Pid}}", "one"]).ok().line().parse().unwrap();
    podman.podman(&["pod", "stop", "--time=0", "shared"]).ok();
    podman.podman(&["pod", "start", "shared"]).detached().ok();
    podman.podman(&["exec", "one", "true"]).ok();
    podman.podman(&["pod", "rm", "--force", "--time=0", "shared"]).ok();
    host::eventually("the end of the process", || !host::is_alive(pid));
    assert_eq!(podman.podman(&["ps", "--all", "--quiet"]).ok().out, "");
}

#[test]
fn kube_play_runs_what_kubernetes_would() {
    let podman = podman();
    let file = podman.path().join("pod.yaml");
    let description = format!(
        r#"
apiVersion: v1
kind: Pod
metadata:
  name: played
spec:
  hostNetwork: true
  containers:
  - name: a
    image: localhost/{image}
    command: [sh, -c, "echo begun; exec sleep 980"]
    env: [{{name: A, value: b}}]
    securityContext: {{readOnlyRootFilesystem: true, runAsUser: 1000}}
    volumeMounts: [{{name: v, mountPath: /data}}]
  volumes: [{{name: v, hostPath: {{path: {dir}, type: Directory}}}}]
"#,
        image = image::NAME,
        dir = podman.path().join("home").display(),
    );
    fs::write(&file, description).unwrap();
    podman.podman(&["kube", "play"]).arg(&file).detached().ok();
    let script = "id -u; echo $A; touch /no 2>&1; ls -d /data; readlink /proc/self/ns/net";
    let seen = podman.podman(&["exec", "played-a", "sh", "-c", script]).ok();
    seen.says("1000\nb\ntouch: /no: Read-only file system\n/data");
    seen.says(&fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy());
    podman.podman(&["logs", "played-a"]).ok().says("begun");
    podman.podman(&["kube", "play", "--down"]).arg(&file).ok();
    podman.podman(&["inspect", "played-a"]).fails();
}

/// A private view of cgroup v2, writable for an init system.
#[test]
fn an_init_system_manages_its_cgroups() {
    let podman = podman();
    let script = "mkdir /sys/fs/cgroup/init.scope && echo $$ > /sys/fs/cgroup/init.scope/cgroup.procs && cat /proc/self/cgroup";
    podman.run(&["--rm", "--systemd=always"], script).ok().says("0::/init.scope");
}
