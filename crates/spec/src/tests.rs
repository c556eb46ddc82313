use proptest::prelude::*;
use serde_json::Value;

use crate::read::Object;
use crate::*;

/// A configuration in which every member of every object is present.
const EVERY_MEMBER: &str = include_str!("tests/every_member.json");

fn read(text: &str) -> Spec {
    Spec::from_slice(text.as_bytes()).unwrap().0
}

fn error(text: &str) -> String {
    Spec::from_slice(text.as_bytes()).unwrap_err().to_string()
}

fn unknown(text: &str) -> Vec<String> {
    Spec::from_slice(text.as_bytes()).unwrap().1.into_iter().map(|key| key.path).collect()
}

#[test]
fn every_member_survives_reading_and_writing() {
    let (spec, unknown) = Spec::from_slice(EVERY_MEMBER.as_bytes()).unwrap();
    assert_eq!(unknown, []);
    let expected: Value = serde_json::from_str(EVERY_MEMBER).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), expected);
    let again: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(again, spec);
}

#[test]
fn the_sample_has_every_member() {
    fn check<T: Object>(ignored: &[&str]) {
        for key in T::KEYS {
            assert!(
                ignored.contains(key) || EVERY_MEMBER.contains(&format!("\"{key}\":")),
                "{key} is missing"
            );
        }
    }
    check::<Spec>(&["solaris", "windows", "vm", "zos", "freebsd"]);
    check::<Process>(&["commandLine"]);
    check::<User>(&["username"]);
    check::<IntelRdt>(&["enableCMT", "enableMBM"]);
    check::<ConsoleSize>(&[]);
    check::<Capabilities>(&[]);
    check::<Rlimit>(&[]);
    check::<Scheduler>(&[]);
    check::<IoPriority>(&[]);
    check::<ExecCpuAffinity>(&[]);
    check::<Root>(&[]);
    check::<Mount>(&[]);
    check::<Hooks>(&[]);
    check::<Hook>(&[]);
    check::<Linux>(&[]);
    check::<IdMapping>(&[]);
    check::<Namespace>(&[]);
    check::<Device>(&[]);
    check::<NetDevice>(&[]);
    check::<MemoryPolicy>(&[]);
    check::<Personality>(&[]);
    check::<TimeOffset>(&[]);
    check::<Resources>(&[]);
    check::<DeviceRule>(&[]);
    check::<Memory>(&[]);
    check::<Cpu>(&[]);
    check::<Pids>(&[]);
    check::<BlockIo>(&[]);
    check::<WeightDevice>(&[]);
    check::<ThrottleDevice>(&[]);
    check::<HugepageLimit>(&[]);
    check::<Network>(&[]);
    check::<InterfacePriority>(&[]);
    check::<Rdma>(&[]);
    check::<Seccomp>(&[]);
    check::<SeccompSyscall>(&[]);
    check::<SeccompArg>(&[]);
}

/// Calls `visit` with a pointer (RFC 6901) to, and the path of, every value below `value`.
fn walk(value: &Value, pointer: &str, path: &str, visit: &mut impl FnMut(&str, &str, &Value)) {
    visit(pointer, path, value);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{pointer}/{index}"), &format!("{path}[{index}]"), visit);
            }
        }
        Value::Object(members) => {
            for (key, item) in members {
                let path = match (key.contains('.'), path.is_empty()) {
                    (true, _) => format!("{path}[\"{key}\"]"),
                    (false, true) => key.clone(),
                    (false, false) => format!("{path}.{key}"),
                };
                walk(item, &format!("{pointer}/{key}"), &path, visit);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_type_anywhere_names_the_place() {
    let sample: Value = serde_json::from_str(EVERY_MEMBER).unwrap();
    let mut places = 0;
    walk(&sample, "", "", &mut |pointer, path, value| {
        let (wrong, found) = match value {
            Value::String(_) => (Value::from(7), "found 7"),
            _ => (Value::from("x"), "found \"x\""),
        };
        let mut changed = sample.clone();
        *changed.pointer_mut(pointer).unwrap() = wrong;
        let message = error(&changed.to_string());
        let start = if path.is_empty() { "expected ".to_owned() } else { format!("{path}: expected ") };
        assert!(message.starts_with(&start) && message.ends_with(found), "{path}: {message}");
        places += 1;
    });
    assert!(places > 200, "{places}");
}

#[test]
fn null_anywhere_is_the_same_as_absent() {
    let sample: Value = serde_json::from_str(EVERY_MEMBER).unwrap();
    walk(&sample, "", "", &mut |pointer, path, _| {
        let Some((parent, key)) = pointer.rsplit_once('/') else {
            return;
        };
        let mut nulled = sample.clone();
        *nulled.pointer_mut(pointer).unwrap() = Value::Null;
        let mut removed = sample.clone();
        match removed.pointer_mut(parent).unwrap() {
            Value::Object(members) => members.remove(key),
            // The place in an array stays.
            _ => return,
        };
        // In a map of the specification's, the key alone means something already.
        if !["annotations", "sysctl", "rdma", "unified", "netDevices", "timeOffsets"]
            .iter()
            .any(|map| parent.ends_with(map))
        {
            assert_eq!(read(&nulled.to_string()), read(&removed.to_string()), "{path}");
        }
    });
}

#[test]
fn null_in_arrays_and_maps_is_an_empty_element() {
    let spec = read(r#"{"process":{"args":["a",null]},"mounts":[null],"annotations":{"a":null}}"#);
    assert_eq!(spec.process.unwrap().args, ["a", ""]);
    assert_eq!(spec.mounts, [Mount::default()]);
    assert_eq!(spec.annotations["a"], "");
}

#[test]
fn a_null_config_is_refused() {
    assert_eq!(error("null"), "config cannot be null");
}

#[test]
fn names_match_without_regard_to_case() {
    assert_eq!(read(r#"{"OCIVERSION":"1","Root":{"PATH":"r"}}"#).root.unwrap().path, "r");
    assert_eq!(unknown(r#"{"Process":{"NoNewPrivileges":true}}"#), Vec::<String>::new());
}

#[test]
fn the_keys_of_maps_are_kept_as_they_are() {
    let spec = read(r#"{"annotations":{"A":"1","a":"2"}}"#);
    assert_eq!(
        spec.annotations.into_iter().collect::<Vec<_>>(),
        [("A".into(), "1".into()), ("a".into(), "2".into())]
    );
}

#[test]
fn unknown_members_are_reported_with_their_path() {
    let text = r#"{"x":1,"windows":{"y":2},"process":{"cmd":[],"user":{"Name":{}}},
        "mounts":[{},{"opts":[]}],"linux":{"netDevices":{"a.b":{"mtu":1}},"name with blank":0}}"#;
    let expected = [
        "x",
        "process.cmd",
        "process.user.Name",
        "mounts[1].opts",
        "linux.netDevices[\"a.b\"].mtu",
        "linux[\"name with blank\"]",
    ];
    assert_eq!(unknown(text), expected);
    let keys = Spec::from_slice(text.as_bytes()).unwrap().1;
    assert_eq!(keys[2].key, "Name");
    assert!(keys[2].known.contains(&"uid"));
}

#[test]
fn of_duplicates_the_last_wins_and_objects_merge() {
    let spec = read(
        r#"{"hostname":"a","hostname":"b","root":{"path":"r"},"ROOT":{"readonly":true},
            "mounts":[{"destination":"/a"},{"destination":"/b"}],"mounts":[{"source":"c"}],
            "annotations":{"a":"1","b":"1"},"annotations":{"b":"2"}}"#,
    );
    assert_eq!(spec.hostname, "b");
    assert_eq!(spec.root, Some(Root { path: "r".into(), readonly: true }));
    assert_eq!(spec.mounts, [Mount { source: "c".into(), ..Mount::default() }]);
    assert_eq!(spec.annotations["a"], "1");
    assert_eq!(spec.annotations["b"], "2");
}

#[test]
fn a_later_null_takes_back_objects_and_arrays_only() {
    let spec = read(
        r#"{"hostname":"a","hostname":null,"root":{},"root":null,"mounts":[{}],"mounts":null,
            "annotations":{"a":"1"},"annotations":null}"#,
    );
    assert_eq!(spec, Spec { hostname: "a".into(), ..Spec::default() });
}

#[test]
fn what_follows_the_first_value_is_ignored() {
    assert_eq!(read("{\"hostname\":\"a\"} } trailing [").hostname, "a");
}

#[test]
fn invalid_utf8_is_replaced() {
    let (spec, _) = Spec::from_slice(b"{\"hostname\":\"a\xff\xfeb\"}").unwrap();
    assert_eq!(spec.hostname, "a\u{fffd}\u{fffd}b");
}

#[test]
fn integers_must_be_integers_and_fit() {
    let of_uid = |value: &str| error(&format!(r#"{{"process":{{"user":{{"uid":{value}}}}}}}"#));
    let expected = "process.user.uid: expected an integer between 0 and 4294967295, found ";
    for (value, found) in [
        ("\"x\"", "\"x\""),
        ("1.0", "1.0"),
        ("1e3", "1000.0"),
        ("-1", "-1"),
        ("4294967296", "4294967296"),
        ("99999999999999999999", "1e20"),
        ("true", "true"),
        ("[]", "an array"),
        ("{}", "an object"),
    ] {
        assert_eq!(of_uid(value), format!("{expected}{found}"));
    }
    let adj = error(r#"{"process":{"oomScoreAdj":2147483648}}"#);
    let range = "expected an integer between -2147483648 and 2147483647";
    assert_eq!(adj, format!("process.oomScoreAdj: {range}, found 2147483648"));
}

#[test]
fn long_strings_are_shortened_in_errors() {
    let message = error(&format!(r#"{{"root":"{}"}}"#, "é".repeat(500)));
    assert_eq!(message, format!("root: expected an object, found \"{}\"…", "é".repeat(40)));
}

#[test]
fn broken_json_tells_where() {
    assert_eq!(error("{\n  \"root\": {,}\n}"), "invalid JSON: key must be a string at line 2 column 12");
    assert_eq!(error(""), "invalid JSON: EOF while parsing a value at line 1 column 0");
}

#[test]
fn nesting_has_a_limit() {
    let text = format!("{{\"x\":{}}}", "[".repeat(100_000));
    assert!(error(&text).starts_with("invalid JSON: recursion limit exceeded"));
}

#[test]
fn process_and_resources_are_read_alone() {
    let (process, unknown) = from_slice::<Process>(br#"{"args":["a"],"x":0}"#).unwrap();
    assert_eq!(process.args, ["a"]);
    assert_eq!(unknown[0].path, "x");
    assert_eq!(from_slice::<Resources>(b"null").unwrap().0, Resources::default());
    let (limits, _) = from_slice::<Resources>(br#"{"memory":null,"cpu":{"quota":-1},"pids":{}}"#).unwrap();
    assert_eq!(limits.memory, None);
    assert_eq!(limits.cpu.unwrap().quota, Some(-1));
    assert_eq!(limits.pids, Some(Pids { limit: None }));
}

#[test]
fn absent_and_empty_lists_differ_where_it_matters() {
    let (seccomp, _) = from_slice::<Seccomp>(br#"{"flags":[]}"#).unwrap();
    assert_eq!(seccomp.flags, Some(vec![]));
    assert_eq!(from_slice::<Seccomp>(b"{}").unwrap().0.flags, None);
    assert_eq!(from_slice::<Hook>(br#"{"env":[]}"#).unwrap().0.env, Some(vec![]));
}

fn state() -> State {
    State {
        oci_version: OCI_VERSION.to_owned(),
        id: "c1".to_owned(),
        status: Status::Creating,
        pid: 0,
        bundle: "/b".to_owned(),
        annotations: [("a".to_owned(), "1".to_owned())].into(),
    }
}

#[test]
fn hooks_get_the_state_on_one_line() {
    let mut state = state();
    let head = r#"{"ociVersion":"1.3.0","id":"c1","status":"creating","#;
    assert_eq!(
        serde_json::to_string(&state).unwrap(),
        format!(r#"{head}"bundle":"/b","annotations":{{"a":"1"}}}}"#)
    );
    state.pid = 5;
    state.annotations.clear();
    assert_eq!(serde_json::to_string(&state).unwrap(), format!(r#"{head}"pid":5,"bundle":"/b"}}"#));
}

#[test]
fn seccomp_agents_get_the_process_and_its_container() {
    let process = ProcessState {
        oci_version: OCI_VERSION.to_owned(),
        fds: vec!["seccompFd".to_owned()],
        pid: 7,
        metadata: String::new(),
        state: State { annotations: [].into(), ..state() },
    };
    let expected = r#"{"ociVersion":"1.3.0","fds":["seccompFd"],"pid":7,"state":{"ociVersion":"1.3.0","id":"c1","status":"creating","bundle":"/b"}}"#;
    assert_eq!(serde_json::to_string(&process).unwrap(), expected);
}

#[test]
fn the_summary_has_its_keys_in_order() {
    let summary = Summary {
        oci_version: OCI_VERSION.to_owned(),
        id: "c1".to_owned(),
        pid: 0,
        status: Status::Stopped,
        bundle: "/b".to_owned(),
        rootfs: "/b/rootfs".to_owned(),
        created: "2026-01-02T03:04:05.000000006Z".to_owned(),
        annotations: [].into(),
        owner: String::new(),
        execs: Vec::new(),
    };
    let expected = r#"{
  "ociVersion": "1.3.0",
  "id": "c1",
  "pid": 0,
  "status": "stopped",
  "bundle": "/b",
  "rootfs": "/b/rootfs",
  "created": "2026-01-02T03:04:05.000000006Z",
  "owner": ""
}"#;
    assert_eq!(to_string_indented(&summary, "  ").unwrap(), expected);
}

#[test]
fn the_default_config_reads_back() {
    for (rootless, v2) in [(false, false), (false, true), (true, false), (true, true)] {
        let spec = default::spec(rootless, v2, 1000, 100);
        let text = default::to_text(&spec).unwrap();
        assert!(
            text.starts_with("{\n\t\"ociVersion\": \"1.3.0\",\n\t\"process\": {\n\t\t\"terminal\": true,")
        );
        assert!(text.ends_with("\n\t}\n}"));
        let (again, unknown) = Spec::from_slice(text.as_bytes()).unwrap();
        assert_eq!(again, spec);
        assert_eq!(unknown, []);
    }
}

#[test]
fn the_default_config_depends_on_rootlessness_and_cgroups() {
    let kinds = |rootless, v2| -> Vec<String> {
        let linux = default::spec(rootless, v2, 1000, 100).linux.unwrap();
        linux.namespaces.into_iter().map(|namespace| namespace.kind).collect()
    };
    assert_eq!(kinds(false, false), ["pid", "network", "ipc", "uts", "mount"]);
    assert_eq!(kinds(false, true), ["pid", "network", "ipc", "uts", "mount", "cgroup"]);
    assert_eq!(kinds(true, true), ["pid", "ipc", "uts", "mount", "cgroup", "user"]);
    let spec = default::spec(true, false, 1000, 100);
    let linux = spec.linux.unwrap();
    assert_eq!(linux.resources, None);
    assert_eq!(linux.uid_mappings, [IdMapping { container_id: 0, host_id: 1000, size: 1 }]);
    assert_eq!(linux.gid_mappings, [IdMapping { container_id: 0, host_id: 100, size: 1 }]);
    assert_eq!(spec.mounts[5].options, ["rbind", "nosuid", "noexec", "nodev", "ro"]);
    assert!(!spec.mounts[2].options.contains(&"gid=5".to_owned()));
}

fn json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "process",
        "linux",
        "mounts",
        "root",
        "hooks",
        "user",
        "uid",
        "args",
        "seccomp",
        "resources",
        "limit",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..8).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = Spec::from_slice(&bytes);
        let _ = from_slice::<Process>(&bytes);
        let _ = from_slice::<Resources>(&bytes);
    }

    #[test]
    fn a_damaged_config_never_panics(at in 0..EVERY_MEMBER.len(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = EVERY_MEMBER.as_bytes().to_vec();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at + 1);
        }
        let _ = Spec::from_slice(&bytes);
    }

    #[test]
    fn what_is_read_reads_back_the_same(value in json()) {
        if let Ok((spec, _)) = Spec::from_slice(value.to_string().as_bytes()) {
            let text = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(read(&text), spec);
        }
    }
}

#[test]
fn a_survey_goes_on_behind_misfits() {
    let text = br#"{"ociVersion":1,"root":{"path":true,"readonly":true,"colour":1},"mounts":[{"destination":"/a"},
        {"destination":2,"optoins":[]}],"linux":{"resources":{"cpu":{"quota":"x"}},"sysctl":{"a":"b","c":1}}}"#;
    let Survey { value, unknown, misfits } = Spec::survey(text).unwrap();
    let misfits: Vec<_> = misfits.iter().map(ToString::to_string).collect();
    let expected = [
        "ociVersion: expected a string, found 1",
        "root.path: expected a string, found true",
        "mounts[1].destination: expected a string, found 2",
        "linux.resources.cpu.quota: expected an integer between -9223372036854775808 and 9223372036854775807, found \"x\"",
        "linux.sysctl.c: expected a string, found 1",
    ];
    assert_eq!(misfits, expected);
    let unknown: Vec<_> = unknown.iter().map(|key| key.path.as_str()).collect();
    assert_eq!(unknown, ["root.colour", "mounts[1].optoins"]);
    assert!(value.root.unwrap().readonly);
    assert_eq!(value.mounts[0].destination, "/a");
    assert_eq!(value.mounts.len(), 2);
    assert_eq!(value.linux.unwrap().sysctl["a"], "b");
}

#[test]
fn a_survey_needs_json() {
    assert!(matches!(Spec::survey(b"{"), Err(ReadError::Syntax(_))));
    assert!(matches!(Spec::survey(b"null"), Err(ReadError::Null)));
    let survey = Spec::survey(b"[]").unwrap();
    assert_eq!(survey.misfits[0].to_string(), "expected an object, found an array");
    assert_eq!(survey.value, Spec::default());
}

#[test]
fn fields_are_listed_with_their_way() {
    let fields = fields::<Spec>();
    for path in [
        "ociVersion",
        "process.user.additionalGids",
        "mounts[].uidMappings[].containerID",
        "hooks.poststop[].timeout",
        "linux.netDevices[*].name",
        "linux.resources.blockIO.throttleReadIOPSDevice[].rate",
        "linux.seccomp.syscalls[].args[].valueTwo",
        "windows",
    ] {
        assert!(fields.iter().any(|field| field == path), "{path}");
    }
    assert!(!fields.iter().any(|field| field.ends_with(']')));
}
