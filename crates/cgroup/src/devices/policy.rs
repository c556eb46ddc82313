//! A list of rules, brought down to what matters.

use brig_spec::DeviceRule;

use super::rule::{Access, Kind, Rule};
use crate::error::{Error, Result};
use crate::limits::Invalid;

/// More would not fit into a filter, whose jumps pass over 32767 instructions, and each rule is compared with all others.
const MOST_RULES: usize = 8192;

/// What a list of rules comes to.
///
/// The last rule that matches an access decides it, else the default. No rule here is without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What holds where no rule does.
    pub default_allow: bool,
    /// In the order given.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// Reads `linux.resources.devices`.
    ///
    /// # Errors
    ///
    /// A rule of unknown type, with bad numbers, or without access.
    pub fn new(rules: &[DeviceRule]) -> Result<Self, Invalid> {
        if rules.len() > MOST_RULES {
            let message =
                format!("{} rules are more than the {MOST_RULES} that a filter can hold", rules.len());
            return Err(Invalid::new("linux.resources.devices", message));
        }
        let mut parsed = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            parsed.extend(Rule::parse(rule, index)?);
        }
        Ok(Self::simplify(&parsed))
    }

    /// Nothing is denied.
    pub fn allows_all(&self) -> bool {
        self.default_allow && self.rules.is_empty()
    }

    fn simplify(rules: &[Rule]) -> Self {
        // A rule about everything makes an end of all before it. Those about all kinds of devices come in pairs.
        let everything = |rule: &Rule, kind| {
            rule.kind == kind && rule.major.is_none() && rule.minor.is_none() && rule.access == Access::ALL
        };
        let reset = rules.windows(2).rposition(|pair| {
            matches!(pair, [block, character] if everything(block, Kind::Block)
                && everything(character, Kind::Char)
                && block.allow == character.allow)
        });
        let (default_allow, rest) = match reset {
            Some(index) => {
                (rules.get(index).is_some_and(|rule| rule.allow), rules.get(index + 2..).unwrap_or_default())
            }
            None => (false, rules),
        };
        let mut kept = drop_shadowed(rest);
        drop_idle(&mut kept, default_allow);
        Self { default_allow, rules: kept }
    }

    /// The rules as cgroup v1 has them: exceptions from the default, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceHole`] where a rule makes an exception from a part of an exception: v1 would ignore it in
    /// silence.
    pub(crate) fn exceptions(&self) -> Result<Vec<Rule>> {
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.allow != self.default_allow {
                continue;
            }
            let earlier = self.rules.get(..index).unwrap_or_default();
            if let Some(other) =
                earlier.iter().find(|other| other.allow != rule.allow && other.overlaps(rule))
            {
                return Err(Error::DeviceHole { rule: rule.to_string(), other: other.to_string() });
            }
        }
        let mut exceptions = self.rules.clone();
        if !self.default_allow {
            // v1 wants one exception that allows all of an access. What a wider one allows too is added to a
            // narrower one, so that reading by the one and writing by the other makes both at once.
            for exception in &mut exceptions {
                let wider = self.rules.iter().filter(|other| other.covers(exception));
                exception.access = wider.fold(exception.access, |access, other| access.union(other.access));
            }
        }
        exceptions.sort_unstable();
        exceptions.dedup();
        Ok(exceptions)
    }
}

/// Takes from each rule what a later one decides anyway.
fn drop_shadowed(rules: &[Rule]) -> Vec<Rule> {
    let mut kept: Vec<Rule> = Vec::with_capacity(rules.len());
    for rule in rules.iter().rev() {
        let access = kept
            .iter()
            .filter(|later| later.covers(rule))
            .fold(rule.access, |access, later| access.without(later.access));
        if !access.is_empty() {
            kept.push(Rule { access, ..*rule });
        }
    }
    kept.reverse();
    kept
}

/// Drops rules that say what would hold without them.
fn drop_idle(rules: &mut Vec<Rule>, default_allow: bool) {
    let mut index = 0;
    while let Some(rule) = rules.get(index).copied() {
        let earlier = rules.get(..index).unwrap_or_default();
        let idle = rule.allow == default_allow
            && !earlier.iter().any(|other| other.allow != rule.allow && other.overlaps(&rule));
        if idle {
            rules.remove(index);
        } else {
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests;
