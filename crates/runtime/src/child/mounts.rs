//! The mounts of the config, in its order.

mod cgroups;
mod copy_up;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use brig_plan::{
    FsOptions, MOUNT_ATTR__ATIME, MOUNT_ATTR_NOSYMFOLLOW, MOUNT_ATTR_RDONLY, Mount, MountAttrs, MountKind, Ns,
};
use brig_sys::Context;
use brig_sys::mount::MountAttr;

use super::create::Creation;
use super::root::propagation_flags;
use crate::channel::FromChild;
use crate::error::{Doing, Error, Result};
use crate::rootfs::{MountTarget, SetAttrError, attach, file_type};

const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// Name of the step.
pub(super) const STEP: &str = "mounting";

/// All of them.
pub(super) fn mount_all(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    for mount in &plan.mounts {
        // The words that clients know.
        let what = || {
            let (source, target) = (describe(mount), mount.target.display());
            format!("error mounting {source:?} to rootfs at \"{target}\": mounts[{}]", mount.index)
        };
        one(c, mount).doing(what)?;
    }
    Ok(())
}

fn describe(mount: &Mount) -> String {
    match &mount.kind {
        MountKind::Bind { source, .. } => source.display().to_string(),
        MountKind::Proc(_) => "proc".to_owned(),
        MountKind::Sysfs(_) => "sysfs".to_owned(),
        MountKind::Tmpfs { .. } => "tmpfs".to_owned(),
        MountKind::Cgroup(_) => "cgroup".to_owned(),
        MountKind::Other { fstype, .. } => fstype.clone(),
        MountKind::Remount { .. } => "again what is there".to_owned(),
    }
}

fn one(c: &mut Creation<'_>, mount: &Mount) -> Result<()> {
    let root = match &mount.kind {
        MountKind::Bind { source, recursive } => bind(c, mount, source, *recursive)?,
        MountKind::Proc(options) => pseudo(c, mount, "proc", options)?,
        MountKind::Sysfs(options) => pseudo(c, mount, "sysfs", options)?,
        MountKind::Tmpfs { options, copy_up } => tmpfs(c, mount, options, *copy_up)?,
        MountKind::Cgroup(options) => cgroups::mount(c, mount, options)?,
        MountKind::Other { fstype, options } => {
            let target = directory(c, mount)?;
            let options = labelled(c, fstype, options);
            fresh(c, mount, &target, fstype, &options)?
        }
        MountKind::Remount { options } => remount(c, mount, options.as_ref())?,
    };
    finish(c, mount, root.as_fd())?;
    remember_pseudo(c, mount, root);
    Ok(())
}

/// Keeps hold of procfs and sysfs, to mask what is in them and not what their paths lead to by then; see [`super::hidden`].
fn remember_pseudo(c: &mut Creation<'_>, mount: &Mount, root: OwnedFd) {
    // What is mounted over them later is what will be seen there.
    c.pseudo.retain(|(target, _)| !target.starts_with(&mount.target));
    let is_pseudo = matches!(mount.kind, MountKind::Proc(_) | MountKind::Sysfs(_))
        || [Path::new("/proc"), Path::new("/sys")].contains(&mount.target.as_path());
    if is_pseudo {
        c.pseudo.push((mount.target.clone(), root));
    }
}

/// What applies to every kind once it is mounted.
fn finish(c: &Creation<'_>, mount: &Mount, root: BorrowedFd<'_>) -> Result<()> {
    let on = |e: SetAttrError| e.on(&mount.target);
    let recursive = mount.recursive_attrs;
    if !recursive.is_empty() {
        let attr = MountAttr { set: recursive.set, clear: recursive.clear, ..MountAttr::default() };
        c.api.set_attr(root, true, &attr).map_err(on)?;
    }
    for propagation in &mount.propagation {
        let kind = propagation_flags(brig_plan::Propagation { recursive: false, ..*propagation });
        let attr = MountAttr { propagation: u64::from(kind.bits()), ..MountAttr::default() };
        c.api.set_attr(root, propagation.recursive, &attr).map_err(on)?;
    }
    Ok(())
}

/// The directory to mount on, made if it is missing; never the root itself.
fn directory(c: &Creation<'_>, mount: &Mount) -> Result<MountTarget> {
    let fd = c.root()?.ensure_dir(&mount.target, 0o755)?;
    checked(c, mount, fd)
}

/// Refuses what only the resolved path can show: that a link leads to the root, or into procfs.
fn checked(c: &Creation<'_>, mount: &Mount, fd: OwnedFd) -> Result<MountTarget> {
    let place = place(fd.as_fd())?;
    if place == c.place_of_root()? {
        let rootfs = c.job.plan.rootfs.display();
        return Err(Error::config(format!("mountpoint \"{rootfs}\" is on the top of rootfs \"{rootfs}\"")));
    }
    // What lies in the root's own mount lies in no other file system.
    let in_other_mount = place.1 != c.place_of_root()?.1;
    if in_other_mount && in_procfs(fd.as_fd())? && !brig_plan::may_be_inside_proc(&mount.target) {
        let target = mount.target.display();
        return Err(Error::config(format!("\"{target}\" cannot be mounted because it is inside /proc")));
    }
    Ok(c.target(fd, &mount.target))
}

/// Inode and mount.
pub(super) type Place = (u64, u64);

pub(super) fn place(fd: BorrowedFd<'_>) -> Result<Place> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).on("statx", "a mount point")?;
    Ok((stat.stx_ino, stat.stx_mnt_id))
}

fn in_procfs(fd: BorrowedFd<'_>) -> Result<bool> {
    let kind = rustix::fs::fstatfs(fd).on("fstatfs", "a mount point")?.f_type;
    Ok(u64::try_from(kind).ok() == Some(PROC_SUPER_MAGIC))
}

/// Changes what is mounted there already.
fn remount(c: &mut Creation<'_>, mount: &Mount, options: Option<&FsOptions>) -> Result<OwnedFd> {
    let root = c.root()?.resolve(&mount.target)?;
    if let Some(options) = options {
        crate::rootfs::reconfigure(root.as_fd(), options)?;
    }
    set_bind_attrs(c, mount, root.as_fd())?;
    Ok(root)
}

/// A fresh file system. Read-only comes later for those that further mounts are made in.
fn fresh(
    c: &mut Creation<'_>,
    mount: &Mount,
    target: &MountTarget,
    fstype: &str,
    options: &FsOptions,
) -> Result<OwnedFd> {
    let mut attrs = mount.attrs;
    let later =
        attrs.set & MOUNT_ATTR_RDONLY != 0 && (fstype == "tmpfs" || mount.target == Path::new("/dev"));
    if later {
        attrs.set &= !MOUNT_ATTR_RDONLY;
    }
    let root = c.api.fresh(c.root()?, target, fstype, options, attrs)?;
    if later {
        let copy = root.try_clone().map_err(|e| crate::error::io_error("dup", &mount.target, &e))?;
        c.read_only_later.push((copy, mount.target.clone()));
    }
    Ok(root)
}

/// procfs and sysfs are mounted on plain directories only: were it a link, masked and read-only paths would be somewhere else
/// (CVE-2019-19921, CVE-2023-27561).
fn pseudo(c: &mut Creation<'_>, mount: &Mount, fstype: &str, options: &FsOptions) -> Result<OwnedFd> {
    let plain = c.root()?.ensure_plain_dir(&mount.target).map_err(|e| match e.errno() {
        Some(Errno::LOOP | Errno::NOTDIR) => {
            Error::attack(format!("filesystem \"{fstype}\" must be mounted on ordinary directory"))
        }
        _ => e,
    })?;
    let target = c.target(plain, &mount.target);
    if fstype == "proc" && matches!(c.job.plan.namespaces.pid, Ns::Join(_)) {
        return joined_proc(c, mount, &target, options);
    }
    match fresh(c, mount, &target, fstype, options) {
        Err(e) if e.errno() == Some(Errno::PERM) && c.in_user_namespace() => {
            let host = Path::new(if fstype == "proc" { "/proc" } else { "/sys" });
            c.channel.report(&FromChild::Log(
                log::Level::Warn,
                format!("{fstype} may not be mounted in this user namespace ({e}): the host's {} is bound instead", host.display()),
            ));
            let source = open_source(host)?;
            let root = c.api.bind(c.root()?, source.as_fd(), host, &target, true)?;
            let attr = MountAttr { set: mount.attrs.set, ..MountAttr::default() };
            c.api.set_attr(root.as_fd(), true, &attr).map_err(|e| e.on(&mount.target))?;
            Ok(root)
        }
        other => other,
    }
}

/// procfs shows the pid namespace of whoever mounts it, and this process is not in the one that is joined.
fn joined_proc(
    c: &mut Creation<'_>,
    mount: &Mount,
    target: &MountTarget,
    options: &FsOptions,
) -> Result<OwnedFd> {
    let Ns::Join(path) = &c.job.plan.namespaces.pid else {
        return fresh(c, mount, target, "proc", options);
    };
    let tree = super::joined_proc::mount(path, options, mount.attrs)
        .doing(|| "procfs of the joined pid namespace")?;
    attach(tree.as_fd(), target)?;
    Ok(tree)
}

fn tmpfs(c: &mut Creation<'_>, mount: &Mount, options: &FsOptions, copy_up: bool) -> Result<OwnedFd> {
    let mut options = labelled(c, "tmpfs", options);
    let has_mode = options.params.iter().any(|(key, _)| key == "mode");
    let existing = if has_mode && !copy_up { None } else { c.root()?.find(&mount.target)? };
    if let Some(dir) = &existing
        && !has_mode
    {
        // A tmpfs over a directory looks like it.
        let mode = rustix::fs::fstat(dir).on_path("fstat", &mount.target)?.st_mode & 0o7777;
        options.params.insert(0, ("mode".to_owned(), Some(format!("{mode:04o}"))));
    }
    let target = directory(c, mount)?;
    let root = fresh(c, mount, &target, "tmpfs", &options)?;
    if copy_up && existing.is_some() {
        copy_up::copy(target.fd.as_fd(), root.as_fd())
            .doing(|| format!("tmpcopyup of {}", mount.target.display()))?;
    }
    Ok(root)
}

/// The SELinux context of `linux.mountLabel`, where the file system takes one.
fn labelled(c: &Creation<'_>, fstype: &str, options: &FsOptions) -> FsOptions {
    let mut options = options.clone();
    if let Some(label) = &c.job.plan.process.mount_label
        && fstype != "mqueue"
    {
        let option = c.job.plan.process.mount_context.clone().unwrap_or_else(|| "context".to_owned());
        options.params.push((option, Some(label.clone())));
    }
    options
}

/// Opens the source of a bind mount on the host.
fn open_source(path: &Path) -> Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).on_path("open", path)?)
}

fn bind(c: &mut Creation<'_>, mount: &Mount, path: &Path, recursive: bool) -> Result<OwnedFd> {
    let prepared = if mount.idmap.is_some() { ask_for_source(c, mount)? } else { None };
    let (source, prepared) = match prepared {
        Some(tree) => (tree, true),
        None => match open_source(path) {
            Ok(fd) => (fd, false),
            // In a user namespace, a directory on the way may be closed to its root: the command may open it.
            Err(e) if matches!(e.errno(), Some(Errno::ACCESS | Errno::PERM)) && c.in_user_namespace() => {
                (ask_for_source(c, mount)?.ok_or(e)?, true)
            }
            Err(e) => {
                let e = match e.errno() {
                    Some(Errno::NOENT) => {
                        e.hint("the source is not made: make it on the host, or leave the mount out")
                    }
                    _ => e,
                };
                return Err(e).doing(|| "the source of the bind mount");
            }
        },
    };
    let is_dir = file_type(source.as_fd())? == FileType::Directory;
    let fd = if is_dir {
        c.root()?.ensure_dir(&mount.target, 0o755)?
    } else {
        c.root()?.ensure_file(&mount.target, 0o644)?
    };
    let target = if mount.target == Path::new("/proc") {
        // A made-up one would be believed by whoever looks at it (CVE-2019-16884).
        if !in_procfs(source.as_fd())? {
            let target = mount.target.display();
            let text = format!("\"{target}\" cannot be mounted because it is not of type proc");
            return Err(Error::config(text));
        }
        c.target(fd, &mount.target)
    } else {
        checked(c, mount, fd)?
    };
    let root = if prepared {
        attach(source.as_fd(), &target)?;
        source
    } else {
        c.api.bind(c.root()?, source.as_fd(), path, &target, recursive)?
    };
    set_bind_attrs(c, mount, root.as_fd())?;
    Ok(root)
}

fn ask_for_source(c: &mut Creation<'_>, mount: &Mount) -> Result<Option<OwnedFd>> {
    c.channel.report(&FromChild::NeedSource(mount.index));
    c.inbox.wait_source(c.channel)
}

/// A bind mount gets exactly the flags of its options as soon as one option is about flags, as with mount(8): others that its
/// source has are cleared, unless the user namespace locks them.
fn set_bind_attrs(c: &mut Creation<'_>, mount: &Mount, root: BorrowedFd<'_>) -> Result<()> {
    let MountAttrs { set, clear } = mount.attrs;
    if !mount.exact {
        return Ok(());
    }
    let later = set & MOUNT_ATTR_RDONLY != 0 && mount.target == Path::new("/dev");
    let set = if later { set & !MOUNT_ATTR_RDONLY } else { set };
    if later {
        let copy = root.try_clone_to_owned().map_err(|e| crate::error::io_error("dup", &mount.target, &e))?;
        c.read_only_later.push((copy, mount.target.clone()));
    }
    let exact = MountAttr { set, clear: mount.implied_clear() | clear, ..MountAttr::default() };
    match c.api.set_attr(root, false, &exact) {
        Err(e) if e.errno == Errno::PERM => {}
        other => return other.map_err(|e| e.on(&mount.target)),
    }
    // The only one that no user namespace locks.
    let unlocked = mount.implied_clear() & MOUNT_ATTR_NOSYMFOLLOW;
    let asked = MountAttr { set, clear: clear | unlocked, ..MountAttr::default() };
    c.api.set_attr(root, false, &asked).map_err(|e| match e.errno {
        Errno::PERM if clear & MOUNT_ATTR__ATIME != 0 => {
            e.on(&mount.target).context("cannot change locked atime flags")
        }
        Errno::PERM => e.on(&mount.target).context("cannot clear locked flags"),
        _ => e.on(&mount.target),
    })
}
