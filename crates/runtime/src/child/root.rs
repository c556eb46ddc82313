//! Where the root file system is attached, and the change of root.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};

use brig_plan::{MOUNT_ATTR_RDONLY, Ns, Propagation, PropagationKind};
use brig_sys::mount::MountAttr;
use brig_sys::{Context, SysError};

use super::create::Creation;
use crate::error::{Doing, Result};
use crate::rootfs::{MountTarget, RootDir};

/// The propagation type as mount(2) flags.
pub(super) fn propagation_flags(p: Propagation) -> MountPropagationFlags {
    let kind = match p.kind {
        PropagationKind::Shared => MountPropagationFlags::SHARED,
        PropagationKind::Slave => MountPropagationFlags::DOWNSTREAM,
        PropagationKind::Private => MountPropagationFlags::PRIVATE,
        PropagationKind::Unbindable => MountPropagationFlags::UNBINDABLE,
    };
    if p.recursive { kind | MountPropagationFlags::REC } else { kind }
}

/// What is mounted in the container must not reach the host; what the host mounts may reach the container.
pub(super) fn set_propagation(c: &mut Creation<'_>) -> Result<()> {
    if c.job.plan.namespaces.mount == Ns::Host {
        return Ok(());
    }
    let Some(wanted) = c.job.plan.root.propagation else {
        let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        return Ok(mount_change("/", slave).on("mount(MS_SLAVE)", "/")?);
    };
    let now = match wanted.kind {
        // It has to be bound before; see `set_own_propagation`.
        PropagationKind::Unbindable => PropagationKind::Private,
        kind => kind,
    };
    let now = Propagation { kind: now, ..wanted };
    mount_change("/", propagation_flags(now)).on("mount(propagation)", "/")?;
    // Should that have left the root file system's mount shared, what is mounted in it would show on the host, and
    // pivot_root would refuse it.
    let mount_point = containing_mount(&c.job.plan.rootfs)?;
    let table = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(|e| crate::error::io_error("read", Path::new("/proc/self/mountinfo"), &e))?;
    // A user namespace may not change one that it did not make, so this is done only where it has to be.
    if !crate::mountinfo::parse(&table).any(|mount| mount.shared && mount.mount_point() == mount_point) {
        return Ok(());
    }
    Ok(mount_change(mount_point, MountPropagationFlags::PRIVATE).on_path("mount(MS_PRIVATE)", mount_point)?)
}

/// The nearest mount point on the way up.
fn containing_mount(path: &Path) -> Result<&Path> {
    for ancestor in path.ancestors() {
        let stat = rustix::fs::statx(rustix::fs::CWD, ancestor, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE)
            .on_path("statx", ancestor)?;
        // Linux 5.8.
        if stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Ok(ancestor);
        }
    }
    Ok(Path::new("/"))
}

/// Mounts the root file system on itself, so that it is a mount point of its own that can become `/`.
pub(super) fn attach(c: &mut Creation<'_>) -> Result<()> {
    let path = &c.job.plan.rootfs;
    // Checked before, and again here: whoever owns a directory above it can have put a link in its place since.
    let place = crate::bundle::open_rootfs(path)?;
    let target = MountTarget { fd: place, path: path.clone() };
    let tree = match c.api.clone_tree(target.fd.as_fd(), path, true)? {
        Some(tree) => {
            crate::rootfs::attach(tree.as_fd(), &target)?;
            tree
        }
        None => {
            rustix::mount::mount_bind_recursive(path, path).on_path("mount(MS_BIND)", path)?;
            crate::bundle::open_rootfs(path)?
        }
    };
    c.root = Some(RootDir::new(tree));
    Ok(())
}

/// What the kernel takes for the new root only once it is `/`, and what would be in the way of bind mounts.
pub(super) fn set_own_propagation(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    match plan.root.propagation {
        Some(p)
            if plan.namespaces.mount != Ns::Host
                && matches!(p.kind, PropagationKind::Shared | PropagationKind::Unbindable) =>
        {
            Ok(mount_change("/", propagation_flags(p)).on("mount(propagation)", "/")?)
        }
        _ => Ok(()),
    }
}

/// Makes the root file system `/`.
pub(super) fn enter(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    rustix::process::fchdir(c.root()?).on_path("fchdir", &plan.rootfs)?;
    if plan.namespaces.mount == Ns::Host {
        rustix::process::chroot(".").on("chroot", ".")?;
    } else if plan.root.no_pivot {
        move_over_root(c)?;
    } else {
        pivot()?;
    }
    rustix::process::chdir("/").on("chdir", "/")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    c.root = Some(RootDir::new(rustix::fs::open("/", flags, Mode::empty()).on("open", "/")?));
    Ok(())
}

/// pivot_root(2) without a directory for the old root: both lie on each other, and the old one is taken off.
fn pivot() -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let old = rustix::fs::open("/", flags, Mode::empty()).on("open", "/")?;
    rustix::process::pivot_root(".", ".").map_err(|e| {
        crate::error::Error::from(SysError::new("pivot_root", "", e))
            .hint("a root on a ramdisk cannot be pivoted: use --no-pivot")
    })?;
    rustix::process::fchdir(&old).on("fchdir", "the old root")?;
    // Where mounts are still shared with the host, unmounting must not reach it.
    mount_change(".", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .on("mount(MS_SLAVE)", "the old root")?;
    Ok(unmount(".", UnmountFlags::DETACH).on("umount", "the old root")?)
}

/// For roots on a ramdisk, which cannot be pivoted away: the host's mounts stay below, so first those are taken off through
/// which a process could get at the host, every full procfs and sysfs.
fn move_over_root(c: &Creation<'_>) -> Result<()> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(|e| crate::error::io_error("read", Path::new("/proc/self/mountinfo"), &e))?;
    let rootfs = &c.job.plan.rootfs;
    for mount in
        crate::mountinfo::parse(&table).filter(|m| m.is_whole() && matches!(m.fstype, "proc" | "sysfs"))
    {
        let point = mount.mount_point();
        if point.starts_with(rootfs) {
            continue;
        }
        let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        // One that lies under another is not reached by its path, and not by the container's either.
        let _ = mount_change(&point, slave);
        if unmount(&point, UnmountFlags::DETACH).is_err() {
            // Locked in a user namespace: it can still be covered.
            rustix::mount::mount("tmpfs", &point, "tmpfs", rustix::mount::MountFlags::empty(), c"")
                .on_path("mount(tmpfs)", &point)
                .doing(|| "covering a procfs or sysfs of the host")?;
        }
    }
    rustix::mount::mount_move(rootfs, "/").on_path("mount(MS_MOVE)", rootfs)?;
    rustix::process::chroot(".").on("chroot", ".")?;
    Ok(())
}

/// Now that everything below them is in place.
pub(super) fn make_read_only(c: &mut Creation<'_>) -> Result<()> {
    let attr = MountAttr { set: MOUNT_ATTR_RDONLY, ..MountAttr::default() };
    for (mount, path) in std::mem::take(&mut c.read_only_later) {
        c.api.set_attr(mount.as_fd(), false, &attr).map_err(|e| e.on(&path))?;
    }
    if c.job.plan.root.readonly {
        c.api.set_attr(c.root()?.as_fd(), false, &attr).map_err(|e| e.on(Path::new("/")))?;
    }
    Ok(())
}
