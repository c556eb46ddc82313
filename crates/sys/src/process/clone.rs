//! Making processes, and executing programs in them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

use super::{check, last_errno};
use crate::error::{Context, Result, SysError};

bitflags::bitflags! {
    /// Flags of clone3(2) that brig uses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CloneFlags: u64 {
        /// New mount namespace.
        const NEWNS = 0x0002_0000;
        /// New cgroup namespace.
        const NEWCGROUP = 0x0200_0000;
        /// New UTS namespace.
        const NEWUTS = 0x0400_0000;
        /// New IPC namespace.
        const NEWIPC = 0x0800_0000;
        /// New user namespace.
        const NEWUSER = 0x1000_0000;
        /// New pid namespace.
        const NEWPID = 0x2000_0000;
        /// New network namespace.
        const NEWNET = 0x4000_0000;
        /// New time namespace, for children.
        const NEWTIME = 0x0000_0080;
        /// The child gets the caller's parent.
        const PARENT = 0x0000_8000;
    }
}

/// A process made by [`clone_process`].
#[derive(Debug)]
pub struct Child {
    /// Its pid in the caller's pid namespace. Only for messages and files: signals go to `pidfd`.
    pub pid: Pid,
    /// The pidfd that clone3 returned.
    pub pidfd: OwnedFd,
}

/// Which side of a clone the caller is.
#[derive(Debug)]
pub enum Cloned {
    /// The side that made the child.
    Parent(Child),
    /// The child.
    Child,
}

/// struct clone_args of linux/sched.h, 88 bytes since Linux 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// clone3(2) (Linux 5.3; CLONE_INTO_CGROUP 5.7): a copy of this process, with a pidfd, born inside `cgroup` if one is given.
///
/// The caller must have one thread, since the child goes on in a copy of this address space where a lock that another
/// thread held would stay held: brig has no thread anywhere (`std::thread::spawn` is banned by clippy.toml), and debug
/// builds check it here.
///
/// # Errors
///
/// Those of clone3(2); EBUSY when `cgroup` may not hold processes.
pub fn clone_process(flags: CloneFlags, cgroup: Option<BorrowedFd<'_>>) -> Result<Cloned> {
    debug_assert!(has_one_thread(), "clone_process in a process with several threads");
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: flags.bits() | CLONE_PIDFD,
        pidfd: std::ptr::from_mut(&mut pidfd) as u64,
        // With CLONE_PARENT the kernel takes the caller's own exit signal and wants none here.
        exit_signal: if flags.contains(CloneFlags::PARENT) {
            0
        } else {
            u64::from(libc::SIGCHLD.unsigned_abs())
        },
        ..CloneArgs::default()
    };
    if let Some(fd) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(fd.as_raw_fd().unsigned_abs());
    }
    // SAFETY: `args` is a live, initialised clone_args of the size passed. Stack 0 without CLONE_VM: the child runs on a
    // copy of this stack. One thread: see above. `pidfd` is written by the kernel before the call returns.
    let ret = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match ret {
        -1 => Err(SysError::new("clone3", format!("{flags:?}"), last_errno())),
        0 => Ok(Cloned::Child),
        pid => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let Some(pid) = pid else {
                return Err(SysError::new("clone3", "", Errno::INVAL));
            };
            // SAFETY: the kernel has just opened this descriptor for us; nothing else knows it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent(Child { pid, pidfd }))
        }
    }
}

fn has_one_thread() -> bool {
    // One link for `.`, one in the parent, one for each thread.
    rustix::fs::stat("/proc/self/task").map_or(true, |s| s.st_nlink <= 3)
}

/// Ends the process at once: no exit handler, no buffer of the parent's flushed a second time.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

/// execveat(2) of an open file; returns only with an error.
pub fn execute_fd(program: BorrowedFd<'_>, args: &[CString], env: &[CString]) -> SysError {
    let argv = pointers(args);
    let envp = pointers(env);
    // SAFETY: an empty path with AT_EMPTY_PATH names the descriptor; both arrays hold pointers to live C strings and
    // end with null.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    SysError::new("execveat", "", check(ret).err().unwrap_or(Errno::IO))
}

/// execve(2); returns only with an error.
pub fn execute(program: &CStr, args: &[CString], env: &[CString]) -> SysError {
    let argv = pointers(args);
    let envp = pointers(env);
    // SAFETY: a live C string, and two arrays of pointers to live C strings that end with null.
    let ret = unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    let errno = check(libc::c_long::from(ret)).err().unwrap_or(Errno::IO);
    SysError::new("execve", program.to_string_lossy(), errno)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// What kind of namespace a file is, ioctl_ns(2) NS_GET_NSTYPE, Linux 4.11.
///
/// # Errors
///
/// ENOTTY for a file that is none.
pub fn namespace_type(fd: BorrowedFd<'_>) -> std::result::Result<CloneFlags, Errno> {
    const NS_GET_NSTYPE: libc::Ioctl = 0xb703;
    // SAFETY: this ioctl has no argument.
    let ret = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE) };
    let kind = check(libc::c_long::from(ret))?;
    // CLONE_NEW*, of which none is negative.
    Ok(CloneFlags::from_bits_retain(kind.unsigned_abs()))
}

/// unshare(2): new namespaces for this process, or with NEWPID and NEWTIME for its children.
///
/// # Errors
///
/// EPERM, ENOSPC when the limit of namespaces is reached.
pub fn unshare(flags: CloneFlags) -> Result<()> {
    let bits = i32::try_from(flags.bits()).unwrap_or(0);
    // SAFETY: the flags are namespaces only (no CLONE_FILES), so no descriptor changes its meaning.
    let ret = unsafe { libc::unshare(bits) };
    check(libc::c_long::from(ret)).map(drop).on("unshare", format!("{flags:?}"))
}
