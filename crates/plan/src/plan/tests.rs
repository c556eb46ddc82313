use proptest::prelude::*;

use crate::testing::Case;
use crate::{CgroupMode, Host, Ns, Plan, Severity};

#[test]
fn the_default_configuration_is_fine() {
    let plan = Case::new().plan();
    assert_eq!(plan.oci_version, "1.3.0");
    assert_eq!(plan.bundle.to_str(), Some("/b"));
    assert_eq!(plan.rootfs.to_str(), Some("/b/rootfs"));
    assert!(plan.root.readonly && plan.populate_dev);
    assert_eq!(plan.namespaces.cgroup, Ns::New);
    assert_eq!(plan.mounts.len(), 7);
    assert_eq!(plan.devices.len(), 6);
    assert_eq!(plan.masked_paths.len(), 10);
    assert_eq!(plan.hostname.as_deref(), Some("runc"));
    assert_eq!(plan.process.capabilities.bounding, 1 << 5 | 1 << 10 | 1 << 29);
    assert!(!plan.rootless_euid && !plan.rootless_cgroups);
}

#[test]
fn the_default_rootless_configuration_is_fine() {
    let plan = Case::rootless().plan();
    assert!(plan.rootless_euid && plan.rootless_cgroups);
    assert_eq!(plan.id_maps.outside_uid(0), Some(1000));
}

#[test]
fn other_major_versions_are_refused() {
    for (version, refused) in [
        ("1.0.0", false),
        ("1.0.0-rc5-dev", false),
        ("1.99.0+dev", false),
        ("1", false),
        ("2.0.0", true),
        ("0.2.0", true),
        ("9.9", true),
    ] {
        let mut case = Case::bare();
        case.spec.oci_version = version.to_owned();
        let message = format!(
            "ociVersion: version {version} of the specification is not supported, only 1.x is (1.3.0)"
        );
        let expected = if refused { vec![message] } else { vec![] };
        assert_eq!(case.complaints(), expected);
    }
    for version in ["", "abc", "v1.0.0"] {
        let mut case = Case::bare();
        case.spec.oci_version = version.to_owned();
        assert_eq!(case.draft().problems[0].severity, Severity::Warning);
        assert!(Plan::new(&case.spec, &case.request, &case.host).is_ok());
    }
}

#[test]
fn a_process_is_needed() {
    let mut case = Case::bare();
    case.spec.process = None;
    assert_eq!(case.complaints(), ["process: process property must not be empty"]);
}

#[test]
fn the_first_error_is_the_error() {
    let mut case = Case::bare();
    case.spec.oci_version = "x".into();
    case.spec.root = None;
    case.spec.hostname = "mast".into();
    assert_eq!(case.complaints().len(), 3);
    let error = Plan::new(&case.spec, &case.request, &case.host).unwrap_err();
    assert_eq!(error.to_string(), "root: root must be specified");
}

#[test]
fn warnings_come_with_the_plan() {
    let mut case = Case::bare();
    case.spec.oci_version = "x".into();
    let (plan, warnings) = Plan::new(&case.spec, &case.request, &case.host).unwrap();
    assert_eq!(plan.oci_version, "x");
    assert_eq!(warnings[0].to_string(), "ociVersion: \"x\" is not a version");
}

#[test]
fn permission_errors_of_cgroups_are_ignored_where_that_makes_sense() {
    let root = Host::default;
    let nested = || Host { in_user_ns: true, ..Host::default() };
    let own_systemd = || Host { user_bus_owner: Some(0), ..nested() };
    for (asked, systemd, host, expected) in [
        (None, false, root(), false),
        (None, false, Host { euid: 5, ..root() }, true),
        (None, false, nested(), true),
        (None, true, nested(), true),
        (None, true, own_systemd(), false),
        (None, true, Host { user_bus_owner: Some(7), ..nested() }, true),
        (None, false, own_systemd(), true),
        (Some(true), false, root(), true),
        (Some(false), false, nested(), false),
    ] {
        let mut case = Case::bare();
        case.request.rootless = asked;
        case.request.systemd_cgroup = systemd;
        case.host = host;
        assert_eq!(case.draft().value.rootless_cgroups, expected, "{asked:?} {systemd} {:?}", case.host);
    }
}

#[test]
fn wishes_are_carried_over() {
    let mut case = Case::bare();
    case.request.no_pivot = true;
    case.request.keep_keyring = true;
    case.request.systemd_cgroup = true;
    case.spec.annotations.insert("a".into(), "1".into());
    let plan = case.plan();
    assert!(plan.root.no_pivot && plan.keep_keyring && plan.cgroup.systemd);
    assert_eq!(plan.annotations["a"], "1");
}

#[test]
fn a_container_that_manages_cgroups_owns_its_own() {
    let with = |options: &str, linux: &str| {
        let mut case = Case::linux(linux);
        let text = format!(r#"{{"mounts":[{{"destination":"/sys/fs/cgroup","type":"cgroup"{options}}}]}}"#);
        case.spec.mounts = Case::json(&text).spec.mounts;
        case.spec.process.as_mut().unwrap().user.uid = 3;
        case.draft().value.cgroup.owner
    };
    let private = r#"{"namespaces":[{"type":"cgroup"}]}"#;
    assert_eq!(with("", private), Some(3));
    assert_eq!(with(r#","options":["ro"]"#, private), None);
    assert_eq!(with("", "{}"), None);
    let user = r#"{"namespaces":[{"type":"cgroup"},{"type":"user"}],
        "uidMappings":[{"hostID":1000,"size":10}],"gidMappings":[{"size":1}]}"#;
    assert_eq!(with("", user), Some(1003));
}

#[test]
fn a_mount_label_needs_selinux() {
    let mut case = Case::linux(r#"{"mountLabel":"l"}"#);
    let expected =
        "linux.mountLabel: selinux label is specified in config, but selinux is disabled or not supported";
    assert_eq!(case.complaints(), [expected]);
    case.host.selinux = true;
    assert_eq!(case.plan().process.mount_label.as_deref(), Some("l"));
}

#[test]
fn hybrid_hosts_are_v1_hosts() {
    let mut case = Case::new();
    case.host.cgroups = CgroupMode::Hybrid;
    assert_eq!(case.complaints(), [""; 0]);
}

proptest! {
    /// Whatever is in the strings, there is a decision.
    #[test]
    fn odd_texts_never_panic(text in ".{0,12}", number in any::<i64>()) {
        let mut case = Case::new();
        let linux = case.spec.linux.as_mut().unwrap();
        linux.cgroups_path.clone_from(&text);
        linux.rootfs_propagation.clone_from(&text);
        linux.masked_paths.push(text.clone());
        linux.sysctl.insert(text.clone(), text.clone());
        linux.namespaces[0].kind.clone_from(&text);
        linux.namespaces[1].path.clone_from(&text);
        linux.net_devices.insert(text.clone(), brig_spec::NetDevice { name: text.clone() });
        linux.devices.push(brig_spec::Device {
            path: text.clone(), kind: "c".into(), major: number, minor: number, ..Default::default()
        });
        for mount in &mut case.spec.mounts {
            mount.destination.push_str(&text);
            mount.options.push(text.clone());
        }
        case.spec.annotations.insert(format!("org.systemd.property.{text}"), text.clone());
        let process = case.spec.process.as_mut().unwrap();
        process.env.push(text.clone());
        process.cwd.clone_from(&text);
        process.rlimits[0].kind.clone_from(&text);
        process.exec_cpu_affinity = Some(brig_spec::ExecCpuAffinity { initial: text.clone(), final_: text });
        case.request.systemd_cgroup = number % 2 == 0;
        let draft = case.draft();
        prop_assert!(!draft.problems.is_empty());
    }
}
