//! What seccomp(2) of this kernel can do. Filters are loaded by the init program, not here.

use rustix::io::Errno;

use crate::process::check;

/// Whether the kernel knows a filter flag (`SECCOMP_FILTER_FLAG_*`): asked for with a null program, it answers EFAULT to
/// a flag that it knows and EINVAL to one that it does not.
pub fn knows_flag(flag: u64) -> bool {
    const SECCOMP_SET_MODE_FILTER: u32 = 1;
    // SAFETY: a null program is refused before anything is done.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SECCOMP_SET_MODE_FILTER,
            flag,
            std::ptr::null::<()>(),
        )
    };
    check(ret).err() == Some(Errno::FAULT)
}

/// Whether the kernel knows an action (`SECCOMP_RET_*`), seccomp(2) SECCOMP_GET_ACTION_AVAIL, Linux 4.14.
pub fn knows_action(action: u32) -> bool {
    const SECCOMP_GET_ACTION_AVAIL: u32 = 2;
    // SAFETY: a live word of four bytes, which is only read.
    let ret = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    ret == 0
}
