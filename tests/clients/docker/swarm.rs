//! A swarm of one node on loopback.

use std::sync::Arc;

use brig_tests::host;

use crate::engine::Engine;
use crate::image;

struct Service {
    engine: Arc<Engine>,
}

impl Service {
    /// A swarm, and a service of no tasks yet in it.
    fn new(script: &str) -> Self {
        let engine = Engine::of_kind("alone");
        let address = ["--advertise-addr", "127.0.0.1", "--listen-addr", "127.0.0.1:2377"];
        engine.docker(&["swarm", "init"]).args(address).ok();
        engine
            .docker(&["service", "create", "--detach", "--name=tested", "--network=host", "--replicas=0"])
            .args([
                "--no-resolve-image",
                "--limit-memory=32m",
                "--stop-grace-period=2s",
                "--update-parallelism=2",
            ])
            .args(["--restart-delay=100ms", "--update-monitor=1s", image::NAME, "sh", "-c", script])
            .ok();
        Self { engine }
    }

    fn service(&self, command: &str, flags: &[&str]) {
        self.engine.docker(&["service", command, "--detach"]).args(flags).ok();
    }

    /// Ids of the running containers.
    fn running(&self) -> Vec<String> {
        let list = self.engine.docker(&["ps", "--quiet", "--no-trunc"]).ok().out;
        list.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        host::within(90, &format!("{count} running tasks"), || self.running().len() == count);
    }

    fn cgroups(&self, id: &str) -> usize {
        host::cgroup_dirs(&format!("{}/{id}", self.engine.cgroup())).len()
    }
}

const TASK: &str = "trap 'exit 0' TERM; while sleep 0.2; do :; done";

#[test]
fn a_service_grows_is_updated_and_shrinks() {
    let many = if brig_tests::is_full() { 20 } else { 8 };
    let service = Service::new(TASK);
    service.service("scale", &[&format!("tested={many}")]);
    service.wait_for(many);
    let first = service.running();

    // A task that is killed is replaced.
    service.engine.docker(&["kill", &first[0]]).ok();
    host::within(60, "another task", || {
        let now = service.running();
        now.len() == many && !now.contains(&first[0])
    });

    // One that the kernel kills too.
    let about = service.engine.docker(&["inspect", "--format={{.State.Pid}}", &first[1]]).ok();
    host::kill(about.line().parse().unwrap());
    host::within(60, "another task", || {
        let now = service.running();
        now.len() == many && !now.contains(&first[1])
    });

    service.service("scale", &["tested=6"]);
    service.wait_for(6);
    let old = service.running();
    service.service("update", &["--env-add=VERSION=2", "tested"]);
    host::within(90, "the update", || {
        let now = service.running();
        now.len() == 6 && now.iter().all(|id| !old.contains(id))
    });
    let about = service.engine.docker(&["exec", &service.running()[0], "sh", "-c", "echo $VERSION"]).ok();
    assert_eq!(about.line(), "2");

    let last = service.running();
    service.service("scale", &["tested=0"]);
    service.wait_for(0);
    host::eventually("the end of all cgroups", || {
        first.iter().chain(&last).all(|id| service.cgroups(id) == 0)
    });
    service.engine.docker(&["service", "rm", "tested"]).ok();
}
