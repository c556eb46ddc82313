//! Configurations as clients wrote them, through the packages of Debian 13: Docker Engine, Podman, Buildah and
//! containerd's `ctr`. In them, paths of the machine have become `@bundle@/…`, ids and times constant.

use std::fs;
use std::path::Path;

use brig_tests::{Bundle, Run, Value, host, json, only_brig, runtime};

const BUNDLES: [(&str, &str); 11] = [
    ("docker-network-hook", include_str!("bundles/docker-network-hook.json")),
    ("docker-device", include_str!("bundles/docker-device.json")),
    ("docker-read-only", include_str!("bundles/docker-read-only.json")),
    ("docker-limits", include_str!("bundles/docker-limits.json")),
    ("docker-user", include_str!("bundles/docker-user.json")),
    ("podman-volume", include_str!("bundles/podman-volume.json")),
    ("podman-joined-pid", include_str!("bundles/podman-joined-pid.json")),
    ("podman-memory", include_str!("bundles/podman-memory.json")),
    ("buildah-terminal", include_str!("bundles/buildah-terminal.json")),
    ("containerd-limits", include_str!("bundles/containerd-limits.json")),
    ("containerd-terminal", include_str!("bundles/containerd-terminal.json")),
];

/// The bundle with this configuration, and with the files that the client had made for it.
fn bundle(text: &str) -> Bundle {
    let mut b = Bundle::default();
    let text = text.replace("@bundle@", &b.path().display().to_string()).replace("@id@", &b.id);
    b.config = serde_json::from_str(&text).unwrap();
    for mount in b.config["mounts"].as_array().unwrap() {
        let source = Path::new(mount["source"].as_str().unwrap());
        if !source.starts_with(b.path().join("files")) {
            continue;
        }
        if matches!(mount["destination"].as_str(), Some("/data" | "/dev/shm")) {
            fs::create_dir_all(source).unwrap();
        } else {
            fs::create_dir_all(source.parent().unwrap()).unwrap();
            fs::write(source, "").unwrap();
        }
    }
    // A client would not ask for what the host does not have.
    let resources = b.config["linux"]["resources"].as_object_mut().unwrap();
    for controller in ["memory", "cpu", "pids"] {
        if !host::has_controller(controller) {
            resources.remove(controller);
        }
    }
    if !host::has_controller("cpuset") && resources.get("cpu").is_some_and(|cpu| cpu.get("cpus").is_some()) {
        resources["cpu"]["cpus"] = json!("");
    }
    b.write_config();
    b
}

#[test]
fn what_clients_write_is_right() {
    only_brig("check", || {
        for (name, text) in BUNDLES {
            let b = bundle(text);
            let finished = Run::new(runtime()).args(["check", "--bundle"]).arg(b.path()).run();
            assert_eq!(finished.both(), "", "{name}");
            finished.exits(0);
        }
    });
}

/// The same bundles with a slip in them.
#[test]
fn a_slip_in_what_clients_write_is_found() {
    only_brig("check", || {
        for (name, text) in BUNDLES {
            let mut b = bundle(text);
            let process = b.config["process"].as_object_mut().unwrap();
            let cwd: Value = process.remove("cwd").unwrap();
            process.insert("cdw".to_owned(), cwd);
            b.write_config();
            let finished = Run::new(runtime()).args(["check", "--bundle"]).arg(b.path()).run();
            finished
                .exits(1)
                .says("process.cwd: Cwd property must not be empty")
                .says("did you mean \"cwd\"?");
            assert_eq!(finished.out.matches("error: ").count(), 1, "{name}: {finished}");
        }
    });
}
