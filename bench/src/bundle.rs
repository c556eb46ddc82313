//! Bundles: one root file system, and a folder with a `config.json` for each container.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// The configurations that are measured.
#[derive(Debug)]
pub struct Bundles {
    dir: PathBuf,
    /// What `spec` writes, with `/bin/true`.
    pub default: Value,
    /// What Docker writes: its seccomp profile, masked paths, mounts and capabilities; without limits, for which a cgroup v2 beside
    /// v1 has no controllers.
    pub docker: Value,
}

impl Bundles {
    pub fn new(brig: &Path, dir: &Path) -> Self {
        brig_tests::rootfs(&dir.join("rootfs"));
        for (name, text) in [("resolv.conf", ""), ("hostname", "bench\n"), ("hosts", "127.0.0.1 localhost\n")]
        {
            fs::create_dir_all(dir.join("files")).unwrap();
            fs::write(dir.join("files").join(name), text).unwrap();
            fs::write(dir.join("rootfs/etc").join(name), "").unwrap();
        }
        let status = Command::new(brig).arg("spec").current_dir(dir).status().unwrap();
        assert!(status.success(), "spec: {status}");
        let mut default: Value = serde_json::from_slice(&fs::read(dir.join("config.json")).unwrap()).unwrap();
        // Old versions of crun take no other.
        default["ociVersion"] = json!("1.0.2");
        default["root"] = json!({ "path": dir.join("rootfs"), "readonly": false });

        let text = include_str!("../../tests/suite/check/bundles/docker-limits.json");
        let text = text.replace("@bundle@", dir.to_str().unwrap());
        let mut docker: Value = serde_json::from_str(&text).unwrap();
        let devices = docker["linux"]["resources"]["devices"].take();
        docker["linux"]["resources"] = json!({ "devices": devices });
        for config in [&mut default, &mut docker] {
            config["process"]["terminal"] = json!(false);
            config["process"]["args"] = json!(["/bin/true"]);
            let namespaces = config["linux"]["namespaces"].as_array_mut().unwrap();
            if namespaces.iter().all(|namespace| namespace["type"] != "cgroup") {
                namespaces.push(json!({ "type": "cgroup" }));
            }
        }
        Self { dir: dir.to_owned(), default, docker }
    }

    pub fn rootfs(&self) -> PathBuf {
        self.dir.join("rootfs")
    }

    /// Writes the bundle of a container, and gives its folder.
    pub fn write(&self, config: &Value, id: &str, args: &[&str]) -> PathBuf {
        let mut config = config.clone();
        config["process"]["args"] = json!(args);
        config["linux"]["cgroupsPath"] = json!(cgroup(id));
        let dir = self.dir.join("bundles").join(id);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.json"), serde_json::to_vec(&config).unwrap()).unwrap();
        dir
    }
}

/// The cgroup of a container, as `cgroupsPath` has it.
pub fn cgroup(id: &str) -> String {
    format!("/brig-test/bench/{id}")
}
