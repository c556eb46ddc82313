//! Processes: making them, naming them by pidfd, signals, and what a process may change about itself.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

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

/// The errno of the libc call that has just failed.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Turns libc's -1 into an errno.
pub(crate) fn check(ret: libc::c_long) -> std::result::Result<libc::c_long, Errno> {
    if ret == -1 { Err(last_errno()) } else { Ok(ret) }
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

/// What an ended child left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It called exit with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl ExitStatus {
    /// As a shell gives it: the status, or 128 + the signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Signaled(signal) => 128 + signal,
        }
    }

    /// From wait(2)'s status word.
    pub fn from_wait_status(status: i32) -> Self {
        let signal = status & 0x7f;
        if signal == 0 { Self::Exited((status >> 8) & 0xff) } else { Self::Signaled(signal) }
    }
}

/// waitid(2) on a child's pidfd (Linux 5.4): reaps it. `None` when it has not ended and `block` is false.
///
/// # Errors
///
/// ECHILD when the process is not a child of the caller.
pub fn reap(pidfd: BorrowedFd<'_>, block: bool) -> Result<Option<ExitStatus>> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = if block { WaitIdOptions::EXITED } else { WaitIdOptions::EXITED | WaitIdOptions::NOHANG };
    let status = loop {
        match waitid(WaitId::PidFd(pidfd), options) {
            Err(Errno::INTR) => {}
            other => break other.on("waitid", "a container process")?,
        }
    };
    Ok(status.map(|s| match (s.exit_status(), s.terminating_signal()) {
        (Some(status), _) => ExitStatus::Exited(status),
        (_, signal) => ExitStatus::Signaled(signal.unwrap_or(libc::SIGKILL)),
    }))
}

/// Sends a signal by number to the process that `pidfd` names; 0 only asks whether it may.
///
/// # Errors
///
/// ESRCH when it has ended, EINVAL for a number that is no signal.
pub fn signal(pidfd: BorrowedFd<'_>, signal: i32) -> std::result::Result<(), Errno> {
    // SAFETY: integers and a null siginfo.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    check(ret).map(drop)
}

/// Gives every signal its default disposition and unblocks all: what a program is started with must not depend on the caller.
pub fn reset_signals() {
    // SAFETY: all-zero is a sigaction with SIG_DFL and no flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    for number in 1..=64 {
        // Fails for KILL, STOP and the two that the C library keeps for itself: those cannot be ignored or blocked either.
        // SAFETY: `default` is a live sigaction; the old one is not asked for.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, number, &raw const default, std::ptr::null::<()>(), 8)
        };
    }
    set_signal_mask(0);
}

/// Blocks exactly the signals of this mask (bit N-1 is signal N); the mask before.
pub fn set_signal_mask(mask: u64) -> u64 {
    let mut old = 0_u64;
    // SAFETY: two live words of eight bytes, the size of the kernel's sigset_t. The raw call also reaches the signals that
    // the C library reserves.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut old, 8) };
    old
}

/// A descriptor from which the signals of `mask` are read (signalfd4(2)); they must be blocked.
///
/// # Errors
///
/// Those of signalfd(2).
pub fn signal_fd(mask: u64) -> Result<OwnedFd> {
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: -1 makes a new descriptor; `mask` is a live word of eight bytes.
    let ret = unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8, flags) };
    let fd = check(ret).on("signalfd", "")?;
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)) })
}

/// The number of the next signal in a [`signal_fd`]; `None` when there is none.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<i32> {
    // struct signalfd_siginfo: 128 bytes, ssi_signo first.
    let mut info = [0_u8; 128];
    match rustix::io::read(fd, &mut info) {
        Ok(128) => {
            let [a, b, c, d, ..] = info;
            i32::try_from(u32::from_ne_bytes([a, b, c, d])).ok()
        }
        _ => None,
    }
}

/// Marks every descriptor from `first` on close-on-exec (close_range(2), CLOSE_RANGE_CLOEXEC, Linux 5.11; before that
/// kernel they are listed in `/proc/self/fd`).
///
/// # Errors
///
/// When `/proc/self/fd` has to be read and cannot be.
pub fn cloexec_from(first: RawFd) -> Result<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: integers only; the descriptors stay open in this process.
    let ret =
        unsafe { libc::syscall(libc::SYS_close_range, first.unsigned_abs(), u32::MAX, CLOSE_RANGE_CLOEXEC) };
    if ret == 0 {
        return Ok(());
    }
    let dir = std::fs::read_dir("/proc/self/fd").map_err(|e| {
        SysError::path("open", "/proc/self/fd", Errno::from_io_error(&e).unwrap_or(Errno::IO))
    })?;
    for entry in dir.flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok())
            && fd >= first
        {
            // SAFETY: a flag of a descriptor that is open or, if the listing closed it in between, answers EBADF.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// Clears close-on-exec.
///
/// # Errors
///
/// EBADF when the descriptor is not open.
pub fn inherit(fd: RawFd) -> std::result::Result<(), Errno> {
    // SAFETY: a flag of a descriptor; EBADF if it is not open.
    check(libc::c_long::from(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })).map(drop)
}

/// Takes over a descriptor that the caller of this program opened for it (stdio, `--preserve-fds`, `LISTEN_FDS`).
///
/// # Errors
///
/// EBADF when it is not open.
pub fn borrow_inherited(fd: RawFd) -> std::result::Result<BorrowedFd<'static>, Errno> {
    // SAFETY: asks for a flag only.
    check(libc::c_long::from(unsafe { libc::fcntl(fd, libc::F_GETFD) }))?;
    // SAFETY: it is open, and brig never closes a descriptor that it did not open itself.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// PR_SET_PDEATHSIG with SIGKILL, or nothing.
///
/// # Errors
///
/// None that the kernel documents for these values.
pub fn die_with_parent(yes: bool) -> Result<()> {
    let signal = if yes { Some(rustix::process::Signal::KILL) } else { None };
    rustix::process::set_parent_process_death_signal(signal).on("prctl(PR_SET_PDEATHSIG)", "")
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

/// prlimit(2) of this process, or of a child that is not reaped, so that its pid is its own. `u64::MAX` is unlimited.
///
/// # Errors
///
/// EPERM for a hard limit above the present one without CAP_SYS_RESOURCE; EINVAL for a soft limit above the hard one.
pub fn set_rlimit_of(pid: Pid, resource: u32, soft: u64, hard: u64) -> std::result::Result<(), Errno> {
    // struct rlimit64, whose RLIM64_INFINITY is all ones.
    let limit = [soft, hard];
    // SAFETY: a live rlimit64; the old one is not asked for.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            pid.as_raw_nonzero().get(),
            resource,
            limit.as_ptr(),
            std::ptr::null::<u64>(),
        )
    };
    check(ret).map(drop)
}

/// personality(2).
///
/// # Errors
///
/// Those of personality(2).
pub fn set_personality(persona: u32) -> Result<()> {
    // SAFETY: an integer.
    let ret = unsafe { libc::personality(libc::c_ulong::from(persona)) };
    check(libc::c_long::from(ret)).map(drop).on("personality", format!("{persona:#x}"))
}

/// ioprio_set(2) for this process: class in bits 13 to 15, level below.
///
/// # Errors
///
/// EPERM for the real-time class without CAP_SYS_ADMIN or CAP_SYS_NICE.
pub fn set_io_priority(priority: u16) -> Result<()> {
    const IOPRIO_WHO_PROCESS: i32 = 1;
    // SAFETY: integers only.
    let ret = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, i32::from(priority)) };
    check(ret).map(drop).on("ioprio_set", priority.to_string())
}

/// struct sched_attr of linux/sched/types.h, its first version.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SchedAttr {
    /// 48.
    pub size: u32,
    /// SCHED_*.
    pub policy: u32,
    /// SCHED_FLAG_*.
    pub flags: u64,
    /// Nice value, SCHED_OTHER and SCHED_BATCH.
    pub nice: i32,
    /// Static priority, SCHED_FIFO and SCHED_RR.
    pub priority: u32,
    /// Nanoseconds, SCHED_DEADLINE.
    pub runtime: u64,
    /// Nanoseconds, SCHED_DEADLINE.
    pub deadline: u64,
    /// Nanoseconds, SCHED_DEADLINE.
    pub period: u64,
}

/// sched_setattr(2) for this process.
///
/// # Errors
///
/// Those of sched_setattr(2).
pub fn set_scheduler(mut attr: SchedAttr) -> Result<()> {
    attr.size = 48;
    // SAFETY: a live sched_attr of the size it names.
    let ret = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    check(ret).map(drop).on("sched_setattr", format!("policy {}", attr.policy))
}

/// set_mempolicy(2) for this process; `nodes` are NUMA node numbers.
///
/// # Errors
///
/// Those of set_mempolicy(2); EINVAL for a node above 65535.
pub fn set_memory_policy(mode: u32, nodes: &[u32]) -> Result<()> {
    const BITS: usize = u64::BITS as usize;
    let highest = nodes.iter().max().map_or(0, |n| *n as usize + 1);
    if highest > 65536 {
        return Err(SysError::new("set_mempolicy", format!("{nodes:?}"), Errno::INVAL));
    }
    let mut mask = vec![0_u64; highest.div_ceil(BITS)];
    for node in nodes.iter().map(|n| *n as usize) {
        if let Some(word) = mask.get_mut(node / BITS) {
            *word |= 1 << (node % BITS);
        }
    }
    // The kernel looks at one bit less than it is told.
    let bits = if mask.is_empty() { 0 } else { mask.len() * BITS + 1 };
    let mask = if mask.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: `mask` is null with no bits, or points to as many bits as are told.
    let ret = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    check(ret).map(drop).on("set_mempolicy", format!("mode {mode:#x} nodes {nodes:?}"))
}

/// What PIDFD_GET_INFO (Linux 6.13, exit status 6.15) says about a process, also one that is not the caller's child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PidfdInfo {
    /// How it ended, once it was reaped.
    pub exit: Option<ExitStatus>,
}

/// struct pidfd_info, first 72 bytes (Linux 6.15).
#[repr(C)]
#[derive(Default)]
struct RawPidfdInfo {
    mask: u64,
    cgroupid: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

/// Asks the kernel how the process ended; `None` where it does not say (an older kernel, or the process is not reaped yet).
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> Option<PidfdInfo> {
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    const SIZE: libc::c_ulong = 64;
    // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
    const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (SIZE << 16) | (0xff << 8) | 11;
    const _: () = assert!(size_of::<RawPidfdInfo>() == 64);
    let mut info = RawPidfdInfo { mask: PIDFD_INFO_EXIT, ..RawPidfdInfo::default() };
    // SAFETY: the request names the size of `info`, which the kernel fills at most.
    let ret = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    if ret == -1 {
        return None;
    }
    let exit = (info.mask & PIDFD_INFO_EXIT != 0).then(|| ExitStatus::from_wait_status(info.exit_code));
    Some(PidfdInfo { exit })
}

/// Duplicates onto a fixed descriptor (dup2 semantic, not close-on-exec), as stdio needs it.
///
/// # Errors
///
/// EBADF.
pub fn place_fd(from: impl AsFd, to: RawFd) -> Result<()> {
    let from = from.as_fd().as_raw_fd();
    if from == to {
        return inherit(to).on("fcntl(F_SETFD)", to.to_string());
    }
    // SAFETY: integers only; `to` is 0, 1 or 2, or a number that the caller has kept free.
    let ret = unsafe { libc::dup2(from, to) };
    check(libc::c_long::from(ret)).map(drop).on("dup2", to.to_string())
}
/// The highest capability that this kernel knows (`/proc/sys/kernel/cap_last_cap`, asked without `/proc`).
pub fn last_capability() -> u32 {
    const CAP_CHECKPOINT_RESTORE: u32 = 40;
    let known = |cap: u32| {
        // SAFETY: asks for one bit of this process's bounding set.
        unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(cap)) != -1 }
    };
    // Up from the last one of Linux 5.9; older kernels are searched downwards.
    let mut last = CAP_CHECKPOINT_RESTORE;
    while last > 0 && !known(last) {
        last -= 1;
    }
    while last < 63 && known(last + 1) {
        last += 1;
    }
    last
}
