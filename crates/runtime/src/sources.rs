//! Sources of mounts that the container's process cannot open or map itself: prepared by the command, which is still in the
//! host's namespaces.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
};

use brig_plan::{MOUNT_ATTR_IDMAP, Mount, MountKind, Plan};
use brig_sys::Context;
use brig_sys::mount::{MountAttr, mount_setattr};
use rustix::io::Errno;

use crate::error::{Doing, Error, Result};
use crate::rootfs::MountApi;
use crate::userns;

/// The source of `mounts[index]` as a tree that is mounted nowhere, ids mapped where that is asked for; `None` when the mount
/// has no source on the host.
///
/// # Errors
///
/// The kernel's.
pub fn prepare(plan: &Plan, index: usize, child: BorrowedFd<'_>) -> Result<Option<OwnedFd>> {
    let Some(mount) = plan.mounts.iter().find(|m| m.index == index) else {
        return Ok(None);
    };
    let MountKind::Bind { source, recursive } = &mount.kind else {
        return Ok(None);
    };
    // It may lie in a mount that the container's process has made before.
    let tree = with_mounts_of(child, || clone_source(source, *recursive))?;
    if mount.idmap.is_some() {
        map_ids(plan, mount, &tree).doing(|| format!("mounts[{index}]: id-mapping {}", source.display()))?;
    }
    Ok(Some(tree))
}

fn clone_source(source: &Path, recursive: bool) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let fd = rustix::fs::open(source, flags, Mode::empty()).on_path("open", source)?;
    MountApi::new(None)
        .clone_tree(fd.as_fd(), source, recursive)?
        .ok_or_else(|| Error::host("open_tree is not permitted here, and id-mapped mounts need it"))
}

/// Does something in the mount namespace of the process, and comes back; where that may not be joined, in the one that this
/// process is in.
fn with_mounts_of<T>(child: BorrowedFd<'_>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let open =
        |path: &str, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).on("open", path);
    let own = open("/proc/self/ns/mnt", OFlags::RDONLY)?;
    let (root, cwd) = (open("/", OFlags::PATH)?, open(".", OFlags::PATH)?);
    match move_into_thread_name_spaces(child, ThreadNameSpaceType::MOUNT) {
        Ok(()) => {}
        Err(Errno::PERM) => return job(),
        Err(e) => return Err(e).on("setns", "the container's mounts").map_err(Error::from),
    }
    let done = job();
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Mount))
        .on("setns", "the host's mounts")?;
    rustix::process::fchdir(&root).on("fchdir", "/")?;
    rustix::process::chroot(".").on("chroot", "/")?;
    rustix::process::fchdir(&cwd).on("fchdir", ".")?;
    done
}

fn map_ids(plan: &Plan, mount: &Mount, tree: &OwnedFd) -> Result<()> {
    let Some(idmap) = &mount.idmap else { return Ok(()) };
    let maps = idmap.maps.as_ref().unwrap_or(&plan.id_maps);
    let namespace = userns::with_maps(maps)?;
    let attr = MountAttr {
        set: MOUNT_ATTR_IDMAP,
        userns_fd: std::os::fd::AsRawFd::as_raw_fd(&namespace).unsigned_abs().into(),
        ..MountAttr::default()
    };
    mount_setattr(tree.as_fd(), c"", idmap.recursive, &attr).map_err(|e| {
        let error = Error::from(brig_sys::SysError::new("mount_setattr", "MOUNT_ATTR_IDMAP", e));
        match e {
            Errno::NOSYS => error.hint("id-mapped mounts need Linux 5.12"),
            Errno::INVAL => {
                error.hint("the file system of the source does not support id-mapped mounts on this kernel")
            }
            _ => error,
        }
    })
}
