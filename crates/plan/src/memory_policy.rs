//! `linux.memoryPolicy` and `linux.personality`.

use brig_spec as spec;

use crate::{MemoryPolicy, Problem, cpu_list, problem::Problems};

/// Modes of set_mempolicy(2), each at the place of its number.
pub const MODES: [&str; 7] = [
    "MPOL_DEFAULT",
    "MPOL_PREFERRED",
    "MPOL_BIND",
    "MPOL_INTERLEAVE",
    "MPOL_LOCAL",
    "MPOL_PREFERRED_MANY",
    "MPOL_WEIGHTED_INTERLEAVE",
];

/// Flags of set_mempolicy(2), with their bits.
pub const FLAGS: [(&str, u32); 3] = [
    ("MPOL_F_NUMA_BALANCING", 1 << 13),
    ("MPOL_F_RELATIVE_NODES", 1 << 14),
    ("MPOL_F_STATIC_NODES", 1 << 15),
];

/// Decides a memory policy alone, as `exec` finds it in the record.
///
/// # Errors
///
/// What is wrong with it first.
pub fn memory_policy_of(given: Option<&spec::MemoryPolicy>) -> Result<Option<MemoryPolicy>, Problem> {
    let mut problems = Problems::default();
    let policy = given.map(|given| plan(given, &mut problems));
    problems.draft(policy).into_result().map(|(policy, _)| policy)
}

pub(crate) fn plan(given: &spec::MemoryPolicy, problems: &mut Problems) -> MemoryPolicy {
    const PATH: &str = "linux.memoryPolicy";
    let mode = MODES.iter().position(|mode| *mode == given.mode).map(u32::try_from);
    let Some(Ok(mode)) = mode else {
        problems.error(format!("{PATH}.mode"), format!("invalid memory policy mode {:?}", given.mode));
        return MemoryPolicy::default();
    };
    let nodes = match given.nodes.as_str() {
        "" => Ok(Vec::new()),
        list => cpu_list::parse(list),
    };
    let nodes: Vec<u32> = match nodes {
        Ok(nodes) => nodes.into_iter().filter_map(|node| u32::try_from(node).ok()).collect(),
        Err(error) => {
            let message = format!("invalid memory policy nodes {:?}: {error}", given.nodes);
            problems.error(format!("{PATH}.nodes"), message);
            return MemoryPolicy::default();
        }
    };
    match given.mode.as_str() {
        "MPOL_DEFAULT" | "MPOL_LOCAL" if !nodes.is_empty() => {
            let message = format!("memory policy mode requires 0 nodes but got {}", nodes.len());
            problems.error(format!("{PATH}.nodes"), message);
        }
        // Preferred nodes may be none: then it is the local one.
        "MPOL_DEFAULT" | "MPOL_LOCAL" | "MPOL_PREFERRED" => {}
        _ if nodes.is_empty() => {
            let message = "memory policy mode requires at least one node but got 0";
            problems.error(format!("{PATH}.nodes"), message);
        }
        _ => {}
    }
    let mut policy = MemoryPolicy { mode, nodes };
    for (index, name) in given.flags.iter().enumerate() {
        match FLAGS.iter().find(|(flag, _)| flag == name) {
            Some((_, bit)) => policy.mode |= bit,
            None => {
                let message = format!("invalid memory policy flag {name:?}");
                problems.error(format!("{PATH}.flags[{index}]"), message);
            }
        }
    }
    policy
}

/// The value for personality(2).
pub(crate) fn personality(given: &spec::Personality, problems: &mut Problems) -> u32 {
    const PATH: &str = "linux.personality";
    if !given.flags.is_empty() {
        let message = format!("ignoring unsupported personality flags: [{}]", given.flags.join(" "));
        problems.warn(format!("{PATH}.flags"), message);
    }
    match given.domain.as_str() {
        "LINUX" => 0,
        "LINUX32" => 8,
        domain => {
            problems.error(format!("{PATH}.domain"), format!("invalid personality domain {domain}"));
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn policy(text: &str) -> Case {
        Case::linux(&format!(r#"{{"memoryPolicy":{text}}}"#))
    }

    #[test]
    fn names_become_numbers() {
        let case = policy(r#"{"mode":"MPOL_INTERLEAVE","nodes":"0-1,3","flags":["MPOL_F_STATIC_NODES"]}"#);
        let expected = MemoryPolicy { mode: 0x8003, nodes: vec![0, 1, 3] };
        assert_eq!(case.plan().process.memory_policy, Some(expected));
        let preferred = policy(r#"{"mode":"MPOL_PREFERRED"}"#).plan().process.memory_policy;
        assert_eq!(preferred, Some(MemoryPolicy { mode: 1, nodes: vec![] }));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            (r#"{"mode":"x"}"#, "linux.memoryPolicy.mode: invalid memory policy mode \"x\""),
            (
                r#"{"mode":"MPOL_BIND","nodes":"a"}"#,
                "linux.memoryPolicy.nodes: invalid memory policy nodes \"a\": invalid number: \"a\"",
            ),
            (
                r#"{"mode":"MPOL_BIND"}"#,
                "linux.memoryPolicy.nodes: memory policy mode requires at least one node but got 0",
            ),
            (
                r#"{"mode":"MPOL_LOCAL","nodes":"0,1"}"#,
                "linux.memoryPolicy.nodes: memory policy mode requires 0 nodes but got 2",
            ),
            (
                r#"{"mode":"MPOL_DEFAULT","flags":["y"]}"#,
                "linux.memoryPolicy.flags[0]: invalid memory policy flag \"y\"",
            ),
        ] {
            assert_eq!(policy(text).complaints(), [expected]);
        }
    }

    #[test]
    fn one_of_a_record_stands_alone() {
        assert_eq!(memory_policy_of(None), Ok(None));
        let bind = spec::MemoryPolicy { mode: "MPOL_BIND".into(), nodes: "1".into(), flags: vec![] };
        assert_eq!(memory_policy_of(Some(&bind)), Ok(Some(MemoryPolicy { mode: 2, nodes: vec![1] })));
        let error = memory_policy_of(Some(&spec::MemoryPolicy::default())).unwrap_err();
        assert_eq!(error.to_string(), "linux.memoryPolicy.mode: invalid memory policy mode \"\"");
    }

    #[test]
    fn personalities() {
        let of = |text: &str| Case::linux(&format!(r#"{{"personality":{text}}}"#));
        assert_eq!(of(r#"{"domain":"LINUX"}"#).plan().process.personality, Some(0));
        assert_eq!(of(r#"{"domain":"LINUX32"}"#).plan().process.personality, Some(8));
        let expected = "linux.personality.domain: invalid personality domain BSD";
        assert_eq!(of(r#"{"domain":"BSD"}"#).complaints(), [expected]);
        let expected = "linux.personality.flags: ignoring unsupported personality flags: [A B]";
        assert_eq!(of(r#"{"domain":"LINUX","flags":["A","B"]}"#).complaints(), [expected]);
    }
}
