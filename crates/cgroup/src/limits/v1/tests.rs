use super::*;

/// `file=value` of each write.
fn writes(json: &str) -> Vec<String> {
    let converted = convert(&serde_json::from_str(json).unwrap()).unwrap();
    converted.writes.iter().map(|write| format!("{}={}", write.file, write.value)).collect()
}

fn refused(json: &str) -> String {
    convert(&serde_json::from_str(json).unwrap()).unwrap_err().to_string()
}

#[test]
fn nothing_asked_nothing_written() {
    let json = r#"{"memory":{"limit":0,"swap":0,"reservation":0},"cpu":{"shares":0,"quota":0,"period":0,
        "realtimeRuntime":0,"realtimePeriod":0,"cpus":"","mems":" "},"pids":{},"blockIO":{"weight":0},
        "network":{"classID":0},"rdma":{"mlx5_0":{}}}"#;
    assert_eq!(writes(json), [""; 0]);
}

#[test]
fn memory() {
    for (json, expected) in [
        (r#"{"limit":1024}"#, &["memory.limit_in_bytes=1024"][..]),
        (
            r#"{"limit":1024,"swap":2048}"#,
            &["memory.limit_in_bytes=1024", "memory.memsw.limit_in_bytes=2048"],
        ),
        (r#"{"limit":-1}"#, &["memory.limit_in_bytes=-1", "memory.memsw.limit_in_bytes=-1"]),
        (r#"{"limit":-1,"swap":4096}"#, &["memory.limit_in_bytes=-1", "memory.memsw.limit_in_bytes=4096"]),
        (r#"{"swap":-1}"#, &["memory.memsw.limit_in_bytes=-1"]),
        (r#"{"reservation":512}"#, &["memory.soft_limit_in_bytes=512"]),
        (r#"{"swappiness":0}"#, &["memory.swappiness=0"]),
        (r#"{"disableOOMKiller":true}"#, &["memory.oom_control=1"]),
        (r#"{"disableOOMKiller":false,"kernel":1,"kernelTCP":1,"useHierarchy":true}"#, &[]),
    ] {
        assert_eq!(writes(&format!(r#"{{"memory":{json}}}"#)), expected, "{json}");
    }
    assert_eq!(
        refused(r#"{"memory":{"swappiness":101}}"#),
        "linux.resources.memory.swappiness: invalid memory swappiness value: 101 (valid range is 0-100)"
    );
    assert_eq!(
        refused(r#"{"memory":{"limit":-2}}"#),
        "linux.resources.memory.limit: invalid memory value: -2"
    );
}

#[test]
fn implied_swap_needs_no_file() {
    let converted = convert(&serde_json::from_str(r#"{"memory":{"limit":-1}}"#).unwrap()).unwrap();
    assert_eq!(converted.writes[0].missing, Missing::Fail);
    assert_eq!(converted.writes[1].missing, Missing::Ignore);
}

#[test]
fn cpu() {
    assert_eq!(
        writes(
            r#"{"cpu":{"shares":512,"quota":50000,"period":200000,"burst":1000,"idle":0,"cpus":" 0-1 ","mems":"0",
            "realtimeRuntime":950,"realtimePeriod":1000}}"#
        ),
        [
            "cpuset.cpus=0-1",
            "cpuset.mems=0",
            "cpu.shares=512",
            "cpu.idle=0",
            "cpu.cfs_period_us=200000",
            "cpu.cfs_burst_us=1000",
            "cpu.cfs_quota_us=50000",
            "cpu.rt_period_us=1000",
            "cpu.rt_runtime_us=950",
        ]
    );
    assert_eq!(writes(r#"{"cpu":{"quota":-5}}"#), ["cpu.cfs_quota_us=-1"]);
    assert_eq!(
        refused(r#"{"cpu":{"shares":1}}"#),
        "linux.resources.cpu.shares: the minimum allowed cpu-shares is 2"
    );
    assert_eq!(
        refused(r#"{"cpu":{"shares":262145}}"#),
        "linux.resources.cpu.shares: the maximum allowed cpu-shares is 262144"
    );
}

#[test]
fn an_idle_cgroup_has_no_shares() {
    let converted = convert(&serde_json::from_str(r#"{"cpu":{"shares":512,"idle":1}}"#).unwrap()).unwrap();
    assert_eq!(converted.writes.len(), 1);
    assert_eq!(converted.skipped[0].source, "linux.resources.cpu.shares");
}

#[test]
fn pids() {
    for (limit, value) in [("7", "7"), ("0", "1"), ("-1", "max"), ("-9", "max")] {
        assert_eq!(writes(&format!(r#"{{"pids":{{"limit":{limit}}}}}"#)), [format!("pids.max={value}")]);
    }
}

#[test]
fn block_io() {
    let json = r#"{"blockIO":{"weight":100,"leafWeight":50,
        "weightDevice":[{"major":8,"minor":0,"weight":10,"leafWeight":20}],
        "throttleReadBpsDevice":[{"major":8,"minor":0,"rate":1}],"throttleWriteBpsDevice":[{"major":8,"minor":1,"rate":2}],
        "throttleReadIOPSDevice":[{"major":8,"minor":2,"rate":3}],"throttleWriteIOPSDevice":[{"major":8,"minor":3,"rate":0}]}}"#;
    assert_eq!(
        writes(json),
        [
            "blkio.weight=100",
            "blkio.leaf_weight=50",
            "blkio.weight_device=8:0 10",
            "blkio.leaf_weight_device=8:0 20",
            "blkio.throttle.read_bps_device=8:0 1",
            "blkio.throttle.write_bps_device=8:1 2",
            "blkio.throttle.read_iops_device=8:2 3",
            "blkio.throttle.write_iops_device=8:3 0",
        ]
    );
    let converted = convert(&serde_json::from_str(json).unwrap()).unwrap();
    let Missing::Instead(other) = &converted.writes[0].missing else {
        panic!("no other file for the weight");
    };
    assert_eq!((other.file.as_ref(), other.value.as_str()), ("blkio.bfq.weight", "100"));
    assert_eq!(converted.writes[5].source, "linux.resources.blockIO.throttleWriteBpsDevice[0].rate");
}

#[test]
fn the_rest() {
    assert_eq!(
        writes(
            r#"{"hugepageLimits":[{"pageSize":"2MB","limit":9}],"network":{"classID":5,
            "priorities":[{"name":"eth0","priority":3}]},"rdma":{"mlx5_0":{"hcaHandles":1,"hcaObjects":2}}}"#
        ),
        [
            "hugetlb.2MB.limit_in_bytes=9",
            "hugetlb.2MB.rsvd.limit_in_bytes=9",
            "net_cls.classid=5",
            "net_prio.ifpriomap=eth0 3",
            "rdma.max=mlx5_0 hca_handle=1 hca_object=2",
        ]
    );
}

#[test]
fn unified_is_for_v2() {
    assert_eq!(
        refused(r#"{"unified":{"memory.high":"1"}}"#),
        "linux.resources.unified: invalid configuration: cannot use unified on cgroup v1"
    );
}

#[test]
fn old_values_go_back() {
    let write = |shape| Write { shape, ..Write::new("x", "x", "8:0 5", "x") };
    let keyed = write(Shape::Keyed { key: "8:0".into(), reset: "8:0 0".into() });
    assert_eq!(keyed.undo("8:16 1\n8:0 7\n"), ["8:0 7"]);
    assert_eq!(keyed.undo("8:16 1\n"), ["8:0 0"]);
    assert!(keyed.is_in_effect("8:0 5\n"));
    let oom = Write { value: "1".into(), ..write(Shape::OomControl) };
    assert_eq!(oom.undo("oom_kill_disable 0\nunder_oom 0\n"), ["0"]);
    assert!(oom.is_in_effect("oom_kill_disable 1\n"));
    let whole = write(Shape::Whole);
    assert_eq!(whole.undo("max 100000\n"), ["max 100000"]);
    assert_eq!(whole.undo("\n"), ["\n"]);
    assert!(whole.is_in_effect("8:0 5\n"));
}
