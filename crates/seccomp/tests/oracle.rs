//! Our programs against those of libseccomp: same profile, same system calls, same verdicts.
//!
//! The library is asked through a small C program beside this file, which is compiled here. `BRIG_SECCOMP_CASES` is the
//! number of random profiles to try.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use brig_seccomp::{Action, Arch, Condition, Error, Insn, Op, Profile, Syscall, compile};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use support::interpreter::{run, verify};
use support::model::{self, Verdict};
use support::{docker, generate};

const MISSING: &str =
    "these tests need a C compiler and libseccomp's headers; on Debian: apt-get install gcc libseccomp-dev";

/// Architectures of libseccomp 2.5, with its names.
const ARCHS: [(Arch, &str); 17] = [
    (Arch::X86_64, "x86_64"),
    (Arch::X86, "x86"),
    (Arch::X32, "x32"),
    (Arch::Aarch64, "aarch64"),
    (Arch::Arm, "arm"),
    (Arch::Mips, "mips"),
    (Arch::Mips64, "mips64"),
    (Arch::Mips64n32, "mips64n32"),
    (Arch::Mipsel, "mipsel"),
    (Arch::Mipsel64, "mipsel64"),
    (Arch::Mipsel64n32, "mipsel64n32"),
    (Arch::Ppc, "ppc"),
    (Arch::Ppc64, "ppc64"),
    (Arch::Ppc64le, "ppc64le"),
    (Arch::Riscv64, "riscv64"),
    (Arch::S390, "s390"),
    (Arch::S390x, "s390x"),
];

/// libseccomp, behind a pipe.
struct Oracle {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn new() -> Self {
        let mut child = Command::new(binary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starting the oracle");
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            commands,
            answers,
        }
    }

    fn ask(&mut self, commands: &str) -> String {
        self.commands.write_all(commands.as_bytes()).unwrap();
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the oracle is gone");
        line.trim_end().to_owned()
    }

    fn number_of(&mut self, call: Syscall, arch: Arch) -> Option<u32> {
        let arch_name = oracle_name(arch);
        let answer = self.ask(&format!("number {arch_name} {}\n", call.name()));
        match answer.strip_prefix("number ").unwrap().parse::<i32>().unwrap() {
            // Multiplexed calls have such a number even where they have one of their own.
            -1000..=-100 => call.number(arch).filter(|number| {
                self.ask(&format!("name {arch_name} {number}\n")) == format!("name {}", call.name())
            }),
            number => u32::try_from(number).ok(),
        }
    }

    /// What runc would have libseccomp compile, or the error number.
    fn compile(&mut self, profile: &Profile<'_>, native: Arch) -> Result<Vec<Insn>, i32> {
        let commands = commands(profile, native);
        let answer = self.ask(&commands);
        let (kind, number) = answer.split_once(' ').unwrap();
        if kind == "refused" {
            return Err(number.parse().unwrap());
        }
        let little = native.is_little_endian();
        let mut program: Vec<Insn> = (0..number.parse().unwrap())
            .map(|_| decode(&self.line(), little))
            .collect();
        if !little {
            // Made on a machine of the other byte order, some verdicts come out swapped once too often.
            let verdicts: Vec<u32> = profile
                .rules
                .iter()
                .map(|rule| rule.action)
                .chain([profile.default_action, Action::KillThread])
                .map(Action::verdict)
                .collect();
            for insn in program.iter_mut().filter(|insn| insn.code == Insn::RETURN) {
                if !verdicts.contains(&insn.k) {
                    insn.k = insn.k.swap_bytes();
                }
            }
        }
        Ok(program)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles the C program once.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let binary =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("seccomp-oracle-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.c");
        let status = Command::new("cc")
            .arg("-O1")
            .arg("-o")
            .args([&binary, &source])
            .arg("-lseccomp")
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{MISSING}");
        binary
    })
}

fn decode(hex: &str, little_endian: bool) -> Insn {
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let (code, k) = ([byte(0), byte(1)], [byte(4), byte(5), byte(6), byte(7)]);
    Insn {
        code: if little_endian {
            u16::from_le_bytes(code)
        } else {
            u16::from_be_bytes(code)
        },
        jt: byte(2),
        jf: byte(3),
        k: if little_endian {
            u32::from_le_bytes(k)
        } else {
            u32::from_be_bytes(k)
        },
    }
}

/// The calls of libseccomp that runc makes for a profile.
fn commands(profile: &Profile<'_>, native: Arch) -> String {
    let rules: usize = profile.rules.iter().map(|rule| rule.names.len()).sum();
    let default = profile.default_action.verdict();
    let mut text = format!("filter {default} {} {}", u8::from(rules > 0), oracle_name(native));
    let mut archs = vec![native];
    for &arch in &profile.archs {
        if !archs.contains(&arch) {
            archs.push(arch);
            write!(text, " {}", oracle_name(arch)).unwrap();
        }
    }
    text.push('\n');
    for rule in profile
        .rules
        .iter()
        .filter(|rule| rule.action.verdict() != default)
    {
        let conditions = &rule.conditions;
        let repeated = (0..6).any(|arg| conditions.iter().filter(|c| c.arg == arg).count() > 1);
        for name in rule.names {
            let alone: Vec<&[Condition]> = if repeated {
                conditions.chunks(1).collect()
            } else {
                vec![conditions]
            };
            for conditions in alone {
                write!(text, "rule {} {name}", rule.action.verdict()).unwrap();
                for c in conditions {
                    write!(text, " {} {} {} {}", c.arg, oracle_op(c.op), c.value, c.value_two).unwrap();
                }
                text.push('\n');
            }
        }
    }
    text.push_str("export\n");
    text
}

fn oracle_name(arch: Arch) -> &'static str {
    ARCHS.iter().find(|(known, _)| *known == arch).unwrap().1
}

/// `enum scmp_compare`
fn oracle_op(op: Op) -> u8 {
    match op {
        Op::Ne => 1,
        Op::Lt => 2,
        Op::Le => 3,
        Op::Eq => 4,
        Op::Ge => 5,
        Op::Gt => 6,
        Op::MaskedEq => 7,
    }
}

/// Every number that libseccomp knows. What is newer than its version is left out: Linux 5.17 for 2.5.4.
#[test]
fn numbers_are_libseccomps() {
    let mut oracle = Oracle::new();
    let mut newer = 0;
    for call in Syscall::all() {
        for (arch, name) in ARCHS {
            let (ours, theirs) = (call.number(arch), oracle.number_of(call, arch));
            if ours != theirs {
                let since_linux_5_17 = ours.is_some_and(|number| (number & !0x4000_0000) % 1000 > 450);
                let late = ["uretprobe", "uprobe", "riscv_hwprobe"].contains(&call.name());
                assert!(
                    since_linux_5_17 || late,
                    "{} on {name}: {ours:?}, not {theirs:?}",
                    call.name()
                );
                assert_eq!(theirs, None);
                newer += 1;
            }
        }
    }
    assert!(newer < 24 * ARCHS.len(), "{newer}");
}

#[test]
fn programs_decide_as_libseccomps_do() {
    let oracle = RefCell::new(Oracle::new());
    let names = common_names(&mut oracle.borrow_mut());
    let archs: Vec<Arch> = ARCHS.iter().map(|&(arch, _)| arch).collect();
    let cases = generate::case(archs, names);
    let counts = RefCell::new(Counts::default());
    let result = runner().run(&(cases, proptest::num::u64::ANY), |((native, spec), seed)| {
        let profile = Profile::from_spec(&spec).expect("a valid profile");
        compare(
            &mut oracle.borrow_mut(),
            &profile,
            native,
            seed,
            &mut counts.borrow_mut(),
        )
    });
    let counts = counts.into_inner();
    println!("{counts:?}");
    if let Err(TestError::Fail(why, ((native, spec), seed))) = result {
        panic!("{why}\n{native:?} {spec:#?}\nseed {seed}\n{counts:?}");
    }
}

#[derive(Debug, Default)]
struct Counts {
    compiled: usize,
    refused: usize,
    refused_by_us: usize,
    refused_by_them: usize,
    probes: usize,
    ambiguous: usize,
    ambiguous_differ: usize,
    newer: usize,
    wrong: usize,
}

/// Many cases, the same on each run, or the number in the environment, different ones each time.
fn runner() -> TestRunner {
    let wanted = std::env::var("BRIG_SECCOMP_CASES")
        .ok()
        .map(|cases| cases.parse().expect("a number"));
    let config = Config {
        cases: wanted.unwrap_or(1500),
        failure_persistence: None,
        ..Config::default()
    };
    match wanted {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(
            config,
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        ),
    }
}

fn compare(
    oracle: &mut Oracle,
    profile: &Profile<'_>,
    native: Arch,
    seed: u64,
    counts: &mut Counts,
) -> Result<(), TestCaseError> {
    let (ours, theirs) = match (compile(profile, native), oracle.compile(profile, native)) {
        (Ok(ours), Ok(theirs)) => (ours.insns, theirs),
        (Err(Error::Contradiction { .. }), Err(_)) => {
            counts.refused += 1;
            return Ok(());
        }
        (Err(Error::Contradiction { .. }), Ok(_)) => {
            counts.refused_by_us += 1;
            println!(
                "REFUSED {:?}\n{}",
                compile(profile, native).err(),
                commands(profile, native)
            );
            return Ok(());
        }
        (Ok(_), Err(_)) => {
            counts.refused_by_them += 1;
            return Ok(());
        }
        (ours, theirs) => {
            return Err(TestCaseError::fail(format!(
                "{:?}, but libseccomp {theirs:?}",
                ours.err()
            )));
        }
    };
    verify(&ours);
    counts.compiled += 1;
    let little = native.is_little_endian();
    for data in generate::probes(profile, native, seed) {
        let (our_verdict, _) = run(&ours, &data, little);
        let (their_verdict, _) = run(&theirs, &data, little);
        counts.probes += 1;
        if model::is_newer(profile, native, &data) {
            counts.newer += 1;
            proptest::prop_assert_eq!(our_verdict, 0x0005_0026, "{:x?}", data);
            continue;
        }
        match model::by_rules(profile, native, &data) {
            Verdict::One(verdict) => {
                proptest::prop_assert_eq!(our_verdict, verdict, "{:x?}", data);
                if their_verdict != verdict && std::env::var("SHRINK").is_ok() {
                    let n: usize = profile
                        .rules
                        .iter()
                        .map(|rule| {
                            let hits = rule
                                .names
                                .iter()
                                .flat_map(|n| {
                                    Arch::ALL
                                        .into_iter()
                                        .filter(|a| {
                                            a.audit() == data.arch
                                                && (*a == native || profile.archs.contains(a))
                                        })
                                        .flat_map(|a| model::ways(n, a))
                                })
                                .filter(|w| w.number == data.number)
                                .count();
                            hits * rule.conditions.len().max(1)
                        })
                        .sum();
                    if n <= 1 {
                        return Err(TestCaseError::fail(format!(
                            "their {their_verdict:x} {verdict:x} {data:x?} {}",
                            commands(profile, native)
                        )));
                    }
                }
                if their_verdict != verdict {
                    counts.wrong += 1;
                    let mut s = String::new();
                    for rule in &profile.rules {
                        let hits = rule
                            .names
                            .iter()
                            .flat_map(|n| {
                                Arch::ALL
                                    .into_iter()
                                    .filter(|a| {
                                        a.audit() == data.arch && (*a == native || profile.archs.contains(a))
                                    })
                                    .flat_map(|a| model::ways(n, a))
                            })
                            .filter(|w| w.number == data.number)
                            .count();
                        if hits > 0 {
                            write!(
                                s,
                                "   {hits}x {:x} {:?}\n",
                                rule.action.verdict(),
                                rule.conditions
                                    .iter()
                                    .map(|c| format!("{} {:?} {:x} {:x}", c.arg, c.op, c.value, c.value_two))
                                    .collect::<Vec<_>>()
                            )
                            .unwrap();
                        }
                    }
                    println!(
                        "WRONG {their_verdict:x} not {verdict:x} {data:x?} {native:?} {:?}\n{s}",
                        profile.archs
                    );
                }
            }
            Verdict::OneOf(verdicts) => {
                counts.ambiguous += 1;
                proptest::prop_assert!(verdicts.contains(&our_verdict), "{:x} {:x?}", our_verdict, data);
                proptest::prop_assert!(
                    verdicts.contains(&their_verdict),
                    "{:x} {:x?}",
                    their_verdict,
                    data
                );
                if our_verdict != their_verdict {
                    let mut s = String::new();
                    for rule in &profile.rules {
                        let hits = rule
                            .names
                            .iter()
                            .flat_map(|n| {
                                Arch::ALL
                                    .into_iter()
                                    .filter(|a| {
                                        a.audit() == data.arch && (*a == native || profile.archs.contains(a))
                                    })
                                    .flat_map(|a| model::ways(n, a))
                            })
                            .filter(|w| w.number == data.number)
                            .count();
                        if hits > 0 {
                            write!(
                                s,
                                "   {hits}x {:x} {:?}\n",
                                rule.action.verdict(),
                                rule.conditions
                                    .iter()
                                    .map(|c| format!("{} {:?} {:x} {:x}", c.arg, c.op, c.value, c.value_two))
                                    .collect::<Vec<_>>()
                            )
                            .unwrap();
                        }
                    }
                    println!(
                        "AMBI {their_verdict:x} ours {our_verdict:x} {data:x?} {native:?} {:?}\n{s}",
                        profile.archs
                    );
                    counts.ambiguous_differ += 1;
                }
            }
        }
    }
    Ok(())
}

/// Names that have the same numbers for both of us, and that libseccomp can tell apart: it hands names from one
/// architecture to the other as numbers, of which `sys_debug_setcontext` has that of `switch_endian`.
fn common_names(oracle: &mut Oracle) -> Vec<&'static str> {
    let mut names = Vec::new();
    for call in Syscall::all() {
        let number = oracle.ask(&format!("number x86_64 {}\n", call.name()));
        let back = oracle.ask(&number.replace("number", "name x86_64").add("\n"));
        let distinct = back == format!("name {}", call.name());
        if distinct
            && ARCHS
                .iter()
                .all(|&(arch, _)| oracle.number_of(call, arch) == call.number(arch))
        {
            names.push(call.name());
        } else {
            println!("{}", call.name());
        }
    }
    names
}
