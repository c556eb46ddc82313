//! What seccomp(2) of this kernel can do. Filters are loaded by the init program, not here.

use rustix::io::Errno;

use crate::process::check;

/// Loads a filter into this thread, for good: an array of `struct sock_filter` in this machine's byte order.
///
/// # Errors
///
/// EINVAL for a program that is none; EACCES without CAP_SYS_ADMIN or no_new_privs.
#[cfg(feature = "load-filter")]
pub fn load(program: &[u8]) -> Result<(), Errno> {
    const SECCOMP_SET_MODE_FILTER: u32 = 1;
    let mut insns: Vec<libc::sock_filter> = program
        .as_chunks()
        .0
        .iter()
        .map(|&[c0, c1, jt, jf, k0, k1, k2, k3]| libc::sock_filter {
            code: u16::from_ne_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_ne_bytes([k0, k1, k2, k3]),
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(insns.len()).map_err(|_| Errno::INVAL)?,
        filter: insns.as_mut_ptr(),
    };
    // SAFETY: a live sock_fprog that points to as many live instructions as it says; the kernel copies them.
    let ret = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check(ret).map(drop)
}

/// Whether the kernel knows a filter flag (`SECCOMP_FILTER_FLAG_*`): asked for with a null program, it answers EFAULT to
/// a flag that it knows and EINVAL to one that it does not.
pub fn knows_flag(flag: u64) -> bool {
    const SECCOMP_SET_MODE_FILTER: u32 = 1;
    const NEW_LISTENER: u64 = 1 << 3;
    const WAIT_KILLABLE_RECV: u64 = 1 << 5;
    // That one is known only together with a listener, which a null program does not get either.
    let flag = if flag == WAIT_KILLABLE_RECV { flag | NEW_LISTENER } else { flag };
    // SAFETY: a null program is refused before anything is done.
    let ret =
        unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, std::ptr::null::<()>()) };
    check(ret).err() == Some(Errno::FAULT)
}

/// Whether the kernel knows an action (`SECCOMP_RET_*`), seccomp(2) SECCOMP_GET_ACTION_AVAIL, Linux 4.14.
pub fn knows_action(action: u32) -> bool {
    const SECCOMP_GET_ACTION_AVAIL: u32 = 2;
    // SAFETY: a live word of four bytes, which is only read.
    let ret = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    ret == 0
}
