//! What a profile means, said as plainly as possible: no ranges, no trees, no program.

use brig_seccomp::{Action, Arch, Condition, Op, Profile, Rule, Syscall};

use super::interpreter::Data;

/// The verdict for calls that are newer than the profile.
pub const ENOSYS: u32 = 0x0005_0000 | 38;
const KILL: u32 = 0;

/// First argument of socketcall(2) and of ipc(2) for what they stand for.
const SOCKETCALL: [&str; 20] = [
    "socket",
    "bind",
    "connect",
    "listen",
    "accept",
    "getsockname",
    "getpeername",
    "socketpair",
    "send",
    "recv",
    "sendto",
    "recvfrom",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "sendmsg",
    "recvmsg",
    "accept4",
    "recvmmsg",
    "sendmmsg",
];
const IPC: [(&str, u64); 12] = [
    ("semop", 1),
    ("semget", 2),
    ("semctl", 3),
    ("semtimedop", 4),
    ("msgsnd", 11),
    ("msgrcv", 12),
    ("msgget", 13),
    ("msgctl", 14),
    ("shmat", 21),
    ("shmdt", 22),
    ("shmget", 23),
    ("shmctl", 24),
];

/// A number that a name can be called by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub number: u32,
    /// What the first argument must be, behind a multiplexer.
    pub selector: Option<u64>,
}

/// All ways to call `name` on `arch`.
pub fn ways(name: &str, arch: Arch) -> Vec<Way> {
    let number = |name| Syscall::from_name(name).and_then(|call| call.number(arch));
    let direct = number(name).map(|number| Way { number, selector: None });
    let socketcall = SOCKETCALL.iter().position(|&call| call == name).map(|at| at as u64 + 1);
    let ipc = IPC.iter().find(|(call, _)| *call == name).map(|&(_, call)| call);
    let behind = |multiplexer, call: Option<u64>| {
        number(multiplexer).zip(call).map(|(number, call)| Way { number, selector: Some(call) })
    };
    [direct, behind("socketcall", socketcall), behind("ipc", ipc)].into_iter().flatten().collect()
}

/// What a call may get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    One(u32),
    /// Several rules with conditions match, and want different things; which is first is a matter of their order.
    OneOf(Vec<u32>),
}

impl Verdict {
    pub fn allows(&self, verdict: u32) -> bool {
        match self {
            Self::One(one) => *one == verdict,
            Self::OneOf(several) => several.contains(&verdict),
        }
    }
}

/// A profile, with the names looked up.
pub struct Model<'a> {
    default: Action,
    archs: Vec<(Arch, Vec<Mention<'a>>)>,
}

/// A way to make a call that a rule names.
#[derive(Clone, Copy)]
pub struct Mention<'a> {
    pub way: Way,
    pub rule: &'a Rule<'a>,
}

impl<'a> Model<'a> {
    pub fn new(profile: &'a Profile<'a>, native: Arch) -> Self {
        let mut archs: Vec<Arch> = profile.archs.iter().copied().chain([native]).collect();
        archs.sort_unstable();
        archs.dedup();
        let mentions = |arch| {
            let named = profile.rules.iter().flat_map(|rule| rule.names.iter().map(move |name| (rule, name)));
            named
                .flat_map(|(rule, name)| ways(name, arch).into_iter().map(move |way| Mention { way, rule }))
                .collect()
        };
        let archs = archs.into_iter().map(|arch| (arch, mentions(arch))).collect();
        Self { default: profile.default_action, archs }
    }

    fn has(&self, arch: Arch) -> bool {
        self.archs.iter().any(|(other, _)| *other == arch)
    }

    /// The architecture that a call is for, if it is one of the filter.
    fn arch(&self, data: &Data) -> Option<&(Arch, Vec<Mention<'a>>)> {
        let x32 = data.number & 0x4000_0000 != 0;
        self.archs.iter().find(|(arch, _)| {
            let right_half = match arch {
                Arch::X86_64 => !x32,
                Arch::X32 => x32,
                _ => true,
            };
            arch.audit() == data.arch && right_half
        })
    }

    /// The mentions of a call.
    pub fn mentions(&self, data: &Data) -> impl Iterator<Item = Mention<'a>> {
        let all = self.arch(data).map_or(&[][..], |(_, mentions)| mentions);
        all.iter().filter(|mention| mention.way.number == data.number).copied()
    }

    /// All calls that rules are about: architecture and number.
    pub fn numbers(&self) -> impl Iterator<Item = (Arch, u32)> {
        self.archs.iter().flat_map(|(arch, all)| all.iter().map(|mention| (*arch, mention.way.number)))
    }

    /// The verdict before anything is said about new calls: what libseccomp's own program gives.
    pub fn by_rules(&self, data: &Data) -> Verdict {
        let default = self.default.verdict();
        let Some(&(arch, _)) = self.arch(data) else {
            // -1 is what a tracer sets to have a call skipped; numbers with the sign bit alone count as x32.
            let no_call = data.arch == Arch::X86_64.audit()
                && (data.number == u32::MAX && self.has(Arch::X86_64)
                    || data.number >= 0x8000_0000 && self.has(Arch::X32));
            return Verdict::One(if no_call { default } else { KILL });
        };
        if arch == Arch::X86_64 && data.number >= 0x8000_0000 && !self.has(Arch::X32) {
            return Verdict::One(KILL);
        }
        let mut matching = Vec::new();
        for Mention { way, rule } in self.mentions(data).filter(|mention| mention.rule.action != self.default)
        {
            match matches(rule, way, data, arch) {
                Some(true) => return Verdict::One(rule.action.verdict()),
                Some(false) => matching.push(rule.action.verdict()),
                None => {}
            }
        }
        matching.sort_unstable();
        matching.dedup();
        match matching[..] {
            [] => Verdict::One(default),
            [one] => Verdict::One(one),
            _ => Verdict::OneOf(matching),
        }
    }

    /// Whether the call is newer than the profile, and so gets ENOSYS before any rule is looked at.
    pub fn is_newer(&self, data: &Data) -> bool {
        if matches!(self.default, Action::Allow | Action::Log | Action::Trace(_)) {
            return false;
        }
        let Some((arch, mentions)) = self.arch(data) else {
            return false;
        };
        // ARM's private calls are a world of their own: below them only the others count.
        let private = *arch == Arch::Arm && data.number < 0x000f_0000;
        let numbers = mentions.iter().map(|mention| mention.way.number);
        let newest = numbers.filter(|&number| !private || number < 0x000f_0000).max().unwrap_or(0);
        let multiplexed = matches!(arch, Arch::S390 | Arch::S390x) && data.number == 0;
        newest != 0 && (data.number > newest || multiplexed)
    }

    /// The verdict as a whole.
    pub fn verdict(&self, data: &Data) -> Verdict {
        if self.is_newer(data) { Verdict::One(ENOSYS) } else { self.by_rules(data) }
    }
}

/// Whether a rule matches, and if so whether it does for all arguments.
fn matches(rule: &Rule<'_>, way: Way, data: &Data, arch: Arch) -> Option<bool> {
    let holds = |condition: &Condition| match way.selector {
        Some(_) if condition.arg == 0 => Some(true),
        _ => holds(condition, data, arch),
    };
    let selected = way.selector.is_none_or(|call| low(data.args[0], arch) == call);
    if !selected {
        return None;
    }
    let mut args: Vec<u8> = rule.conditions.iter().map(|condition| condition.arg).collect();
    args.sort_unstable();
    let alternatives = args.windows(2).any(|pair| pair[0] == pair[1]);
    let all: Vec<Option<bool>> = rule.conditions.iter().map(holds).collect();
    let always = if alternatives {
        all.iter().flatten().copied().reduce(|a, b| a || b)?
    } else {
        all.into_iter().try_fold(true, |always, one| Some(always & one?))?
    };
    Some(always && way.selector.is_none())
}

/// Whether a condition holds, and if so whether it cannot but hold.
fn holds(condition: &Condition, data: &Data, arch: Arch) -> Option<bool> {
    let arg = low(data.args[usize::from(condition.arg)], arch);
    let value = low(condition.value, arch);
    let holds = match condition.op {
        Op::Eq => arg == value,
        Op::Ne => arg != value,
        Op::Lt => arg < value,
        Op::Le => arg <= value,
        Op::Gt => arg > value,
        Op::Ge => arg >= value,
        Op::MaskedEq => arg & value == condition.value_two & value,
    };
    holds.then_some(condition.op == Op::MaskedEq && value == 0)
}

fn low(value: u64, arch: Arch) -> u64 {
    if arch.has_wide_args() { value } else { value & 0xffff_ffff }
}
