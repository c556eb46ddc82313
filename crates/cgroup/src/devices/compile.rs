//! Device rules as an eBPF program.
//!
//! The kernel calls the program for each use of a device, with
//!
//! ```text
//! struct bpf_cgroup_dev_ctx { u32 access_type; /* access << 16 | kind */  u32 major;  u32 minor; };
//! ```
//!
//! and takes 0 for no. The rules are tried from the last to the first. One that denies any of what is still open
//! ends it; one that allows takes that off what is open, and ends it when nothing is left.

use std::collections::BTreeMap;

use brig_sys::bpf::Insn;

use super::policy::Policy;
use super::rule::{Access, Kind, Rule};
use crate::limits::Invalid;

// Operations, see Documentation/bpf/standardization/instruction-set.rst. W stands for 32 bits.
/// `dst = *(u32 *)(src + off)`
pub(super) const LOAD: u8 = 0x61;
/// `dst = imm`
pub(super) const MOV_K: u8 = 0xb4;
/// `dst = src`
pub(super) const MOV_X: u8 = 0xbc;
/// `dst &= imm`
pub(super) const AND_K: u8 = 0x54;
/// `dst >>= imm`
pub(super) const SHR_K: u8 = 0x74;
/// `dst >>= src`
pub(super) const SHR_X: u8 = 0x7c;
/// `goto off`
pub(super) const JUMP: u8 = 0x05;
/// `if dst == imm goto off`
pub(super) const JEQ_K: u8 = 0x16;
/// `if dst != imm goto off`
pub(super) const JNE_K: u8 = 0x56;
/// `if dst >= imm goto off`, unsigned
pub(super) const JGE_K: u8 = 0x36;
/// `if dst & imm goto off`
pub(super) const JSET_K: u8 = 0x46;
/// `return r0`
pub(super) const EXIT: u8 = 0x95;

/// The result; before that, a set of minor numbers.
const RESULT: u8 = 0;
/// At first the address of the context.
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
/// What has not been decided yet.
const OPEN: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// Where a jump goes that cannot be counted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// The rules about character devices.
    Char,
    /// The end of the rule, or the rules, being compiled.
    Next,
    /// The look at a set of minor numbers.
    Set,
    Allow,
    Deny,
}

/// A program under construction.
#[derive(Debug, Default)]
struct Assembler {
    insns: Vec<Insn>,
    open: Vec<(usize, Label)>,
}

/// Compiles rules. `None` if nothing is denied, for which no program is needed.
pub(crate) fn compile(policy: &Policy) -> Result<Option<Vec<Insn>>, Invalid> {
    if policy.allows_all() {
        return Ok(None);
    }
    let mut asm = Assembler::default();
    asm.emit(LOAD, KIND, CONTEXT, 0);
    asm.emit(MOV_X, OPEN, KIND, 0);
    asm.emit(SHR_K, OPEN, 0, 16);
    asm.emit(AND_K, KIND, 0, 0xffff);
    asm.load(MAJOR, 4);
    asm.load(MINOR, 8);
    let of_kind = |kind| policy.rules.iter().rev().filter(move |rule| rule.kind == kind);
    asm.jump(JNE_K, KIND, Kind::Block as i32, Label::Char);
    asm.rules(of_kind(Kind::Block), policy.default_allow)?;
    asm.bind(Label::Char)?;
    asm.rules(of_kind(Kind::Char), policy.default_allow)?;
    for (label, result) in [(Label::Allow, 1), (Label::Deny, 0)] {
        if asm.bind(label)? {
            asm.emit(MOV_K, RESULT, 0, result);
            asm.emit(EXIT, 0, 0, 0);
        }
    }
    Ok(Some(asm.insns))
}

impl Assembler {
    fn emit(&mut self, code: u8, dst: u8, src: u8, imm: i32) {
        self.insns.push(Insn::new(code, dst, src, 0, imm));
    }

    fn load(&mut self, dst: u8, off: i16) {
        self.insns.push(Insn::new(LOAD, dst, CONTEXT, off, 0));
    }

    fn jump(&mut self, code: u8, dst: u8, imm: i32, to: Label) {
        self.open.push((self.insns.len(), to));
        self.emit(code, dst, 0, imm);
    }

    /// Lets the jumps to `label` arrive here. Says whether there are any: the verifier takes no dead code.
    fn bind(&mut self, label: Label) -> Result<bool, Invalid> {
        let here = self.insns.len();
        let mut any = false;
        for &(at, _) in self.open.iter().filter(|(_, to)| *to == label) {
            any = true;
            let distance = i16::try_from(here - at - 1);
            let (Ok(distance), Some(insn)) = (distance, self.insns.get_mut(at)) else {
                return Err(Invalid::new("linux.resources.devices", "too many device rules"));
            };
            insn.off = distance;
        }
        self.open.retain(|(_, to)| *to != label);
        Ok(any)
    }

    /// The rules about one kind, the last first, and the default.
    fn rules<'a>(
        &mut self,
        rules: impl Iterator<Item = &'a Rule>,
        default_allow: bool,
    ) -> Result<(), Invalid> {
        let rules: Vec<&Rule> = rules.collect();
        let mut rest = rules.as_slice();
        while let Some((rule, others)) = rest.split_first() {
            // Among these it does not matter which is tried first.
            let alike = |other: &&&Rule| {
                other.access == Access::ALL && other.major.is_some() && other.allow == rule.allow
            };
            let count = rest.iter().take_while(alike).count();
            if let Some((alike, others)) = rest.split_at_checked(count).filter(|(alike, _)| alike.len() > 1) {
                self.alike(alike, if rule.allow { Label::Allow } else { Label::Deny })?;
                rest = others;
                continue;
            }
            let partial = self.rule(rule);
            if !self.bind(Label::Next)? && !partial {
                // It decides all that gets here.
                return Ok(());
            }
            rest = others;
        }
        self.jump(JUMP, 0, 0, if default_allow { Label::Allow } else { Label::Deny });
        Ok(())
    }

    /// Rules that all decide everything about the devices of a major number, and all the same way.
    ///
    /// What the kernel's verifier takes for a program goes by its conditional jumps, 4 µs for each. So minor numbers
    /// are looked up in a set, and there is one such look for all major numbers: with the usual rules for /dev, half
    /// the time of comparing each.
    fn alike(&mut self, rules: &[&Rule], verdict: Label) -> Result<(), Invalid> {
        let mut majors: BTreeMap<u32, Minors> = BTreeMap::new();
        for rule in rules {
            if let Some(major) = rule.major {
                majors.entry(major).or_default().add(rule.minor);
            }
        }
        let mut sets = Vec::new();
        for (major, minors) in &majors {
            let major = major.cast_signed();
            if minors.all {
                self.jump(JEQ_K, MAJOR, major, verdict);
                continue;
            }
            let (set, single) = minors.split();
            if !single.is_empty() {
                self.jump(JNE_K, MAJOR, major, Label::Next);
                for minor in single {
                    self.jump(JEQ_K, MINOR, minor.cast_signed(), verdict);
                }
                self.bind(Label::Next)?;
            }
            if set != 0 {
                sets.push((major, set.cast_signed()));
            }
        }
        let Some((last, others)) = sets.split_last() else { return Ok(()) };
        for &(major, set) in others {
            self.emit(MOV_K, RESULT, 0, set);
            self.jump(JEQ_K, MAJOR, major, Label::Set);
        }
        self.emit(MOV_K, RESULT, 0, last.1);
        self.jump(JNE_K, MAJOR, last.0, Label::Next);
        self.bind(Label::Set)?;
        self.jump(JGE_K, MINOR, 32, Label::Next);
        self.emit(SHR_X, RESULT, MINOR, 0);
        self.jump(JSET_K, RESULT, 1, verdict);
        self.bind(Label::Next)?;
        Ok(())
    }

    /// One rule. Says whether it leaves accesses undecided that it is about.
    fn rule(&mut self, rule: &Rule) -> bool {
        for (register, number) in [(MAJOR, rule.major), (MINOR, rule.minor)] {
            if let Some(number) = number {
                // The comparison is of 32 bits: the sign does not matter.
                self.jump(JNE_K, register, number.cast_signed(), Label::Next);
            }
        }
        let bits = i32::from(rule.access.bits());
        match (rule.allow, rule.access) {
            (true, Access::ALL) => self.jump(JUMP, 0, 0, Label::Allow),
            (false, Access::ALL) => self.jump(JUMP, 0, 0, Label::Deny),
            (true, _) => {
                self.emit(AND_K, OPEN, 0, !bits);
                self.jump(JEQ_K, OPEN, 0, Label::Allow);
                return true;
            }
            (false, _) => {
                self.jump(JSET_K, OPEN, bits, Label::Deny);
                return true;
            }
        }
        false
    }
}

/// Minor numbers of one major number.
#[derive(Debug, Default)]
struct Minors {
    all: bool,
    /// Those below 32.
    set: u32,
    larger: Vec<u32>,
}

impl Minors {
    fn add(&mut self, minor: Option<u32>) {
        match minor {
            None => self.all = true,
            Some(minor @ 0..32) => self.set |= 1 << minor,
            Some(minor) => self.larger.push(minor),
        }
    }

    /// A set of several, and those that are compared one by one: a set of one is no gain.
    fn split(&self) -> (u32, Vec<u32>) {
        let mut single = self.larger.clone();
        if self.set.is_power_of_two() {
            single.push(self.set.trailing_zeros());
            return (0, single);
        }
        (self.set, single)
    }
}

#[cfg(test)]
mod tests;
