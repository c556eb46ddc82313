//! Session keyrings, keyctl(2).

use std::ffi::CStr;

use rustix::io::Errno;

use crate::error::{Context, Result};
use crate::process::check;

const KEYCTL_JOIN_SESSION_KEYRING: i32 = 1;
const KEYCTL_SETPERM: i32 = 5;
const KEYCTL_DESCRIBE: i32 = 6;

/// Joins the session keyring of that name, making it if there is none; its serial number. `None` on a kernel without keyrings.
///
/// # Errors
///
/// EDQUOT when the user's quota of keys is used up, EACCES when the ring of that name is not searchable.
pub fn join_session(name: &CStr) -> Result<Option<i32>> {
    // SAFETY: a live C string, which the kernel copies.
    let ret = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, name.as_ptr()) };
    match check(ret) {
        Ok(serial) => Ok(i32::try_from(serial).ok()),
        Err(Errno::NOSYS) => Ok(None),
        Err(e) => Err(e).on("keyctl(KEYCTL_JOIN_SESSION_KEYRING)", name.to_string_lossy()),
    }
}

/// Adds permission bits to a key (`0x80000`: its user may search it; `0x8`: others may).
///
/// # Errors
///
/// Those of keyctl_describe(3) and keyctl_setperm(3).
pub fn add_permission(serial: i32, bits: u32) -> Result<()> {
    let mut description = [0_u8; 1024];
    // SAFETY: the kernel writes at most the length passed.
    let ret = unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_DESCRIBE, serial, description.as_mut_ptr(), description.len())
    };
    check(ret).on("keyctl(KEYCTL_DESCRIBE)", serial.to_string())?;
    // type;uid;gid;permissions in hexadecimal;description
    let text = CStr::from_bytes_until_nul(&description).map(CStr::to_string_lossy).unwrap_or_default();
    let permissions = text.split(';').nth(3).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let permissions = permissions.ok_or(Errno::INVAL).on("keyctl(KEYCTL_DESCRIBE)", text)? | bits;
    // SAFETY: integers only.
    let ret = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_SETPERM, serial, permissions) };
    check(ret).map(drop).on("keyctl(KEYCTL_SETPERM)", serial.to_string())
}
