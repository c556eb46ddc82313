//! `linux.netDevices`, and the names of the host.

use std::collections::BTreeSet;

use brig_spec as spec;

use crate::path::has_nul;
use crate::problem::Problems;
use crate::{NetDevice, Ns};

const PATH: &str = "linux.netDevices";

/// Interfaces to move into the container's network namespace.
pub(crate) fn plan(
    linux: &spec::Linux,
    network: &Ns,
    rootless: bool,
    problems: &mut Problems,
) -> Vec<NetDevice> {
    if linux.net_devices.is_empty() {
        return Vec::new();
    }
    if !network.is_private() {
        problems.error(PATH, "unable to move network devices without a NET namespace");
    }
    if rootless {
        problems.error(PATH, "network devices are not supported for rootless containers");
    }
    let mut names = BTreeSet::new();
    let mut devices = Vec::with_capacity(linux.net_devices.len());
    for (host_name, device) in &linux.net_devices {
        let name = if device.name.is_empty() { host_name } else { &device.name };
        let path = || format!("{PATH}[{host_name:?}]");
        for given in BTreeSet::from([host_name, name]) {
            if !is_valid(given) {
                problems.error(path(), format!("invalid network device name {given:?}"));
            }
        }
        if !names.insert(name) && !name.contains("%d") {
            problems.error(path(), format!("two network devices would be named {name:?}"));
        }
        devices.push(NetDevice { host_name: host_name.clone(), name: name.clone() });
    }
    devices
}

/// The kernel's rule (`dev_valid_name`). IFNAMSIZ, 16, counts the final NUL.
fn is_valid(name: &str) -> bool {
    let forbidden = |byte: u8| matches!(byte, b'/' | b':' | 0) || byte.is_ascii_whitespace() || byte == 0x0b;
    !matches!(name, "" | "." | "..") && name.len() < 16 && !name.bytes().any(forbidden)
}

/// `hostname` or `domainname`, which need a UTS namespace.
pub(crate) fn uts_name(member: &str, name: &str, uts: &Ns, problems: &mut Problems) -> Option<String> {
    /// __NEW_UTS_LEN of linux/utsname.h.
    const LONGEST: usize = 64;
    if name.is_empty() {
        return None;
    }
    if !uts.is_private() {
        let message = format!("unable to set {member} without a private UTS namespace");
        let hint = "add {\"type\": \"uts\"} to linux.namespaces, or leave the name out";
        problems.error_with_hint(member, message, hint);
    }
    if name.len() > LONGEST || has_nul(name) {
        problems.error(member, format!("invalid {member} {name:?} (at most {LONGEST} bytes)"));
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(devices: &str) -> Case {
        Case::linux(&format!(r#"{{"namespaces":[{{"type":"network"}}],"netDevices":{devices}}}"#))
    }

    #[test]
    fn devices_keep_or_change_their_name() {
        let expected = [("eth0", "eth0"), ("eth1", "data0")]
            .map(|(host_name, name)| NetDevice { host_name: host_name.into(), name: name.into() });
        assert_eq!(of(r#"{"eth0":{},"eth1":{"name":"data0"}}"#).plan().net_devices, expected);
    }

    #[test]
    fn a_network_namespace_is_needed() {
        let case = Case::linux(r#"{"netDevices":{"a":{}}}"#);
        let expected = "linux.netDevices: unable to move network devices without a NET namespace";
        assert_eq!(case.complaints(), [expected]);
        let mut case =
            Case::linux(r#"{"netDevices":{"a":{}},"namespaces":[{"type":"network","path":"/n"}]}"#);
        assert_eq!(case.complaints(), [""; 0]);
        case.request.rootless = Some(true);
        assert_eq!(case.complaints(), [""; 0]);
        let mut case = Case::rootless();
        let linux = case.spec.linux.as_mut().unwrap();
        linux.namespaces.push(spec::Namespace { kind: "network".into(), ..Default::default() });
        linux.net_devices.insert("a".into(), spec::NetDevice::default());
        let expected = "linux.netDevices: network devices are not supported for rootless containers";
        assert_eq!(case.complaints(), [expected]);
    }

    #[test]
    fn names_must_be_valid() {
        for name in ["", ".", "..", "a/b", "a:b", "a b", "a\tb", "sixteen-bytes-ok"] {
            assert!(!is_valid(name), "{name:?}");
        }
        assert!(is_valid("fifteen-bytes-x"));
        let expected = "linux.netDevices[\"a b\"]: invalid network device name \"a b\"";
        assert_eq!(of(r#"{"a b":{}}"#).complaints(), [expected]);
        let expected = "linux.netDevices[\"a\"]: invalid network device name \"x:\"";
        assert_eq!(of(r#"{"a":{"name":"x:"}}"#).complaints(), [expected]);
        let expected = "linux.netDevices[\"b\"]: two network devices would be named \"a\"";
        assert_eq!(of(r#"{"a":{},"b":{"name":"a"}}"#).complaints(), [expected]);
    }

    #[test]
    fn names_of_the_host_need_a_uts_namespace() {
        let mut case = Case::bare();
        case.spec.hostname = "mast".into();
        assert_eq!(case.complaints(), ["hostname: unable to set hostname without a private UTS namespace"]);
        case.spec.linux = Case::linux(r#"{"namespaces":[{"type":"uts"}]}"#).spec.linux;
        case.spec.domainname = "yard".into();
        let plan = case.plan();
        assert_eq!((plan.hostname.as_deref(), plan.domainname.as_deref()), (Some("mast"), Some("yard")));
        case.spec.linux = None;
        case.spec.hostname.clear();
        assert_eq!(
            case.complaints(),
            ["domainname: unable to set domainname without a private UTS namespace"]
        );
    }

    #[test]
    fn names_of_the_host_have_a_length() {
        let mut case = Case::linux(r#"{"namespaces":[{"type":"uts"}]}"#);
        case.spec.hostname = "x".repeat(64);
        assert_eq!(case.complaints(), [""; 0]);
        case.spec.hostname.push('x');
        assert!(case.complaints()[0].starts_with("hostname: invalid hostname \"xxx"));
    }
}
