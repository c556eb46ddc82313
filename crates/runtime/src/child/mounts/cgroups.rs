//! Mounts of type `cgroup`: the container's view of its cgroups.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use brig_cgroup::{Mode, Name};
use brig_plan::{FsOptions, MOUNT_ATTR_RDONLY, Mount, MountAttrs, Ns};
use brig_sys::Context;
use brig_sys::mount::MountAttr;

use super::open_source;
use crate::child::create::Creation;
use crate::error::Result;
use crate::rootfs::MountTarget;

/// Mounts it as this host has cgroups.
pub(super) fn mount(c: &mut Creation<'_>, mount: &Mount, options: &FsOptions) -> Result<OwnedFd> {
    c.make_cgroup_namespace()?;
    if c.job.cgroup.mode == Mode::V2 { v2(c, mount, options) } else { v1(c, mount) }
}

fn has_cgroup_namespace(c: &Creation<'_>) -> bool {
    c.job.plan.namespaces.cgroup == Ns::New
}

fn v2(c: &mut Creation<'_>, mount: &Mount, options: &FsOptions) -> Result<OwnedFd> {
    let target = super::directory(c, mount)?;
    let refused = match c.api.fresh(c.root()?, &target, "cgroup2", options, mount.attrs) {
        Err(e) if matches!(e.errno(), Some(Errno::PERM | Errno::BUSY)) => e,
        other => return other,
    };
    // In a user namespace without a cgroup namespace of its own the file system may not be mounted afresh.
    let own = c.job.cgroup.groups.iter().find(|g| g.unified).map(Name::dir);
    let source = if has_cgroup_namespace(c) { own } else { None };
    let source = source.unwrap_or_else(|| PathBuf::from("/sys/fs/cgroup"));
    match open_source(&source) {
        Ok(fd) => bind(c, mount, fd, &source, &target),
        // Nothing of it is visible to a rootless caller: then the host's, which a bound /sys may have brought, is covered.
        Err(e) if e.errno() == Some(Errno::NOENT) => {
            let attrs = MountAttrs { set: mount.attrs.set | MOUNT_ATTR_RDONLY, clear: mount.attrs.clear };
            c.api.fresh(c.root()?, &target, "tmpfs", &FsOptions::default(), attrs)
        }
        Err(_) => Err(refused),
    }
}

/// A tmpfs with one mount for each hierarchy, and links for controllers that share one.
fn v1(c: &mut Creation<'_>, mount: &Mount) -> Result<OwnedFd> {
    let target = super::directory(c, mount)?;
    let options = FsOptions {
        source: Some("tmpfs".to_owned()),
        params: vec![("mode".to_owned(), Some("755".to_owned()))],
    };
    let attrs = MountAttrs { set: mount.attrs.set & !MOUNT_ATTR_RDONLY, clear: 0 };
    let root = c.api.fresh(c.root()?, &target, "tmpfs", &super::labelled(c, "tmpfs", &options), attrs)?;
    let groups: Vec<&Name> = c.job.cgroup.groups.iter().filter(|g| !g.unified).collect();
    for group in groups {
        let Some(dir) = group.mount.file_name() else {
            continue;
        };
        let path = mount.target.join(dir);
        rustix::fs::mkdirat(&root, dir, rustix::fs::Mode::from_raw_mode(0o755)).on_path("mkdirat", &path)?;
        let place = rustix::fs::openat(
            &root,
            dir,
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .on_path("openat", &path)?;
        hierarchy(c, mount, group, c.target(place, &path))?;
        for controller in &group.controllers {
            let link = controller.strip_prefix("name=").unwrap_or(controller);
            if Path::new(link) != Path::new(dir) {
                match rustix::fs::symlinkat(dir, &root, link) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => {
                        return Err(brig_sys::SysError::path("symlinkat", mount.target.join(link), e).into());
                    }
                }
            }
        }
    }
    if mount.attrs.set & MOUNT_ATTR_RDONLY != 0 {
        let attr = MountAttr { set: MOUNT_ATTR_RDONLY, ..MountAttr::default() };
        c.api.set_attr(root.as_fd(), false, &attr).map_err(|e| e.on(&mount.target))?;
    }
    Ok(root)
}

/// One hierarchy: mounted afresh where a cgroup namespace hides what is above, else the container's own cgroup is bound.
fn hierarchy(c: &Creation<'_>, mount: &Mount, group: &Name, target: MountTarget) -> Result<()> {
    if has_cgroup_namespace(c) {
        let params = group.controllers.iter().map(|controller| match controller.strip_prefix("name=") {
            // A hierarchy without a controller is told by its name, and by that it has none.
            Some(name) => [("name".to_owned(), Some(name.to_owned())), ("none".to_owned(), None)].to_vec(),
            None => vec![(controller.clone(), None)],
        });
        let options = FsOptions { source: Some("cgroup".to_owned()), params: params.flatten().collect() };
        c.api.fresh(c.root()?, &target, "cgroup", &options, mount.attrs).map(drop)
    } else {
        let source = group.dir();
        let (fd, source) = match open_source(&source) {
            // There was no permission to make it: then the container is where its maker is.
            Err(e) if c.job.cgroup.rootless && e.errno() == Some(Errno::NOENT) => {
                let source = makers_own(group)?;
                (open_source(&source)?, source)
            }
            other => (other?, source),
        };
        bind(c, mount, fd, &source, &target).map(drop)
    }
}

/// This process's own cgroup in the hierarchy of another.
fn makers_own(group: &Name) -> Result<PathBuf> {
    let layout = brig_cgroup::Layout::detect()?;
    let own = match layout.hierarchies.iter().find(|hierarchy| hierarchy.mount == group.mount) {
        Some(hierarchy) => hierarchy.own()?,
        None => Path::new(""),
    };
    Ok(group.mount.join(own.strip_prefix("/").unwrap_or(own)))
}

fn bind(
    c: &Creation<'_>,
    mount: &Mount,
    source: OwnedFd,
    shown: &Path,
    target: &MountTarget,
) -> Result<OwnedFd> {
    let root = c.api.bind(c.root()?, source.as_fd(), shown, target, false)?;
    let attr = MountAttr { set: mount.attrs.set, ..MountAttr::default() };
    c.api.set_attr(root.as_fd(), false, &attr).map_err(|e| e.on(&target.path))?;
    Ok(root)
}
