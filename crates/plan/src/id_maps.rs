//! Id mappings, of a user namespace and of id-mapped mounts.

use brig_spec as spec;

use crate::problem::Problems;
use crate::{IdMap, IdMaps};

/// Lines that the kernel takes in a `uid_map` since 4.15.
const MOST: usize = 340;

/// Reads and checks a pair of mappings; `path` leads to the object that holds them.
pub(crate) fn plan(
    path: &str,
    uid: &[spec::IdMapping],
    gid: &[spec::IdMapping],
    problems: &mut Problems,
) -> IdMaps {
    IdMaps {
        uid: ranges(&format!("{path}.uidMappings"), uid, problems),
        gid: ranges(&format!("{path}.gidMappings"), gid, problems),
    }
}

fn ranges(path: &str, given: &[spec::IdMapping], problems: &mut Problems) -> Vec<IdMap> {
    let mut maps: Vec<IdMap> = Vec::with_capacity(given.len());
    if given.len() > MOST {
        problems.error(path, format!("{} ranges, the kernel takes {MOST}", given.len()));
    }
    for (index, range) in given.iter().enumerate() {
        let map = IdMap { inside: range.container_id, outside: range.host_id, count: range.size };
        let complaint = if map.count == 0 {
            Some("the range is empty".to_owned())
        } else if map.inside.checked_add(map.count).is_none() || map.outside.checked_add(map.count).is_none()
        {
            Some("the range goes beyond the highest id".to_owned())
        } else {
            let clash = maps.iter().position(|other| {
                overlap(map.inside, other.inside, map.count, other.count)
                    || overlap(map.outside, other.outside, map.count, other.count)
            });
            clash.map(|other| format!("the range overlaps with range {other}"))
        };
        if let Some(message) = complaint {
            problems.error(format!("{path}[{index}]"), message);
        }
        maps.push(map);
    }
    maps
}

fn overlap(a: u32, b: u32, a_count: u32, b_count: u32) -> bool {
    let ends_before =
        |first: u32, count: u32, second: u32| u64::from(first) + u64::from(count) <= u64::from(second);
    !ends_before(a, a_count, b) && !ends_before(b, b_count, a)
}

/// Whether two mappings say the same, in whatever order.
pub(crate) fn same(a: &[IdMap], b: &[IdMap]) -> bool {
    let sorted = |maps: &[IdMap]| {
        let mut maps: Vec<_> = maps.iter().map(|map| (map.inside, map.outside, map.count)).collect();
        maps.sort_unstable();
        maps
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::complaints;

    fn of(given: &[(u32, u32, u32)]) -> Vec<String> {
        let given: Vec<_> = given
            .iter()
            .map(|&(container_id, host_id, size)| spec::IdMapping { container_id, host_id, size })
            .collect();
        complaints(|problems| drop(plan("linux", &given, &[], problems)))
    }

    #[test]
    fn good_ranges_pass() {
        assert_eq!(of(&[(0, 1000, 1), (1, 100_000, 65535), (65536, 0, 1000)]), [""; 0]);
        assert_eq!(of(&[(0, 0, u32::MAX)]), [""; 0]);
    }

    #[test]
    fn bad_ranges_are_refused() {
        assert_eq!(of(&[(0, 1000, 0)]), ["linux.uidMappings[0]: the range is empty"]);
        let beyond = "linux.uidMappings[0]: the range goes beyond the highest id";
        assert_eq!(of(&[(1, 0, u32::MAX)]), [beyond]);
        assert_eq!(of(&[(0, u32::MAX, 2)]), [beyond]);
        let overlap = "linux.uidMappings[1]: the range overlaps with range 0";
        assert_eq!(of(&[(0, 1000, 10), (9, 2000, 1)]), [overlap]);
        assert_eq!(of(&[(0, 1000, 10), (10, 1009, 1)]), [overlap]);
        let many: Vec<_> = (0..341).map(|id| (id, id, 1)).collect();
        assert_eq!(of(&many), ["linux.uidMappings: 341 ranges, the kernel takes 340"]);
    }

    #[test]
    fn ids_are_translated() {
        let maps = IdMaps {
            uid: vec![
                IdMap { inside: 0, outside: 1000, count: 1 },
                IdMap { inside: 1, outside: 100_000, count: 10 },
            ],
            gid: vec![],
        };
        assert_eq!(maps.outside_uid(0), Some(1000));
        assert_eq!(maps.outside_uid(10), Some(100_009));
        assert_eq!(maps.outside_uid(11), None);
        assert_eq!(maps.outside_gid(0), None);
    }

    #[test]
    fn the_order_of_ranges_does_not_matter() {
        let (a, b) = (IdMap { inside: 0, outside: 1, count: 1 }, IdMap { inside: 1, outside: 5, count: 3 });
        assert!(same(&[a, b], &[b, a]));
        assert!(!same(&[a], &[a, b]));
    }
}
