//! The seccomp compiler: its programs, run as the kernel does, against the plain meaning of the profile. The model of that meaning
//! is held against libseccomp by the tests of the compiler.

use brig_seccomp::{ACTIONS, Arch, Error, OPERATORS, Profile, compile};
use brig_spec::{Seccomp, SeccompArg, SeccompSyscall};

use crate::source::Source;

#[allow(dead_code, missing_docs, missing_debug_implementations, reason = "shared with the compiler's tests")]
#[path = "../../../crates/seccomp/tests/support"]
mod support {
    pub mod interpreter;
    pub mod model;
}

use support::interpreter::{Data, run, verify};
use support::model::{Model, ways};

const NAMES: [&str; 28] = [
    "read",
    "write",
    "open",
    "clone",
    "clone3",
    "ioctl",
    "personality",
    "rseq",
    "mmap2",
    "socket",
    "accept",
    "accept4",
    "recv",
    "sendmmsg",
    "semop",
    "semget",
    "semtimedop",
    "shmat",
    "msgctl",
    "socketcall",
    "ipc",
    "set_tls",
    "cacheflush",
    "execve",
    "faccessat2",
    "futex_waitv",
    "no_such_call",
    "bind",
];
const VALUES: [u64; 12] = [
    0,
    1,
    2,
    5,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0005,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

pub fn seccomp(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let native = source.pick(&Arch::ALL);
    let spec = profile(&mut source, native);
    let Ok(profile) = Profile::from_spec(&spec) else { return };
    let insns = match compile(&profile, native) {
        Ok(filter) => filter.insns,
        Err(Error::Contradiction { .. }) => return,
        Err(error) => panic!("{error}: {spec:?}"),
    };
    verify(&insns);
    let model = Model::new(&profile, native);
    for data in probes(&profile, native, &mut source) {
        let verdict = run(&insns, &data, native.is_little_endian()).0;
        let expected = model.verdict(&data);
        assert!(expected.allows(verdict), "{verdict:x}, not {expected:x?}: {data:x?} {spec:?}");
    }
}

fn profile(source: &mut Source<'_>, native: Arch) -> Seccomp {
    let fitting: Vec<Arch> =
        Arch::ALL.into_iter().filter(|a| a.is_little_endian() == native.is_little_endian()).collect();
    let architectures = (0..source.below(3)).map(|_| source.pick(&fitting).name().to_owned()).collect();
    let default_action = match source.byte() {
        0..120 => "SCMP_ACT_ERRNO",
        120..200 => "SCMP_ACT_ALLOW",
        n => ACTIONS[usize::from(n) % ACTIONS.len()],
    };
    let default_errno_ret = source.chance(8).then(|| u32::from(source.byte()));
    let mut syscalls = Vec::new();
    while !source.is_empty() && syscalls.len() < 24 {
        syscalls.push(rule(source));
    }
    Seccomp {
        default_action: default_action.to_owned(),
        default_errno_ret,
        architectures,
        listener_path: "/run/agent".to_owned(),
        syscalls,
        ..Seccomp::default()
    }
}

fn rule(source: &mut Source<'_>) -> SeccompSyscall {
    let action = match source.byte() {
        0..110 => "SCMP_ACT_ALLOW",
        110..220 => "SCMP_ACT_ERRNO",
        n => ACTIONS[usize::from(n) % ACTIONS.len()],
    };
    let mut names: Vec<String> = (0..1 + source.below(4)).map(|_| source.pick(&NAMES).to_owned()).collect();
    if action == "SCMP_ACT_NOTIFY" {
        names.retain(|name| name != "write");
    }
    let args = (0..source.below(4).saturating_sub(source.below(2)))
        .map(|_| SeccompArg {
            index: u32::from(source.pick(&[0, 0, 0, 1, 1, 5_u8])),
            value: value(source),
            value_two: value(source),
            op: source.pick(&OPERATORS).0.to_owned(),
        })
        .collect();
    SeccompSyscall {
        names,
        action: action.to_owned(),
        errno_ret: source.chance(8).then(|| u32::from(source.byte())),
        args,
    }
}

fn value(source: &mut Source<'_>) -> u64 {
    if source.chance(8) { source.u64() } else { source.pick(&VALUES) }
}

/// Calls at which the filter may change its mind.
fn probes(profile: &Profile<'_>, native: Arch, source: &mut Source<'_>) -> Vec<Data> {
    let mut probes = Vec::new();
    for arch in [native].into_iter().chain(profile.archs.iter().copied()) {
        for rule in &profile.rules {
            for way in rule.names.iter().flat_map(|name| ways(name, arch)) {
                let mut args = [0; 6];
                args.fill_with(|| value(source));
                for condition in &rule.conditions {
                    let near = [condition.value, condition.value_two, condition.value.wrapping_add(1)];
                    args[usize::from(condition.arg)] = source.pick(&near);
                }
                if let Some(selector) = way.selector {
                    args[0] = selector;
                }
                for number in [way.number, way.number.wrapping_add(1), way.number ^ 0x4000_0000] {
                    probes.push(Data { number, arch: arch.audit(), args });
                }
            }
        }
        for number in [0, 0x3fff_ffff, 0x7fff_ffff, u32::MAX] {
            probes.push(Data { number, arch: arch.audit(), args: [0; 6] });
        }
    }
    probes.push(Data { number: 1, arch: 1, args: [0; 6] });
    probes
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        (0..=255).collect(),
        (0..250_u8).map(|n| n.wrapping_mul(37)).collect(),
        vec![0; 64],
        b"seccomp rules of some kind".repeat(4),
    ]
}
