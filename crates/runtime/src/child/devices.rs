//! Device nodes and the links in `/dev`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use brig_plan::{DeviceNode, NodeKind};
use brig_sys::{Context, SysError};

use super::create::Creation;
use crate::error::{Doing, Error, Result};

/// Nodes, then links; nothing when `/dev` is a bind mount, whose owner has done that.
pub(super) fn make_all(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    if !plan.populate_dev {
        return Ok(());
    }
    let umask = rustix::process::umask(Mode::empty());
    let dev = c.root()?.ensure_dir(Path::new("/dev"), 0o755)?;
    for node in &plan.devices {
        make(c, &dev, node).doing(|| format!("device {}", node.path.display()))?;
    }
    make_links(c, &dev)?;
    rustix::process::umask(umask);
    Ok(())
}

fn make(c: &Creation<'_>, dev: &OwnedFd, node: &DeviceNode) -> Result<()> {
    let (Some(parent), Some(name)) = (node.path.parent(), node.path.file_name()) else {
        return Err(Error::config("it has no file name"));
    };
    let other;
    let dir = if parent == Path::new("/dev") {
        dev
    } else {
        other = c.root()?.ensure_dir(parent, 0o755)?;
        &other
    };
    let name = Path::new(name);
    if c.in_user_namespace() {
        return bind_from_host(c, dir, name, node);
    }
    let (kind, device) = match node.kind {
        NodeKind::Char => (FileType::CharacterDevice, rustix::fs::makedev(node.major, node.minor)),
        NodeKind::Block => (FileType::BlockDevice, rustix::fs::makedev(node.major, node.minor)),
        NodeKind::Fifo => (FileType::Fifo, 0),
    };
    match rustix::fs::mknodat(dir, name, kind, Mode::from_raw_mode(node.mode), device) {
        Ok(()) => own(dir, name, node, kind, device),
        // What the image or a mount brought is left as it is.
        Err(Errno::EXIST) => Ok(()),
        Err(Errno::PERM) => bind_from_host(c, dir, name, node),
        Err(e) => Err(SysError::path("mknodat", &node.path, e).into()),
    }
}

/// Gives the fresh node its owner, after making sure that it is the one just made.
fn own(dir: &OwnedFd, name: &Path, node: &DeviceNode, kind: FileType, device: u64) -> Result<()> {
    if (node.uid, node.gid) == (0, 0) {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty()).on_path("openat", &node.path)?;
    let stat = rustix::fs::fstat(&fd).on_path("fstat", &node.path)?;
    if FileType::from_raw_mode(stat.st_mode) != kind || stat.st_rdev != device {
        return Err(Error::attack("it was replaced while it was made"));
    }
    let (uid, gid) = (Uid::from_raw(node.uid), Gid::from_raw(node.gid));
    Ok(rustix::fs::chownat(&fd, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
        .on_path("fchownat", &node.path)?)
}

/// Where nodes may not be made (a user namespace), the host's node is mounted on an empty file.
fn bind_from_host(c: &Creation<'_>, dir: &OwnedFd, name: &Path, node: &DeviceNode) -> Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let source = rustix::fs::open(&node.path, flags, Mode::empty()).on_path("open", &node.path)?;
    let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, name, create, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(Errno::EXIST) => {}
        Err(e) => return Err(SysError::path("openat", &node.path, e).into()),
    }
    let place = rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty())
        .on_path("openat", &node.path)?;
    let target = c.target(place, &node.path);
    c.api.bind(c.root()?, source.as_fd(), &node.path, &target, false).map(drop)
}

/// The links that programs expect. `/dev/ptmx` replaces whatever is there, since a node would be the host's terminals.
fn make_links(c: &Creation<'_>, dev: &OwnedFd) -> Result<()> {
    let has_kcore =
        rustix::fs::accessat(&c.proc, "kcore", rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok();
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("core", "/proc/kcore"),
    ];
    for (name, target) in links.into_iter().filter(|(name, _)| *name != "core" || has_kcore) {
        match rustix::fs::symlinkat(target, dev, name) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(SysError::new("symlinkat", format!("/dev/{name}"), e).into()),
        }
    }
    if let Err(Errno::EXIST) = rustix::fs::symlinkat("pts/ptmx", dev, "ptmx") {
        rustix::fs::unlinkat(dev, "ptmx", AtFlags::empty()).on("unlinkat", "/dev/ptmx")?;
        rustix::fs::symlinkat("pts/ptmx", dev, "ptmx").on("symlinkat", "/dev/ptmx")?;
    }
    Ok(())
}
