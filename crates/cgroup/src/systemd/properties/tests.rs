use super::*;

fn resources(json: &str) -> Resources {
    serde_json::from_str(json).unwrap()
}

fn shown(properties: &[Property]) -> Vec<String> {
    properties
        .iter()
        .map(|p| format!("{}{}={}", p.name, if p.optional { "?" } else { "" }, p.value))
        .collect()
}

fn on_v2(json: &str) -> Vec<String> {
    shown(&limits(&resources(json), Mode::V2, None).unwrap().properties)
}

fn on_v1(json: &str) -> Vec<String> {
    shown(&limits(&resources(json), Mode::Hybrid, None).unwrap().properties)
}

#[test]
fn memory_and_tasks() {
    let json = r#"{"memory":{"limit":1048576,"reservation":4096,"swap":2097152},"pids":{"limit":10}}"#;
    assert_eq!(
        on_v2(json),
        [
            "TasksMax=uint64 10",
            "MemorySwapMax?=uint64 1048576",
            "MemoryMax=uint64 1048576",
            "MemoryLow=uint64 4096"
        ]
    );
    assert_eq!(on_v1(json), ["MemoryLimit=uint64 1048576", "TasksMax=uint64 10"]);
    let unlimited = "18446744073709551615";
    assert_eq!(on_v2(r#"{"pids":{"limit":-1}}"#), [format!("TasksMax=uint64 {unlimited}")]);
    assert_eq!(on_v2(r#"{"pids":{"limit":0}}"#), ["TasksMax=uint64 1"]);
}

#[test]
fn cpu() {
    assert_eq!(
        on_v2(r#"{"cpu":{"shares":1024,"quota":50000,"period":100000,"cpus":"0-2,9","mems":"0"}}"#),
        [
            "CPUWeight=uint64 100",
            "CPUQuotaPeriodUSec?=uint64 100000",
            "CPUQuotaPerSecUSec=uint64 500000",
            "AllowedCPUs?=[byte 0x07, byte 0x02]",
            "AllowedMemoryNodes?=[byte 0x01]"
        ]
    );
    assert_eq!(on_v2(r#"{"cpu":{"idle":1,"shares":2}}"#), ["CPUWeight?=uint64 0"]);
    assert_eq!(
        on_v1(r#"{"cpu":{"shares":2,"quota":1000}}"#),
        ["CPUShares=uint64 2", "CPUQuotaPeriodUSec?=uint64 100000", "CPUQuotaPerSecUSec=uint64 10000"]
    );
}

#[test]
fn cpu_time_is_rounded_up_to_percents() {
    for (quota, period, share, rounded) in [
        (50_000, 100_000, 500_000, false),
        (12_345, 100_000, 130_000, true),
        (1, 1_000_000, 10_000, true),
        (200_000, 100_000, 2_000_000, false),
        (10_000, 33_333, 310_000, true),
    ] {
        let json = format!(r#"{{"cpu":{{"quota":{quota},"period":{period}}}}}"#);
        let limits = limits(&resources(&json), Mode::V2, None).unwrap();
        assert_eq!(limits.rounded, rounded, "{json}");
        assert!(shown(&limits.properties).contains(&format!("CPUQuotaPerSecUSec=uint64 {share}")), "{json}");
    }
}

#[test]
fn input_and_output() {
    let json = r#"{"blockIO":{"weight":500,
        "throttleReadBpsDevice":[{"major":8,"minor":0,"rate":100},{"major":8,"minor":16,"rate":200}],
        "throttleWriteIOPSDevice":[{"major":8,"minor":0,"rate":0}]}}"#;
    assert_eq!(
        on_v2(json),
        [
            "IOWeight=uint64 4950",
            "IOReadBandwidthMax?=[(\"/dev/block/8:0\", uint64 100), (\"/dev/block/8:16\", uint64 200)]",
            "IOWriteIOPSMax?=[(\"/dev/block/8:0\", uint64 18446744073709551615)]"
        ]
    );
    assert_eq!(on_v1(json), ["BlockIOWeight=uint64 500"]);
}

#[test]
fn unified_wins_and_what_systemd_has_not_is_left_to_files() {
    let json = r#"{"pids":{"limit":5},"hugepageLimits":[{"pageSize":"2MB","limit":4096}],"unified":{
        "pids.max":"7","memory.high":"max","memory.oom.group":"1","cpu.max":"max 50000","misc.max":"x 1","cpu.idle":"1"}}"#;
    let unlimited = "18446744073709551615";
    assert_eq!(
        on_v2(json),
        [
            "CPUWeight?=uint64 0".to_owned(),
            "CPUQuotaPeriodUSec?=uint64 50000".to_owned(),
            format!("CPUQuotaPerSecUSec=uint64 {unlimited}"),
            format!("MemoryHigh=uint64 {unlimited}"),
            "OOMPolicy?=\"kill\"".to_owned(),
            "TasksMax=uint64 7".to_owned()
        ]
    );
}

#[test]
fn devices() {
    let rules = |json: &str| shown(&device_rules(&resources(json)).unwrap());
    assert_eq!(rules("{}"), [""; 0]);
    assert_eq!(rules(r#"{"devices":[{"allow":true,"access":"rwm"}]}"#), ["DevicePolicy=\"auto\""]);
    assert_eq!(
        rules(
            r#"{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":1,"minor":3,"access":"rw"}]}"#
        ),
        ["DevicePolicy=\"strict\"", "DeviceAllow=[(\"/dev/char/1:3\", \"rw\")]"]
    );
    assert_eq!(
        rules(r#"{"devices":[{"allow":false,"access":"rwm"}]}"#),
        ["DevicePolicy=\"strict\"", "DeviceAllow=@a(ss) []"]
    );
}

#[test]
fn annotations_are_gvariant_text() {
    let read = |name: &str, text: &str| {
        annotations(&[(name.to_owned(), text.to_owned())])
            .map(|properties| shown(&properties).concat())
            .map_err(|error| error.to_string())
    };
    assert_eq!(read("TimeoutStopUSec", "uint64 5000000").unwrap(), "TimeoutStopUSec=uint64 5000000");
    assert_eq!(read("TimeoutStopSec", "5").unwrap(), "TimeoutStopUSec=uint64 5000000");
    assert_eq!(read("TimeoutStopSec", "1.5").unwrap(), "TimeoutStopUSec=uint64 1500000");
    assert_eq!(read("CollectMode", "'inactive-or-failed'").unwrap(), "CollectMode=\"inactive-or-failed\"");
    assert_eq!(
        read("TimeoutStopSec", "'x'").unwrap_err(),
        "annotations[\"org.systemd.property.TimeoutStopSec\"]: annotation org.systemd.property.TimeoutStopSec='x' \
         value parse error: not a number of seconds"
    );
    assert!(read("TimeoutStopSec", "-1").is_err());
    assert!(read("X", "[").unwrap_err().contains("value parse error: at byte 1"));
}
