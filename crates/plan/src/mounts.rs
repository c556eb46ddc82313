//! `mounts`.

use std::path::{Path, PathBuf};

use brig_spec as spec;

use crate::mount_options::{self, Parsed};
use crate::path::{absolute, has_nul};
use crate::problem::Problems;
use crate::{FsOptions, IdMaps, MOUNT_ATTR_RDONLY, Mount, MountIdMap, MountKind, Ns, id_maps};

/// What may be mounted inside `/proc`: files that show the container's share of the machine, and two harmless ones.
/// Anything else could fake what is read from `/proc`, or catch what is written there (CVE-2019-16884).
const INSIDE_PROC: [&str; 10] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/slabinfo",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/crypto/fips_enabled",
];

/// What a mount depends on besides its own description.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) bundle: &'a Path,
    pub(crate) rootfs: &'a Path,
    /// The caller is not root.
    pub(crate) rootless: bool,
    pub(crate) user: &'a Ns,
    pub(crate) id_maps: &'a IdMaps,
}

/// Whether something may be mounted at `target` (absolute and cleaned) though that is inside procfs.
///
/// Of a target outside of `/proc` it says no: where that leads into procfs all the same, a link has been used.
pub fn may_be_inside_proc(target: &Path) -> bool {
    INSIDE_PROC.iter().any(|file| target == Path::new(file))
}

/// True when `/dev` is a bind mount: then it is the caller's, with everything in it.
pub(crate) fn binds_dev(mounts: &[Mount]) -> bool {
    mounts
        .iter()
        .any(|mount| matches!(mount.kind, MountKind::Bind { .. }) && mount.target == Path::new("/dev"))
}

/// True when the container gets a writable cgroup file system in the usual place.
pub(crate) fn has_writable_cgroups(mounts: &[Mount]) -> bool {
    mounts.iter().any(|mount| {
        let cgroups = match &mount.kind {
            MountKind::Cgroup(_) => true,
            MountKind::Other { fstype, .. } => fstype == "cgroup2",
            _ => false,
        };
        let readonly = (mount.attrs.set | mount.recursive_attrs.set) & MOUNT_ATTR_RDONLY != 0;
        cgroups && !readonly && mount.target == Path::new("/sys/fs/cgroup")
    })
}

pub(crate) fn plan(given: &[spec::Mount], around: &Surroundings<'_>, problems: &mut Problems) -> Vec<Mount> {
    given.iter().enumerate().filter_map(|(index, mount)| plan_one(index, mount, around, problems)).collect()
}

fn plan_one(
    index: usize,
    given: &spec::Mount,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Mount> {
    let path = format!("mounts[{index}]");
    let mut texts = [&given.source, &given.destination, &given.kind].into_iter().chain(&given.options);
    if texts.any(|text| has_nul(text)) {
        problems.error(path, "mount field contains null byte");
        return None;
    }
    if !given.destination.starts_with('/') {
        let message = format!("{:?} is not absolute, using it as relative to /", given.destination);
        problems.warn(format!("{path}.destination"), message);
    }
    let target = within(around.rootfs, absolute(&given.destination));
    let parsed = mount_options::parse(&given.options);
    warn_of_options(&path, given, &parsed, problems);
    let idmap = idmap(&path, given, &parsed, around, problems);
    if around.rootless {
        check_ids(&path, &parsed, around.id_maps, problems);
    }
    let Parsed { attrs, recursive_attrs, propagation, .. } = &parsed;
    let (attrs, recursive_attrs, propagation) = (*attrs, *recursive_attrs, propagation.clone());
    let exact = parsed.exact;
    let kind = kind(&path, given, parsed, &target, around, problems)?;
    check_target(&path, &target, &kind, around, problems);
    Some(Mount { index, target, kind, attrs, exact, recursive_attrs, propagation, idmap })
}

/// Some callers give the path on the host.
fn within(rootfs: &Path, target: PathBuf) -> PathBuf {
    match target.strip_prefix(rootfs) {
        Ok(rest) if rootfs.parent().is_some() => Path::new("/").join(rest),
        _ => target.clone(),
    }
}

fn kind(
    path: &str,
    given: &spec::Mount,
    parsed: Parsed,
    target: &Path,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<MountKind> {
    // The options decide, as with mount(2); the type of a bind mount says nothing.
    if let Some(recursive) = parsed.bind {
        return Some(bind(path, given, &parsed, recursive, around, problems));
    }
    let fstype = given.kind.as_str();
    let (remount, copy_up) = (parsed.remount, parsed.copy_up);
    let options = fs_options(given, parsed, target);
    Some(match fstype {
        _ if remount => MountKind::Remount { options: Some(options) },
        "proc" => MountKind::Proc(options),
        "sysfs" => MountKind::Sysfs(options),
        "tmpfs" => MountKind::Tmpfs { options, copy_up },
        "cgroup" => MountKind::Cgroup(options),
        "" | "bind" | "rbind" | "none" => {
            let message = format!("no file system has the type {fstype:?}");
            let hint = "add the option bind or rbind if it is to be a bind mount";
            problems.error_with_hint(format!("{path}.type"), message, hint);
            return None;
        }
        _ => MountKind::Other { fstype: fstype.to_owned(), options },
    })
}

fn bind(
    path: &str,
    given: &spec::Mount,
    parsed: &Parsed,
    recursive: bool,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> MountKind {
    // The kernel would ignore them without a word.
    if !parsed.data.is_empty() {
        let data: Vec<_> = parsed.data.iter().map(|(key, _)| key.as_str()).collect();
        let message = "bind mounts cannot have any filesystem-specific options applied";
        problems.error(format!("{path}.options"), format!("{message}: {}", data.join(", ")));
    }
    if parsed.remount {
        return MountKind::Remount { options: None };
    }
    if given.source.is_empty() {
        problems.error(format!("{path}.source"), "a bind mount needs a source");
    }
    // `join` keeps an absolute path as it is.
    MountKind::Bind { source: around.bundle.join(&given.source), recursive }
}

/// Options of a file system. [`FsOptions::params`] says when read-only is one.
fn fs_options(given: &spec::Mount, parsed: Parsed, target: &Path) -> FsOptions {
    let is_virtual = matches!(given.kind.as_str(), "proc" | "sysfs" | "tmpfs" | "cgroup");
    let mut flags = Vec::new();
    if !is_virtual && target != Path::new("/dev") {
        flags.extend((parsed.attrs.set & MOUNT_ATTR_RDONLY != 0).then_some("ro"));
        flags.extend((parsed.remount && parsed.attrs.clear & MOUNT_ATTR_RDONLY != 0).then_some("rw"));
    }
    flags.extend(parsed.set_flags());
    flags.extend(parsed.clear_flags().filter(|_| parsed.remount));
    let mut params: Vec<_> = flags.into_iter().map(|flag| (flag.to_owned(), None)).collect();
    params.extend(parsed.data);
    FsOptions { source: (!given.source.is_empty()).then(|| given.source.clone()), params }
}

fn check_target(
    path: &str,
    target: &Path,
    kind: &MountKind,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) {
    let path = format!("{path}.destination");
    let rootfs = around.rootfs.display();
    if target.parent().is_none() {
        problems.error(path, format!("mountpoint \"{rootfs}\" is on the top of rootfs \"{rootfs}\""));
        return;
    }
    let shown = || format!("\"{}{}\"", rootfs, target.display());
    let may_be_proc = matches!(kind, MountKind::Proc(_) | MountKind::Bind { .. } | MountKind::Remount { .. });
    if target == Path::new("/proc") {
        if !may_be_proc {
            problems.error(path, format!("{} cannot be mounted because it is not of type proc", shown()));
        }
    } else if target.starts_with("/proc") && !may_be_inside_proc(target) {
        problems.error(path, format!("{} cannot be mounted because it is inside /proc", shown()));
    }
}

fn idmap(
    path: &str,
    given: &spec::Mount,
    parsed: &Parsed,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<MountIdMap> {
    let own = !given.uid_mappings.is_empty() || !given.gid_mappings.is_empty();
    let recursive = parsed.idmap.or(own.then_some(false))?;
    if parsed.bind.is_none() || parsed.remount {
        problems.error(path, "id-mapped mounts are only supported for bind-mounts");
    }
    if around.rootless {
        problems.error(path, "id-mapped mounts are not supported for rootless containers");
    }
    let message = "id-mapped mounts must have both uid and gid mappings specified";
    if !own && !around.user.is_private() {
        let hint = "the container has no user namespace whose mappings could be taken instead";
        problems.error_with_hint(path, message, hint);
    } else if own && (given.uid_mappings.is_empty() || given.gid_mappings.is_empty()) {
        problems.error(path, message);
    }
    let maps = own.then(|| id_maps::plan(path, &given.uid_mappings, &given.gid_mappings, problems));
    Some(MountIdMap { recursive, maps })
}

/// Owners named in options are ids inside the container; whoever is not root can only name those that are mapped.
fn check_ids(path: &str, parsed: &Parsed, maps: &IdMaps, problems: &mut Problems) {
    for (key, value) in &parsed.data {
        let Some(Ok(id)) = value.as_ref().map(|value| value.parse()) else {
            continue;
        };
        let mapped = match key.as_str() {
            "uid" => maps.outside_uid(id),
            "gid" => maps.outside_gid(id),
            _ => continue,
        };
        // Without any mapping the container is refused for that.
        if mapped.is_none() && !maps.is_empty() {
            let message = format!(
                "cannot specify {key}={id} mount option for rootless container: user namespaces enabled, but no mapping found for {key} {id}"
            );
            problems.error(format!("{path}.options"), message);
        }
    }
}

/// What has no effect on a mount of this kind.
fn warn_of_options(path: &str, given: &spec::Mount, parsed: &Parsed, problems: &mut Problems) {
    let bind = parsed.bind.is_some();
    let mut warn =
        |option: &str, why: &str| problems.warn(format!("{path}.options"), format!("{option} {why}"));
    if bind {
        for flag in parsed.set_flags() {
            warn(flag, "has no effect on a bind mount");
        }
    }
    if parsed.copy_up && (bind || parsed.remount || given.kind != "tmpfs") {
        warn("tmpcopyup", "has no effect on anything but a new tmpfs");
    }
    if parsed.iversion {
        warn("iversion", "has no effect: file systems that count inode versions do so anyway");
    }
}

#[cfg(test)]
mod tests;
