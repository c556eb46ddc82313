//! Rules with conditions, for one system call: which are tried, and in which order.
//!
//! The rules form a tree, whose branches are conditions: rules that begin with the same conditions share them. A level
//! of the tree is tried from first to last, and a branch that leads to no verdict is left for the next one. The order
//! is libseccomp's, which profiles have been written against, and not that of the profile: conditions on later arguments
//! come first; among those on the same argument comparisons for (in)equality, then "less", then "greater"; among equal
//! ones those with the greater value, but for "less" with the smaller one. What is left is in the order of the profile.

use crate::profile::{Condition, Op, Rule};
use crate::syscalls::Syscall;

/// A condition as an architecture sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) arg: u8,
    pub(crate) op: Op,
    /// Bits that count.
    pub(crate) mask: u64,
    /// What they are compared with; has no others.
    pub(crate) value: u64,
}

impl Test {
    /// `None` if it always holds.
    fn new(condition: &Condition, wide: bool) -> Option<Self> {
        let all = if wide { u64::MAX } else { u64::from(u32::MAX) };
        let (mask, value) = match condition.op {
            Op::MaskedEq => (condition.value & all, condition.value_two),
            _ => (all, condition.value),
        };
        (mask != 0).then_some(Self { arg: condition.arg, op: condition.op, mask, value: value & mask })
    }

    /// That the first argument selects this call of a multiplexer.
    fn selects(call: u8, wide: bool) -> Self {
        let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
        Self { arg: 0, op: Op::Eq, mask, value: u64::from(call) }
    }

    /// Whether it is tried earlier than `other`. Of two of which this is true neither way, the older one is.
    fn precedes(&self, other: &Self, wide: bool) -> bool {
        let rank = |op| match op {
            Op::Eq | Op::Ne | Op::MaskedEq => 3,
            Op::Lt | Op::Le => 2,
            Op::Gt | Op::Ge => 1,
        };
        let (mine, others) = ((self.arg, rank(self.op)), (other.arg, rank(other.op)));
        if mine != others {
            return mine > others;
        }
        let (high, other_high) = (self.value >> 32, other.value >> 32);
        let masked = |test: &Self| (test.op == Op::MaskedEq).then_some(test.mask >> 32);
        if wide && high == other_high && masked(self) != masked(other) {
            // libseccomp makes two comparisons of one of 64 bits, and goes on to the low word only when it could share
            // the first.
            return false;
        }
        match self.op {
            Op::Lt | Op::Le => self.value < other.value,
            _ => self.value > other.value,
        }
    }
}

/// A branch of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) test: Test,
    pub(crate) then: Then,
}

/// What a condition leads to when it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Then {
    /// A verdict.
    Verdict(u32),
    /// More conditions; at least one.
    Tests(Vec<Branch>),
}

/// All conditions on the arguments of a system call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Arguments have 64 bits.
    pub(crate) wide: bool,
    pub(crate) level: Vec<Branch>,
}

/// A rule that may be about a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) syscall: Syscall,
    /// `None` for a rule without effect.
    pub(crate) rule: Option<&'a Rule<'a>>,
    /// What the first argument must be when the system call is made through a multiplexer.
    pub(crate) selector: Option<u8>,
}

/// What rules come to.
#[derive(Debug)]
pub(crate) enum Decision {
    Default,
    Always(u32),
    Depends(Tree),
}

/// Two rules for this system call cannot both be meant.
#[derive(Debug)]
pub(crate) struct Contradiction(pub(crate) Syscall);

/// Decides between rules, in the order of the profile; `None` if there are none.
pub(crate) fn decide<'a>(
    candidates: impl Iterator<Item = Candidate<'a>>,
    wide: bool,
) -> Result<Option<Decision>, Contradiction> {
    let mut decision = None;
    let mut level = Vec::new();
    for Candidate { syscall, rule, selector } in candidates {
        decision = Some(Decision::Default);
        let Some(rule) = rule else {
            continue;
        };
        let verdict = rule.action.verdict();
        for conditions in alternatives(&rule.conditions) {
            let path = path(conditions, selector, wide);
            if path.is_empty() {
                return Ok(Some(Decision::Always(verdict)));
            }
            insert(&mut level, &path, verdict, wide).map_err(|Clash| Contradiction(syscall))?;
        }
    }
    Ok(if level.is_empty() { decision } else { Some(Decision::Depends(Tree { wide, level })) })
}

/// The conditions of a rule, all of which must hold. But when several are about the same argument, each is taken for a
/// rule: that is what libseccomp once did, and runc still does.
fn alternatives(conditions: &[Condition]) -> impl Iterator<Item = &[Condition]> {
    let repeated = (1..conditions.len()).any(|end| {
        let (earlier, later) = conditions.split_at(end);
        later.first().is_some_and(|later| earlier.iter().any(|earlier| earlier.arg == later.arg))
    });
    let size = if repeated { 1 } else { conditions.len().max(1) };
    let none = conditions.is_empty().then_some(conditions);
    none.into_iter().chain(conditions.chunks(size))
}

/// Conditions in the order of their arguments, without those that always hold.
fn path(conditions: &[Condition], selector: Option<u8>, wide: bool) -> Vec<Test> {
    // Behind a multiplexer the first argument selects the call, and the call's own arguments are in memory. A condition
    // on the first one is dropped as libseccomp does; the others are kept as it does, though they match nothing useful.
    let own = conditions.iter().filter(|condition| selector.is_none() || condition.arg != 0);
    let selects = selector.map(|call| Test::selects(call, wide));
    let tests = own.filter_map(|condition| Test::new(condition, wide));
    let mut path: Vec<Test> = selects.into_iter().chain(tests).collect();
    path.sort_by_key(|test| test.arg);
    path
}

/// Two rules with the same conditions want different things.
#[derive(Debug)]
struct Clash;

/// Adds a rule. `path` is not empty.
///
/// A rule of which an earlier one has the beginning is redundant and left out: that one decides before it.
fn insert(level: &mut Vec<Branch>, path: &[Test], verdict: u32, wide: bool) -> Result<(), Clash> {
    let Some((&test, rest)) = path.split_first() else {
        return Ok(());
    };
    let mut place = level.len();
    for (index, branch) in level.iter_mut().enumerate() {
        if branch.test == test {
            return branch.then.extend(rest, verdict, wide);
        }
        if test.precedes(&branch.test, wide) {
            place = index;
            break;
        }
    }
    let then = match rest {
        [] => Then::Verdict(verdict),
        _ => {
            let mut deeper = Vec::new();
            insert(&mut deeper, rest, verdict, wide)?;
            Then::Tests(deeper)
        }
    };
    level.insert(place, Branch { test, then });
    Ok(())
}

impl Then {
    fn extend(&mut self, rest: &[Test], verdict: u32, wide: bool) -> Result<(), Clash> {
        match self {
            Self::Verdict(_) if !rest.is_empty() => Ok(()),
            Self::Tests(level) if !rest.is_empty() => insert(level, rest, verdict, wide),
            _ if self.all(verdict) => {
                *self = Self::Verdict(verdict);
                Ok(())
            }
            _ => Err(Clash),
        }
    }

    fn all(&self, verdict: u32) -> bool {
        match self {
            Self::Verdict(own) => *own == verdict,
            Self::Tests(level) => level.iter().all(|branch| branch.then.all(verdict)),
        }
    }
}
