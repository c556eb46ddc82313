//! From names to numbers: what each system call number of an architecture leads to.

use std::iter;

use crate::arch::{ARM_PRIVATE_BASE, Arch, X32_BIT};
use crate::conditions::{Candidate, Contradiction, Decision, Tree, decide};
use crate::error::Error;
use crate::profile::{Action, Profile, Rule};
use crate::ranges::{Ranges, Target};
use crate::syscalls::{self, Syscall};

const KILL: Target = Target::Verdict(Action::KillThread.verdict());
const ENOSYS: Target = Target::Verdict(Action::Errno(38).verdict());

/// A profile on its way to numbers.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    /// The names of the rules, in their order.
    mentions: Vec<Mention<'a>>,
    /// For each system call the first mention.
    first: Vec<Option<usize>>,
    /// Names that no architecture has.
    pub(crate) unknown: Vec<&'a str>,
    /// What [`Target::Tree`] is an index of.
    pub(crate) trees: Vec<Tree>,
    default: Target,
    /// Whether calls newer than the profile get ENOSYS. Programs then fall back to older calls, which after the
    /// default action they often don't. Where the default lets calls through, nothing is in their way anyhow.
    hides_newer: bool,
}

/// A known name in a rule.
#[derive(Debug)]
struct Mention<'a> {
    syscall: Syscall,
    /// `None` for a rule that wants what is the default anyhow.
    rule: Option<&'a Rule<'a>>,
    /// The next mention of the same system call.
    next: Option<usize>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(profile: &'a Profile<'a>) -> Self {
        let mut mentions = Vec::with_capacity(profile.rules.iter().map(|rule| rule.names.len()).sum());
        let mut unknown = Vec::new();
        for rule in &profile.rules {
            let effective = Some(rule).filter(|rule| rule.action != profile.default_action);
            for name in rule.names {
                match Syscall::from_name(name) {
                    Some(syscall) => mentions.push(Mention { syscall, rule: effective, next: None }),
                    None if unknown.contains(&name.as_str()) => {}
                    None => unknown.push(name),
                }
            }
        }
        let mut first = vec![None; syscalls::COUNT];
        for (index, mention) in mentions.iter_mut().enumerate().rev() {
            if let Some(first) = first.get_mut(mention.syscall.index()) {
                mention.next = first.replace(index);
            }
        }
        let default = Target::Verdict(profile.default_action.verdict());
        let hides_newer = !profile.default_action.lets_through();
        Self { mentions, first, unknown, trees: Vec::new(), default, hides_newer }
    }

    /// What the numbers lead to that the kernel shows with the audit number of `arch`; `archs` are all of the filter.
    pub(crate) fn ranges(&mut self, arch: Arch, archs: &[Arch]) -> Result<Ranges, Error> {
        let mut ranges = Ranges::default();
        match arch {
            Arch::X86_64 | Arch::X32 => self.x86_64(&mut ranges, archs)?,
            Arch::Arm => {
                // Were the private calls, which are as old as ARM, the measure of what is new, nothing ever would be.
                let calls = self.calls(arch)?;
                let private = calls.partition_point(|&(number, _)| number < ARM_PRIVATE_BASE);
                let (usual, private) = calls.split_at(private);
                self.band(&mut ranges, 0, usual, newest(usual));
                self.band(&mut ranges, ARM_PRIVATE_BASE, private, newest(&calls));
            }
            Arch::S390 | Arch::S390x => {
                let mut calls = self.calls(arch)?;
                let newest = newest(&calls);
                if self.hides_newer && newest != 0 {
                    // Numbers above 255 come in a register, and when the kernel does not know one it shows 0, which
                    // is no call.
                    calls.insert(0, (0, ENOSYS));
                }
                self.band(&mut ranges, 0, &calls, newest);
            }
            _ => {
                let calls = self.calls(arch)?;
                self.band(&mut ranges, 0, &calls, newest(&calls));
            }
        }
        Ok(ranges)
    }

    /// x86_64 and x32 share the audit number; bit 30 of the system call's number tells which it is. Whichever is not in
    /// the filter is a wrong architecture, save for -1, which a tracer sets to have a call skipped.
    fn x86_64(&mut self, ranges: &mut Ranges, archs: &[Arch]) -> Result<(), Error> {
        let mut calls = |arch| archs.contains(&arch).then(|| self.calls(arch)).transpose();
        let (plain, x32) = (calls(Arch::X86_64)?, calls(Arch::X32)?);
        for (start, calls) in [(0, &plain), (X32_BIT, &x32)] {
            match calls {
                Some(calls) => self.band(ranges, start, calls, newest(calls)),
                None => ranges.from(start, KILL),
            }
        }
        // There are no calls with the sign bit. libseccomp looks for the x32 bit by comparing, so it takes them for x32.
        let high = 1 << 31;
        match (&plain, &x32) {
            (Some(calls), _) if self.hides_newer && newest(calls) != 0 => ranges.from(high, ENOSYS),
            (_, Some(_)) => ranges.from(high, self.default),
            _ => ranges.from(high, KILL),
        }
        match &x32 {
            Some(calls) => self.band(ranges, high | X32_BIT, &[], newest(calls)),
            None => {
                ranges.from(high | X32_BIT, KILL);
                ranges.from(u32::MAX, self.default);
            }
        }
        Ok(())
    }

    /// Numbers from `start` on: those of `calls`, then those that are new, if `newest` is not 0.
    fn band(&self, ranges: &mut Ranges, start: u32, calls: &[(u32, Target)], newest: u32) {
        ranges.from(start, self.default);
        for &(number, target) in calls {
            ranges.one(number, target, self.default);
        }
        if self.hides_newer && newest != 0 {
            ranges.from(start.max(newest + 1), ENOSYS);
        }
    }

    /// The numbers that the profile names on `arch`, ascending, also those that get the default anyhow.
    fn calls(&mut self, arch: Arch) -> Result<Vec<(u32, Target)>, Error> {
        let wide = arch.has_wide_args();
        let mut calls = Vec::with_capacity(self.mentions.len());
        for (number, syscall) in Syscall::by_number(arch) {
            let decision = if syscall.is_multiplexer(arch) {
                decide(self.multiplexed(syscall, number, arch), wide)
            } else {
                decide(self.direct(syscall), wide)
            };
            let target = match decision {
                Ok(None) => continue,
                Ok(Some(Decision::Default)) => self.default,
                Ok(Some(Decision::Always(verdict))) => Target::Verdict(verdict),
                Ok(Some(Decision::Depends(tree))) => Target::Tree(self.tree_index(tree)),
                Err(Contradiction(syscall)) => {
                    return Err(Error::Contradiction { name: syscall.name(), arch });
                }
            };
            calls.push((number, target));
        }
        Ok(calls)
    }

    /// The mentions of a system call.
    fn direct(&self, syscall: Syscall) -> impl Iterator<Item = Candidate<'a>> {
        let mut next = self.first.get(syscall.index()).copied().flatten();
        iter::from_fn(move || {
            let mention = self.mentions.get(next?)?;
            next = mention.next;
            Some(Candidate { syscall, rule: mention.rule, selector: None })
        })
    }

    /// The mentions of a multiplexer and of all that it stands for.
    fn multiplexed(
        &self,
        multiplexer: Syscall,
        number: u32,
        arch: Arch,
    ) -> impl Iterator<Item = Candidate<'a>> {
        self.mentions.iter().filter_map(move |&Mention { syscall, rule, .. }| {
            let selector = match syscall.multiplexed(arch) {
                Some((own, call)) if own == number => Some(call),
                _ if syscall == multiplexer => None,
                _ => return None,
            };
            Some(Candidate { syscall, rule, selector })
        })
    }

    fn tree_index(&mut self, tree: Tree) -> usize {
        self.trees.iter().position(|known| *known == tree).unwrap_or_else(|| {
            self.trees.push(tree);
            self.trees.len() - 1
        })
    }
}

fn newest(calls: &[(u32, Target)]) -> u32 {
    calls.last().map_or(0, |&(number, _)| number)
}
