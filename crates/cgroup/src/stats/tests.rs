use super::*;

#[test]
fn an_empty_record_has_the_members_that_go_always_writes() {
    let json = serde_json::to_string(&Stats::default()).unwrap();
    assert_eq!(
        json,
        r#"{"cpu":{},"cpuset":{"cpu_exclusive":0,"mem_hardwall":0,"mem_exclusive":0,"memory_migrate":0,"memory_spread_page":0,"memory_spread_slab":0,"memory_pressure":0,"sched_load_balance":0,"sched_relax_domain_level":0},"memory":{},"pids":{},"blkio":{},"hugetlb":{},"intel_rdt":{},"network_interfaces":null}"#
    );
}

#[test]
fn a_full_record_has_all_members_in_order() {
    let mut stats = Stats::default();
    stats.cpu.usage = CpuUsage {
        total: 3,
        percpu: vec![3],
        percpu_kernel: vec![1],
        percpu_user: vec![2],
        kernel: 1,
        user: 2,
    };
    stats.cpu.throttling.throttled_periods = 4;
    stats.cpu.psi = Some(Psi {
        some: PsiData { avg10: 1.5, avg60: 2.0, avg300: 0.0, total: 7 },
        full: PsiData::default(),
    });
    stats.memory.kernel_tcp.limit = u64::MAX;
    stats.memory.raw.insert("anon".into(), 1);
    stats.blkio.io_queued_recursive.push(BlkioEntry { major: 8, minor: 0, op: "Read".into(), value: 1 });
    stats.hugetlb.insert("2MB".into(), Hugetlb::default());
    let json = serde_json::to_string(&stats).unwrap();
    for part in [
        r#""cpu":{"usage":{"total":3,"percpu":[3],"percpu_kernel":[1],"percpu_user":[2],"kernel":1,"user":2}"#,
        r#""throttling":{"throttledPeriods":4}"#,
        r#""psi":{"some":{"avg10":1.5,"avg60":2,"avg300":0,"total":7},"full":{"avg10":0,"avg60":0,"avg300":0,"total":0}}"#,
        r#""memory":{"kernelTCP":{"limit":18446744073709551615,"failcnt":0},"raw":{"anon":1}}"#,
        r#""blkio":{"ioQueueRecursive":[{"major":8,"op":"Read","value":1}]}"#,
        r#""hugetlb":{"2MB":{"failcnt":0}}"#,
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}

#[test]
fn huge_page_names() {
    assert_eq!(huge_page_size("hugepages-2048kB").as_deref(), Some("2MB"));
    assert_eq!(huge_page_size("hugepages-1048576kB").as_deref(), Some("1GB"));
    assert_eq!(huge_page_size("hugepages-64kB").as_deref(), Some("64KB"));
    assert_eq!(huge_page_size("x"), None);
}
