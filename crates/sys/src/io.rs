//! Whole writes.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Writes all of it.
///
/// # Errors
///
/// The first errno other than EINTR.
pub fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or(&[]),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
