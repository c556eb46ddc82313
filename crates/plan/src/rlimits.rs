//! `process.rlimits`.

use brig_spec as spec;

use crate::{Rlimit, problem::Problems};

/// Resource numbers of asm-generic/resource.h, which x86_64 and aarch64 share.
const RESOURCES: [&str; 16] = [
    "RLIMIT_CPU",
    "RLIMIT_FSIZE",
    "RLIMIT_DATA",
    "RLIMIT_STACK",
    "RLIMIT_CORE",
    "RLIMIT_RSS",
    "RLIMIT_NPROC",
    "RLIMIT_NOFILE",
    "RLIMIT_MEMLOCK",
    "RLIMIT_AS",
    "RLIMIT_LOCKS",
    "RLIMIT_SIGPENDING",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NICE",
    "RLIMIT_RTPRIO",
    "RLIMIT_RTTIME",
];

/// Turns names into numbers. Of a resource that is given twice, the last holds, as with runc.
pub(crate) fn plan(given: &[spec::Rlimit], problems: &mut Problems) -> Vec<Rlimit> {
    let mut limits: Vec<Rlimit> = Vec::with_capacity(given.len());
    for (index, limit) in given.iter().enumerate() {
        let path = || format!("process.rlimits[{index}]");
        let resource = RESOURCES.iter().position(|name| *name == limit.kind).map(u32::try_from);
        let Some(Ok(resource)) = resource else {
            problems.error(path(), format!("wrong rlimit value: {}", limit.kind));
            continue;
        };
        if limit.soft > limit.hard {
            let message =
                format!("{}: soft limit {} is above hard limit {}", limit.kind, limit.soft, limit.hard);
            problems.error(path(), message);
        }
        if limits.iter().any(|earlier| earlier.resource == resource) {
            problems.warn(path(), format!("{} is given twice, the last one holds", limit.kind));
            limits.retain(|earlier| earlier.resource != resource);
        }
        limits.push(Rlimit { resource, soft: limit.soft, hard: limit.hard });
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_limits(given: &[(&str, u64, u64)]) -> (Vec<Rlimit>, Vec<String>) {
        let given: Vec<_> = given
            .iter()
            .map(|&(kind, soft, hard)| spec::Rlimit { kind: kind.to_owned(), soft, hard })
            .collect();
        let mut problems = Problems::default();
        let limits = plan(&given, &mut problems);
        (limits, problems.into_vec().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_become_numbers() {
        let (limits, problems) = plan_limits(&[("RLIMIT_NOFILE", 1, 2), ("RLIMIT_RTTIME", 3, u64::MAX)]);
        assert_eq!(limits[0], Rlimit { resource: 7, soft: 1, hard: 2 });
        assert_eq!(limits[1], Rlimit { resource: 15, soft: 3, hard: u64::MAX });
        assert!(problems.is_empty());
    }

    #[test]
    fn unknown_names_are_refused() {
        let (_, problems) = plan_limits(&[("RLIMIT_CPU", 0, 0), ("NOFILE", 1, 1)]);
        assert_eq!(problems, ["process.rlimits[1]: wrong rlimit value: NOFILE"]);
    }

    #[test]
    fn a_soft_limit_above_the_hard_one_is_refused() {
        let (_, problems) = plan_limits(&[("RLIMIT_CPU", 2, 1)]);
        assert_eq!(problems, ["process.rlimits[0]: RLIMIT_CPU: soft limit 2 is above hard limit 1"]);
    }

    #[test]
    fn of_duplicates_the_last_holds() {
        let (limits, problems) = plan_limits(&[("RLIMIT_CPU", 1, 1), ("RLIMIT_CPU", 2, 2)]);
        assert_eq!(limits, [Rlimit { resource: 0, soft: 2, hard: 2 }]);
        assert_eq!(problems, ["process.rlimits[1]: RLIMIT_CPU is given twice, the last one holds"]);
    }
}
