use super::*;
use crate::testing::Case;

fn of(path: &str) -> Case {
    let mut case = Case::bare();
    case.spec.linux = Some(spec::Linux { cgroups_path: path.to_owned(), ..Default::default() });
    case
}

fn with_systemd(path: &str) -> Case {
    let mut case = of(path);
    case.request.systemd_cgroup = true;
    case
}

fn annotated(key: &str, systemd: bool) -> Case {
    let mut case = Case::bare();
    case.request.systemd_cgroup = systemd;
    case.spec.annotations.insert(key.to_owned(), "'x'".to_owned());
    case
}

#[test]
fn paths_are_cleaned() {
    for (path, expected) in [
        ("", ""),
        ("/a/b", "/a/b"),
        ("/a//./b/", "/a/b"),
        ("/a/../../b", "/b"),
        ("a/b", "a/b"),
        ("../a", "a"),
        ("./a/../b", "b"),
    ] {
        assert_eq!(of(path).plan().cgroup.path, expected, "{path}");
    }
}

#[test]
fn a_path_leads_to_a_cgroup_of_its_own() {
    for path in ["/", "..", ".", "a/..", "//"] {
        let expected = format!("linux.cgroupsPath: {path:?} names no cgroup of its own");
        assert_eq!(of(path).complaints(), [expected]);
    }
}

#[test]
fn a_nul_is_refused() {
    assert_eq!(of("a\0").complaints(), ["linux.cgroupsPath: path contains nul byte (\\x00)"]);
}

#[test]
fn the_form_for_systemd_hints_at_a_forgotten_flag() {
    let expected =
        "linux.cgroupsPath: \"a.slice:b:c\" has the form for systemd, but --systemd-cgroup is not given";
    let case = of("a.slice:b:c");
    assert_eq!(case.complaints(), [expected]);
    assert_eq!(case.draft().into_result().unwrap().0.cgroup.path, "a.slice:b:c");
    assert_eq!(of("/a:b:c").complaints(), [""; 0]);
}

#[test]
fn systemd_wants_three_parts() {
    for path in ["/a/b", "a.slice:b", "a.slice:b:c:d"] {
        let expected = format!(
            "linux.cgroupsPath: expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups, got \"{path}\" instead"
        );
        assert_eq!(with_systemd(path).complaints(), [expected]);
    }
    for path in ["", "a.slice:b:c", ":b:c", "-.slice:b:c", "-:b:c", "a-b.slice:cri:c", "a.slice::c-d.slice"] {
        let cgroup = with_systemd(path).plan().cgroup;
        assert_eq!((cgroup.path.as_str(), cgroup.systemd), (path, true));
    }
}

#[test]
fn slices_have_names_of_their_own() {
    for slice in ["a", "a.scope", ".slice", "a--b.slice", "-a.slice", "a-.slice", "a/b.slice"] {
        let expected = format!("linux.cgroupsPath: invalid slice name: {slice}");
        assert_eq!(with_systemd(&format!("{slice}:b:c")).complaints(), [expected]);
    }
}

#[test]
fn units_have_names() {
    for (path, unit) in
        [(":a:", "a-"), (":a/b:c", "a/b-c"), (":a:b/c", "a-b/c"), (":a:b--c.slice", "a-b--c.slice")]
    {
        let expected = format!("linux.cgroupsPath: invalid unit name: {unit}");
        assert_eq!(with_systemd(path).complaints(), [expected]);
    }
}

#[test]
fn rootless_systemd_needs_v2() {
    let mut case = with_systemd("");
    case.request.rootless = Some(true);
    assert_eq!(case.complaints(), [""; 0]);
    for mode in [CgroupMode::V1, CgroupMode::Hybrid] {
        case.host.cgroups = mode;
        let expected = "--systemd-cgroup: cannot use rootless systemd cgroups manager on cgroup v1";
        assert_eq!(case.complaints(), [expected]);
    }
    case.request.rootless = Some(false);
    assert_eq!(case.complaints(), [""; 0]);
}

#[test]
fn properties_are_read_with_systemd_only() {
    let key = "org.systemd.property.TimeoutStopUSec";
    let expected = [("TimeoutStopUSec".to_owned(), "'x'".to_owned())];
    assert_eq!(annotated(key, true).plan().cgroup.systemd_properties, expected);
    assert_eq!(annotated(key, false).plan().cgroup.systemd_properties, []);
    assert_eq!(annotated("org.systemd.x", true).plan().cgroup.systemd_properties, []);
    assert_eq!(annotated("org.systemd.property.a1", false).complaints(), [""; 0]);
}

#[test]
fn property_names_are_letters() {
    for (name, fault) in [
        ("", "too short"),
        ("ab", "too short"),
        ("Ab1", "contains non-alphabetic character"),
        ("Abé", "contains non-alphabetic character"),
    ] {
        let key = format!("org.systemd.property.{name}");
        let expected = format!("annotations[{key:?}]: annotation {key} name incorrect: {fault}");
        assert_eq!(annotated(&key, true).complaints(), [expected]);
    }
}

/// The owner with a cgroup namespace, or without, and cgroups mounted with `options`.
fn owner_with(namespaces: &str, options: &str) -> Option<u32> {
    let maps = r#""uidMappings":[{"hostID":1000,"size":10}],"gidMappings":[{"hostID":1000,"size":10}]"#;
    let maps = if namespaces.contains("user") { maps } else { r#""uidMappings":null"# };
    let mut case = Case::linux(&format!(r#"{{"namespaces":[{namespaces}],{maps}}}"#));
    case.spec.process.as_mut().unwrap().user.uid = 7;
    case.spec.mounts = vec![spec::Mount {
        destination: "/sys/fs/cgroup/".into(),
        kind: "cgroup".into(),
        source: "cgroup".into(),
        options: vec![options.into()],
        ..Default::default()
    }];
    case.plan().cgroup.owner
}

#[test]
fn cgroups_belong_to_who_can_use_them() {
    let own = r#"{"type":"cgroup"}"#;
    assert_eq!(owner_with(own, "rw"), Some(7));
    assert_eq!(owner_with(&format!(r#"{own},{{"type":"user"}}"#), "rw"), Some(1007));
    assert_eq!(owner_with(own, "ro"), None);
    assert_eq!(owner_with(own, "rro"), None);
    assert_eq!(owner_with(r#"{"type":"uts"}"#, "rw"), None);
    assert_eq!(owner_with(r#"{"type":"cgroup","path":"/x"}"#, "rw"), None);
}
