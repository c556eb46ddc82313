//! A program's entry without what the standard library does before `main`.
//!
//! That asks for the bounds of the stack (by reading /proc/self/maps), maps a second one and installs two handlers, all to
//! turn an overflow of the stack into a message: a tenth of a millisecond for every command. Here it stays a SIGSEGV. What
//! else the standard library sees to is done here too: file descriptors 0 to 2 are open, and SIGPIPE is ignored.

use std::ffi::{CStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Makes a function the entry of the program: `program!(path::to::main)`, in a crate that is `#![no_main]`. It is given the
/// words of the command line, the program's name first, and returns the exit status.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        /// Called by the C library.
        // SAFETY: the one `main` of the program, as the C library declares it.
        #[unsafe(no_mangle)]
        extern "C" fn main(argc: std::ffi::c_int, argv: *const *const std::ffi::c_char) -> std::ffi::c_int {
            // SAFETY: the C library passes what execve(2) was given.
            let words = unsafe { $crate::program::words(argc, argv) };
            $crate::program::prepare();
            let status: u8 = $main(words);
            std::ffi::c_int::from(status)
        }
    };
}

/// The words of the command line.
///
/// # Safety
///
/// `argv` has `argc` pointers to strings that end with a zero.
#[must_use]
pub unsafe fn words(argc: c_int, argv: *const *const c_char) -> Vec<OsString> {
    let count = usize::try_from(argc).unwrap_or(0);
    (0..count)
        .map(|index| {
            // SAFETY: within the array, by the caller's promise.
            let word = unsafe { argv.add(index) };
            // SAFETY: one of its pointers.
            let word = unsafe { *word };
            // SAFETY: a string that ends with a zero and lives as long as the program.
            let word = unsafe { CStr::from_ptr(word) };
            OsString::from_vec(word.to_bytes().to_vec())
        })
        .collect()
}

/// Sees to the file descriptors and the signal. What cannot be done for want of memory or descriptors will show when they
/// are needed.
pub fn prepare() {
    open_standard_fds();
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Whatever is opened later must not become standard output by having the lowest free number.
fn open_standard_fds() {
    let (stdin, stdout, stderr) = (rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr());
    let mut fds = [stdin, stdout, stderr].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()));
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut fds, Some(&now)) == Err(Errno::INTR) {}
    for closed in fds.iter().filter(|fd| fd.revents().contains(PollFlags::NVAL)) {
        let _ = closed;
        // The lowest free number is this one: those below it are open by now.
        if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
            std::mem::forget(null);
        }
    }
}
