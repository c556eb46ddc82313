//! Mounting on descriptors: with the mount API (fsopen, open_tree, move_mount), or where that is forbidden with mount(2) on
//! `/proc/self/fd/N`.
//!
//! Linux 5.10, the oldest that brig runs on, has the new API, but sandboxes around brig may answer EPERM or ENOSYS to it
//! (a seccomp profile that does not know the calls). With mount(2) the target is as exact, being a descriptor too; what
//! must be asked afterwards is where the new mount is, and that is verified.

use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, fspick,
    move_mount, open_tree,
};

use brig_plan::{
    FsOptions, MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME, MOUNT_ATTR_NODEV, MOUNT_ATTR_NODIRATIME,
    MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NOSYMFOLLOW, MOUNT_ATTR_RDONLY, MOUNT_ATTR_STRICTATIME,
    MountAttrs,
};
use brig_sys::mount::{MountAttr, mount_setattr};
use brig_sys::{Context, SysError, errno_text};

use super::RootDir;
use crate::error::{Error, Result};

/// A place to mount on: what the path led to, open.
#[derive(Debug)]
pub struct MountTarget {
    /// The place itself.
    pub fd: OwnedFd,
    /// How it was named, within the root.
    pub path: PathBuf,
}

/// Longest string that fsconfig(2) takes.
const FSCONFIG_MAX: usize = 255;

/// How mounts are made here.
#[derive(Debug)]
pub struct MountApi {
    /// The new API has been refused.
    classic: Cell<bool>,
    /// `/proc` of the host, verified to be procfs: mount(2) names descriptors through it.
    proc: Option<OwnedFd>,
}

impl MountApi {
    /// Starts with the new API; `proc` is the host's procfs, for the other one.
    pub fn new(proc: Option<OwnedFd>) -> Self {
        Self { classic: Cell::new(false), proc }
    }

    /// Mounts a fresh file system; the root of the new mount.
    ///
    /// # Errors
    ///
    /// The kernel's, with what it says about the options.
    pub fn fresh(
        &self,
        root: &RootDir,
        target: &MountTarget,
        fstype: &str,
        options: &FsOptions,
        attrs: MountAttrs,
    ) -> Result<OwnedFd> {
        // A list of lower directories may be longer than fsconfig(2) takes; mount(2) takes a page.
        let too_long =
            options.params.iter().any(|(_, value)| value.as_ref().is_some_and(|v| v.len() > FSCONFIG_MAX));
        if !self.classic.get() && !too_long {
            match self.fresh_new(fstype, options, attrs) {
                Ok(mount) => {
                    attach(mount.as_fd(), target)?;
                    return Ok(mount);
                }
                Err(e) if self.is_forbidden(&e) => {}
                Err(e) => return Err(e),
            }
        }
        let (flags, data) = classic_options(options, attrs);
        let source = options.source.as_deref().unwrap_or(fstype);
        let data = CString::new(data).map_err(|_| Error::config("mount data contains a NUL byte"))?;
        let place = self.place(target.fd.as_fd()).on_path("fchdir", &target.path)?;
        rustix::mount::mount(source, place.as_str(), fstype, flags, Some(data.as_c_str()))
            .on_path("mount", &target.path)?;
        self.verified(root, target)
    }

    fn fresh_new(&self, fstype: &str, options: &FsOptions, attrs: MountAttrs) -> Result<OwnedFd> {
        let context = fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC).on("fsopen", fstype)?;
        let fs = context.as_fd();
        if let Some(source) = &options.source {
            fsconfig_set_string(fs, "source", source.as_str()).map_err(|e| explained(fs, "source", e))?;
        }
        set_params(fs, options)?;
        fsconfig_create(fs).map_err(|e| explained(fs, "", e))?;
        let attrs = MountAttrFlags::from_bits_retain(u32::try_from(attrs.set).unwrap_or(0));
        Ok(fsmount(fs, FsMountFlags::FSMOUNT_CLOEXEC, attrs).on("fsmount", fstype)?)
    }

    /// A copy of the mount that `source` lies in, from there on down, mounted nowhere yet; `None` where the new API is refused.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn clone_tree(
        &self,
        source: BorrowedFd<'_>,
        shown: &Path,
        recursive: bool,
    ) -> Result<Option<OwnedFd>> {
        if self.classic.get() {
            return Ok(None);
        }
        let mut flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        if recursive {
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        match open_tree(source, c"", flags) {
            Ok(tree) => Ok(Some(tree)),
            Err(e) => {
                let e = Error::from(SysError::path("open_tree", shown, e));
                if self.is_forbidden(&e) { Ok(None) } else { Err(e) }
            }
        }
    }

    /// Bind-mounts `source` on the target; the root of the new mount.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn bind(
        &self,
        root: &RootDir,
        source: BorrowedFd<'_>,
        shown: &Path,
        target: &MountTarget,
        recursive: bool,
    ) -> Result<OwnedFd> {
        if let Some(tree) = self.clone_tree(source, shown, recursive)? {
            attach(tree.as_fd(), target)?;
            return Ok(tree);
        }
        let place = self.place(target.fd.as_fd()).on_path("fchdir", &target.path)?;
        let source = source.as_raw_fd().to_string();
        if recursive {
            rustix::mount::mount_bind_recursive(source.as_str(), place.as_str())
        } else {
            rustix::mount::mount_bind(source.as_str(), place.as_str())
        }
        .on("mount(MS_BIND)", format!("{} on {}", shown.display(), target.path.display()))?;
        self.verified(root, target)
    }

    /// Changes attributes or propagation of a mount, given its root.
    ///
    /// # Errors
    ///
    /// EPERM for a flag that is locked in this user namespace; a kernel before 5.12 cannot do it recursively.
    pub fn set_attr(
        &self,
        mount: BorrowedFd<'_>,
        recursive: bool,
        attr: &MountAttr,
    ) -> Result<(), SetAttrError> {
        match mount_setattr(mount, c"", recursive, attr) {
            Ok(()) => Ok(()),
            Err(Errno::NOSYS | Errno::PERM) if self.needs_remount() => self.remount(mount, recursive, attr),
            Err(e) => Err(SetAttrError { errno: e, call: "mount_setattr" }),
        }
    }

    /// Whether mount_setattr is missing: a call that changes nothing tells it from a lack of permission.
    fn needs_remount(&self) -> bool {
        matches!(
            mount_setattr(rustix::fs::CWD, c"", false, &MountAttr::default()),
            Err(Errno::NOSYS | Errno::PERM)
        )
    }

    fn remount(&self, mount: BorrowedFd<'_>, recursive: bool, attr: &MountAttr) -> Result<(), SetAttrError> {
        let failed = |call| move |errno| SetAttrError { errno, call };
        let place = self.place(mount).map_err(failed("fchdir"))?;
        if attr.propagation != 0 {
            let kind = rustix::mount::MountPropagationFlags::from_bits_retain(
                u32::try_from(attr.propagation).unwrap_or(0),
            ) | if recursive {
                rustix::mount::MountPropagationFlags::REC
            } else {
                rustix::mount::MountPropagationFlags::empty()
            };
            rustix::mount::mount_change(place.as_str(), kind).map_err(failed("mount(propagation)"))?;
        }
        if attr.set == 0 && attr.clear == 0 {
            return Ok(());
        }
        if recursive {
            return Err(SetAttrError { errno: Errno::NOSYS, call: "mount_setattr (Linux 5.12)" });
        }
        let now = rustix::fs::fstatvfs(mount).map_err(failed("fstatvfs"))?.f_flag;
        let now = attrs_of_statvfs(now);
        let wanted = (now & !attr.clear) | attr.set;
        let flags = classic_flags(wanted) | MountFlags::BIND;
        rustix::mount::mount_remount(place.as_str(), flags, c"").map_err(failed("mount(MS_REMOUNT)"))
    }

    /// A path for a descriptor, for mount(2): the working directory is moved to the descriptor directory of the host's procfs,
    /// which was opened in the beginning. `/proc` itself may be anything once the root has changed.
    fn place(&self, fd: BorrowedFd<'_>) -> Result<String, Errno> {
        let proc = self.proc.as_ref().ok_or(Errno::NOENT)?;
        let dir = rustix::fs::openat(
            proc,
            "self/fd",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::process::fchdir(dir)?;
        Ok(fd.as_raw_fd().to_string())
    }

    /// After mount(2): the root of what is mounted on the target now.
    fn verified(&self, root: &RootDir, target: &MountTarget) -> Result<OwnedFd> {
        let before = mount_id(target.fd.as_fd())?;
        let now = root.resolve(&target.path)?;
        if mount_id(now.as_fd())? == before {
            return Err(Error::attack(format!(
                "{}: the place moved while it was mounted on",
                target.path.display()
            )));
        }
        Ok(now)
    }

    /// Whether the error says that the new API may not be used; it is not tried again then.
    fn is_forbidden(&self, e: &Error) -> bool {
        if !matches!(e.errno(), Some(Errno::PERM | Errno::NOSYS)) {
            return false;
        }
        // EPERM may be honest. The call on an unknown file system type says ENODEV where the API is allowed.
        let allowed = !matches!(
            fsopen("brig-no-such-fs", FsOpenFlags::FSOPEN_CLOEXEC),
            Err(Errno::PERM | Errno::NOSYS)
        ) && !matches!(
            open_tree(rustix::fs::CWD, c"", OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::OPEN_TREE_CLOEXEC),
            Err(Errno::PERM | Errno::NOSYS)
        );
        self.classic.set(!allowed);
        !allowed
    }
}

/// Changes parameters of a mounted file system, given the root of a mount of it.
///
/// # Errors
///
/// The kernel's.
pub fn reconfigure(mount: BorrowedFd<'_>, options: &FsOptions) -> Result<()> {
    let flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH;
    let context = fspick(mount, c"", flags).on("fspick", "")?;
    let fs = context.as_fd();
    set_params(fs, options)?;
    fsconfig_reconfigure(fs).map_err(|e| explained(fs, "", e))
}

fn set_params(fs: BorrowedFd<'_>, options: &FsOptions) -> Result<()> {
    for (key, value) in &options.params {
        match value {
            Some(value) => fsconfig_set_string(fs, key.as_str(), value.as_str()),
            None => fsconfig_set_flag(fs, key.as_str()),
        }
        .map_err(|e| explained(fs, key, e))?;
    }
    Ok(())
}

/// Why attributes could not be changed.
#[derive(Debug, Clone, Copy)]
pub struct SetAttrError {
    /// errno.
    pub errno: Errno,
    /// The call.
    pub call: &'static str,
}

impl SetAttrError {
    /// Names the mount.
    pub fn on(self, path: &Path) -> Error {
        SysError::path(self.call, path, self.errno).into()
    }
}

/// Puts a tree that is mounted nowhere on its target.
///
/// # Errors
///
/// The kernel's.
pub fn attach(tree: BorrowedFd<'_>, target: &MountTarget) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    let moved = move_mount(tree, c"", &target.fd, c"", flags).map_err(|errno| {
        let is_dir = |fd| super::file_type(fd).is_ok_and(|kind| kind == FileType::Directory);
        // A directory and something else do not go together. mount(2) says so; Docker explains it by that word to its users.
        if errno == Errno::INVAL && is_dir(tree) != is_dir(target.fd.as_fd()) {
            return Errno::NOTDIR;
        }
        errno
    });
    Ok(moved.on_path("move_mount", &target.path)?)
}

/// The id of the mount that a path leads into.
///
/// # Errors
///
/// Those of statx(2).
pub fn mount_id_of(path: &Path) -> Result<u64> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).on_path("open", path)?;
    mount_id(fd.as_fd())
}

fn mount_id(fd: BorrowedFd<'_>) -> Result<u64> {
    let stat =
        rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).on("statx", "a mount point")?;
    Ok(stat.stx_mnt_id)
}

/// The kernel's own words about a refused option, which it leaves in the file system context, see fsopen(2).
fn explained(context: BorrowedFd<'_>, key: &str, errno: Errno) -> Error {
    let mut text = Vec::new();
    let mut line = [0_u8; 512];
    while let Ok(n @ 1..) = rustix::io::read(context, &mut line) {
        // Each message is a line after a letter for its weight.
        let said = line.get(2..n).unwrap_or_default();
        text.push(String::from_utf8_lossy(said).trim().to_owned());
    }
    let what = if key.is_empty() { String::new() } else { format!(" {key}") };
    let said = if text.is_empty() { String::new() } else { format!(" ({})", text.join("; ")) };
    Error::host(format!("fsconfig{what}{said}: {}", errno_text(errno))).with_errno(errno)
}

/// Mount attributes as flags of mount(2).
fn classic_flags(attrs: u64) -> MountFlags {
    let mut flags = MountFlags::empty();
    for (attr, flag) in [
        (MOUNT_ATTR_RDONLY, MountFlags::RDONLY),
        (MOUNT_ATTR_NOSUID, MountFlags::NOSUID),
        (MOUNT_ATTR_NODEV, MountFlags::NODEV),
        (MOUNT_ATTR_NOEXEC, MountFlags::NOEXEC),
        (MOUNT_ATTR_NODIRATIME, MountFlags::NODIRATIME),
        // MS_NOSYMFOLLOW, Linux 5.10; rustix has no name for it.
        (MOUNT_ATTR_NOSYMFOLLOW, MountFlags::from_bits_retain(256)),
    ] {
        if attrs & attr != 0 {
            flags |= flag;
        }
    }
    flags
        | match attrs & MOUNT_ATTR__ATIME {
            MOUNT_ATTR_NOATIME => MountFlags::NOATIME,
            MOUNT_ATTR_STRICTATIME => MountFlags::STRICTATIME,
            _ => MountFlags::RELATIME,
        }
}

/// The attributes that statvfs(3) shows.
fn attrs_of_statvfs(flags: rustix::fs::StatVfsMountFlags) -> u64 {
    let bits = flags.bits();
    let mut attrs = 0;
    for (flag, attr) in [
        (1, MOUNT_ATTR_RDONLY),
        (2, MOUNT_ATTR_NOSUID),
        (4, MOUNT_ATTR_NODEV),
        (8, MOUNT_ATTR_NOEXEC),
        (1024, MOUNT_ATTR_NOATIME),
        (2048, MOUNT_ATTR_NODIRATIME),
        (8192, MOUNT_ATTR_NOSYMFOLLOW),
    ] {
        if bits & flag != 0 {
            attrs |= attr;
        }
    }
    // Neither noatime nor relatime: strictatime.
    if bits & (1024 | 4096) == 0 { attrs | MOUNT_ATTR_STRICTATIME } else { attrs }
}

/// Parameters as mount(2) takes them: some are flags of the call, the rest is text.
fn classic_options(options: &FsOptions, attrs: MountAttrs) -> (MountFlags, String) {
    let mut flags = classic_flags(attrs.set);
    let mut data = Vec::new();
    for (key, value) in &options.params {
        let flag = match key.as_str() {
            "ro" => Some(MountFlags::RDONLY),
            "sync" => Some(MountFlags::SYNCHRONOUS),
            "dirsync" => Some(MountFlags::DIRSYNC),
            "lazytime" => Some(MountFlags::LAZYTIME),
            "mand" => Some(MountFlags::PERMIT_MANDATORY_FILE_LOCKING),
            "silent" => Some(MountFlags::SILENT),
            "rw" | "async" | "nolazytime" | "nomand" | "loud" => Some(MountFlags::empty()),
            _ => None,
        };
        match (flag, value) {
            (Some(flag), None) => flags |= flag,
            (_, Some(value)) => data.push(format!("{key}={value}")),
            (None, None) => data.push(key.clone()),
        }
    }
    (flags, data.join(","))
}
