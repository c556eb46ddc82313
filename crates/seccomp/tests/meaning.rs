//! What compiled programs decide, judged without libseccomp: by the model on random profiles for all architectures, and
//! by hand on the cases that matter most.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod support;

use brig_seccomp::{Arch, Error, FLAG_NEW_LISTENER, Filter, MAX_INSNS, Profile, Syscall, compile};
use brig_spec::{Seccomp, SeccompArg, SeccompSyscall};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use support::interpreter::{Data, run, verify};
use support::model::Model;
use support::{engines, generate};

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const ERRNO_7: u32 = 0x0005_0007;

fn profile(default: &str, archs: &[Arch], syscalls: Vec<SeccompSyscall>) -> Seccomp {
    Seccomp {
        default_action: default.to_owned(),
        architectures: archs.iter().map(|arch| arch.name().to_owned()).collect(),
        listener_path: "/run/agent".to_owned(),
        syscalls,
        ..Seccomp::default()
    }
}

fn rule(action: &str, names: &[&str], args: &[SeccompArg]) -> SeccompSyscall {
    SeccompSyscall {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        action: action.to_owned(),
        errno_ret: (action == "SCMP_ACT_ERRNO").then_some(7),
        args: args.to_vec(),
    }
}

fn allow(names: &[&str], args: &[SeccompArg]) -> SeccompSyscall {
    rule("SCMP_ACT_ALLOW", names, args)
}

fn errno(names: &[&str], args: &[SeccompArg]) -> SeccompSyscall {
    rule("SCMP_ACT_ERRNO", names, args)
}

fn arg(index: u32, op: &str, value: u64) -> SeccompArg {
    SeccompArg { index, value, value_two: 0, op: format!("SCMP_CMP_{op}") }
}

fn build(spec: &Seccomp, native: Arch) -> Result<Filter, Error> {
    let filter = compile(&Profile::from_spec(spec)?, native)?;
    verify(&filter.insns);
    Ok(filter)
}

/// The verdict on a call, by name or by number.
struct Tried {
    filter: Filter,
    native: Arch,
}

impl Tried {
    fn new(spec: &Seccomp, native: Arch) -> Self {
        Self { filter: build(spec, native).unwrap(), native }
    }

    fn name(&self, arch: Arch, name: &str, args: &[u64]) -> u32 {
        self.number(arch.audit(), Syscall::from_name(name).unwrap().number(arch).unwrap(), args)
    }

    fn number(&self, arch: u32, number: u32, args: &[u64]) -> u32 {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        run(&self.filter.insns, &Data { number, arch, args: all }, self.native.is_little_endian()).0
    }
}

#[test]
fn random_profiles_on_all_architectures() {
    let names = Syscall::all().map(Syscall::name).collect();
    let cases = (generate::case(Arch::ALL.to_vec(), names), proptest::num::u64::ANY);
    let config = Config { cases: 1500, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&cases, |((native, spec), seed)| {
        let profile = Profile::from_spec(&spec).unwrap();
        let insns = match compile(&profile, native) {
            Ok(filter) => filter.insns,
            Err(Error::Contradiction { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        verify(&insns);
        let model = Model::new(&profile, native);
        for data in generate::probes(&profile, native, seed) {
            let (verdict, expected) = (run(&insns, &data, native.is_little_endian()).0, model.verdict(&data));
            proptest::prop_assert!(
                expected.allows(verdict),
                "{:x}, not {:x?}: {:x?}",
                verdict,
                expected,
                data
            );
        }
        Ok(())
    });
    if let Err(TestError::Fail(why, ((native, spec), seed))) = result {
        panic!("{why}\nseed {seed} {native:?} {spec:#?}");
    }
    result.unwrap();
}

#[test]
fn wrong_architectures_are_killed_whatever_the_default() {
    let spec = profile("SCMP_ACT_ALLOW", &[], vec![errno(&["read"], &[])]);
    let tried = Tried::new(&spec, Arch::X86_64);
    assert_eq!(tried.name(Arch::X86_64, "read", &[]), ERRNO_7);
    assert_eq!(tried.name(Arch::X86_64, "write", &[]), ALLOW);
    for arch in [Arch::X86.audit(), Arch::Aarch64.audit(), 0, u32::MAX] {
        assert_eq!(tried.number(arch, 1, &[]), KILL);
    }
    let x86_64 = Arch::X86_64.audit();
    assert_eq!(tried.number(x86_64, 0x4000_0001, &[]), KILL, "x32");
    assert_eq!(tried.number(x86_64, u32::MAX - 1, &[]), KILL);
    assert_eq!(tried.number(x86_64, u32::MAX, &[]), ALLOW, "a tracer has the call skipped");

    let with_x32 = profile("SCMP_ACT_ALLOW", &[Arch::X32], vec![errno(&["read"], &[])]);
    let tried = Tried::new(&with_x32, Arch::X86_64);
    assert_eq!(tried.name(Arch::X32, "read", &[]), ERRNO_7);
    assert_eq!(tried.name(Arch::X32, "write", &[]), ALLOW);
}

#[test]
fn calls_newer_than_the_profile_get_enosys() {
    let names = ["read", "faccessat2"];
    let archs = [Arch::X86, Arch::X32];
    let tried = Tried::new(&profile("SCMP_ACT_ERRNO", &archs, vec![allow(&names, &[])]), Arch::X86_64);
    for arch in [Arch::X86_64, Arch::X86, Arch::X32] {
        assert_eq!(tried.name(arch, "faccessat2", &[]), ALLOW);
        assert_eq!(tried.name(arch, "openat2", &[]), EPERM);
        assert_eq!(tried.name(arch, "process_madvise", &[]), ENOSYS);
        assert_eq!(tried.name(arch, "mseal", &[]), ENOSYS);
    }
    assert_eq!(tried.number(Arch::X86.audit(), u32::MAX, &[]), ENOSYS);

    // Also when what names the newest call is a rule without effect, or one with conditions.
    for newest in [errno(&["faccessat2"], &[]), allow(&["faccessat2"], &[arg(0, "EQ", 1)])] {
        let mut spec = profile("SCMP_ACT_ERRNO", &[], vec![allow(&["read"], &[]), newest]);
        spec.default_errno_ret = Some(7);
        let tried = Tried::new(&spec, Arch::Aarch64);
        assert_eq!(tried.name(Arch::Aarch64, "faccessat2", &[]), ERRNO_7);
        assert_eq!(tried.name(Arch::Aarch64, "process_madvise", &[]), ENOSYS);
    }

    for default in ["SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_TRACE"] {
        let tried = Tried::new(&profile(default, &[], vec![errno(&["mount"], &[])]), Arch::X86_64);
        assert_ne!(tried.name(Arch::X86_64, "mseal", &[]), ENOSYS, "{default}");
    }
    for default in ["SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP"] {
        let tried = Tried::new(&profile(default, &[], vec![allow(&["mount"], &[])]), Arch::X86_64);
        assert_eq!(tried.name(Arch::X86_64, "mseal", &[]), ENOSYS, "{default}");
    }
}

/// An architecture that no rule names a call of has nothing to measure newness by.
#[test]
fn no_enosys_without_names() {
    let tried = Tried::new(&profile("SCMP_ACT_ERRNO", &[], Vec::new()), Arch::X86_64);
    assert_eq!(tried.name(Arch::X86_64, "mseal", &[]), EPERM);
    let only_arm = profile("SCMP_ACT_ERRNO", &[Arch::Arm], vec![allow(&["arm_fadvise64_64"], &[])]);
    let tried = Tried::new(&only_arm, Arch::Aarch64);
    assert_eq!(tried.name(Arch::Aarch64, "mseal", &[]), EPERM);
    assert_eq!(tried.name(Arch::Arm, "mseal", &[]), ENOSYS);
}

/// On ARM the private calls lie far above all others, and profiles do name them.
#[test]
fn arms_private_calls_do_not_make_all_others_old() {
    let names = ["read", "clone3", "set_tls"];
    let tried = Tried::new(&profile("SCMP_ACT_ERRNO", &[Arch::Arm], vec![allow(&names, &[])]), Arch::Aarch64);
    assert_eq!(tried.name(Arch::Arm, "set_tls", &[]), ALLOW);
    assert_eq!(tried.name(Arch::Arm, "cacheflush", &[]), EPERM);
    assert_eq!(tried.name(Arch::Arm, "get_tls", &[]), ENOSYS);
    assert_eq!(tried.name(Arch::Arm, "clone3", &[]), ALLOW);
    assert_eq!(tried.name(Arch::Arm, "openat2", &[]), ENOSYS);
}

/// s390 shows numbers that it does not know as 0.
#[test]
fn number_0_is_unknown_on_s390() {
    let tried =
        Tried::new(&profile("SCMP_ACT_ERRNO", &[Arch::S390], vec![allow(&["read"], &[])]), Arch::S390x);
    for arch in [Arch::S390, Arch::S390x] {
        assert_eq!(tried.number(arch.audit(), 0, &[]), ENOSYS);
        assert_eq!(tried.number(arch.audit(), 1, &[]), EPERM);
        assert_eq!(tried.number(arch.audit(), 3, &[]), ALLOW);
    }
}

#[test]
fn a_rule_without_conditions_decides_and_the_first_of_several() {
    let rules = [errno(&["ioctl"], &[arg(0, "EQ", 1)]), allow(&["ioctl"], &[])];
    for order in [[0, 1], [1, 0]] {
        let rules = order.map(|index: usize| rules[index].clone()).to_vec();
        let tried = Tried::new(&profile("SCMP_ACT_KILL", &[], rules), Arch::X86_64);
        assert_eq!(tried.name(Arch::X86_64, "ioctl", &[1]), ALLOW, "{order:?}");
    }
    let rules = vec![errno(&["ioctl"], &[]), allow(&["ioctl"], &[])];
    let tried = Tried::new(&profile("SCMP_ACT_KILL", &[], rules), Arch::X86_64);
    assert_eq!(tried.name(Arch::X86_64, "ioctl", &[]), ERRNO_7);
}

/// The order among rules with conditions does not depend on theirs in the profile.
#[test]
fn equality_before_order_and_later_arguments_first() {
    let overlapping = [
        [(0, "EQ", 2), (0, "LE", 10)],
        [(1, "LE", 2), (0, "EQ", 2)],
        [(0, "LT", 5), (0, "GT", 0)],
        [(0, "GT", 1), (0, "GT", 0)],
        [(0, "LT", 5), (0, "LT", 9)],
        [(0, "LE", 5), (0, "LE", 9)],
    ];
    for [first, second] in overlapping {
        let condition = |(index, op, value)| [arg(index, op, value)];
        let first_rule = errno(&["socket"], &condition(first));
        let second_rule = allow(&["socket"], &condition(second));
        let orders = [[&first_rule, &second_rule], [&second_rule, &first_rule]];
        for rules in orders.map(|rules| rules.map(Clone::clone).to_vec()) {
            let tried = Tried::new(&profile("SCMP_ACT_KILL", &[], rules), Arch::X86_64);
            assert_eq!(tried.name(Arch::X86_64, "socket", &[2, 1]), ERRNO_7, "{first:?}");
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let rules = vec![allow(&["read"], &[arg(0, "EQ", 1)]), errno(&["read"], &[arg(0, "EQ", 1)])];
    let error = build(&profile("SCMP_ACT_KILL", &[], rules), Arch::X86_64).unwrap_err();
    assert_eq!(error, Error::Contradiction { name: "read", arch: Arch::X86_64 });
    assert_eq!(
        error.to_string(),
        "linux.seccomp.syscalls: the rules for read on SCMP_ARCH_X86_64 contradict each other: \
         same arguments, different actions"
    );

    // They differ in the high word alone, which x86 does not have.
    let rules = vec![allow(&["read"], &[arg(0, "EQ", 1)]), errno(&["read"], &[arg(0, "EQ", 1 << 32 | 1)])];
    build(&profile("SCMP_ACT_KILL", &[], rules.clone()), Arch::X86_64).unwrap();
    let error = build(&profile("SCMP_ACT_KILL", &[Arch::X86], rules), Arch::X86_64).unwrap_err();
    assert_eq!(error, Error::Contradiction { name: "read", arch: Arch::X86 });

    let longer = || allow(&["read"], &[arg(0, "EQ", 1), arg(1, "EQ", 2)]);
    let shorter = || errno(&["read"], &[arg(0, "EQ", 1)]);
    let error = build(&profile("SCMP_ACT_KILL", &[], vec![longer(), shorter()]), Arch::X86_64).unwrap_err();
    assert_eq!(error, Error::Contradiction { name: "read", arch: Arch::X86_64 });
    let tried = Tried::new(&profile("SCMP_ACT_KILL", &[], vec![shorter(), longer()]), Arch::X86_64);
    assert_eq!(tried.name(Arch::X86_64, "read", &[1, 2]), ERRNO_7);
}

#[test]
fn conditions_on_one_argument_are_alternatives_and_on_different_ones_are_not() {
    let alternatives = [arg(0, "EQ", 1), arg(0, "EQ", 2), arg(1, "EQ", 9)];
    let tried =
        Tried::new(&profile("SCMP_ACT_ERRNO", &[], vec![allow(&["read"], &alternatives)]), Arch::X86_64);
    for (args, verdict) in [([1, 0], ALLOW), ([2, 0], ALLOW), ([3, 9], ALLOW), ([3, 0], EPERM)] {
        assert_eq!(tried.name(Arch::X86_64, "read", &args), verdict, "{args:?}");
    }
    let both = [arg(0, "EQ", 1), arg(1, "EQ", 9)];
    let tried = Tried::new(&profile("SCMP_ACT_ERRNO", &[], vec![allow(&["read"], &both)]), Arch::X86_64);
    for (args, verdict) in [([1, 9], ALLOW), ([1, 0], EPERM), ([3, 9], EPERM)] {
        assert_eq!(tried.name(Arch::X86_64, "read", &args), verdict, "{args:?}");
    }
}

#[test]
fn multiplexed_calls_on_x86() {
    let rules = vec![allow(&["socket"], &[arg(0, "NE", 40)]), allow(&["semop", "socketpair"], &[])];
    let tried = Tried::new(&profile("SCMP_ACT_ERRNO", &[Arch::X86], rules), Arch::X86_64);
    assert_eq!(tried.name(Arch::X86, "socket", &[2]), ALLOW);
    assert_eq!(tried.name(Arch::X86, "socket", &[40]), EPERM);
    assert_eq!(tried.name(Arch::X86, "socketcall", &[1]), ALLOW, "the domain is in memory");
    assert_eq!(tried.name(Arch::X86, "socketcall", &[2]), EPERM, "bind");
    assert_eq!(tried.name(Arch::X86, "socketcall", &[8]), ALLOW, "socketpair");
    assert_eq!(tried.name(Arch::X86, "ipc", &[1]), ALLOW, "semop");
    assert_eq!(tried.name(Arch::X86, "ipc", &[2]), EPERM, "semget");
}

#[test]
fn unknown_names_are_reported_once() {
    let names = ["read", "no_such_call", "nor_this", "no_such_call", "riscv_hwprobe"];
    let filter = build(&profile("SCMP_ACT_ERRNO", &[], vec![allow(&names, &[])]), Arch::X86_64).unwrap();
    assert_eq!(filter.unknown, ["no_such_call", "nor_this"]);
}

#[test]
fn a_rule_that_notifies_needs_a_listener() {
    let spec = profile("SCMP_ACT_ALLOW", &[], vec![rule("SCMP_ACT_NOTIFY", &["mount"], &[])]);
    let filter = build(&spec, Arch::X86_64).unwrap();
    assert!(filter.needs_listener);
    assert_eq!(filter.flags, 1 << 2 | FLAG_NEW_LISTENER);
    let filter = build(&profile("SCMP_ACT_ALLOW", &[], vec![allow(&["mount"], &[])]), Arch::X86_64).unwrap();
    assert!(!filter.needs_listener);
    assert_eq!(filter.flags, 1 << 2);
}

#[test]
fn architectures_of_the_other_byte_order_are_refused() {
    let error = build(&profile("SCMP_ACT_ALLOW", &[Arch::S390x], Vec::new()), Arch::X86_64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "linux.seccomp.architectures: SCMP_ARCH_S390X has not the byte order of SCMP_ARCH_X86_64"
    );
}

/// Each call has conditions of its own, so that jumps get long.
#[test]
fn long_programs() {
    let names: Vec<&str> = Syscall::by_number(Arch::X86_64).map(|(_, call)| call.name()).collect();
    let rules = |per_name: u64| {
        let rule = |(name, value): (&&str, u64)| {
            let args: Vec<SeccompArg> =
                (0..per_name).map(|more| arg(1, "EQ", value << 33 | value << 4 | more)).collect();
            allow(&[name], &args)
        };
        names.iter().zip(1..).map(rule).collect::<Vec<_>>()
    };
    let spec = profile("SCMP_ACT_ERRNO", &[Arch::X86], rules(1));
    let parsed = Profile::from_spec(&spec).unwrap();
    let filter = build(&spec, Arch::X86_64).unwrap();
    assert!(filter.insns.len() > 2000, "{}", filter.insns.len());
    assert_eq!(filter.to_bytes().len(), 8 * filter.insns.len());
    let model = Model::new(&parsed, Arch::X86_64);
    for (name, value) in names.iter().zip(1_u64..) {
        for arch in [Arch::X86_64, Arch::X86] {
            let Some(number) = Syscall::from_name(name).unwrap().number(arch) else {
                continue;
            };
            for second in [value << 33 | value << 4, value << 33 | value << 4 | 1, value << 4, 0] {
                let data = Data { number, arch: arch.audit(), args: [0, second, 0, 0, 0, 0] };
                let verdict = run(&filter.insns, &data, true).0;
                assert!(model.verdict(&data).allows(verdict), "{name} {second:x}");
            }
        }
    }

    let error = build(&profile("SCMP_ACT_ERRNO", &[], rules(8)), Arch::X86_64).unwrap_err();
    let Error::TooLong { insns } = error else { panic!("{error}") };
    assert!(insns > MAX_INSNS);
    assert!(error.to_string().ends_with("the kernel takes at most 4096"));
}

/// Numbers of instructions, not times: what the search costs the calls that containers make most.
#[test]
fn dockers_profile_is_short_and_quick() {
    let spec = engines::docker();
    let filter = build(&spec, Arch::X86_64).unwrap();
    assert_eq!(filter.unknown, [""; 0]);
    assert!(filter.insns.len() < 300, "{}", filter.insns.len());
    let tried = Tried::new(&spec, Arch::X86_64);
    for name in engines::COMMON {
        let number = Syscall::from_name(name).unwrap().number(Arch::X86_64).unwrap();
        let data = Data { number, arch: Arch::X86_64.audit(), args: [0; 6] };
        let (verdict, executed) = run(&tried.filter.insns, &data, true);
        assert_eq!(verdict, ALLOW, "{name}");
        assert!(executed <= 12, "{name} takes {executed}");
    }
    assert_eq!(tried.name(Arch::X86_64, "mount", &[]), EPERM);
    assert_eq!(tried.name(Arch::X86_64, "clone3", &[]), ENOSYS);
    assert_eq!(tried.name(Arch::X86_64, "socket", &[40]), EPERM);
    assert_eq!(tried.name(Arch::X86_64, "clone", &[0x1000_0000]), EPERM, "CLONE_NEWUSER");
    assert_eq!(tried.name(Arch::X86_64, "clone", &[0x11]), ALLOW);
}
