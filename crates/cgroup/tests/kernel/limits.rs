//! Limits, and what is said when they cannot be had.

use brig_cgroup::Cgroup;

use crate::view::{Process, View, content, in_host_view, in_v2_view, resources, soon};

/// Runs `body` on a v1 or hybrid host.
fn on_v1(test: &str, body: fn(&View)) {
    if brig_cgroup::Layout::detect().is_ok_and(|layout| layout.mode != brig_cgroup::Mode::V2) {
        in_host_view(test, body);
    }
}

#[test]
fn v1_values_arrive() {
    on_v1("limits::v1_values_arrive", |view| {
        let limits = resources(
            r#"{"memory":{"limit":67108864,"swap":134217728,"reservation":33554432,"swappiness":10,"disableOOMKiller":true},
            "cpu":{"shares":512,"quota":50000,"period":200000,"burst":10000,"cpus":"0","mems":"0"},"pids":{"limit":33}}"#,
        );
        let cgroup = Cgroup::make(&view.names("x"), &limits).unwrap();
        assert!(cgroup.apply(&limits).unwrap().is_empty());
        for (controller, file, value) in [
            ("memory", "memory.limit_in_bytes", "67108864"),
            ("memory", "memory.memsw.limit_in_bytes", "134217728"),
            ("memory", "memory.soft_limit_in_bytes", "33554432"),
            ("memory", "memory.swappiness", "10"),
            ("cpu", "cpu.shares", "512"),
            ("cpu", "cpu.cfs_quota_us", "50000"),
            ("cpu", "cpu.cfs_period_us", "200000"),
            ("cpu", "cpu.cfs_burst_us", "10000"),
            ("cpuset", "cpuset.cpus", "0"),
            ("cpuset", "cpuset.mems", "0"),
            ("pids", "pids.max", "33"),
        ] {
            assert_eq!(content(view.dir("x", controller).join(file)), value, "{file}");
        }
        let stats = cgroup.stats().unwrap();
        assert_eq!(stats.memory.usage.limit, 67_108_864);
        assert_eq!(stats.memory.swap.limit, 134_217_728);
        assert_eq!(stats.pids.limit, 33);
        assert_eq!(stats.cpuset.cpus, [0]);
        assert_eq!(cgroup.effective_cpus().unwrap().unwrap(), [0]);
    });
}

#[test]
fn v1_memory_up_and_down() {
    on_v1("limits::v1_memory_up_and_down", |view| {
        let cgroup = view.make("x");
        let memory =
            |limit: i64, swap: i64| resources(&format!(r#"{{"memory":{{"limit":{limit},"swap":{swap}}}}}"#));
        const MB: i64 = 1 << 20;
        for (limit, swap) in
            [(64 * MB, 64 * MB), (256 * MB, 512 * MB), (32 * MB, 40 * MB), (-1, -1), (MB, MB)]
        {
            cgroup.update(&memory(limit, swap)).unwrap();
            for (file, value) in [("memory.limit_in_bytes", limit), ("memory.memsw.limit_in_bytes", swap)] {
                let found: i64 = content(view.dir("x", "memory").join(file)).parse().unwrap();
                assert!(found == value || (value == -1 && found > 1 << 60), "{file} {found}");
            }
        }
        cgroup.update(&resources(r#"{"memory":{"limit":-1}}"#)).unwrap();
        let swap: u64 = content(view.dir("x/memory.memsw.limit_in_bytes", "memory")).parse().unwrap();
        assert!(swap > 1 << 60);
    });
}

#[test]
fn v1_bandwidth_in_any_order() {
    on_v1("limits::v1_bandwidth_in_any_order", |view| {
        let cgroup = view.make("x");
        for (quota, period, burst) in
            [(20_000, 100_000, 10_000), (2_000, 2_000, 0), (90_000, 100_000, 90_000)]
        {
            let cpu = format!(r#"{{"cpu":{{"quota":{quota},"period":{period},"burst":{burst}}}}}"#);
            cgroup.update(&resources(&cpu)).unwrap();
            let value = |file: &str| content(view.dir("x", "cpu").join(file));
            assert_eq!(value("cpu.cfs_quota_us"), quota.to_string());
            assert_eq!(value("cpu.cfs_period_us"), period.to_string());
            assert_eq!(value("cpu.cfs_burst_us"), burst.to_string());
        }
        // A burst above the quota is refused in any order, and leaves all as it was.
        let error = cgroup
            .update(&resources(r#"{"cpu":{"quota":5000,"period":100000,"burst":80000}}"#))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("linux.resources.cpu.quota: writing \"5000\" to"), "{error}");
        assert_eq!(content(view.dir("x/cpu.cfs_quota_us", "cpu")), "90000");
        assert_eq!(content(view.dir("x/cpu.cfs_burst_us", "cpu")), "90000");
    });
}

#[test]
fn v1_idle_and_back() {
    on_v1("limits::v1_idle_and_back", |view| {
        let cgroup = view.make("x");
        if !view.dir("x/cpu.idle", "cpu").exists() {
            println!("skipped: no cpu.idle before Linux 5.15");
            return;
        }
        cgroup.update(&resources(r#"{"cpu":{"idle":1}}"#)).unwrap();
        let error = cgroup.update(&resources(r#"{"cpu":{"shares":500}}"#)).unwrap_err().to_string();
        assert!(error.contains("the cgroup is idle"), "{error}");
        cgroup.update(&resources(r#"{"cpu":{"idle":0,"shares":500}}"#)).unwrap();
        assert_eq!(content(view.dir("x/cpu.shares", "cpu")), "500");
    });
}

#[test]
fn v1_all_or_nothing() {
    on_v1("limits::v1_all_or_nothing", |view| {
        let cgroup = view.make("x");
        cgroup
            .update(&resources(
                r#"{"memory":{"limit":67108864,"swap":67108864},"cpu":{"shares":700,"cpus":"0"},"pids":{"limit":10}}"#,
            ))
            .unwrap();
        let error = cgroup
            .update(&resources(
                r#"{"memory":{"limit":33554432,"swap":134217728,"swappiness":3},"cpu":{"shares":300,"cpus":"0"},
                "pids":{"limit":20},"hugepageLimits":[{"pageSize":"3MB","limit":0}]}"#,
            ))
            .unwrap_err()
            .to_string();
        let mounted = view.names("x").groups.iter().any(|group| group.controllers == ["hugetlb"]);
        let expected = if mounted {
            "linux.resources.hugepageLimits[0].limit: this kernel offers no /"
        } else {
            "linux.resources.hugepageLimits[0].limit: cgroup controller \"hugetlb\" is not available: it is not mounted"
        };
        assert!(error.starts_with(expected), "{error}");
        for (controller, file, value) in [
            ("memory", "memory.limit_in_bytes", "67108864"),
            ("memory", "memory.memsw.limit_in_bytes", "67108864"),
            ("cpu", "cpu.shares", "700"),
            ("pids", "pids.max", "10"),
        ] {
            assert_eq!(content(view.dir("x", controller).join(file)), value, "{file}");
        }
    });
}

#[test]
fn v1_memory_in_use() {
    on_v1("limits::v1_memory_in_use", |view| {
        let cgroup = view.make("x");
        let mut process = Process::sh(
            &cgroup,
            r#"x=$(head -c 20000000 /dev/zero | tr '\0' x); echo ready; while :; do :; done; echo "$x""#,
        );
        assert_eq!(process.line(), "ready");
        cgroup.freeze(soon()).unwrap();
        let error = cgroup
            .update(&resources(r#"{"memory":{"limit":1048576,"checkBeforeUpdate":true}}"#))
            .unwrap_err()
            .to_string();
        assert!(error.contains("rejecting memory limit 1048576 <= usage "), "{error}");
        let error = cgroup.update(&resources(r#"{"memory":{"limit":1048576}}"#)).unwrap_err().to_string();
        assert!(error.contains("unable to set memory limit to 1048576 (current usage: "), "{error}");
        cgroup.thaw().unwrap();
        cgroup.kill_all(soon()).unwrap();
    });
}

#[test]
fn v1_refusals_name_their_place() {
    on_v1("limits::v1_refusals_name_their_place", |view| {
        let cgroup = view.make("x");
        for (json, start, end) in [
            (
                r#"{"cpu":{"cpus":"4000"}}"#,
                "linux.resources.cpu.cpus: writing \"4000\" to /sys/fs/cgroup/cpuset/brig-test/",
                " (not all of these exist or belong to the cgroup above)",
            ),
            (
                r#"{"unified":{"memory.high":"1"}}"#,
                "linux.resources.unified: invalid configuration: cannot use unified on cgroup v1",
                "",
            ),
            (
                r#"{"cpu":{"cpus":"nonsense"}}"#,
                "linux.resources.cpu.cpus: writing \"nonsense\" to /sys/fs/cgroup/cpuset/brig-test/",
                "",
            ),
        ] {
            let error = cgroup.apply(&resources(json)).unwrap_err().to_string();
            assert!(error.starts_with(start) && error.ends_with(end), "{error}");
        }
    });
}

#[test]
fn v2_missing_controllers_are_named() {
    in_v2_view("limits::v2_missing_controllers_are_named", |view| {
        let cgroup = view.make("x");
        for (json, controller, text) in [
            (
                r#"{"memory":{"limit":1048576}}"#,
                "memory",
                "linux.resources.memory.limit: cgroup controller \"memory\" is not available in /sys/fs/cgroup/brig-test/",
            ),
            (
                r#"{"unified":{"pids.max":"5"}}"#,
                "pids",
                "unified resource \"pids.max\" can't be set: controller \"pids\" not available",
            ),
            (
                r#"{"unified":{"cgroup.nonsense":"5"}}"#,
                "",
                "linux.resources.unified[\"cgroup.nonsense\"]: this kernel offers no /sys/fs/cgroup/brig-test/",
            ),
        ] {
            if !controller.is_empty()
                && content(view.dir("x/cgroup.controllers", "")).split(' ').any(|name| name == controller)
            {
                continue;
            }
            let error = cgroup.apply(&resources(json)).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        // What is so anyway takes no controller.
        cgroup.apply(&resources(r#"{"pids":{"limit":-1},"memory":{"limit":-1}}"#)).unwrap();
        cgroup.apply(&resources(r#"{"unified":{"cgroup.max.depth":"3"}}"#)).unwrap();
        assert_eq!(content(view.dir("x/cgroup.max.depth", "")), "3");
    });
}

#[test]
fn v2_huge_pages() {
    in_v2_view("limits::v2_huge_pages", |view| {
        let cgroup = view.make("x");
        let enabled = content(view.dir("x/cgroup.controllers", ""));
        if !enabled.split(' ').any(|name| name == "hugetlb") || !view.dir("x/hugetlb.2MB.max", "").exists() {
            println!("skipped: no hugetlb controller here, only {enabled:?}");
            return;
        }
        let two = |limit: u64| {
            resources(&format!(r#"{{"hugepageLimits":[{{"pageSize":"2MB","limit":{limit}}}]}}"#))
        };
        cgroup.apply(&two(4_194_304)).unwrap();
        assert_eq!(content(view.dir("x/hugetlb.2MB.max", "")), "4194304");
        assert_eq!(content(view.dir("x/hugetlb.2MB.rsvd.max", "")), "4194304");
        let error = cgroup
            .update(&resources(
                r#"{"hugepageLimits":[{"pageSize":"2MB","limit":0},{"pageSize":"3MB","limit":0}]}"#,
            ))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("linux.resources.hugepageLimits[1].limit: this kernel offers no"),
            "{error}"
        );
        assert_eq!(content(view.dir("x/hugetlb.2MB.max", "")), "4194304");
        let stats = cgroup.stats().unwrap();
        assert!(stats.hugetlb.contains_key("2MB"));
    });
}

/// Where all v2 controllers are: a virtual machine, or a host of today.
#[test]
fn v2_values_arrive() {
    in_v2_view("limits::v2_values_arrive", |view| {
        let limits = resources(
            r#"{"memory":{"limit":67108864,"swap":134217728,"reservation":33554432},
            "cpu":{"shares":2048,"quota":50000,"period":200000,"burst":10000,"cpus":"0","mems":"0"},
            "pids":{"limit":33},"unified":{"memory.high":"50331648"}}"#,
        );
        let cgroup = Cgroup::make(&view.names("x"), &limits).unwrap();
        let enabled = content(view.dir("x/cgroup.controllers", ""));
        if !["cpu", "cpuset", "memory", "pids"]
            .iter()
            .all(|name| enabled.split(' ').any(|have| have == *name))
        {
            println!("skipped: the controllers here are only {enabled:?}");
            return;
        }
        assert!(cgroup.apply(&limits).unwrap().is_empty());
        let value = |file: &str| content(view.dir("x", "").join(file));
        for (file, expected) in [
            ("memory.max", "67108864"),
            ("memory.low", "33554432"),
            ("memory.high", "50331648"),
            ("cpu.weight", "174"),
            ("cpu.max", "50000 200000"),
            ("cpu.max.burst", "10000"),
            ("cpuset.cpus", "0"),
            ("cpuset.mems", "0"),
            ("pids.max", "33"),
        ] {
            assert_eq!(value(file), expected, "{file}");
        }
        // Row 34 of the cases: a quota taken away while the memory changes.
        cgroup.update(&resources(r#"{"cpu":{"quota":-1,"burst":0},"memory":{"limit":33554432}}"#)).unwrap();
        assert_eq!(value("cpu.max"), "max 200000");
        assert_eq!(value("memory.max"), "33554432");
        let error = cgroup
            .update(&resources(r#"{"pids":{"limit":7},"cpu":{"quota":1000,"burst":90000,"cpus":"0"}}"#))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("linux.resources.cpu.quota: "), "{error}");
        assert_eq!((value("pids.max"), value("cpu.max")), ("33".into(), "max 200000".into()));
        let stats = cgroup.stats().unwrap();
        assert_eq!((stats.pids.limit, stats.memory.usage.limit), (33, 33_554_432));
        assert_eq!(cgroup.effective_cpus().unwrap().unwrap(), [0]);
    });
}
