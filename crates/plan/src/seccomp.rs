//! `linux.seccomp`: what can be said about a filter without compiling it.

use brig_seccomp::{Profile, Syscall};
use brig_spec as spec;

use crate::path::has_nul;
use crate::problem::Problems;

const PATH: &str = "linux.seccomp";

/// The filter, checked. `None` for a section that is as good as absent. Names of calls that nobody knows are passed over, as
/// callers list those of newer kernels, unless that is to be an error.
pub(crate) fn plan(
    given: &spec::Seccomp,
    fail_unknown: bool,
    problems: &mut Problems,
) -> Option<spec::Seccomp> {
    if given.default_action.is_empty() && given.syscalls.is_empty() {
        problems.warn(PATH, "without a default action and without rules there is no filter");
        return None;
    }
    let faults = if Profile::from_spec(given).is_ok() { Vec::new() } else { Profile::faults(given) };
    for error in faults {
        let text = error.to_string();
        // Its text begins with the place.
        let (path, message) = text.split_once(": ").unwrap_or((PATH, &text));
        problems.error(path, message);
    }
    if has_nul(&given.listener_path) {
        problems.error(format!("{PATH}.listenerPath"), "path contains nul byte (\\x00)");
    }
    if !given.listener_metadata.is_empty() && given.listener_path.is_empty() {
        problems.warn(format!("{PATH}.listenerMetadata"), "it has no effect without listenerPath");
    }
    if given.default_errno_ret.is_some() && !takes_errno(&given.default_action) {
        warn_of_errno("defaultErrnoRet", &given.default_action, problems);
    }
    for (index, rule) in given.syscalls.iter().enumerate() {
        if rule.errno_ret.is_some() && !takes_errno(&rule.action) {
            warn_of_errno(&format!("syscalls[{index}].errnoRet"), &rule.action, problems);
        }
        for (at, name) in rule.names.iter().enumerate().filter(|_| fail_unknown) {
            if Syscall::from_name(name).is_none() {
                let path = format!("{PATH}.syscalls[{index}].names[{at}]");
                problems.error(path, format!("unknown system call {name:?}"));
            }
        }
        if rule.names.is_empty() {
            problems.warn(format!("{PATH}.syscalls[{index}].names"), "a rule without names has no effect");
        }
    }
    Some(given.clone())
}

fn takes_errno(action: &str) -> bool {
    matches!(action, "SCMP_ACT_ERRNO" | "SCMP_ACT_TRACE")
}

fn warn_of_errno(member: &str, action: &str, problems: &mut Problems) {
    problems.warn(format!("{PATH}.{member}"), format!("{action} has no error number"));
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;

    fn of(seccomp: &str) -> Case {
        Case::linux(&format!(r#"{{"seccomp":{seccomp}}}"#))
    }

    fn rule(rule: &str) -> Vec<String> {
        of(&format!(r#"{{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{rule}]}}"#)).complaints()
    }

    #[test]
    fn an_empty_section_is_none() {
        let draft = of("{}").draft();
        assert_eq!(draft.value.seccomp, None);
        assert_eq!(
            draft.problems[0].message,
            "without a default action and without rules there is no filter"
        );
    }

    #[test]
    fn a_filter_passes() {
        let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"flags":["SECCOMP_FILTER_FLAG_LOG"],
            "architectures":["SCMP_ARCH_X86_64"],"syscalls":[{"names":["read","no_such_call"],
            "action":"SCMP_ACT_ALLOW","args":[{"index":5,"value":1,"op":"SCMP_CMP_NE"}]}]}"#;
        let case = of(text);
        assert_eq!(case.plan().seccomp, case.spec.linux.unwrap().seccomp);
    }

    #[test]
    fn names_must_be_known() {
        for (text, expected) in [
            (
                r#"{"defaultAction":"X"}"#,
                "linux.seccomp.defaultAction: string X is not a valid action for seccomp",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["X"]}"#,
                "linux.seccomp.architectures[0]: string X is not a valid arch for seccomp",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","flags":["X"]}"#,
                "linux.seccomp.flags[0]: seccomp flag X is not known to runc",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_NOTIFY","listenerPath":"/s"}"#,
                "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY cannot be used as default action",
            ),
        ] {
            assert_eq!(of(text).complaints(), [expected]);
        }
        let expected = "linux.seccomp.syscalls[0].args[0].op: string X is not a valid operator for seccomp";
        assert_eq!(rule(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"op":"X"}]}"#), [expected]);
        let expected = "linux.seccomp.syscalls[0].action: string X is not a valid action for seccomp";
        assert_eq!(rule(r#"{"names":["read"],"action":"X"}"#), [expected]);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let text = r#"{"defaultAction":"X","flags":["SECCOMP_FILTER_FLAG_LOG","Y"],"architectures":["Z"],
            "syscalls":[{"names":["read"],"action":"A"},{"names":["read"],"action":"SCMP_ACT_ALLOW"},
            {"names":["mkdir"],"action":"B"}]}"#;
        let places: Vec<_> = of(text).draft().problems.into_iter().map(|problem| problem.path).collect();
        let expected =
            ["flags[1]", "architectures[0]", "defaultAction", "syscalls[0].action", "syscalls[2].action"];
        assert_eq!(places, expected.map(|place| format!("linux.seccomp.{place}")));
    }

    #[test]
    fn an_agent_needs_a_socket_and_leaves_write_alone() {
        let expected = "linux.seccomp.listenerPath: seccomp listenerPath is not set";
        assert_eq!(rule(r#"{"names":["mkdir"],"action":"SCMP_ACT_NOTIFY"}"#), [expected]);
        let complaints = rule(r#"{"names":["write"],"action":"SCMP_ACT_NOTIFY"}"#);
        assert!(
            complaints[0].ends_with("SCMP_ACT_NOTIFY cannot be used for the write syscall"),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_nul_is_refused() {
        let expected = "linux.seccomp.listenerPath: path contains nul byte (\\x00)";
        let case = of(r#"{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/\u0000"}"#);
        assert_eq!(case.complaints(), [expected]);
    }

    #[test]
    fn what_has_no_effect_is_a_warning() {
        let expected = "linux.seccomp.syscalls[0].errnoRet: SCMP_ACT_ALLOW has no error number";
        assert_eq!(rule(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","errnoRet":1}"#), [expected]);
        let expected = "linux.seccomp.syscalls[0].names: a rule without names has no effect";
        assert_eq!(rule(r#"{"names":[],"action":"SCMP_ACT_ALLOW"}"#), [expected]);
        let case = of(r#"{"defaultAction":"SCMP_ACT_KILL","defaultErrnoRet":1,"listenerMetadata":"x"}"#);
        let expected = [
            "linux.seccomp.listenerMetadata: it has no effect without listenerPath",
            "linux.seccomp.defaultErrnoRet: SCMP_ACT_KILL has no error number",
        ];
        assert_eq!(case.complaints(), expected);
    }
}
