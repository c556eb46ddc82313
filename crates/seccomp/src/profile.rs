//! A profile, read: what `linux.seccomp` says in seccomp's own terms.

use brig_spec::{Seccomp, SeccompArg, SeccompSyscall};

use crate::{Arch, Error};

/// What is to happen to which system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile<'a> {
    /// For system calls that no rule matches.
    pub default_action: Action,
    /// Architectures besides the native one.
    pub archs: Vec<Arch>,
    /// `SECCOMP_FILTER_FLAG_*` that the profile asks for.
    pub flags: u64,
    /// The rules. [`compile`](crate::compile()) says which one counts when several match.
    pub rules: Vec<Rule<'a>>,
}

/// An action for some system calls, perhaps under conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<'a> {
    /// The system calls.
    pub names: &'a [String],
    /// What happens.
    pub action: Action,
    /// All must hold. When two are about the same argument, though, each counts as a rule of its own.
    pub conditions: Vec<Condition>,
}

/// A condition on one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which one, 0 to 5.
    pub arg: u8,
    /// How it is compared, unsigned.
    pub op: Op,
    /// With what; the mask for [`Op::MaskedEq`].
    pub value: u64,
    /// With what the masked argument is compared; for [`Op::MaskedEq`] only.
    pub value_two: u64,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are libseccomp's")]
pub enum Op {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    MaskedEq,
    Ne,
}

/// A verdict, see seccomp(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are seccomp(2)'s")]
pub enum Action {
    KillProcess,
    KillThread,
    Trap,
    /// With the error number.
    Errno(u16),
    Notify,
    /// With a number for the tracer.
    Trace(u16),
    Log,
    Allow,
}

const EPERM: u16 = 1;
/// The kernel would return this one for all that are greater.
const MAX_ERRNO: u16 = 4095;

impl Action {
    /// `SECCOMP_RET_*` with its data.
    pub const fn verdict(self) -> u32 {
        match self {
            Self::KillProcess => 0x8000_0000,
            Self::KillThread => 0,
            Self::Trap => 0x0003_0000,
            Self::Errno(errno) => 0x0005_0000 | errno as u32,
            Self::Notify => 0x7fc0_0000,
            Self::Trace(data) => 0x7ff0_0000 | data as u32,
            Self::Log => 0x7ffc_0000,
            Self::Allow => 0x7fff_0000,
        }
    }

    /// Whether a system call gets executed. A tracer counts as letting it: it knows what to do with calls that it has
    /// not been told of.
    pub(crate) const fn lets_through(self) -> bool {
        matches!(self, Self::Allow | Self::Log | Self::Trace(_))
    }
}

/// Names of actions, sorted. `SCMP_ACT_KILL` is `SCMP_ACT_KILL_THREAD`.
pub const ACTIONS: [&str; 9] = [
    "SCMP_ACT_ALLOW",
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_LOG",
    "SCMP_ACT_NOTIFY",
    "SCMP_ACT_TRACE",
    "SCMP_ACT_TRAP",
];

/// Names of comparisons, sorted.
pub const OPERATORS: [(&str, Op); 7] = [
    ("SCMP_CMP_EQ", Op::Eq),
    ("SCMP_CMP_GE", Op::Ge),
    ("SCMP_CMP_GT", Op::Gt),
    ("SCMP_CMP_LE", Op::Le),
    ("SCMP_CMP_LT", Op::Lt),
    ("SCMP_CMP_MASKED_EQ", Op::MaskedEq),
    ("SCMP_CMP_NE", Op::Ne),
];

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`, Linux 5.0.
pub const FLAG_NEW_LISTENER: u64 = 1 << 3;
const FLAG_TSYNC: u64 = 1;
const FLAG_SPEC_ALLOW: u64 = 1 << 2;
const WAIT_KILLABLE_RECV: &str = "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV";

/// Flags that a profile can name, with their bit, in the order that `features` shows. Only the last is newer than
/// the oldest kernel we run on: Linux 5.19.
pub const FLAGS: [(&str, u64); 4] = [
    ("SECCOMP_FILTER_FLAG_TSYNC", FLAG_TSYNC),
    ("SECCOMP_FILTER_FLAG_SPEC_ALLOW", FLAG_SPEC_ALLOW),
    ("SECCOMP_FILTER_FLAG_LOG", 1 << 1),
    (WAIT_KILLABLE_RECV, 1 << 5),
];

impl<'a> Profile<'a> {
    /// Reads `linux.seccomp`. A section without default action and without rules means "no filter"; that is for the
    /// caller to see, here it is an error.
    pub fn from_spec(spec: &'a Seccomp) -> Result<Self, Error> {
        let flags = read_flags(spec.flags.as_deref())?;
        let archs = read_archs(&spec.architectures)?;
        let default_action = read_action(
            &spec.default_action,
            spec.default_errno_ret,
            || "linux.seccomp".to_owned(),
            ["defaultAction", "defaultErrnoRet"],
        )?;
        let rules = spec.syscalls.iter().enumerate().map(read_rule).collect::<Result<Vec<_>, _>>()?;
        let profile = Self { default_action, archs, flags, rules };
        profile.check_notify(spec)?;
        Ok(profile)
    }

    /// Everything that is wrong with a section that [`from_spec`](Self::from_spec) refuses, not only what comes first;
    /// of each rule one thing.
    pub fn faults(spec: &Seccomp) -> Vec<Error> {
        let mut found = Vec::new();
        for (index, name) in spec.flags.iter().flatten().enumerate() {
            if read_flags(Some(std::slice::from_ref(name))).is_err() {
                let path = format!("linux.seccomp.flags[{index}]");
                found.push(Error::Flag { path, name: name.clone() });
            }
        }
        for (index, name) in spec.architectures.iter().enumerate() {
            if read_archs(std::slice::from_ref(name)).is_err() {
                let path = format!("linux.seccomp.architectures[{index}]");
                found.push(Error::Arch { path, name: name.clone() });
            }
        }
        let place = || "linux.seccomp".to_owned();
        let members = ["defaultAction", "defaultErrnoRet"];
        found.extend(read_action(&spec.default_action, spec.default_errno_ret, place, members).err());
        found.extend(spec.syscalls.iter().enumerate().filter_map(|rule| read_rule(rule).err()));
        if found.is_empty() {
            // What is wrong only together.
            found.extend(Profile::from_spec(spec).err());
        }
        found
    }

    /// Whether a rule hands system calls to an agent.
    pub fn notifies(&self) -> bool {
        self.rules.iter().any(|rule| rule.action == Action::Notify)
    }

    fn check_notify(&self, spec: &Seccomp) -> Result<(), Error> {
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.action == Action::Notify && rule.names.iter().any(|name| name == "write") {
                return Err(Error::NotifyWrite { path: format!("linux.seccomp.syscalls[{index}]") });
            }
        }
        if self.default_action == Action::Notify {
            return Err(Error::NotifyDefault);
        }
        if self.notifies() {
            return if spec.listener_path.is_empty() { Err(Error::NoListener) } else { Ok(()) };
        }
        let killable = |flags: &Vec<String>| flags.iter().position(|flag| flag == WAIT_KILLABLE_RECV);
        if let Some(index) = spec.flags.as_ref().and_then(killable) {
            let path = format!("linux.seccomp.flags[{index}]");
            return Err(Error::WaitKillableWithoutNotify { path });
        }
        Ok(())
    }
}

/// No list asks for SPEC_ALLOW: a filter should not switch the slow mitigations on by itself (Linux before 5.16 did).
fn read_flags(names: Option<&[String]>) -> Result<u64, Error> {
    let Some(names) = names else {
        return Ok(FLAG_SPEC_ALLOW);
    };
    let mut flags = 0;
    for (index, name) in names.iter().enumerate() {
        match FLAGS.iter().find(|(known, _)| known == name) {
            // There is one thread when the filter is loaded, so there is nothing to synchronise. With a listener the
            // kernel would even refuse.
            Some(&(_, FLAG_TSYNC)) => {}
            Some((_, flag)) => flags |= flag,
            None => {
                let path = format!("linux.seccomp.flags[{index}]");
                return Err(Error::Flag { path, name: name.clone() });
            }
        }
    }
    Ok(flags)
}

fn read_archs(names: &[String]) -> Result<Vec<Arch>, Error> {
    let read = |(index, name): (usize, &String)| {
        Arch::from_name(name).ok_or_else(|| {
            let path = format!("linux.seccomp.architectures[{index}]");
            Error::Arch { path, name: name.clone() }
        })
    };
    names.iter().enumerate().map(read).collect()
}

fn read_rule((index, rule): (usize, &SeccompSyscall)) -> Result<Rule<'_>, Error> {
    let place = || format!("linux.seccomp.syscalls[{index}]");
    let action = read_action(&rule.action, rule.errno_ret, place, ["action", "errnoRet"])?;
    if let Some(empty) = rule.names.iter().position(String::is_empty) {
        return Err(Error::EmptyName { path: format!("{}.names[{empty}]", place()) });
    }
    let read = |(arg, condition): (usize, &SeccompArg)| {
        read_condition(condition, || format!("{}.args[{arg}]", place()))
    };
    let conditions = rule.args.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Rule { names: &rule.names, action, conditions })
}

fn read_condition(condition: &SeccompArg, place: impl Fn() -> String) -> Result<Condition, Error> {
    let Some(&(_, op)) = OPERATORS.iter().find(|(name, _)| *name == condition.op) else {
        return Err(Error::Operator { path: format!("{}.op", place()), name: condition.op.clone() });
    };
    let arg = match u8::try_from(condition.index) {
        Ok(arg) if arg < 6 => arg,
        _ => {
            return Err(Error::ArgIndex { path: format!("{}.index", place()), index: condition.index });
        }
    };
    Ok(Condition { arg, op, value: condition.value, value_two: condition.value_two })
}

/// `members` are the names, in the object at `place`, of the action and of its error number.
fn read_action(
    name: &str,
    errno: Option<u32>,
    place: impl Fn() -> String,
    members: [&str; 2],
) -> Result<Action, Error> {
    let [action_member, errno_member] = members;
    let number = |max: u16| match errno.map(|value| (value, u16::try_from(value))) {
        None => Ok(EPERM),
        Some((_, Ok(value))) if value <= max => Ok(value),
        Some((value, _)) => Err(Error::Errno { path: format!("{}.{errno_member}", place()), value }),
    };
    Ok(match name {
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_TRAP" => Action::Trap,
        "SCMP_ACT_ERRNO" => Action::Errno(number(MAX_ERRNO)?),
        "SCMP_ACT_NOTIFY" => Action::Notify,
        "SCMP_ACT_TRACE" => Action::Trace(number(u16::MAX)?),
        "SCMP_ACT_LOG" => Action::Log,
        "SCMP_ACT_ALLOW" => Action::Allow,
        _ => {
            return Err(Error::Action {
                path: format!("{}.{action_member}", place()),
                name: name.to_owned(),
            });
        }
    })
}

#[cfg(test)]
mod tests;
