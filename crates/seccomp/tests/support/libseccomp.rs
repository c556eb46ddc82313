//! libseccomp, behind a pipe.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use brig_seccomp::{Action, Arch, Condition, Insn, Op, Profile, Syscall};

const MISSING: &str =
    "these tests need a C compiler and libseccomp's headers; on Debian: apt-get install gcc libseccomp-dev";

/// Architectures of libseccomp 2.5, with its names.
pub const ARCHS: [(Arch, &str); 17] = [
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

/// What libseccomp makes of a profile.
#[derive(Debug)]
pub enum Answer {
    Program(Vec<Insn>),
    /// With the error number.
    Refused(i32),
    /// It did not come to an end.
    Hung,
}

/// The C program.
pub struct Oracle {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    pub fn new() -> Self {
        #[allow(clippy::disallowed_methods, reason = "a test")]
        let mut child = Command::new(binary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starting the oracle");
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, commands, answers }
    }

    fn ask(&mut self, commands: &str) -> Option<String> {
        self.commands.write_all(commands.as_bytes()).ok()?;
        self.line()
    }

    /// `None` when the program is gone.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        line.ends_with('\n').then(|| line.trim_end().to_owned())
    }

    fn resolve_name(&mut self, arch: &str, name: &str) -> i32 {
        let answer = self.ask(&format!("number {arch} {name}\n")).unwrap();
        answer.strip_prefix("number ").unwrap().parse().unwrap()
    }

    fn resolve_number(&mut self, arch: &str, number: i64) -> String {
        let answer = self.ask(&format!("name {arch} {number}\n")).unwrap();
        answer.strip_prefix("name ").unwrap().to_owned()
    }

    /// The number of a call.
    pub fn number(&mut self, call: Syscall, arch: Arch) -> Option<u32> {
        let arch_name = oracle_name(arch);
        match self.resolve_name(arch_name, call.name()) {
            // Multiplexed calls have such a number even where they have one of their own.
            -1000..=-100 => call
                .number(arch)
                .filter(|&number| self.resolve_number(arch_name, number.into()) == call.name()),
            number => u32::try_from(number).ok(),
        }
    }

    /// Names that have the same numbers for both of us, and that libseccomp can tell apart: it hands names from one
    /// architecture to the other as numbers, of which `sys_debug_setcontext` has that of `switch_endian`.
    pub fn common_names(&mut self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for call in Syscall::all() {
            let number = self.resolve_name("x86_64", call.name());
            let distinct = self.resolve_number("x86_64", number.into()) == call.name();
            if distinct && ARCHS.iter().all(|&(arch, _)| self.number(call, arch) == call.number(arch)) {
                names.push(call.name());
            }
        }
        names
    }

    /// What runc would have libseccomp compile.
    pub fn compile(&mut self, profile: &Profile<'_>, native: Arch) -> Answer {
        let commands = commands(profile, native);
        let Some(answer) = self.ask(&commands) else {
            *self = Self::new();
            return Answer::Hung;
        };
        let (kind, number) = answer.split_once(' ').unwrap();
        if kind == "refused" {
            return Answer::Refused(number.parse().unwrap());
        }
        let little_endian = native.is_little_endian();
        let mut program: Vec<Insn> =
            (0..number.parse().unwrap()).map(|_| decode(&self.line().unwrap(), little_endian)).collect();
        if cfg!(target_endian = "little") != little_endian {
            mend_verdicts(&mut program, profile);
        }
        Answer::Program(program)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Made on a machine of the other byte order, some verdicts come out swapped once too often.
fn mend_verdicts(program: &mut [Insn], profile: &Profile<'_>) {
    let actions = profile.rules.iter().map(|rule| rule.action);
    let actions = actions.chain([profile.default_action, Action::KillThread]);
    let verdicts: Vec<u32> = actions.map(Action::verdict).collect();
    for insn in program.iter_mut().filter(|insn| insn.code == Insn::RETURN) {
        if !verdicts.contains(&insn.k) {
            insn.k = insn.k.swap_bytes();
        }
    }
}

/// Compiles the C program once.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("seccomp-oracle");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.c");
        #[allow(clippy::disallowed_methods, reason = "a test")]
        let status = Command::new("cc").arg("-o").args([&binary, &source]).arg("-lseccomp").status();
        assert!(status.is_ok_and(|status| status.success()), "{MISSING}");
        binary
    })
}

fn decode(hex: &str, little_endian: bool) -> Insn {
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let (code, k) = ([byte(0), byte(1)], [byte(4), byte(5), byte(6), byte(7)]);
    Insn {
        code: if little_endian { u16::from_le_bytes(code) } else { u16::from_be_bytes(code) },
        jt: byte(2),
        jf: byte(3),
        k: if little_endian { u32::from_le_bytes(k) } else { u32::from_be_bytes(k) },
    }
}

/// The calls of libseccomp that runc makes for a profile.
///
/// Save for one: runc asks for binary search only from 33 rules on. Without it libseccomp 2.5 and 2.6 may forget to load
/// the number, when the first call in their list is one that an architecture has only behind a multiplexer.
pub fn commands(profile: &Profile<'_>, native: Arch) -> String {
    let default = profile.default_action.verdict();
    let search = profile.rules.iter().any(|rule| !rule.names.is_empty());
    let mut text = format!("filter {default} {} {}", u8::from(search), oracle_name(native));
    let mut archs = vec![native];
    for &arch in &profile.archs {
        if !archs.contains(&arch) {
            archs.push(arch);
            write!(text, " {}", oracle_name(arch)).unwrap();
        }
    }
    text.push('\n');
    for rule in profile.rules.iter().filter(|rule| rule.action.verdict() != default) {
        let conditions = &rule.conditions;
        let repeated = (0..6).any(|arg| conditions.iter().filter(|c| c.arg == arg).count() > 1);
        for name in rule.names {
            let alone: Vec<&[Condition]> =
                if repeated { conditions.chunks(1).collect() } else { vec![conditions] };
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
