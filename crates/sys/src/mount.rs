//! Mount calls that rustix lacks.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::process::check;

/// struct mount_attr of mount_setattr(2).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MountAttr {
    /// `MOUNT_ATTR_*` to set.
    pub set: u64,
    /// `MOUNT_ATTR_*` to clear.
    pub clear: u64,
    /// `MS_SHARED`, `MS_SLAVE`, `MS_PRIVATE` or `MS_UNBINDABLE`; 0 leaves the propagation alone.
    pub propagation: u64,
    /// User namespace of MOUNT_ATTR_IDMAP.
    pub userns_fd: u64,
}

/// mount_setattr(2), Linux 5.12. An empty path means the mount that `dir` is the root of.
///
/// # Errors
///
/// ENOSYS on an older kernel, EPERM for a flag that is locked, EINVAL for a flag or file system that cannot.
pub fn mount_setattr(
    dir: BorrowedFd<'_>,
    path: &CStr,
    recursive: bool,
    attr: &MountAttr,
) -> Result<(), Errno> {
    const AT_RECURSIVE: i32 = 0x8000;
    let mut flags = libc::AT_SYMLINK_NOFOLLOW;
    if path.is_empty() {
        flags |= libc::AT_EMPTY_PATH;
    }
    if recursive {
        flags |= AT_RECURSIVE;
    }
    // SAFETY: a live C string and a live mount_attr of the size passed.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    };
    check(ret).map(drop)
}
