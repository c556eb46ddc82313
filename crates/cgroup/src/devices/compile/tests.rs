use brig_spec::DeviceRule;
use proptest::prelude::*;

use super::*;
use crate::devices::interpret::{Request, all_reachable, run};

/// The meaning of a list of rules, as plainly as it can be said.
fn oracle(rules: &[DeviceRule], request: Request) -> bool {
    [Access::READ, Access::WRITE, Access::MKNOD].into_iter().all(|bit| {
        request.access.intersection(bit).is_empty()
            || rules
                .iter()
                .rev()
                .find(|rule| {
                    let number =
                        |asked: Option<i64>, is: u32| asked.is_none_or(|n| n < 0 || n == i64::from(is));
                    let kind = match rule.kind.as_str() {
                        "c" => request.kind == Kind::Char,
                        "b" => request.kind == Kind::Block,
                        _ => true,
                    };
                    kind && number(rule.major, request.major)
                        && number(rule.minor, request.minor)
                        && rule.access.contains(&bit.to_string())
                })
                .is_some_and(|rule| rule.allow)
    })
}

fn rule(allow: bool, kind: &str, major: i64, minor: i64, access: &str) -> DeviceRule {
    DeviceRule { allow, kind: kind.into(), major: Some(major), minor: Some(minor), access: access.into() }
}

fn verdict(rules: &[DeviceRule], request: Request) -> bool {
    let program = compile(&Policy::new(rules).unwrap()).unwrap();
    program.is_none_or(|program| run(&program, request))
}

fn ask(rules: &[DeviceRule], kind: Kind, major: u32, minor: u32, access: Access) -> bool {
    verdict(rules, Request { kind, major, minor, access })
}

const READ_WRITE: Access = Access::READ.union(Access::WRITE);

#[test]
fn nothing_denied_needs_no_program() {
    for rules in [
        vec![rule(true, "a", -1, -1, "rwm")],
        vec![rule(false, "c", 1, 3, "w"), rule(true, "", -1, -1, "mrw")],
        vec![rule(true, "b", -1, -1, "rwm"), rule(true, "c", -1, -1, "rwm")],
        vec![rule(true, "a", -1, -1, "rwm"), rule(true, "c", 1, 3, "rwm")],
    ] {
        assert_eq!(compile(&Policy::new(&rules).unwrap()).unwrap(), None);
    }
}

#[test]
fn the_default_is_no() {
    assert!(!ask(&[], Kind::Char, 1, 3, Access::READ));
    assert!(!ask(&[rule(true, "c", 1, 3, "r")], Kind::Char, 1, 5, Access::READ));
}

#[test]
fn denying_writing_denies_opening_for_both() {
    // runc's filter lets this pass.
    let rules = [rule(true, "a", -1, -1, "rwm"), rule(false, "c", 1, 3, "w")];
    assert!(!ask(&rules, Kind::Char, 1, 3, READ_WRITE));
    assert!(ask(&rules, Kind::Char, 1, 3, Access::READ));
}

#[test]
fn the_last_one_wins() {
    let rules = [
        rule(false, "a", -1, -1, "rwm"),
        rule(true, "c", -1, -1, "rwm"),
        rule(false, "c", 10, -1, "rw"),
        rule(true, "c", 10, 200, "r"),
    ];
    assert!(ask(&rules, Kind::Char, 10, 200, Access::READ));
    assert!(!ask(&rules, Kind::Char, 10, 200, READ_WRITE));
    assert!(!ask(&rules, Kind::Char, 10, 229, Access::READ));
    assert!(ask(&rules, Kind::Char, 10, 229, Access::MKNOD));
    assert!(ask(&rules, Kind::Char, 1, 1, READ_WRITE));
    assert!(!ask(&rules, Kind::Block, 1, 1, Access::READ));
}

#[test]
fn reading_by_one_rule_and_writing_by_another() {
    let rules = [rule(true, "c", 1, -1, "r"), rule(true, "c", 1, 3, "w")];
    assert!(ask(&rules, Kind::Char, 1, 3, READ_WRITE));
    assert!(!ask(&rules, Kind::Char, 1, 5, READ_WRITE));
}

#[test]
fn large_numbers() {
    let rules = [rule(true, "b", 4_294_967_295, 2_147_483_648, "rwm")];
    assert!(ask(&rules, Kind::Block, u32::MAX, 1 << 31, READ_WRITE));
    assert!(!ask(&rules, Kind::Block, u32::MAX, 1, READ_WRITE));
}

#[test]
fn too_many_rules_are_an_error() {
    let rules: Vec<_> = (0..20_000).map(|minor| rule(true, "c", 1, minor, "r")).collect();
    // 4 instructions each: more than a jump can pass over.
    let policy =
        Policy { default_allow: false, rules: rules.iter().map(|r| Rule::parse(r, 0).unwrap()[0]).collect() };
    assert!(compile(&policy).is_err());
}

fn any_rule() -> impl Strategy<Value = DeviceRule> {
    let number = prop_oneof![Just(None), Just(Some(-1)), (0_i64..4).prop_map(Some)];
    let minor = prop_oneof![number.clone(), number.clone(), (30_i64..34).prop_map(Some)];
    (
        any::<bool>(),
        prop_oneof![Just("a"), Just("b"), Just("c"), Just("c")],
        number,
        minor,
        prop::sample::select(vec!["r", "w", "m", "rw", "rm", "wm", "rwm", "rwm"]),
    )
        .prop_map(|(allow, kind, major, minor, access)| DeviceRule {
            allow,
            kind: kind.into(),
            major,
            minor,
            access: access.into(),
        })
}

fn requests() -> impl Iterator<Item = Request> {
    let all = [Access::READ, Access::WRITE, Access::MKNOD, READ_WRITE];
    [Kind::Block, Kind::Char].into_iter().flat_map(move |kind| {
        (0..5).flat_map(move |major| {
            (0..5).chain(30..35).flat_map(move |minor| {
                all.into_iter().map(move |access| Request { kind, major, minor, access })
            })
        })
    })
}

/// What the kernel's v1 devices cgroup says with these exceptions: security/device_cgroup.c.
fn v1_kernel(policy: &Policy, exceptions: &[Rule], request: Request) -> bool {
    let mut matching = exceptions.iter().filter(|rule| {
        rule.kind == request.kind
            && rule.major.is_none_or(|major| major == request.major)
            && rule.minor.is_none_or(|minor| minor == request.minor)
    });
    if policy.default_allow {
        !matching.any(|rule| !rule.access.intersection(request.access).is_empty())
    } else {
        matching.any(|rule| request.access.without(rule.access).is_empty())
    }
}

proptest! {
    #[test]
    fn programs_do_what_the_rules_say(rules in prop::collection::vec(any_rule(), 0..12)) {
        let policy = Policy::new(&rules).unwrap();
        let program = compile(&policy).unwrap();
        if let Some(program) = &program {
            prop_assert!(all_reachable(program), "{program:?}");
        }
        for request in requests() {
            let verdict = program.as_ref().is_none_or(|program| run(program, request));
            prop_assert_eq!(verdict, oracle(&rules, request), "{:?} {:?}", policy, request);
        }
    }

    #[test]
    fn v1_never_allows_more(rules in prop::collection::vec(any_rule(), 0..8)) {
        let policy = Policy::new(&rules).unwrap();
        if let Ok(exceptions) = policy.exceptions() {
            for request in requests() {
                let verdict = v1_kernel(&policy, &exceptions, request);
                let single = request.access != READ_WRITE || policy.default_allow;
                if single {
                    prop_assert_eq!(verdict, oracle(&rules, request), "{:?} {:?}", policy, request);
                } else {
                    prop_assert!(!verdict || oracle(&rules, request), "{:?} {:?}", policy, request);
                }
            }
        }
    }

    #[test]
    fn simplifying_is_done_at_once(rules in prop::collection::vec(any_rule(), 0..12)) {
        let policy = Policy::new(&rules).unwrap();
        prop_assert!(policy.rules.len() <= 2 * rules.len());
        prop_assert!(policy.rules.first().is_none_or(|rule| rule.allow != policy.default_allow));
    }
}
