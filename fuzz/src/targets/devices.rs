//! The device filter against the list of rules.

use brig_spec::DeviceRule;

use crate::source::Source;

const NUMBERS: [i64; 8] = [0, 1, 3, 5, 255, 4_294_967_295, 4_294_967_296, 9_223_372_036_854_775_807];
const ACCESS: [&str; 10] = ["r", "w", "m", "rw", "rm", "wm", "rwm", "", "mwr", "x"];
const KINDS: [&str; 5] = ["a", "b", "c", "", "u"];

pub fn devices(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut rules = Vec::new();
    while !source.is_empty() && rules.len() < 40 {
        let mut number = || match source.byte() {
            n @ 0..40 => Some(i64::from(n % 4)),
            n @ 40..80 => Some(NUMBERS[usize::from(n) % NUMBERS.len()]),
            n if n < 120 => Some(-1),
            _ => None,
        };
        let (major, minor) = (number(), number());
        let allow = source.chance(2);
        // Mostly rules that are good.
        let kind = if source.chance(16) { source.pick(&KINDS) } else { source.pick(&KINDS[..4]) };
        let access = if source.chance(16) { source.pick(&ACCESS) } else { source.pick(&ACCESS[..7]) };
        rules.push(DeviceRule { allow, kind: kind.to_owned(), major, minor, access: access.to_owned() });
    }
    let asked = [(0, 0), (0, 1), (1, 3), (2, 2), (3, 1), (1, 0), (255, 5), (u32::MAX, 3), (3, u32::MAX)];
    brig_cgroup::fuzzing::devices(&rules, &asked);
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![200, 200, 1, 1, 0, 1, 6],
        (0..=255).collect(),
        (0..200_u8).map(|n| n.wrapping_mul(73)).collect(),
    ]
}
