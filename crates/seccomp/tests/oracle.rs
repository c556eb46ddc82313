//! Our programs against those of libseccomp: same profile, same system calls, same verdicts.
//!
//! Three judge each call: our program, libseccomp's, and the model of what a profile means. Ours must always agree with
//! the model. libseccomp's must agree with both, but for these differences:
//!
//! - Calls newer than the profile: libseccomp knows nothing of that rule, runc adds it afterwards.
//! - Rules that contradict each other are refused by both, but libseccomp's idea of a contradiction is wider, and where
//!   it loses track narrower.
//! - Where several rules with conditions match one call and want different things, either may win. Which does is nearly
//!   always the same; libseccomp has an order only for the halves of a comparison, not for comparisons.
//! - libseccomp 2.5 and 2.6 get some programs wrong, or loop for ever, when a call has several rules with conditions and
//!   one of those has two, or compares by order. See `trouble`.
//!
//! The library is asked through a small C program beside this file, which is compiled here. `BRIG_SECCOMP_CASES` is the
//! number of random profiles to try.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use std::cell::RefCell;

use brig_seccomp::{Arch, Error, Insn, Op, Profile, Syscall, compile};
use brig_spec::Seccomp;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest::{prop_assert, prop_assert_eq};
use support::interpreter::{Data, run, verify};
use support::libseccomp::{ARCHS, Answer, Oracle, commands};
use support::model::{ENOSYS, Model, Verdict};
use support::{engines, generate};

/// Every number that libseccomp knows. What is newer than its version is left out: Linux 5.17 for 2.5.4.
#[test]
fn numbers_are_libseccomps() {
    let mut oracle = Oracle::new();
    let mut newer = 0;
    for call in Syscall::all() {
        for (arch, name) in ARCHS {
            let (ours, theirs) = (call.number(arch), oracle.number(call, arch));
            if ours != theirs {
                let since_linux_5_17 = ours.is_some_and(|number| (number & !0x4000_0000) % 1000 > 450);
                let late = ["uretprobe", "uprobe", "riscv_hwprobe"].contains(&call.name());
                assert!(since_linux_5_17 || late, "{} on {name}: {ours:?}, not {theirs:?}", call.name());
                assert_eq!(theirs, None, "{} on {name}", call.name());
                newer += 1;
            }
        }
    }
    assert!(newer < 24 * ARCHS.len(), "{newer}");
}

/// Docker's profile, all numbers of its three architectures and some more.
#[test]
fn dockers_profile() {
    let firsts =
        [0, 1, 8, 40, 41, 0x2_0000, 0x2_0008, 0x1000_0000, 0x7e02_0000, 0xffff_ffff, 1 << 40, 40 | 1 << 32];
    same_verdicts(&engines::docker(), &firsts.map(|first| [first, 2, 3, 4, 5, 6]));
}

/// Podman's rules for socket(2): on x86 they would contradict each other if it did not allow socketcall(2).
#[test]
fn podmans_socket_rules() {
    let args = [0, 1, 9, 16, 17].map(|first| [0, 9, 16, 1 << 32 | 9].map(|third| [first, 2, third, 4, 5, 6]));
    same_verdicts(&engines::podman_sockets(), args.as_flattened());
}

/// Compares programs for x86_64. No difference is excused, save for calls newer than the profile.
fn same_verdicts(spec: &Seccomp, args: &[[u64; 6]]) {
    let profile = Profile::from_spec(spec).unwrap();
    let ours = compile(&profile, Arch::X86_64).unwrap().insns;
    let Answer::Program(theirs) = Oracle::new().compile(&profile, Arch::X86_64) else {
        panic!("libseccomp refuses");
    };
    let model = Model::new(&profile, Arch::X86_64);
    for arch in [Arch::X86_64.audit(), Arch::X86.audit(), Arch::Aarch64.audit(), 0] {
        let numbers = (0..700).chain(0x4000_0000..0x4000_0000 + 700);
        for number in numbers.chain([0x7fff_ffff, 1 << 31, u32::MAX]) {
            for &args in args {
                let data = Data { number, arch, args };
                let (verdict, theirs) = (run(&ours, &data, true).0, run(&theirs, &data, true).0);
                let expected = if model.is_newer(&data) { ENOSYS } else { theirs };
                assert_eq!(verdict, expected, "{data:x?}");
            }
        }
    }
}

/// Length, and what the calls that containers make most take to be let through.
#[test]
fn dockers_program_is_shorter_and_quicker() {
    let spec = engines::docker();
    let profile = Profile::from_spec(&spec).unwrap();
    let ours = compile(&profile, Arch::X86_64).unwrap().insns;
    let Answer::Program(theirs) = Oracle::new().compile(&profile, Arch::X86_64) else {
        panic!("libseccomp refuses");
    };
    let executed = |program: &[Insn]| -> usize {
        let numbers =
            engines::COMMON.map(|name| Syscall::from_name(name).unwrap().number(Arch::X86_64).unwrap());
        let data = |number| Data { number, arch: Arch::X86_64.audit(), args: [0; 6] };
        numbers.iter().map(|&number| run(program, &data(number), true).1).sum()
    };
    println!("{} and {} instructions", ours.len(), theirs.len());
    println!("{} and {} for {} calls", executed(&ours), executed(&theirs), engines::COMMON.len());
    assert!(4 * ours.len() < theirs.len());
    assert!(executed(&ours) < executed(&theirs));
}

#[test]
fn random_profiles() {
    let oracle = RefCell::new(Oracle::new());
    let archs = ARCHS.iter().map(|&(arch, _)| arch).collect();
    let cases = generate::case(archs, oracle.borrow_mut().common_names());
    let counts = RefCell::new(Counts::default());
    let result = runner().run(&(cases, proptest::num::u64::ANY), |((native, spec), seed)| {
        let profile = Profile::from_spec(&spec).expect("a valid profile");
        let (mut oracle, mut counts) = (oracle.borrow_mut(), counts.borrow_mut());
        compare(&mut oracle, &profile, native, seed, &mut counts)
    });
    if let Err(TestError::Fail(why, ((native, spec), seed))) = result {
        let profile = Profile::from_spec(&spec).expect("a valid profile");
        panic!("{why}\nseed {seed} {native:?}\n{}", commands(&profile, native));
    }
    result.unwrap();
    let counts = counts.into_inner();
    println!("{counts:?}");
    counts.check();
}

/// How often what happened.
#[derive(Debug, Default)]
struct Counts {
    cases: usize,
    refused_by_both: usize,
    refused_by_us: usize,
    refused_by_them: usize,
    hung: usize,
    probes: usize,
    newer: usize,
    ambiguous: usize,
    ambiguous_differ: usize,
    troubled: usize,
    troubled_differ: usize,
}

impl Counts {
    /// What is excused must be rare, and what is not must be the rule.
    fn check(&self) {
        assert!(self.refused_by_us * 20 < self.refused_by_both, "{self:?}");
        assert!(self.refused_by_both + self.refused_by_them < self.cases / 2, "{self:?}");
        assert!(self.hung * 1000 <= self.cases, "{self:?}");
        assert!(self.ambiguous_differ * 20 < self.ambiguous, "{self:?}");
        assert!(self.troubled_differ * 50 < self.troubled, "{self:?}");
        assert!(self.newer + self.ambiguous + self.troubled < self.probes / 3, "{self:?}");
    }
}

/// 3000 cases, the same on each run, or as many as the environment says, different ones each time.
fn runner() -> TestRunner {
    let wanted = std::env::var("BRIG_SECCOMP_CASES").ok().map(|cases| cases.parse().expect("a number"));
    let config = Config { cases: wanted.unwrap_or(3000), failure_persistence: None, ..Config::default() };
    match wanted {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

fn compare(
    oracle: &mut Oracle,
    profile: &Profile<'_>,
    native: Arch,
    seed: u64,
    counts: &mut Counts,
) -> Result<(), TestCaseError> {
    counts.cases += 1;
    let model = Model::new(profile, native);
    let ours = match compile(profile, native) {
        Ok(filter) => Some(filter.insns),
        Err(Error::Contradiction { .. }) => None,
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let (ours, theirs) = match (ours, oracle.compile(profile, native)) {
        (Some(ours), Answer::Program(theirs)) => (ours, theirs),
        (None, Answer::Program(_)) => {
            counts.refused_by_us += 1;
            return Ok(());
        }
        (ours, Answer::Refused(error)) => {
            prop_assert_eq!(error, EEXIST);
            let count =
                if ours.is_some() { &mut counts.refused_by_them } else { &mut counts.refused_by_both };
            *count += 1;
            return Ok(());
        }
        (_, Answer::Hung) => {
            let troubled = trouble::anywhere(&model);
            prop_assert!(troubled, "libseccomp does not answer");
            counts.hung += 1;
            return Ok(());
        }
    };
    verify(&ours);
    for data in generate::probes(profile, native, seed) {
        counts.probes += 1;
        let little_endian = native.is_little_endian();
        let (our_verdict, their_verdict) =
            (run(&ours, &data, little_endian).0, run(&theirs, &data, little_endian).0);
        if model.is_newer(&data) {
            counts.newer += 1;
            prop_assert_eq!(our_verdict, ENOSYS, "{:x?}", data);
            continue;
        }
        let expected = model.by_rules(&data);
        prop_assert!(
            expected.allows(our_verdict),
            "we say {:x}, not {:x?}: {:x?}",
            our_verdict,
            expected,
            data
        );
        let ambiguous = matches!(expected, Verdict::OneOf(_));
        counts.ambiguous += usize::from(ambiguous);
        if trouble::with(&model, &data) {
            counts.troubled += 1;
            counts.troubled_differ += usize::from(!expected.allows(their_verdict));
        } else {
            let agrees = expected.allows(their_verdict);
            prop_assert!(agrees, "libseccomp says {:x}, not {:x?}: {:x?}", their_verdict, expected, data);
        }
        counts.ambiguous_differ += usize::from(ambiguous && our_verdict != their_verdict);
    }
    Ok(())
}

const EEXIST: i32 = 17;

/// When libseccomp's programs cannot be relied on.
///
/// It turns rules into a tree of comparisons of 32 bits, each with the offset that it needs to have loaded, and merges
/// comparisons that look alike. When a call has several rules with conditions, then
///
/// - of two rules that compare by order with the same high word, the first comparison is merged, and the way on from there
///   is one of them (`read` with "argument 0 at least 0x100000000" or "at most 0", twice, allows 0xff);
/// - the way from a rule with two conditions to the next rule may lead to a comparison with the wrong word loaded;
/// - it may loop for ever (`msgctl` with "0 is not A, 2 greater than B" and with "0 is not A, 4 masked is C").
mod trouble {
    use super::{Data, Model, Op};

    pub fn with(model: &Model<'_>, data: &Data) -> bool {
        let (mut conditions, mut difficult) = (0, false);
        for mention in model.mentions(data) {
            let own = &mention.rule.conditions;
            let count = own.len() + usize::from(mention.way.selector.is_some());
            conditions += count;
            difficult |= own.iter().any(|c| !matches!(c.op, Op::Eq | Op::Ne | Op::MaskedEq)) || count > 1;
        }
        conditions > 1 && difficult
    }

    pub fn anywhere(model: &Model<'_>) -> bool {
        model.numbers().any(|(arch, number)| with(model, &Data { number, arch: arch.audit(), args: [0; 6] }))
    }
}
