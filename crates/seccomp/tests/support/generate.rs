//! Profiles, and system calls that tell what a filter makes of them.

use brig_seccomp::{ACTIONS, Arch, OPERATORS, Profile};
use brig_spec::{Seccomp, SeccompArg, SeccompSyscall};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::interpreter::Data;
use super::model;

/// Names that something is special about, so that rules meet.
const NAMES: [&str; 24] = [
    "read",
    "write",
    "clone",
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
    "get_tls",
    "cacheflush",
    "execve",
    "no_such_call",
];

/// Values around which comparisons go wrong.
const VALUES: [u64; 14] = [
    0,
    1,
    2,
    5,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0005,
    0x8000_0000_0000_0000,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

/// A profile of these names, and the architecture to compile it for, out of `archs`.
pub fn case(archs: Vec<Arch>, names: Vec<&'static str>) -> impl Strategy<Value = (Arch, Seccomp)> {
    select(archs.clone()).prop_flat_map(move |native| {
        let same_order = |arch: &Arch| arch.is_little_endian() == native.is_little_endian();
        let others: Vec<Arch> = archs.iter().copied().filter(same_order).collect();
        let count = others.len().min(3);
        (Just(native), profile(subsequence(others, 0..=count), &names))
    })
}

fn profile<A: Strategy<Value = Vec<Arch>>>(
    archs: A,
    names: &[&'static str],
) -> impl Strategy<Value = Seccomp> + use<A> {
    let default =
        (action(), errno()).prop_filter("not as default", |(action, _)| action != "SCMP_ACT_NOTIFY");
    let rules = prop_oneof![8 => vec(rule(names), 0..8), 1 => vec(rule(names), 20..40)];
    (default, archs, rules).prop_map(|((default_action, default_errno_ret), archs, syscalls)| Seccomp {
        default_action,
        default_errno_ret,
        architectures: archs.into_iter().map(|arch| arch.name().to_owned()).collect(),
        listener_path: "/run/agent".to_owned(),
        syscalls,
        ..Seccomp::default()
    })
}

fn rule(names: &[&'static str]) -> impl Strategy<Value = SeccompSyscall> + use<> {
    let name =
        prop_oneof![2 => select(&NAMES[..]), 1 => select(names.to_vec())].prop_map(str::to_owned).boxed();
    let names = prop_oneof![4 => vec(name.clone(), 1..4), 1 => vec(name, 10..20)];
    let args = prop_oneof![2 => vec(condition(), 0), 3 => vec(condition(), 1..4)];
    (names, action(), errno(), args).prop_map(|(mut names, action, errno_ret, args)| {
        if action == "SCMP_ACT_NOTIFY" {
            names.retain(|name| name != "write");
        }
        SeccompSyscall { names, action, errno_ret, args }
    })
}

/// Mostly one of two: rules that want the same are the rule.
fn action() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("SCMP_ACT_ALLOW"),
        4 => Just("SCMP_ACT_ERRNO"),
        1 => select(&ACTIONS[..]),
    ]
    .prop_map(str::to_owned)
}

fn errno() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![6 => Just(None), 1 => Just(Some(1)), 1 => Just(Some(38)), 1 => (0..4095_u32).prop_map(Some)]
}

fn condition() -> impl Strategy<Value = SeccompArg> {
    let names: Vec<&'static str> = OPERATORS.iter().map(|&(name, _)| name).collect();
    let index = prop_oneof![6 => 0..2_u32, 1 => 0..6_u32];
    (index, select(names), value(), value()).prop_map(|(index, op, value, value_two)| SeccompArg {
        index,
        value,
        value_two,
        op: op.to_owned(),
    })
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![8 => select(&VALUES[..]), 1 => any::<u64>()]
}

/// System calls to try on a filter: all numbers where it may change its mind, on all its architectures and on others,
/// with arguments close to what the profile compares with.
pub fn probes(profile: &Profile<'_>, native: Arch, seed: u64) -> Vec<Data> {
    let mut random = Random(seed);
    let mut values = VALUES.to_vec();
    for condition in profile.rules.iter().flat_map(|rule| &rule.conditions) {
        for value in [condition.value, condition.value_two] {
            let near = [value, value.wrapping_add(1), value.wrapping_sub(1)];
            values.extend(near.into_iter().chain([value ^ (1 << 32), value ^ (1 << 40)]));
        }
    }
    let mut probes = Vec::new();
    for arch in [native, Arch::X86_64, Arch::Arm].into_iter().chain(profile.archs.iter().copied()) {
        for (number, selectors) in numbers(profile, arch) {
            let conditional = !selectors.is_empty() || random.below(4) == 0;
            for _ in 0..if conditional { 12 } else { 1 } {
                let mut args = [0; 6].map(|_| random.pick(&values));
                if random.below(3) != 0 && !selectors.is_empty() {
                    args[0] = random.pick(&selectors);
                }
                probes.push(Data { number, arch: arch.audit(), args });
            }
        }
    }
    while probes.len() > 300 {
        let victim = random.below(probes.len());
        probes.swap_remove(victim);
    }
    for arch in [0, 1, Arch::X86_64.audit() ^ 1, u32::MAX] {
        probes.push(Data { number: 0, arch, args: [0; 6] });
    }
    probes
}

/// Numbers to try on an architecture, and for those with conditions values of the first argument.
fn numbers(profile: &Profile<'_>, arch: Arch) -> Vec<(u32, Vec<u64>)> {
    let mut numbers: Vec<(u32, Vec<u64>)> = Vec::new();
    for rule in &profile.rules {
        for way in rule.names.iter().flat_map(|name| model::ways(name, arch)) {
            let mut firsts: Vec<u64> = way.selector.into_iter().collect();
            firsts.extend(way.selector.map(|call| call | 1 << 32));
            let own = rule.conditions.iter().filter(|condition| condition.arg == 0);
            firsts.extend(own.flat_map(|condition| [condition.value, condition.value_two]));
            numbers.push((way.number, firsts));
            numbers.push((way.number.wrapping_add(1), Vec::new()));
            numbers.push((way.number.wrapping_sub(1), Vec::new()));
            numbers.push((way.number ^ 0x4000_0000, Vec::new()));
        }
    }
    let edges =
        [0, 1, 5, 102, 117, 4102, 4117, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xbfff_ffff];
    let arm = [0x000e_ffff, 0x000f_0000, 0x000f_0005, 0x000f_0006, 0x000f_0007];
    let negative = [0xc000_0000, u32::MAX - 1, u32::MAX];
    numbers.extend(edges.into_iter().chain(arm).chain(negative).map(|number| (number, Vec::new())));
    numbers
}

/// Marsaglia's xorshift: enough to spread probes, and the same on each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn pick(&mut self, from: &[u64]) -> u64 {
        from[self.below(from.len())]
    }
}
