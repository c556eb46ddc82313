//! `process.scheduler` and `process.ioPriority`.

use brig_spec as spec;

use crate::{Scheduler, problem::Problems};

/// Policies of sched_setattr(2), each at the place of its number.
const POLICIES: [&str; 7] =
    ["SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE"];

/// Flags of sched_setattr(2), from bit 0 on.
const FLAGS: [&str; 7] = [
    "SCHED_FLAG_RESET_ON_FORK",
    "SCHED_FLAG_RECLAIM",
    "SCHED_FLAG_DL_OVERRUN",
    "SCHED_FLAG_KEEP_POLICY",
    "SCHED_FLAG_KEEP_PARAMS",
    "SCHED_FLAG_UTIL_CLAMP_MIN",
    "SCHED_FLAG_UTIL_CLAMP_MAX",
];

pub(crate) fn plan(given: &spec::Scheduler, problems: &mut Problems) -> Scheduler {
    const PATH: &str = "process.scheduler";
    let name = given.policy.as_str();
    let policy = match POLICIES.iter().position(|policy| *policy == name).map(u32::try_from) {
        Some(Ok(number)) => number,
        _ if name.is_empty() => {
            problems.error(format!("{PATH}.policy"), "scheduler policy is required");
            0
        }
        _ => {
            problems.error(format!("{PATH}.policy"), format!("invalid scheduler policy: {name}"));
            0
        }
    };
    if matches!(name, "SCHED_OTHER" | "SCHED_BATCH") && !(-20..=19).contains(&given.nice) {
        let message = format!("invalid scheduler.nice: {} when scheduler.policy is {name}", given.nice);
        problems.error(format!("{PATH}.nice"), message);
    }
    let real_time = matches!(name, "SCHED_FIFO" | "SCHED_RR");
    if given.priority != 0 && !real_time {
        let message = "scheduler.priority can only be specified for SchedFIFO or SchedRR policy";
        problems.error(format!("{PATH}.priority"), message);
    } else if real_time && !(1..=99).contains(&given.priority) {
        let message = format!("invalid scheduler.priority: {} (1 to 99 with {name})", given.priority);
        problems.error(format!("{PATH}.priority"), message);
    }
    if name != "SCHED_DEADLINE" && (given.runtime, given.deadline, given.period) != (0, 0, 0) {
        let message = "scheduler runtime/deadline/period can only be specified for SchedDeadline policy";
        problems.error(PATH, message);
    }
    Scheduler {
        policy,
        nice: given.nice,
        priority: u32::try_from(given.priority).unwrap_or(0),
        flags: flags(&given.flags, problems),
        runtime: given.runtime,
        deadline: given.deadline,
        period: given.period,
    }
}

fn flags(names: &[String], problems: &mut Problems) -> u64 {
    names.iter().enumerate().fold(0, |set, (index, name)| match FLAGS.iter().position(|flag| flag == name) {
        Some(bit) => set | 1 << bit,
        None => {
            problems.error(
                format!("process.scheduler.flags[{index}]"),
                format!("invalid scheduler flag: {name}"),
            );
            set
        }
    })
}

/// The value for ioprio_set(2): the class in the three upper bits, the level below.
pub(crate) fn io_priority(given: &spec::IoPriority, problems: &mut Problems) -> u16 {
    const PATH: &str = "process.ioPriority";
    const CLASS_SHIFT: u32 = 13;
    let level = u16::try_from(given.priority).ok().filter(|level| *level <= 7);
    if level.is_none() {
        problems
            .error(format!("{PATH}.priority"), format!("invalid ioPriority.Priority: {}", given.priority));
    }
    let class = match given.class.as_str() {
        "IOPRIO_CLASS_RT" => 1,
        "IOPRIO_CLASS_BE" => 2,
        "IOPRIO_CLASS_IDLE" => 3,
        unknown => {
            problems.error(format!("{PATH}.class"), format!("invalid ioPriority.Class: {unknown:?}"));
            0
        }
    };
    class << CLASS_SHIFT | level.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::complaints;

    fn scheduler(policy: &str) -> spec::Scheduler {
        spec::Scheduler { policy: policy.to_owned(), ..Default::default() }
    }

    fn of(given: spec::Scheduler) -> Vec<String> {
        complaints(|problems| {
            plan(&given, problems);
        })
    }

    #[test]
    fn names_become_numbers() {
        let given = spec::Scheduler {
            flags: vec!["SCHED_FLAG_RESET_ON_FORK".into(), "SCHED_FLAG_UTIL_CLAMP_MAX".into()],
            runtime: 1,
            deadline: 2,
            period: 3,
            ..scheduler("SCHED_DEADLINE")
        };
        let planned = plan(&given, &mut Problems::default());
        let expected =
            Scheduler { policy: 6, flags: 0x41, runtime: 1, deadline: 2, period: 3, ..Scheduler::default() };
        assert_eq!(planned, expected);
        assert_eq!(of(given), [""; 0]);
        assert_eq!(of(spec::Scheduler { priority: 99, ..scheduler("SCHED_RR") }), [""; 0]);
        assert_eq!(of(spec::Scheduler { nice: -20, ..scheduler("SCHED_BATCH") }), [""; 0]);
    }

    #[test]
    fn the_policy_must_be_known() {
        assert_eq!(of(scheduler("")), ["process.scheduler.policy: scheduler policy is required"]);
        assert_eq!(of(scheduler("SCHED_X")), ["process.scheduler.policy: invalid scheduler policy: SCHED_X"]);
    }

    #[test]
    fn nice_values_have_a_range() {
        let expected =
            "process.scheduler.nice: invalid scheduler.nice: 20 when scheduler.policy is SCHED_OTHER";
        assert_eq!(of(spec::Scheduler { nice: 20, ..scheduler("SCHED_OTHER") }), [expected]);
    }

    #[test]
    fn priorities_are_for_real_time() {
        let expected = "process.scheduler.priority: scheduler.priority can only be specified for SchedFIFO or SchedRR policy";
        assert_eq!(of(spec::Scheduler { priority: 1, ..scheduler("SCHED_BATCH") }), [expected]);
        let expected = "process.scheduler.priority: invalid scheduler.priority: 0 (1 to 99 with SCHED_FIFO)";
        assert_eq!(of(scheduler("SCHED_FIFO")), [expected]);
    }

    #[test]
    fn deadlines_are_for_their_policy() {
        let expected = "process.scheduler: scheduler runtime/deadline/period can only be specified for SchedDeadline policy";
        assert_eq!(of(spec::Scheduler { period: 1, ..scheduler("SCHED_IDLE") }), [expected]);
    }

    #[test]
    fn flags_must_be_known() {
        let given = spec::Scheduler { flags: vec!["X".into()], ..scheduler("SCHED_OTHER") };
        assert_eq!(of(given), ["process.scheduler.flags[0]: invalid scheduler flag: X"]);
    }

    #[test]
    fn io_priorities_are_packed() {
        let of = |class: &str, priority| {
            let given = spec::IoPriority { class: class.to_owned(), priority };
            let mut problems = Problems::default();
            let value = io_priority(&given, &mut problems);
            (value, problems.into_vec().iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of("IOPRIO_CLASS_RT", 0), (0x2000, vec![]));
        assert_eq!(of("IOPRIO_CLASS_BE", 7), (0x4007, vec![]));
        assert_eq!(of("IOPRIO_CLASS_IDLE", 0), (0x6000, vec![]));
        assert_eq!(
            of("IOPRIO_CLASS_RT", 8).1,
            ["process.ioPriority.priority: invalid ioPriority.Priority: 8"]
        );
        assert_eq!(
            of("IOPRIO_CLASS_RT", -1).1,
            ["process.ioPriority.priority: invalid ioPriority.Priority: -1"]
        );
        assert_eq!(of("x", 0).1, ["process.ioPriority.class: invalid ioPriority.Class: \"x\""]);
    }
}
