//! Paths that the container may not change or not see.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use brig_plan::{FsOptions, MOUNT_ATTR_RDONLY, MountAttrs};
use brig_sys::Context;
use brig_sys::mount::MountAttr;

use super::create::Creation;
use crate::error::{Doing, Error, Result};
use crate::rootfs::{RootDir, file_type};

/// Finds what is to be hidden. Below procfs and sysfs it is looked for from the roots of these mounts on: whoever shares the root
/// file system can rename their mount points meanwhile, and what would be masked then is something else than what shows.
fn find(c: &Creation<'_>, path: &Path) -> Result<Option<OwnedFd>> {
    let held = c.pseudo.iter().filter_map(|(target, root)| Some((root, path.strip_prefix(target).ok()?)));
    let Some((root, below)) = held.min_by_key(|(_, below)| below.as_os_str().len()) else {
        return c.root()?.find(path);
    };
    let root = root.try_clone().map_err(|e| crate::error::io_error("dup", path, &e))?;
    RootDir::new(root).find(&Path::new("/").join(below))
}

/// `linux.readonlyPaths`: each is mounted on itself, read-only with all below it; its other flags stay. What is not there is
/// passed over.
pub(super) fn read_only_paths(c: &mut Creation<'_>) -> Result<()> {
    for path in &c.job.plan.readonly_paths {
        let Some(place) = find(c, path)? else {
            continue;
        };
        let attr = MountAttr { set: MOUNT_ATTR_RDONLY, ..MountAttr::default() };
        let source = place.try_clone().map_err(|e| crate::error::io_error("dup", path, &e))?;
        let target = c.target(place, path);
        let mount = match c.api.bind(c.root()?, source.as_fd(), path, &target, true) {
            Ok(mount) => mount,
            // A path that came and went with the kernel's mood (/proc/PID).
            Err(e) if e.errno() == Some(Errno::NOENT) => continue,
            Err(e) => return Err(e),
        };
        c.api
            .set_attr(mount.as_fd(), true, &attr)
            .or_else(|e| {
                if e.errno == Errno::NOSYS { c.api.set_attr(mount.as_fd(), false, &attr) } else { Err(e) }
            })
            .map_err(|e| e.on(path))?;
    }
    Ok(())
}

/// `linux.maskedPaths`: files are covered by the null device, directories by one empty read-only directory, however many.
pub(super) fn masked_paths(c: &mut Creation<'_>) -> Result<()> {
    let mut null: Option<OwnedFd> = None;
    let mut empty: Option<OwnedFd> = None;
    for path in &c.job.plan.masked_paths {
        let Some(place) = find(c, path)? else {
            continue;
        };
        let is_dir = file_type(place.as_fd())? == FileType::Directory;
        let target = c.target(place, path);
        if !is_dir {
            let null = match &null {
                Some(null) => null,
                None => null.insert(null_device(c)?),
            };
            c.api.bind(c.root()?, null.as_fd(), Path::new("/dev/null"), &target, false)?;
        } else if let Some(empty) = &empty {
            c.api.bind(c.root()?, empty.as_fd(), path, &target, false)?;
        } else {
            empty = Some(empty_directory(c, &target)?);
        }
    }
    Ok(())
}

/// The container's null device, checked to be it: an image can put a link in its place (CVE-2025-31133).
fn null_device(c: &Creation<'_>) -> Result<OwnedFd> {
    let path = Path::new("/dev/null");
    let fd = c.root()?.resolve_nofollow(path).doing(|| "the null device, to mask files with")?;
    let stat = rustix::fs::fstat(&fd).on_path("fstat", path)?;
    let is_null = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && stat.st_rdev == rustix::fs::makedev(1, 3);
    if !is_null {
        return Err(Error::attack(
            "/dev/null is not the null device (character device 1:3), so nothing can be masked with it",
        ));
    }
    Ok(fd)
}

/// A file system that holds nothing and can hold nothing.
fn empty_directory(c: &Creation<'_>, target: &crate::rootfs::MountTarget) -> Result<OwnedFd> {
    let options = |inodes: &str| FsOptions {
        source: Some("tmpfs".to_owned()),
        params: vec![
            ("nr_blocks".to_owned(), Some("1".to_owned())),
            ("nr_inodes".to_owned(), Some(inodes.to_owned())),
        ],
    };
    let attrs = MountAttrs { set: MOUNT_ATTR_RDONLY, clear: 0 };
    // Its root is the one inode; some kernels count another.
    c.api.fresh(c.root()?, target, "tmpfs", &options("1"), attrs).or_else(|e| match e.errno() {
        Some(Errno::NOSPC | Errno::NOMEM) => c.api.fresh(c.root()?, target, "tmpfs", &options("2"), attrs),
        _ => Err(e),
    })
}
