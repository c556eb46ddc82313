//! Mounts, in the terms of the mount API: see mount_setattr(2) and fsconfig(2).

use std::path::PathBuf;

use super::{IdMaps, Propagation};

/// One entry of `mounts`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mount {
    /// Its place in `mounts`, for messages.
    pub index: usize,
    /// Where, in the container: absolute and cleaned.
    pub target: PathBuf,
    /// What.
    pub kind: MountKind,
    /// Attributes of the mount itself.
    pub attrs: MountAttrs,
    /// An option is about attributes, if only to take one back: then `attrs` is all that the mount is to have, see
    /// [`Mount::implied_clear`].
    pub exact: bool,
    /// Attributes for the mount and everything below (`rro` and its kin).
    pub recursive_attrs: MountAttrs,
    /// Propagation changes, applied in order once it is mounted.
    pub propagation: Vec<Propagation>,
    /// An id-mapped mount.
    pub idmap: Option<MountIdMap>,
}

impl Mount {
    /// Attributes to clear besides those that the config names.
    ///
    /// A bind mount has its source's attributes. As soon as the config sets or clears one, callers expect exactly the
    /// ones that it lists, except for the access time, which stays unless it is named. In a user namespace the
    /// source's attributes may be locked (EPERM): then these are to be left alone, while [`MountAttrs::clear`] is a
    /// wish that must not be dropped.
    pub fn implied_clear(&self) -> u64 {
        const EXACT: u64 = MOUNT_ATTR_RDONLY
            | MOUNT_ATTR_NOSUID
            | MOUNT_ATTR_NODEV
            | MOUNT_ATTR_NOEXEC
            | MOUNT_ATTR_NOSYMFOLLOW;
        // With a setting for files there is one for directories as well.
        let directories = if self.attrs.clear & MOUNT_ATTR__ATIME != 0 { MOUNT_ATTR_NODIRATIME } else { 0 };
        match self.kind {
            MountKind::Bind { .. } | MountKind::Remount { .. } if self.exact => {
                (EXACT | directories) & !(self.attrs.set | self.attrs.clear)
            }
            _ => 0,
        }
    }
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq)]
pub enum MountKind {
    /// A bind mount of a host path (absolute).
    Bind {
        /// The host path.
        source: PathBuf,
        /// `rbind`.
        recursive: bool,
    },
    /// A fresh procfs.
    Proc(FsOptions),
    /// A fresh sysfs.
    Sysfs(FsOptions),
    /// A fresh tmpfs. With `tmpcopyup`, what the target held is copied in.
    Tmpfs {
        /// Options.
        options: FsOptions,
        /// `tmpcopyup`.
        copy_up: bool,
    },
    /// The container's view of its cgroups: on v1 one mount per controller, on v2 one cgroup2 mount.
    Cgroup(FsOptions),
    /// Any other file system.
    Other {
        /// `type`.
        fstype: String,
        /// Options.
        options: FsOptions,
    },
    /// Nothing new: `remount`, which changes what is mounted at the target already.
    Remount {
        /// Options for the superblock; `None` with `bind`, when only the mount's attributes change.
        options: Option<FsOptions>,
    },
}

/// Options of a fresh file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FsOptions {
    /// `source`, where the config gives one.
    pub source: Option<String>,
    /// Superblock parameters for fsconfig(2): flags without, strings with a value, in order. `sync`, `dirsync`,
    /// `lazytime` and `mand` are among them as flags, before all others.
    ///
    /// `ro` is a flag here too (mount(2) sets both), but not for the other kinds of file systems and not on `/dev`: block
    /// devices, images and network shares must know that nothing will be written before they are opened. For the
    /// virtual file systems the attribute of the mount says the same, and leaves the superblock, which may be
    /// shared or still has to be filled, writable. With a remount the opposites are there too (`rw`, `async`, …).
    ///
    /// fsconfig(2) takes no value longer than 255 bytes (`lowerdir` of an overlay may be); mount(2) does.
    pub params: Vec<(String, Option<String>)>,
}

/// Read-only.
pub const MOUNT_ATTR_RDONLY: u64 = 0x1;
/// Set-user-ID bits and file capabilities do not count.
pub const MOUNT_ATTR_NOSUID: u64 = 0x2;
/// Device nodes cannot be opened.
pub const MOUNT_ATTR_NODEV: u64 = 0x4;
/// Programs cannot be executed.
pub const MOUNT_ATTR_NOEXEC: u64 = 0x8;
/// All bits of the access-time setting, which is one of the following three.
pub const MOUNT_ATTR__ATIME: u64 = 0x70;
/// Access times are kept when they would be older than the modification, or than a day. The kernel's default.
pub const MOUNT_ATTR_RELATIME: u64 = 0x0;
/// Access times are not kept.
pub const MOUNT_ATTR_NOATIME: u64 = 0x10;
/// Access times are always kept.
pub const MOUNT_ATTR_STRICTATIME: u64 = 0x20;
/// Access times of directories are not kept.
pub const MOUNT_ATTR_NODIRATIME: u64 = 0x80;
/// Ids are mapped.
pub const MOUNT_ATTR_IDMAP: u64 = 0x10_0000;
/// Symbolic links are not followed (Linux 5.10; by mount_setattr since 5.14).
pub const MOUNT_ATTR_NOSYMFOLLOW: u64 = 0x20_0000;

/// Mount attributes as `MOUNT_ATTR_*` of mount_setattr(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MountAttrs {
    /// Bits to set. One of the atime values is in it only where the config names one.
    pub set: u64,
    /// Bits to clear. Holds all of `MOUNT_ATTR__ATIME` where an atime value is chosen.
    pub clear: u64,
}

impl MountAttrs {
    /// Nothing asked for.
    pub fn is_empty(&self) -> bool {
        self.set == 0 && self.clear == 0
    }
}

/// Where the mapping of an id-mapped mount comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountIdMap {
    /// `ridmap`: also for everything below.
    pub recursive: bool,
    /// The mount's own mappings; `None` takes those of the container's user namespace.
    pub maps: Option<IdMaps>,
}
