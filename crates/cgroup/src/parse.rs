//! Readers of the kernel's text formats. Pure, and safe to feed with anything.

use std::path::{Path, PathBuf};

/// One line of `/proc/PID/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Hierarchy number; 0 is cgroup v2.
    pub id: u32,
    /// v1 controllers mounted together, or `name=…`; empty for cgroup v2.
    pub controllers: Vec<String>,
    /// The cgroup, from the root of the reader's cgroup namespace.
    pub path: PathBuf,
}

/// Reads `/proc/PID/cgroup`, see cgroups(7). Lines that do not parse are left out.
pub fn memberships(text: &str) -> Vec<Membership> {
    text.lines()
        .filter_map(|line| {
            // The path is the rest: it may have colons.
            let mut fields = line.splitn(3, ':');
            let id = fields.next()?.parse().ok()?;
            let controllers = fields.next()?;
            let path = fields.next()?;
            Some(Membership {
                id,
                controllers: controllers
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
                // "(deleted)" marks a cgroup that has been removed under a zombie.
                path: PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path)),
            })
        })
        .collect()
}

/// A mounted cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMount {
    /// Which cgroup of the hierarchy is mounted there; not `/` in a container without a cgroup namespace.
    pub root: PathBuf,
    /// Where.
    pub mount_point: PathBuf,
    /// cgroup v2.
    pub unified: bool,
    /// Superblock options: among them the controllers of v1.
    pub options: Vec<String>,
}

/// Finds the cgroup mounts in `/proc/PID/mountinfo`, see proc_pid_mountinfo(5). Other lines, and those that do not
/// parse, are left out.
pub fn cgroup_mounts(text: &str) -> Vec<CgroupMount> {
    text.lines().filter_map(cgroup_mount).collect()
}

fn cgroup_mount(line: &str) -> Option<CgroupMount> {
    let (front, back) = line.split_once(" - ")?;
    let mut back = back.split(' ');
    let unified = match back.next()? {
        "cgroup" => false,
        "cgroup2" => true,
        _ => return None,
    };
    let options = back.nth(1).unwrap_or_default();
    let mut front = front.split(' ').skip(3);
    let root = unescape(front.next()?);
    let mount_point = unescape(front.next()?);
    Some(CgroupMount {
        root: root.into(),
        mount_point: mount_point.into(),
        unified,
        options: options.split(',').map(str::to_owned).collect(),
    })
}

/// Undoes the `\040` escapes of mountinfo.
fn unescape(field: &str) -> String {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = match (byte, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'))
            }
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The value of `key` in a file of `KEY VALUE` lines.
pub fn flat_keyed(text: &str, key: &str) -> Option<u64> {
    flat_entries(text).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// All lines of a file of `KEY VALUE` lines whose value is a number.
pub fn flat_entries(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        Some((key, value.trim().parse().ok()?))
    })
}

/// A file that holds one number, or `max`, which is `u64::MAX`. Some v1 files show −1 for no limit: likewise.
pub fn single(text: &str) -> Option<u64> {
    match text.trim() {
        "max" | "-1" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// A list such as `0-3,7`, as cpuset files have it: CPUs or memory nodes. `None` if it is none, or one with numbers
/// above 65535.
pub fn number_list(text: &str) -> Option<Vec<u16>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The processes that a `cgroup.procs` lists. Those outside of the reader's pid namespace are listed as 0.
pub fn pids(text: &str) -> impl Iterator<Item = i32> {
    text.lines().filter_map(|line| line.trim().parse().ok())
}

/// A `MAJOR:MINOR` pair.
pub fn device_number(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Cleans a path as if `/` were all there is: no `.`, no `..`, no doubled or trailing slashes, no leading one.
/// Empty if nothing is left.
pub(crate) fn clean(path: &str) -> PathBuf {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.iter().collect()
}

/// `path` without the leading `/`, or relative to `root` where it is below it.
pub(crate) fn relative(path: &Path, root: &Path) -> PathBuf {
    let below = path.strip_prefix(root).unwrap_or(path);
    clean(&below.to_string_lossy())
}

#[cfg(test)]
mod tests;
