use std::path::PathBuf;

use crate::testing::Case;
use crate::{Host, IdMap, IdMaps, Ns, TimeOffsets};

const MAPS: &str = r#""uidMappings":[{"hostID":1000,"size":1}],"gidMappings":[{"hostID":1000,"size":1}]"#;

fn user(members: &str) -> Case {
    Case::linux(&format!(r#"{{"namespaces":[{{"type":"user"}}]{members}}}"#))
}

fn joined(members: &str, maps: Option<(u32, u32)>) -> Case {
    let mut case = Case::linux(&format!(r#"{{"namespaces":[{{"type":"user","path":"/n"}}]{members}}}"#));
    case.host.joined_user_namespace = maps.map(|(uid, gid)| IdMaps {
        uid: vec![IdMap { inside: 0, outside: uid, count: 1 }],
        gid: vec![IdMap { inside: 0, outside: gid, count: 1 }],
    });
    case
}

#[test]
fn namespaces_are_new_joined_or_the_hosts() {
    let case = Case::linux(
        r#"{"namespaces":[{"type":"pid"},{"type":"network","path":"/run/netns/a"},{"type":"ipc","path":"x"},
            {"type":"mount"},{"type":"uts"},{"type":"cgroup"},{"type":"time"}]}"#,
    );
    let namespaces = case.plan().namespaces;
    assert_eq!(namespaces.pid, Ns::New);
    assert_eq!(namespaces.network, Ns::Join("/run/netns/a".into()));
    assert_eq!(namespaces.ipc, Ns::Join("/b/x".into()));
    assert_eq!(namespaces.user, Ns::Host);
    for new in [namespaces.mount, namespaces.uts, namespaces.cgroup, namespaces.time] {
        assert_eq!(new, Ns::New);
    }
}

#[test]
fn every_type_is_known() {
    assert!(super::TYPES.is_sorted());
    for kind in super::TYPES {
        let case = Case::linux(&format!(r#"{{{MAPS},"namespaces":[{{"type":"{kind}"}}]}}"#));
        let unknown = case.complaints().iter().any(|text| text.contains("does not exist"));
        assert!(!unknown, "{kind}");
    }
}

#[test]
fn bad_lists_are_refused() {
    for (list, expected) in [
        (r#"{"type":"x"}"#, "linux.namespaces[0].type: namespace {\"x\" \"\"} does not exist"),
        (r#"{"type":"","path":"/p"}"#, "linux.namespaces[0].type: namespace {\"\" \"/p\"} does not exist"),
        (
            r#"{"type":"pid"},{"type":"pid"}"#,
            "linux.namespaces[1]: malformed spec file: duplicated ns {\"pid\" \"\"}",
        ),
        (
            r#"{"type":"ipc","path":"/a"},{"type":"ipc"}"#,
            "linux.namespaces[1]: malformed spec file: duplicated ns {\"ipc\" \"\"}",
        ),
        (r#"{"type":"pid","path":"/a,b"}"#, "linux.namespaces[0].path: invalid namespace path /a,b"),
    ] {
        assert_eq!(Case::linux(&format!(r#"{{"namespaces":[{list}]}}"#)).complaints(), [expected]);
    }
}

#[test]
fn the_kernel_must_have_them() {
    let host =
        Host { user_namespaces: false, cgroup_namespaces: false, time_namespaces: false, ..Host::default() };
    for kind in ["user", "cgroup", "time"] {
        let mut case = Case::linux(&format!(r#"{{{MAPS},"namespaces":[{{"type":"{kind}"}}]}}"#));
        case.host = host.clone();
        let expected = format!("linux.namespaces[0].type: {kind} namespaces aren't enabled in the kernel");
        assert!(case.complaints().contains(&expected), "{kind}");
    }
}

#[test]
fn a_new_user_namespace_needs_mappings() {
    let expected = "linux.uidMappings: user namespaces enabled, but no namespace path to join nor mappings to apply specified";
    assert_eq!(user("").complaints(), [expected]);
    let expected = "linux.gidMappings: user namespaces enabled, but no gid mappings found";
    assert_eq!(user(r#","uidMappings":[{"size":1}]"#).complaints(), [expected]);
    let expected = "linux.uidMappings: user namespaces enabled, but no uid mappings found";
    assert_eq!(user(r#","gidMappings":[{"size":1}]"#).complaints(), [expected]);
}

#[test]
fn root_must_be_mapped() {
    let case = user(r#","uidMappings":[{"containerID":1,"size":1}],"gidMappings":[{"size":1}]"#);
    let expected = "linux.uidMappings: user namespaces enabled, but no mapping found for uid 0";
    assert_eq!(case.complaints()[0], expected);
}

#[test]
fn mappings_of_a_new_namespace_are_planned() {
    let range = IdMap { inside: 0, outside: 1000, count: 1 };
    assert_eq!(user(&format!(",{MAPS}")).plan().id_maps, IdMaps { uid: vec![range], gid: vec![range] });
}

#[test]
fn mappings_without_a_namespace_have_no_effect() {
    let case = Case::linux(&format!("{{{MAPS}}}"));
    let expected = "linux.uidMappings: id mappings have no effect without a user namespace";
    assert_eq!(case.complaints(), [expected]);
    assert!(case.draft().value.id_maps.is_empty());
}

#[test]
fn a_joined_namespace_has_its_mappings() {
    let case = joined("", Some((5, 6)));
    assert_eq!(case.plan().id_maps.outside_uid(0), Some(5));
    let case = joined(&format!(",{MAPS}"), Some((1000, 1000)));
    let expected = "linux.uidMappings: id mappings have no effect with a user namespace path; they match those of the namespace";
    assert_eq!(case.complaints(), [expected]);
    let case = joined(&format!(",{MAPS}"), Some((1000, 5)));
    let expected = "linux.uidMappings: user namespaces enabled, but both namespace path and non-matching mapping specified -- you may only provide one";
    assert_eq!(case.complaints(), [expected]);
}

#[test]
fn without_root_a_user_namespace_is_a_must() {
    let mut case = Case::bare();
    case.host.euid = 1000;
    case.host.user_namespaces = false;
    assert_eq!(case.complaints(), ["linux.namespaces: rootless container requires user namespaces"]);
    let mut case = user("");
    case.host.euid = 1000;
    let expected = [
        "linux.uidMappings: rootless containers requires at least one UID mapping",
        "linux.gidMappings: rootless containers requires at least one GID mapping",
    ];
    assert_eq!(case.complaints(), expected);
    let mut case = joined("", Some((1000, 1000)));
    case.host.euid = 1000;
    assert_eq!(case.complaints(), [""; 0]);
}

#[test]
fn without_root_a_user_namespace_is_made() {
    let maps = |uid: u32, subordinate: &[(u32, u32)]| {
        let mut case = Case::bare();
        case.host.euid = 1000;
        case.host.subordinate.egid = 1000;
        case.host.subordinate.uid = subordinate.to_vec();
        case.host.subordinate.gid = subordinate.to_vec();
        let user = &mut case.spec.process.as_mut().unwrap().user;
        (user.uid, user.gid) = (uid, uid);
        let plan = case.draft();
        let errors = plan.problems.iter().filter(|p| p.severity == crate::Severity::Error).count();
        assert_eq!(plan.value.namespaces.user, Ns::New);
        assert_eq!(plan.value.id_maps.uid, plan.value.id_maps.gid);
        let maps = plan.value.id_maps.uid.iter().map(|map| (map.inside, map.outside, map.count));
        (maps.collect::<Vec<_>>(), errors)
    };
    assert_eq!(maps(0, &[]), (vec![(0, 1000, 1)], 0));
    assert_eq!(maps(0, &[(100_000, 65536)]), (vec![(0, 1000, 1), (1, 100_000, 65536)], 0));
    let around = vec![(0, 100_000, 7), (7, 1000, 1), (8, 100_007, 93)];
    assert_eq!(maps(7, &[(100_000, 100)]), (around, 0));
    let two = vec![(0, 5, 3), (3, 100, 4), (7, 1000, 1), (8, 104, 6)];
    assert_eq!(maps(7, &[(5, 3), (100, 10)]), (two, 0));
    // Nobody is root in it.
    assert_eq!(maps(7, &[]), (vec![(7, 1000, 1)], 2));
}

fn time(namespace: &str, offsets: &str) -> Case {
    Case::linux(&format!(r#"{{"namespaces":[{namespace}],"timeOffsets":{offsets}}}"#))
}

#[test]
fn offsets_are_read() {
    let case = time(r#"{"type":"time"}"#, r#"{"monotonic":{"secs":-5,"nanosecs":7},"boottime":{"secs":1}}"#);
    let expected = TimeOffsets { monotonic: Some((-5, 7)), boottime: Some((1, 0)) };
    assert_eq!(case.plan().time_offsets, expected);
    assert_eq!(time(r#"{"type":"pid"}"#, "{}").plan().time_offsets, TimeOffsets::default());
}

#[test]
fn offsets_need_a_new_time_namespace() {
    let offsets = r#"{"monotonic":{"secs":1}}"#;
    let expected =
        "linux.timeOffsets: time namespace offsets specified, but time namespace isn't enabled in the config";
    assert_eq!(time("", offsets).complaints(), [expected]);
    let expected = "linux.timeOffsets: time namespace enabled, but both namespace path and time offsets specified -- you may only provide one";
    assert_eq!(time(r#"{"type":"time","path":"/t"}"#, offsets).complaints(), [expected]);
}

#[test]
fn offsets_are_checked() {
    let of = |offsets| time(r#"{"type":"time"}"#, offsets).complaints();
    let expected = "linux.timeOffsets: clock \"realtime\" has no offset, only monotonic and boottime do";
    assert_eq!(of(r#"{"realtime":{}}"#), [expected]);
    let expected = "linux.timeOffsets.boottime.nanosecs: 1000000000 is a second or more";
    assert_eq!(of(r#"{"boottime":{"nanosecs":1000000000}}"#), [expected]);
}

#[test]
fn paths_are_kept_as_written() {
    let case = Case::linux(r#"{"namespaces":[{"type":"pid","path":"/proc/5/ns/../ns/pid"}]}"#);
    assert_eq!(case.plan().namespaces.pid, Ns::Join(PathBuf::from("/proc/5/ns/../ns/pid")));
}
