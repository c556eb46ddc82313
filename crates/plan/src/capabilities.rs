//! Capabilities, see capabilities(7).

use std::collections::BTreeSet;

use brig_spec as spec;

use crate::{Capabilities, Host, problem::Problems};

/// The names, each at the place of its number.
pub const NAMES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

const PATH: &str = "process.capabilities";

/// Turns names into bits. Names that are unknown, here or to this kernel, are left out with a warning, since callers
/// list all that they have heard of.
pub(crate) fn plan(given: Option<&spec::Capabilities>, host: &Host, problems: &mut Problems) -> Capabilities {
    let Some(given) = given else {
        return Capabilities::default();
    };
    let mut unknown = BTreeSet::new();
    let mut bits = |names: &[String]| {
        names.iter().fold(0, |set, name| match bit(name, host) {
            Some(bit) => set | bit,
            None => {
                unknown.insert(name.clone());
                set
            }
        })
    };
    let mut sets = Capabilities {
        bounding: bits(&given.bounding),
        effective: bits(&given.effective),
        permitted: bits(&given.permitted),
        inheritable: bits(&given.inheritable),
        ambient: bits(&given.ambient),
    };
    if !unknown.is_empty() {
        let names = unknown.into_iter().collect::<Vec<_>>().join(" ");
        problems.warn(PATH, format!("ignoring unknown or unavailable capabilities: [{names}]"));
    }
    let beyond = sets.effective & !sets.permitted;
    if beyond != 0 {
        let message = format!("not permitted: {}", names(beyond));
        problems.error_with_hint(
            format!("{PATH}.effective"),
            message,
            "the kernel wants every effective capability to be a permitted one too",
        );
    }
    let unusable = sets.ambient & !(sets.permitted & sets.inheritable);
    for (number, name) in NAMES.iter().enumerate().filter(|(number, _)| unusable >> number & 1 == 1) {
        let message = format!(
            "can't raise ambient capability {name}: operation not permitted (it is not both permitted and inheritable)"
        );
        problems.warn(format!("{PATH}.ambient"), message);
        sets.ambient &= !(1 << number);
    }
    sets
}

fn bit(name: &str, host: &Host) -> Option<u64> {
    let number = NAMES.iter().position(|known| *known == name)?;
    let number = u32::try_from(number).ok().filter(|number| *number <= host.last_capability)?;
    1u64.checked_shl(number)
}

/// The names of a set: `[CAP_KILL CAP_SETUID]`.
pub fn names(set: u64) -> String {
    let of_set = NAMES.iter().enumerate().filter(|(number, _)| set >> number & 1 == 1).map(|(_, name)| *name);
    format!("[{}]", of_set.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn plan_with(given: &spec::Capabilities, host: &Host) -> (Capabilities, Vec<String>) {
        let mut problems = Problems::default();
        let sets = plan(Some(given), host, &mut problems);
        (sets, problems.into_vec().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_stand_at_their_numbers() {
        for (name, number) in [("CAP_CHOWN", 0), ("CAP_SYS_ADMIN", 21), ("CAP_SETFCAP", 31), ("CAP_BPF", 39)]
        {
            assert_eq!(bit(name, &Host::default()), Some(1 << number), "{name}");
        }
    }

    #[test]
    fn each_set_is_its_own() {
        let given = spec::Capabilities {
            bounding: strings(&["CAP_CHOWN", "CAP_KILL"]),
            effective: strings(&["CAP_KILL"]),
            permitted: strings(&["CAP_KILL", "CAP_SETUID"]),
            inheritable: strings(&["CAP_SETUID"]),
            ambient: strings(&["CAP_SETUID"]),
        };
        let (sets, problems) = plan_with(&given, &Host::default());
        let expected = Capabilities {
            bounding: 0b10_0001,
            effective: 0b10_0000,
            permitted: 0b1010_0000,
            inheritable: 0b1000_0000,
            ambient: 0b1000_0000,
        };
        assert_eq!(sets, expected);
        assert!(problems.is_empty());
    }

    #[test]
    fn absent_means_none() {
        assert_eq!(plan(None, &Host::default(), &mut Problems::default()), Capabilities::default());
    }

    #[test]
    fn unknown_names_are_one_warning() {
        let given = spec::Capabilities {
            bounding: strings(&["CAP_ZZZ", "CAP_CHOWN", "cap_kill"]),
            permitted: strings(&["CAP_ZZZ", "CAP_BPF"]),
            ..Default::default()
        };
        let (sets, problems) = plan_with(&given, &Host { last_capability: 37, ..Host::default() });
        assert_eq!(sets, Capabilities { bounding: 1, ..Default::default() });
        let expected =
            "process.capabilities: ignoring unknown or unavailable capabilities: [CAP_BPF CAP_ZZZ cap_kill]";
        assert_eq!(problems, [expected]);
    }

    #[test]
    fn effective_must_be_permitted() {
        let given = spec::Capabilities { effective: strings(&["CAP_KILL"]), ..Default::default() };
        let (_, problems) = plan_with(&given, &Host::default());
        assert_eq!(problems, ["process.capabilities.effective: not permitted: [CAP_KILL]"]);
    }

    #[test]
    fn unusable_ambient_ones_are_dropped() {
        let given = spec::Capabilities {
            permitted: strings(&["CAP_KILL", "CAP_CHOWN"]),
            inheritable: strings(&["CAP_CHOWN"]),
            ambient: strings(&["CAP_KILL", "CAP_CHOWN"]),
            ..Default::default()
        };
        let (sets, problems) = plan_with(&given, &Host::default());
        assert_eq!(sets.ambient, 1);
        let expected = "process.capabilities.ambient: can't raise ambient capability CAP_KILL: operation not permitted (it is not both permitted and inheritable)";
        assert_eq!(problems, [expected]);
    }
}
