//! `linux.devices`, and the devices that every container gets.

use brig_spec as spec;

use crate::path::{absolute, has_nul};
use crate::problem::Problems;
use crate::{DeviceNode, NodeKind};

/// The nodes of every container: path, major and minor number.
const DEFAULT: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/random", 1, 8),
    ("/dev/full", 1, 7),
    ("/dev/tty", 5, 0),
    ("/dev/zero", 1, 5),
    ("/dev/urandom", 1, 9),
];

const MODE: u32 = 0o666;

/// The nodes to make: the default ones, then the configuration's. One of the same path takes a default one's place.
pub(crate) fn plan(given: &[spec::Device], problems: &mut Problems) -> Vec<DeviceNode> {
    let node = |&(path, major, minor): &(&str, u32, u32)| DeviceNode {
        path: path.into(),
        kind: NodeKind::Char,
        major,
        minor,
        mode: MODE,
        uid: 0,
        gid: 0,
        default: true,
    };
    let mut nodes: Vec<_> = DEFAULT.iter().filter(|(path, ..)| !replaced(path, given)).map(node).collect();
    nodes.extend(given.iter().enumerate().filter_map(|(index, device)| plan_one(index, device, problems)));
    nodes
}

fn replaced(path: &str, given: &[spec::Device]) -> bool {
    given.iter().any(|device| device.path == path)
}

fn plan_one(index: usize, given: &spec::Device, problems: &mut Problems) -> Option<DeviceNode> {
    let place = |member: &str| format!("linux.devices[{index}].{member}");
    let kind = match given.kind.as_str() {
        "c" | "u" => NodeKind::Char,
        "b" => NodeKind::Block,
        "p" => NodeKind::Fifo,
        unknown => {
            problems.error(place("type"), format!("invalid device type {unknown:?}"));
            return None;
        }
    };
    if has_nul(&given.path) {
        problems.error(place("path"), "path contains nul byte (\\x00)");
    }
    if !given.path.starts_with('/') {
        problems.warn(place("path"), format!("{:?} is not absolute, using it as relative to /", given.path));
    }
    let path = absolute(&given.path);
    if path.parent().is_none() {
        problems.error(place("path"), format!("no device can be made at {:?}", given.path));
    }
    let mut number = |member: &str, value: i64, bits: u32| match u32::try_from(value) {
        _ if kind == NodeKind::Fifo => 0,
        Ok(number) if number >> bits == 0 => number,
        _ => {
            problems.error(place(member), format!("{value} is not within 0 and {}", (1u32 << bits) - 1));
            0
        }
    };
    let (major, minor) = (number("major", given.major, 12), number("minor", given.minor, 20));
    // The terminals' multiplexer is always a link to pts/ptmx.
    let wanted = path.to_str() != Some("/dev/ptmx");
    // Tools that fill this in with stat(2) put the file type's bits in.
    let mode = given.file_mode.unwrap_or(MODE) & 0o7777;
    let (uid, gid) = (given.uid.unwrap_or(0), given.gid.unwrap_or(0));
    wanted.then_some(DeviceNode { path, kind, major, minor, mode, uid, gid, default: false })
}

/// Rules that every container gets behind its own: make any node, and use the default ones, terminals and tun.
pub(crate) fn default_rules(given: &[spec::Device]) -> Vec<spec::DeviceRule> {
    let rule = |kind: &str, major: Option<u32>, minor: Option<u32>, access: &str| spec::DeviceRule {
        allow: true,
        kind: kind.to_owned(),
        major: major.map(i64::from),
        minor: minor.map(i64::from),
        access: access.to_owned(),
    };
    let mut rules = vec![rule("c", None, None, "m"), rule("b", None, None, "m")];
    for &(_, major, minor) in DEFAULT.iter().filter(|(path, ..)| !replaced(path, given)) {
        rules.push(rule("c", Some(major), Some(minor), "rwm"));
    }
    rules.extend([
        rule("c", Some(136), None, "rwm"),
        rule("c", Some(5), Some(2), "rwm"),
        rule("c", Some(10), Some(200), "rwm"),
    ]);
    rules
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::Case;

    fn of(device: &str) -> Case {
        Case::linux(&format!(r#"{{"devices":[{device}]}}"#))
    }

    fn own(case: &Case) -> DeviceNode {
        case.plan().devices.into_iter().find(|node| !node.default).unwrap()
    }

    #[test]
    fn every_container_has_six_nodes() {
        let nodes = Case::bare().plan().devices;
        assert_eq!(nodes.len(), 6);
        assert!(nodes.iter().all(|node| node.default && node.mode == 0o666 && node.kind == NodeKind::Char));
    }

    #[test]
    fn a_device_is_read() {
        let text =
            r#"{"path":"/dev//fuse","type":"c","major":10,"minor":229,"fileMode":8576,"uid":1,"gid":2}"#;
        let expected = DeviceNode {
            path: "/dev/fuse".into(),
            kind: NodeKind::Char,
            major: 10,
            minor: 229,
            mode: 0o600,
            uid: 1,
            gid: 2,
            default: false,
        };
        assert_eq!(own(&of(text)), expected);
    }

    #[test]
    fn types_are_mapped() {
        let kind = |letter| own(&of(&format!(r#"{{"path":"/x","type":"{letter}","major":7,"minor":8}}"#)));
        assert_eq!(kind("u").kind, NodeKind::Char);
        assert_eq!(kind("b").kind, NodeKind::Block);
        let fifo = kind("p");
        assert_eq!((fifo.kind, fifo.major, fifo.minor, fifo.mode), (NodeKind::Fifo, 0, 0, 0o666));
        let expected = "linux.devices[0].type: invalid device type \"z\"";
        assert_eq!(of(r#"{"path":"/x","type":"z"}"#).complaints(), [expected]);
    }

    #[test]
    fn numbers_must_fit() {
        let case = of(r#"{"path":"/x","type":"c","major":-1,"minor":1048576}"#);
        let expected = [
            "linux.devices[0].major: -1 is not within 0 and 4095",
            "linux.devices[0].minor: 1048576 is not within 0 and 1048575",
        ];
        assert_eq!(case.complaints(), expected);
    }

    #[test]
    fn a_default_node_can_be_replaced() {
        let plan = of(r#"{"path":"/dev/null","type":"c","major":1,"minor":3,"fileMode":384}"#).plan();
        let null: Vec<_> = plan.devices.iter().filter(|node| node.path == Path::new("/dev/null")).collect();
        assert_eq!(null.len(), 1);
        assert_eq!((null[0].mode, null[0].default), (0o600, false));
        let rules = plan.cgroup.resources.devices;
        assert!(!rules.iter().any(|rule| (rule.major, rule.minor) == (Some(1), Some(3))));
    }

    #[test]
    fn ptmx_is_never_a_node() {
        let plan = of(r#"{"path":"/dev/ptmx","type":"c","major":5,"minor":2}"#).plan();
        assert!(plan.devices.iter().all(|node| node.default));
    }

    #[test]
    fn places_must_make_sense() {
        let expected = "linux.devices[0].path: \"dev/x\" is not absolute, using it as relative to /";
        assert_eq!(of(r#"{"path":"dev/x","type":"p"}"#).complaints(), [expected]);
        let expected = "linux.devices[0].path: no device can be made at \"/..\"";
        assert_eq!(of(r#"{"path":"/..","type":"p"}"#).complaints(), [expected]);
    }

    #[test]
    fn with_dev_bound_from_the_host_nothing_is_made() {
        let mut case = of(r#"{"path":"/dev/fuse","type":"c","major":10,"minor":229}"#);
        case.spec.mounts = vec![spec::Mount {
            destination: "/dev/".into(),
            source: "/dev".into(),
            options: vec!["rbind".into()],
            ..Default::default()
        }];
        let plan = case.plan();
        assert!(!plan.populate_dev);
        assert_eq!(plan.devices, []);
    }

    #[test]
    fn the_default_rules_come_last() {
        let case = Case::linux(r#"{"resources":{"devices":[{"allow":false,"access":"rwm"}]}}"#);
        let rules = case.plan().cgroup.resources.devices;
        assert!(!rules[0].allow);
        let shown: Vec<_> = rules[1..]
            .iter()
            .map(|rule| {
                let number = |n: Option<i64>| n.map_or("*".to_owned(), |n| n.to_string());
                assert!(rule.allow);
                format!("{} {}:{} {}", rule.kind, number(rule.major), number(rule.minor), rule.access)
            })
            .collect();
        let expected = [
            "c *:* m",
            "b *:* m",
            "c 1:3 rwm",
            "c 1:8 rwm",
            "c 1:7 rwm",
            "c 5:0 rwm",
            "c 1:5 rwm",
            "c 1:9 rwm",
            "c 136:* rwm",
            "c 5:2 rwm",
            "c 10:200 rwm",
        ];
        assert_eq!(shown, expected);
    }
}
