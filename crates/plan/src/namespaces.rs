//! `linux.namespaces`, and what goes with user and time namespaces.

use std::path::Path;

use brig_spec as spec;

use crate::path::has_nul;
use crate::problem::Problems;
use crate::{Host, IdMap, IdMaps, Namespaces, Ns, TimeOffsets, id_maps};

/// The types, in alphabetical order.
pub const TYPES: [&str; 8] = ["cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts"];

pub(crate) fn plan(linux: &spec::Linux, bundle: &Path, host: &Host, problems: &mut Problems) -> Namespaces {
    let mut namespaces = Namespaces::default();
    for (index, given) in linux.namespaces.iter().enumerate() {
        let path = || format!("linux.namespaces[{index}]");
        let shown = || format!("{{{:?} {:?}}}", given.kind, given.path);
        let Some(slot) = slot(&mut namespaces, &given.kind) else {
            problems.error(format!("{}.type", path()), format!("namespace {} does not exist", shown()));
            continue;
        };
        if slot.is_private() {
            problems.error(path(), format!("malformed spec file: duplicated ns {}", shown()));
            continue;
        }
        // runc refuses commas; callers are told before they rely on them.
        if given.path.contains(',') || has_nul(&given.path) {
            problems.error(format!("{}.path", path()), format!("invalid namespace path {}", given.path));
        }
        *slot = match given.path.as_str() {
            "" => Ns::New,
            joined => Ns::Join(bundle.join(joined)),
        };
        if !supported(&given.kind, host) {
            let message = format!("{} namespaces aren't enabled in the kernel", given.kind);
            problems.error(format!("{}.type", path()), message);
        }
    }
    // Who is not root cannot make a container without one.
    if host.euid != 0 && !namespaces.user.is_private() {
        namespaces.user = Ns::New;
        if host.user_namespaces {
            let message = "a user namespace is made, as the caller is not root";
            problems.warn("linux.namespaces", message);
        } else {
            problems.error("linux.namespaces", "rootless container requires user namespaces");
        }
    }
    namespaces
}

fn slot<'a>(namespaces: &'a mut Namespaces, kind: &str) -> Option<&'a mut Ns> {
    Some(match kind {
        "user" => &mut namespaces.user,
        "mount" => &mut namespaces.mount,
        "pid" => &mut namespaces.pid,
        "network" => &mut namespaces.network,
        "ipc" => &mut namespaces.ipc,
        "uts" => &mut namespaces.uts,
        "cgroup" => &mut namespaces.cgroup,
        "time" => &mut namespaces.time,
        _ => return None,
    })
}

fn supported(kind: &str, host: &Host) -> bool {
    match kind {
        "user" => host.user_namespaces,
        "cgroup" => host.cgroup_namespaces,
        "time" => host.time_namespaces,
        _ => true,
    }
}

/// The id mappings of the container's user namespace.
pub(crate) fn id_maps(
    linux: &spec::Linux,
    process_user: Option<&spec::User>,
    user: &Ns,
    host: &Host,
    problems: &mut Problems,
) -> IdMaps {
    let given = !linux.uid_mappings.is_empty() || !linux.gid_mappings.is_empty();
    match user {
        Ns::Host => {
            if given {
                problems.warn("linux.uidMappings", "id mappings have no effect without a user namespace");
            }
            IdMaps::default()
        }
        Ns::New if !given && !linux.namespaces.iter().any(|ns| ns.kind == "user") => {
            let (uid, gid) = process_user.map_or((0, 0), |user| (user.uid, user.gid));
            let sub = &host.subordinate;
            let maps = IdMaps {
                uid: default_map(uid, host.euid, &sub.uid),
                gid: default_map(gid, sub.egid, &sub.gid),
            };
            check_root_mapped(&maps, host, problems);
            maps
        }
        Ns::New => {
            let maps = id_maps::plan("linux", &linux.uid_mappings, &linux.gid_mappings, problems);
            if given || host.euid != 0 {
                check_root_mapped(&maps, host, problems);
            } else {
                let message =
                    "user namespaces enabled, but no namespace path to join nor mappings to apply specified";
                problems.error("linux.uidMappings", message);
            }
            maps
        }
        Ns::Join(_) => {
            let given_maps = id_maps::plan("linux", &linux.uid_mappings, &linux.gid_mappings, problems);
            let Some(maps) = &host.joined_user_namespace else {
                return given_maps;
            };
            if given {
                compare(&given_maps, maps, problems);
            }
            maps.clone()
        }
    }
}

/// The caller's id is that of the process inside, and the ids before and after that are its subordinate ones.
fn default_map(inside: u32, caller: u32, subordinate: &[(u32, u32)]) -> Vec<IdMap> {
    let mut maps = Vec::new();
    let mut next = 0_u32;
    for &(first, count) in subordinate {
        let (mut first, mut count) = (first, count);
        // What comes before the caller's id in it, then what comes after.
        if next < inside {
            let before = count.min(inside - next);
            maps.push(IdMap { inside: next, outside: first, count: before });
            next = next.saturating_add(before);
            first = first.saturating_add(before);
            count -= before;
        }
        if next == inside {
            maps.push(IdMap { inside, outside: caller, count: 1 });
            next = next.saturating_add(1);
        }
        if count > 0 {
            maps.push(IdMap { inside: next, outside: first, count });
            next = next.saturating_add(count);
        }
    }
    if next <= inside {
        maps.push(IdMap { inside, outside: caller, count: 1 });
    }
    maps
}

/// A new namespace is entered as its root, so that must be somebody.
fn check_root_mapped(maps: &IdMaps, host: &Host, problems: &mut Problems) {
    for (name, id, kind, ranges, root) in [
        ("uidMappings", "uid", "UID", &maps.uid, maps.outside_uid(0)),
        ("gidMappings", "gid", "GID", &maps.gid, maps.outside_gid(0)),
    ] {
        let message = match (ranges.is_empty(), root) {
            (true, _) if host.euid != 0 => {
                format!("rootless containers requires at least one {kind} mapping")
            }
            (true, _) => format!("user namespaces enabled, but no {id} mappings found"),
            (false, None) => format!("user namespaces enabled, but no mapping found for {id} 0"),
            (false, Some(_)) => continue,
        };
        let hint = "a process that is not root there needs subordinate ids in /etc/subuid and /etc/subgid, or mappings";
        problems.error_with_hint(format!("linux.{name}"), message, hint);
    }
}

/// containerd and CRI-O give both a path and the mappings that the namespace has; that must go on working.
fn compare(given: &IdMaps, actual: &IdMaps, problems: &mut Problems) {
    if id_maps::same(&given.uid, &actual.uid) && id_maps::same(&given.gid, &actual.gid) {
        let message =
            "id mappings have no effect with a user namespace path; they match those of the namespace";
        problems.warn("linux.uidMappings", message);
    } else {
        let message = "user namespaces enabled, but both namespace path and non-matching mapping specified -- you may only provide one";
        problems.error("linux.uidMappings", message);
    }
}

pub(crate) fn time_offsets(linux: &spec::Linux, time: &Ns, problems: &mut Problems) -> TimeOffsets {
    const PATH: &str = "linux.timeOffsets";
    const SECOND: u32 = 1_000_000_000;
    if linux.time_offsets.is_empty() {
        return TimeOffsets::default();
    }
    match time {
        Ns::Host => {
            let message = "time namespace offsets specified, but time namespace isn't enabled in the config";
            problems.error(PATH, message);
        }
        Ns::Join(_) => {
            let message = "time namespace enabled, but both namespace path and time offsets specified -- you may only provide one";
            problems.error(PATH, message);
        }
        Ns::New => {}
    }
    let mut offsets = TimeOffsets::default();
    for (clock, offset) in &linux.time_offsets {
        let slot = match clock.as_str() {
            "monotonic" => &mut offsets.monotonic,
            "boottime" => &mut offsets.boottime,
            _ => {
                let message = format!("clock {clock:?} has no offset, only monotonic and boottime do");
                problems.error(PATH, message);
                continue;
            }
        };
        if offset.nanosecs >= SECOND {
            let message = format!("{} is a second or more", offset.nanosecs);
            problems.error(format!("{PATH}.{clock}.nanosecs"), message);
        }
        *slot = Some((offset.secs, offset.nanosecs));
    }
    offsets
}

#[cfg(test)]
mod tests;
