//! `linux.resources`.

use brig_spec as spec;

use crate::problem::Problems;
use crate::{CgroupMode, Host, devices};

const PATH: &str = "linux.resources";

/// The limits, checked, with the device rules that every container gets behind those of the configuration.
pub(crate) fn plan(linux: &spec::Linux, host: &Host, problems: &mut Problems) -> spec::Resources {
    let mut resources = linux.resources.clone().unwrap_or_default();
    check_devices(&resources.devices, problems);
    for rule in resources.devices.iter_mut().filter(|rule| rule.kind.is_empty()) {
        rule.kind.push('a');
    }
    check_memory(resources.memory.as_ref(), host, problems);
    check_unified(&resources, host, problems);
    if host.cgroups == CgroupMode::V2 {
        warn_of_v1(&resources, problems);
    }
    for (index, device) in resources.block_io.iter().flat_map(|io| &io.weight_device).enumerate() {
        if device.weight.is_none() && device.leaf_weight.is_none() {
            problems.warn(
                format!("{PATH}.blockIO.weightDevice[{index}]"),
                "neither weight nor leafWeight is given",
            );
        }
    }
    resources.devices.extend(devices::default_rules(&linux.devices));
    resources
}

fn check_devices(rules: &[spec::DeviceRule], problems: &mut Problems) {
    for (index, rule) in rules.iter().enumerate() {
        let path = |member: &str| format!("{PATH}.devices[{index}].{member}");
        if !matches!(rule.kind.as_str(), "" | "a" | "c" | "b") {
            problems.error(path("type"), format!("invalid cgroup device type {:?}", rule.kind));
        }
        for (member, number) in [("major", rule.major), ("minor", rule.minor)] {
            // A negative number stands for all.
            if let Some(number) = number.filter(|number| *number > i64::from(u32::MAX)) {
                problems.error(path(member), format!("invalid device number: {number}"));
            }
        }
        if rule.access.is_empty() {
            problems.error(path("access"), format!("device access at {index} field cannot be empty"));
        } else if rule.access.contains(|c| !matches!(c, 'r' | 'w' | 'm' | 'a')) {
            problems.error(
                path("access"),
                format!("invalid device access {:?} (some of r, w and m)", rule.access),
            );
        }
    }
}

fn check_memory(memory: Option<&spec::Memory>, host: &Host, problems: &mut Problems) {
    let Some(memory) = memory else { return };
    // v2 has no such setting, and a value there has never been looked at.
    if let Some(value) = memory.swappiness.filter(|value| *value > 100 && host.cgroups != CgroupMode::V2) {
        let message = format!("invalid memory swappiness value: {value} (valid range is 0-100)");
        problems.error(format!("{PATH}.memory.swappiness"), message);
    }
    for (member, obsolete) in
        [("kernel", memory.kernel.is_some()), ("kernelTCP", memory.kernel_tcp.is_some())]
    {
        if obsolete {
            problems.warn(format!("{PATH}.memory.{member}"), "kernel memory limits have no effect any more");
        }
    }
    if host.cgroups == CgroupMode::V2 {
        let (path, message) = match (memory.limit.unwrap_or(0), memory.swap.unwrap_or(0)) {
            // Swap is unlimited or not asked for, or memory is unlimited.
            (_, -1 | 0) | (-1, _) => return,
            (0, _) => ("swap", "unable to set swap limit without memory limit".to_owned()),
            (limit, _) if limit < 0 => ("limit", format!("invalid memory value: {limit}")),
            (limit, swap) if swap < limit => {
                ("swap", "memory+swap limit should be >= memory limit".to_owned())
            }
            _ => return,
        };
        problems.error(format!("{PATH}.memory.{path}"), message);
    }
}

fn check_unified(resources: &spec::Resources, host: &Host, problems: &mut Problems) {
    if resources.unified.is_empty() {
        return;
    }
    if host.cgroups != CgroupMode::V2 {
        let message = "invalid configuration: cannot use unified on cgroup v1";
        let hint = "use the other members of linux.resources, which work with both versions";
        problems.error_with_hint(format!("{PATH}.unified"), message, hint);
    }
    for key in resources.unified.keys() {
        let path = || format!("{PATH}.unified[{key:?}]");
        if key.contains('/') {
            problems.error(path(), format!("unified resource {key:?} must be a file name (no slashes)"));
        } else if !key.contains('.') || matches!(key.as_str(), "." | "..") || key.contains('\0') {
            problems
                .error(path(), format!("unified resource {key:?} must be in the form CONTROLLER.PARAMETER"));
        }
    }
}

/// What cgroup v2 has no counterpart for.
fn warn_of_v1(resources: &spec::Resources, problems: &mut Problems) {
    let memory = resources.memory.as_ref();
    let cpu = resources.cpu.as_ref();
    for (member, given) in [
        ("memory.swappiness", memory.is_some_and(|memory| memory.swappiness.is_some())),
        ("memory.disableOOMKiller", memory.is_some_and(|memory| memory.disable_oom_killer == Some(true))),
        ("cpu.realtimeRuntime", cpu.is_some_and(|cpu| cpu.realtime_runtime.is_some())),
        ("cpu.realtimePeriod", cpu.is_some_and(|cpu| cpu.realtime_period.is_some())),
        ("network", resources.network.as_ref().is_some_and(|network| *network != spec::Network::default())),
    ] {
        if given {
            problems.warn(format!("{PATH}.{member}"), "it has no effect with cgroup v2");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn on(cgroups: CgroupMode, resources: &str) -> Vec<String> {
        let mut case = Case::linux(&format!(r#"{{"resources":{resources}}}"#));
        case.host.cgroups = cgroups;
        case.complaints()
    }

    #[test]
    fn device_rules_are_checked() {
        for (rule, expected) in [
            (r#""type":"z","access":"r""#, "devices[0].type: invalid cgroup device type \"z\""),
            (r#""type":"p","access":"r""#, "devices[0].type: invalid cgroup device type \"p\""),
            (r#""type":"c""#, "devices[0].access: device access at 0 field cannot be empty"),
            (
                r#""major":4294967296,"minor":-1,"access":"r""#,
                "devices[0].major: invalid device number: 4294967296",
            ),
            (r#""access":"rx""#, "devices[0].access: invalid device access \"rx\" (some of r, w and m)"),
        ] {
            let resources = format!(r#"{{"devices":[{{"allow":true,{rule}}}]}}"#);
            assert_eq!(on(CgroupMode::V2, &resources), [format!("linux.resources.{expected}")]);
        }
    }

    #[test]
    fn no_type_is_any_type() {
        let case = Case::linux(r#"{"resources":{"devices":[{"allow":false,"access":"rwm"}]}}"#);
        assert_eq!(case.plan().cgroup.resources.devices[0].kind, "a");
    }

    #[test]
    fn swappiness_has_a_range() {
        let expected =
            "linux.resources.memory.swappiness: invalid memory swappiness value: 101 (valid range is 0-100)";
        assert_eq!(on(CgroupMode::V1, r#"{"memory":{"swappiness":101}}"#), [expected]);
        assert_eq!(on(CgroupMode::Hybrid, r#"{"memory":{"swappiness":101}}"#), [expected]);
        assert_eq!(on(CgroupMode::V1, r#"{"memory":{"swappiness":100}}"#), [""; 0]);
        let expected = "linux.resources.memory.swappiness: it has no effect with cgroup v2";
        assert_eq!(on(CgroupMode::V2, r#"{"memory":{"swappiness":101}}"#), [expected]);
    }

    #[test]
    fn kernel_memory_is_a_warning() {
        let expected = ["kernel", "kernelTCP"].map(|member| {
            format!("linux.resources.memory.{member}: kernel memory limits have no effect any more")
        });
        let memory = r#"{"memory":{"kernel":1,"kernelTCP":1,"useHierarchy":true}}"#;
        assert_eq!(on(CgroupMode::V1, memory), expected);
    }

    #[test]
    fn swap_must_fit_the_memory_limit_on_v2() {
        for (memory, expected) in [
            (r#"{"swap":5}"#, Some("swap: unable to set swap limit without memory limit")),
            (r#"{"limit":-2,"swap":5}"#, Some("limit: invalid memory value: -2")),
            (r#"{"limit":9,"swap":8}"#, Some("swap: memory+swap limit should be >= memory limit")),
            (r#"{"limit":9,"swap":9}"#, None),
            (r#"{"limit":9,"swap":-1}"#, None),
            (r#"{"limit":9,"swap":0}"#, None),
            (r#"{"limit":-1,"swap":5}"#, None),
            (r#"{"swap":-1}"#, None),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|text| format!("linux.resources.memory.{text}")).collect();
            let resources = format!(r#"{{"memory":{memory}}}"#);
            assert_eq!(on(CgroupMode::V2, &resources), expected, "{memory}");
            assert_eq!(on(CgroupMode::V1, &resources), [""; 0], "{memory}");
        }
    }

    #[test]
    fn unified_is_for_v2() {
        let expected = "linux.resources.unified: invalid configuration: cannot use unified on cgroup v1";
        for mode in [CgroupMode::V1, CgroupMode::Hybrid] {
            assert_eq!(on(mode, r#"{"unified":{"memory.high":"1G"}}"#), [expected]);
            assert_eq!(on(mode, r#"{"unified":{}}"#), [""; 0]);
        }
        assert_eq!(on(CgroupMode::V2, r#"{"unified":{"memory.high":"1G"}}"#), [""; 0]);
    }

    #[test]
    fn unified_keys_are_file_names() {
        for (key, expected) in [
            ("a/b.c", "unified resource \"a/b.c\" must be a file name (no slashes)"),
            ("../x", "unified resource \"../x\" must be a file name (no slashes)"),
            ("memory", "unified resource \"memory\" must be in the form CONTROLLER.PARAMETER"),
            ("..", "unified resource \"..\" must be in the form CONTROLLER.PARAMETER"),
        ] {
            let complaints = on(CgroupMode::V2, &format!(r#"{{"unified":{{"{key}":"1"}}}}"#));
            assert_eq!(complaints, [format!("linux.resources.unified[{key:?}]: {expected}")]);
        }
    }

    #[test]
    fn what_v2_lacks_is_a_warning() {
        let resources = r#"{"memory":{"swappiness":1,"disableOOMKiller":false},"cpu":{"realtimeRuntime":1},
            "network":{"classID":1}}"#;
        let expected = ["memory.swappiness", "cpu.realtimeRuntime", "network"]
            .map(|member| format!("linux.resources.{member}: it has no effect with cgroup v2"));
        assert_eq!(on(CgroupMode::V2, resources), expected);
        assert_eq!(on(CgroupMode::Hybrid, resources), [""; 0]);
    }

    #[test]
    fn a_device_weight_is_needed() {
        let resources = r#"{"blockIO":{"weightDevice":[{"major":8,"minor":0}]}}"#;
        let expected = "linux.resources.blockIO.weightDevice[0]: neither weight nor leafWeight is given";
        assert_eq!(on(CgroupMode::V2, resources), [expected]);
    }
}
