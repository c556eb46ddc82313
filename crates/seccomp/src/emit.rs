//! From ranges and trees to instructions.
//!
//! The program is written from its end to its beginning: BPF only jumps forward, so whatever a jump leads to is there
//! already and its distance is known.

use crate::bpf::{self, Insn};
use crate::conditions::{Branch, Test, Then, Tree};
use crate::profile::Op;
use crate::ranges::{Range, Target};

/// Where an instruction is, counted from the end of the program.
type Label = usize;

/// Where to go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// To a verdict; any instruction that returns it will do.
    Verdict(u32),
    At(Label),
}

/// A program that grows towards its beginning.
#[derive(Debug)]
pub(crate) struct Emitter<'a> {
    /// Last instruction first.
    reversed: Vec<Insn>,
    little_endian: bool,
    /// The verdict where conditions match nothing.
    default: Goal,
    /// For each verdict the nearest instruction that returns it.
    returns: Vec<(u32, Label)>,
    trees: &'a [Tree],
    /// Those of the trees that have been written.
    written: Vec<Option<Label>>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(trees: &'a [Tree], default: u32, little_endian: bool) -> Self {
        Self {
            reversed: Vec::with_capacity(512),
            little_endian,
            default: Goal::Verdict(default),
            returns: Vec::new(),
            trees,
            written: vec![None; trees.len()],
        }
    }

    /// The part for one audit number. What has another one goes to `other`.
    pub(crate) fn section(&mut self, audit: u32, ranges: &[Range], other: Goal) -> Goal {
        for range in ranges {
            self.write_tree(range.target);
        }
        let goal = self.search(ranges);
        self.fall_through(goal);
        self.push(Insn::new(Insn::LOAD, bpf::NUMBER));
        let number_loaded = self.here();
        self.branch(Insn::JUMP_EQ, audit, number_loaded, other)
    }

    /// The beginning, and the program as a whole.
    pub(crate) fn finish(mut self, sections: Goal) -> Vec<Insn> {
        self.fall_through(sections);
        self.push(Insn::new(Insn::LOAD, bpf::ARCH));
        self.reversed.reverse();
        self.reversed
    }

    /// Finds the range that the loaded number is in. Ranges of which the profile names many calls are near the root:
    /// those are the calls that are made.
    fn search(&mut self, ranges: &[Range]) -> Goal {
        match ranges {
            [] => self.default,
            [range] => self.goal(range.target),
            [before, one, after]
                if before.target == after.target && one.start.checked_add(1) == Some(after.start) =>
            {
                let (one_goal, others) = (self.goal(one.target), self.goal(before.target));
                self.branch(Insn::JUMP_EQ, one.start, one_goal, others)
            }
            _ => {
                let (left, right) = ranges.split_at(middle(ranges));
                let Some(first) = right.first() else {
                    return self.default;
                };
                let right = self.search(right);
                let left = self.search(left);
                self.branch(Insn::JUMP_GE, first.start, right, left)
            }
        }
    }

    fn goal(&self, target: Target) -> Goal {
        match target {
            Target::Verdict(verdict) => Goal::Verdict(verdict),
            Target::Tree(index) => self.written.get(index).copied().flatten().map_or(self.default, Goal::At),
        }
    }

    fn write_tree(&mut self, target: Target) {
        let Target::Tree(index) = target else {
            return;
        };
        let trees = self.trees;
        if let (Some(tree), Some(None)) = (trees.get(index), self.written.get(index)) {
            let goal = self.level(&tree.level, tree.wide, self.default);
            self.fall_through(goal);
            let label = self.reversed.len().checked_sub(1);
            if let Some(slot) = self.written.get_mut(index) {
                *slot = label;
            }
        }
    }

    /// Branches from the first to the last; when none matches, on to `otherwise`.
    fn level(&mut self, level: &[Branch], wide: bool, otherwise: Goal) -> Goal {
        level.iter().rev().fold(otherwise, |next, branch| {
            let holds = match &branch.then {
                Then::Verdict(verdict) => Goal::Verdict(*verdict),
                Then::Tests(deeper) => self.level(deeper, wide, next),
            };
            self.test(&branch.test, wide, holds, next)
        })
    }

    /// One condition, in words of 32 bits since BPF has no others.
    fn test(&mut self, test: &Test, wide: bool, holds: Goal, fails: Goal) -> Goal {
        let (low, high) = bpf::arg_words(test.arg, self.little_endian);
        let (low, high) = (Word::new(test, 0, low), Word::new(test, 32, high));
        // The comparison to make, and what follows when it is true and when it is false.
        let (code, yes, no) = match test.op {
            Op::Eq | Op::MaskedEq => (Insn::JUMP_EQ, holds, fails),
            Op::Ne => (Insn::JUMP_EQ, fails, holds),
            Op::Gt => (Insn::JUMP_GT, holds, fails),
            Op::Le => (Insn::JUMP_GT, fails, holds),
            Op::Ge => (Insn::JUMP_GE, holds, fails),
            Op::Lt => (Insn::JUMP_GE, fails, holds),
        };
        let mut goal = yes;
        if low.mask != 0 {
            goal = self.branch(code, low.value, yes, no);
            goal = self.load(&low, goal);
        }
        if wide && high.mask != 0 {
            goal = self.branch(Insn::JUMP_EQ, high.value, goal, no);
            if code != Insn::JUMP_EQ {
                goal = self.branch(Insn::JUMP_GT, high.value, yes, goal);
            }
            goal = self.load(&high, goal);
        }
        goal
    }

    fn load(&mut self, word: &Word, then: Goal) -> Goal {
        self.fall_through(then);
        if word.mask != u32::MAX {
            self.push(Insn::new(Insn::AND, word.mask));
        }
        self.push(Insn::new(Insn::LOAD, word.offset));
        self.here()
    }

    fn branch(&mut self, code: u16, k: u32, yes: Goal, no: Goal) -> Goal {
        // One less for the first, since reaching the second may put an instruction between.
        let yes = self.reach(yes, 254);
        let no = self.reach(no, 255);
        let (jt, jf) = (self.distance(yes), self.distance(no));
        debug_assert!(jt <= 255 && jf <= 255, "reach() has seen to it");
        let short = |distance| u8::try_from(distance).unwrap_or(u8::MAX);
        self.push(Insn { code, jt: short(jt), jf: short(jf), k });
        self.here()
    }

    /// An instruction at most `limit` away that leads to the goal; the last one written if there was none.
    fn reach(&mut self, goal: Goal, limit: usize) -> Label {
        let label = match goal {
            Goal::At(label) => Some(label),
            Goal::Verdict(verdict) => self.returns.iter().find(|(v, _)| *v == verdict).map(|&(_, at)| at),
        };
        match label {
            Some(label) if self.distance(label) <= limit => label,
            _ => {
                self.lead_to(goal);
                self.reversed.len().saturating_sub(1)
            }
        }
    }

    /// Makes sure that whatever comes before the instructions so far gets to the goal by going on.
    fn fall_through(&mut self, goal: Goal) {
        match goal {
            Goal::At(label) if self.distance(label) == 0 => {}
            _ => self.lead_to(goal),
        }
    }

    fn lead_to(&mut self, goal: Goal) {
        match goal {
            Goal::Verdict(verdict) => {
                let label = self.reversed.len();
                self.push(Insn::new(Insn::RETURN, verdict));
                match self.returns.iter_mut().find(|(v, _)| *v == verdict) {
                    Some(known) => known.1 = label,
                    None => self.returns.push((verdict, label)),
                }
            }
            Goal::At(label) => {
                let distance = self.distance(label);
                self.push(Insn::new(Insn::JUMP, u32::try_from(distance).unwrap_or(u32::MAX)));
            }
        }
    }

    /// How many instructions are between the next one and that at `label`.
    fn distance(&self, label: Label) -> usize {
        self.reversed.len().saturating_sub(label + 1)
    }

    /// The instruction written last.
    fn here(&self) -> Goal {
        Goal::At(self.reversed.len().saturating_sub(1))
    }

    fn push(&mut self, insn: Insn) {
        self.reversed.push(insn);
    }
}

/// Half of a condition.
struct Word {
    offset: u32,
    mask: u32,
    value: u32,
}

impl Word {
    fn new(test: &Test, shift: u32, offset: u32) -> Self {
        let part = |value: u64| u32::try_from((value >> shift) & u64::from(u32::MAX)).unwrap_or_default();
        Self { offset, mask: part(test.mask), value: part(test.value) }
    }
}

/// Where to cut the ranges in two of about the same weight, neither of them empty.
fn middle(ranges: &[Range]) -> usize {
    let total: u32 = ranges.iter().map(|range| range.weight).sum();
    let mut left = 0;
    for (index, range) in ranges.iter().enumerate() {
        let with = left + range.weight;
        if 2 * with >= total {
            // Whichever side the range that holds the middle makes less uneven.
            let cut = if total - 2 * left < 2 * with - total { index } else { index + 1 };
            return cut.clamp(1, ranges.len().saturating_sub(1).max(1));
        }
        left = with;
    }
    1
}
