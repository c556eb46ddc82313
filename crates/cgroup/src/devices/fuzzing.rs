//! Device filters against the list of rules that they are made from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken promise is found by its panic")]

use brig_spec::DeviceRule;

use super::compile::compile;
use super::interpret::{Request, all_reachable, run};
use super::policy::Policy;
use super::rule::{Access, Kind};

/// Compiles rules and asks both the program and the rules themselves about each of the devices.
pub fn devices(rules: &[DeviceRule], devices: &[(u32, u32)]) {
    let Ok(policy) = Policy::new(rules) else { return };
    let Ok(program) = compile(&policy) else { return };
    if let Some(program) = &program {
        assert!(all_reachable(program), "{program:?}");
    }
    let _ = policy.exceptions();
    for &(major, minor) in devices {
        for kind in [Kind::Block, Kind::Char] {
            for access in [Access::READ, Access::WRITE, Access::MKNOD, Access::READ.union(Access::WRITE)] {
                let request = Request { kind, major, minor, access };
                let verdict = program.as_ref().is_none_or(|program| run(program, request));
                assert_eq!(verdict, by_rules(rules, request), "{request:?} {rules:?}");
            }
        }
    }
}

/// The last rule that matches a bit of the access decides it.
fn by_rules(rules: &[DeviceRule], request: Request) -> bool {
    let matches = |rule: &DeviceRule, bit: Access| {
        let number = |asked: Option<i64>, is: u32| asked.is_none_or(|n| n < 0 || n == i64::from(is));
        let kind = match rule.kind.as_str() {
            "c" => request.kind == Kind::Char,
            "b" => request.kind == Kind::Block,
            _ => true,
        };
        kind && number(rule.major, request.major)
            && number(rule.minor, request.minor)
            && rule.access.contains(&bit.to_string())
    };
    [Access::READ, Access::WRITE, Access::MKNOD].into_iter().all(|bit| {
        request.access.intersection(bit).is_empty()
            || rules.iter().rev().find(|rule| matches(rule, bit)).is_some_and(|rule| rule.allow)
    })
}
