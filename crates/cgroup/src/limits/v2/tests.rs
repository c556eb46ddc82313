use proptest::prelude::*;

use super::*;

fn writes_over(json: &str, cpu_max: Option<&str>) -> Vec<String> {
    let converted = convert(&serde_json::from_str(json).unwrap(), cpu_max).unwrap();
    converted.writes.iter().map(|write| format!("{}={}", write.file, write.value)).collect()
}

fn writes(json: &str) -> Vec<String> {
    writes_over(json, None)
}

fn refused(json: &str) -> String {
    convert(&serde_json::from_str(json).unwrap(), None).unwrap_err().to_string()
}

#[test]
fn nothing_asked_nothing_written() {
    let json = r#"{"memory":{"limit":0,"swap":0,"reservation":0},"cpu":{"shares":0,"quota":0,"period":0,
        "cpus":"","mems":" "},"pids":{},"blockIO":{"weight":0},"rdma":{"mlx5_0":{}}}"#;
    assert_eq!(writes(json), [""; 0]);
}

#[test]
fn memory_and_swap() {
    for (json, expected) in [
        (r#"{"limit":1024}"#, &["memory.max=1024"][..]),
        (r#"{"limit":1024,"swap":3072}"#, &["memory.swap.max=2048", "memory.max=1024"]),
        (r#"{"limit":1024,"swap":1024}"#, &["memory.swap.max=0", "memory.max=1024"]),
        (r#"{"limit":1024,"swap":-1}"#, &["memory.swap.max=max", "memory.max=1024"]),
        (r#"{"limit":-1}"#, &["memory.swap.max=max", "memory.max=max"]),
        (r#"{"limit":-1,"swap":0}"#, &["memory.swap.max=max", "memory.max=max"]),
        (r#"{"limit":-1,"swap":4096}"#, &["memory.swap.max=4096", "memory.max=max"]),
        (r#"{"swap":-1}"#, &["memory.swap.max=max"]),
        (r#"{"reservation":512}"#, &["memory.low=512"]),
        (r#"{"reservation":-1}"#, &["memory.low=max"]),
    ] {
        assert_eq!(writes(&format!(r#"{{"memory":{json}}}"#)), expected, "{json}");
    }
    for (json, text) in [
        (r#"{"swap":1}"#, "unable to set swap limit without memory limit"),
        (r#"{"limit":2,"swap":1}"#, "memory+swap limit should be >= memory limit"),
        (r#"{"limit":2,"swap":-2}"#, "invalid memory value: -2"),
    ] {
        assert_eq!(
            refused(&format!(r#"{{"memory":{json}}}"#)),
            format!("linux.resources.memory.swap: {text}")
        );
    }
}

#[test]
fn swap_files_may_be_missing_where_nothing_is_asked_of_them() {
    for (json, missing) in [
        (r#"{"memory":{"limit":-1}}"#, Missing::Ignore),
        (r#"{"memory":{"limit":5,"swap":5}}"#, Missing::Ignore),
        (r#"{"memory":{"limit":5,"swap":6}}"#, Missing::Fail),
    ] {
        let converted = convert(&serde_json::from_str(json).unwrap(), None).unwrap();
        assert_eq!(converted.writes[0].missing, missing, "{json}");
    }
}

#[test]
fn shares_become_weight() {
    for (shares, expected) in [
        (1, 1),
        (2, 1),
        (3, 2),
        (512, 59),
        (1024, 100),
        (2048, 174),
        (262_143, 10_000),
        (262_144, 10_000),
        (u64::MAX, 10_000),
    ] {
        assert_eq!(weight(shares), expected, "{shares}");
    }
}

#[test]
fn cpu_max() {
    for (cpu, now, expected) in [
        (r#"{"quota":5000,"period":10000}"#, None, "5000 10000"),
        (r#"{"quota":5000}"#, None, "5000 100000"),
        (r#"{"quota":5000}"#, Some("max 20000\n"), "5000 20000"),
        (r#"{"quota":-1}"#, Some("7000 20000\n"), "max 20000"),
        (r#"{"quota":-1,"period":10000}"#, Some("7000 20000\n"), "max 10000"),
        (r#"{"period":10000}"#, None, "max 10000"),
        (r#"{"period":10000}"#, Some("7000 20000\n"), "7000 10000"),
    ] {
        assert_eq!(
            writes_over(&format!(r#"{{"cpu":{cpu}}}"#), now),
            [format!("cpu.max={expected}")],
            "{cpu}"
        );
    }
}

#[test]
fn order() {
    assert_eq!(
        writes(
            r#"{"unified":{"memory.high":"9","pids.max":"3"},"rdma":{"a":{"hcaHandles":1}},
            "hugepageLimits":[{"pageSize":"1GB","limit":0}],
            "cpu":{"shares":1024,"burst":5,"quota":1000,"cpus":"0","mems":"0","idle":0},
            "blockIO":{"weight":10},"memory":{"limit":1},"pids":{"limit":0}}"#
        ),
        [
            "pids.max=1",
            "memory.max=1",
            "io.bfq.weight=10",
            "cpu.idle=0",
            "cpu.weight=100",
            "cpu.max.burst=5",
            "cpu.max=1000 100000",
            "cpuset.cpus=0",
            "cpuset.mems=0",
            "hugetlb.1GB.max=0",
            "hugetlb.1GB.rsvd.max=0",
            "rdma.max=a hca_handle=1",
            "memory.high=9",
            "pids.max=3",
        ]
    );
}

#[test]
fn block_io() {
    let json = r#"{"blockIO":{"weight":500,"weightDevice":[{"major":8,"minor":0,"weight":1000}],
        "throttleReadBpsDevice":[{"major":8,"minor":0,"rate":1}],"throttleWriteBpsDevice":[{"major":8,"minor":1,"rate":2}],
        "throttleReadIOPSDevice":[{"major":8,"minor":2,"rate":3}],"throttleWriteIOPSDevice":[{"major":8,"minor":3,"rate":0}]}}"#;
    assert_eq!(
        writes(json),
        [
            "io.bfq.weight=500",
            "io.bfq.weight=8:0 1000",
            "io.max=8:0 rbps=1",
            "io.max=8:1 wbps=2",
            "io.max=8:2 riops=3",
            "io.max=8:3 wiops=max",
        ]
    );
    let converted = convert(&serde_json::from_str(json).unwrap(), None).unwrap();
    let others: Vec<_> = converted
        .writes
        .iter()
        .filter_map(|write| match &write.missing {
            Missing::Instead(other) => Some(format!("{}={}", other.file, other.value)),
            _ => None,
        })
        .collect();
    assert_eq!(others, ["io.weight=4950", "io.weight=8:0 10000"]);
    assert_eq!((io_weight(10), io_weight(1000), io_weight(5)), (1, 10_000, 1));
}

#[test]
fn what_v2_lacks_is_reported() {
    let converted = convert(
        &serde_json::from_str(
            r#"{"memory":{"swappiness":5,"disableOOMKiller":true},"cpu":{"realtimeRuntime":1,"realtimePeriod":2},
            "blockIO":{"leafWeight":5},"network":{"classID":1,"priorities":[{"name":"lo","priority":1}]}}"#,
        )
        .unwrap(),
        None,
    )
    .unwrap();
    assert!(converted.writes.is_empty());
    let sources: Vec<_> = converted.skipped.iter().map(|skipped| skipped.source.as_str()).collect();
    assert_eq!(
        sources,
        [
            "linux.resources.memory.swappiness",
            "linux.resources.memory.disableOOMKiller",
            "linux.resources.blockIO.leafWeight",
            "linux.resources.cpu.realtimePeriod",
            "linux.resources.cpu.realtimeRuntime",
            "linux.resources.network.classID",
            "linux.resources.network.priorities",
        ]
    );
}

#[test]
fn unified() {
    assert_eq!(
        writes(r#"{"unified":{"io.max":"8:0 rbps=1\n8:16 wbps=2\n","cpu.weight":"7"}}"#),
        ["cpu.weight=7", "io.max=8:0 rbps=1", "io.max=8:16 wbps=2"]
    );
    let converted =
        convert(&serde_json::from_str(r#"{"unified":{"misc.max":"a 1"}}"#).unwrap(), None).unwrap();
    assert_eq!(converted.writes[0].controller, "misc");
    assert_eq!(converted.writes[0].source, r#"linux.resources.unified["misc.max"]"#);
    assert!(
        refused(r#"{"unified":{"../memory.max":"1"}}"#)
            .ends_with(r#"unified resource "../memory.max" must be a file name (no slashes)"#)
    );
    assert!(
        refused(r#"{"unified":{"memory":"1"}}"#)
            .ends_with(r#"unified resource "memory" must be in the form CONTROLLER.PARAMETER"#)
    );
}

proptest! {
    #[test]
    fn weights_are_in_range_and_in_order(shares in 1_u64..300_000) {
        let this = weight(shares);
        prop_assert!((1..=10_000).contains(&this));
        prop_assert!(this <= weight(shares + 1));
    }

    #[test]
    fn nothing_written_leaves_the_directory(key in "[a-z./]{0,12}", value in "[a-z0-9 \n]{0,12}") {
        let mut resources = Resources::default();
        resources.unified.insert(key, value);
        if let Ok(converted) = convert(&resources, None) {
            prop_assert!(converted.writes.iter().all(|write| !write.file.contains('/') && !write.value.contains('\n')));
        }
    }
}
