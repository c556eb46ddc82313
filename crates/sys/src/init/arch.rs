//! System calls without a libc, for the init program.

use core::arch::asm;

/// System call numbers that the init program uses.
#[cfg(target_arch = "x86_64")]
#[allow(missing_docs, reason = "the names are the calls'")]
pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const FSTAT: usize = 5;
    pub const RT_SIGACTION: usize = 13;
    pub const IOCTL: usize = 16;
    pub const GETPID: usize = 39;
    pub const SENDMSG: usize = 46;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const FCNTL: usize = 72;
    pub const GETCWD: usize = 79;
    pub const CHDIR: usize = 80;
    pub const SETSID: usize = 112;
    pub const SETGROUPS: usize = 116;
    pub const SETRESUID: usize = 117;
    pub const SETRESGID: usize = 119;
    pub const CAPSET: usize = 126;
    pub const PRCTL: usize = 157;
    pub const EXIT_GROUP: usize = 231;
    pub const WAITID: usize = 247;
    pub const OPENAT: usize = 257;
    pub const NEWFSTATAT: usize = 262;
    pub const FACCESSAT: usize = 269;
    pub const PPOLL: usize = 271;
    pub const DUP3: usize = 292;
    pub const PIPE2: usize = 293;
    pub const SECCOMP: usize = 317;
    pub const PIDFD_SEND_SIGNAL: usize = 424;
    pub const FSOPEN: usize = 430;
    pub const CLOSE_RANGE: usize = 436;
    pub const FACCESSAT2: usize = 439;
}

/// System call numbers that the init program uses.
#[cfg(target_arch = "aarch64")]
#[allow(missing_docs, reason = "the names are the calls'")]
pub mod nr {
    pub const GETCWD: usize = 17;
    pub const DUP3: usize = 24;
    pub const FCNTL: usize = 25;
    pub const IOCTL: usize = 29;
    pub const FACCESSAT: usize = 48;
    pub const CHDIR: usize = 49;
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const PIPE2: usize = 59;
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const PPOLL: usize = 73;
    pub const NEWFSTATAT: usize = 79;
    pub const FSTAT: usize = 80;
    pub const CAPSET: usize = 91;
    pub const EXIT_GROUP: usize = 94;
    pub const WAITID: usize = 95;
    pub const RT_SIGACTION: usize = 134;
    pub const SETRESUID: usize = 147;
    pub const SETRESGID: usize = 149;
    pub const SETSID: usize = 157;
    pub const SETGROUPS: usize = 159;
    pub const PRCTL: usize = 167;
    pub const GETPID: usize = 172;
    pub const SENDMSG: usize = 211;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const SECCOMP: usize = 277;
    pub const PIDFD_SEND_SIGNAL: usize = 424;
    pub const FSOPEN: usize = 430;
    pub const CLOSE_RANGE: usize = 436;
    pub const FACCESSAT2: usize = 439;
}

/// Makes a system call with six arguments; the answer is the kernel's, -4095..=-1 for an errno.
///
/// # Safety
///
/// The arguments must be valid for the call; what it writes to must be memory that nothing else uses.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn syscall6(n: usize, a: [usize; 6]) -> isize {
    let [a0, a1, a2, a3, a4, a5] = a;
    let ret: isize;
    // SAFETY: the x86-64 system call convention: rcx and r11 are clobbered, all else is kept. What the call does is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") n.cast_signed() => ret, in("rdi") a0, in("rsi") a1, in("rdx") a2,
            in("r10") a3, in("r8") a4, in("r9") a5, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    ret
}

/// Makes a system call with six arguments; the answer is the kernel's, -4095..=-1 for an errno.
///
/// # Safety
///
/// The arguments must be valid for the call; what it writes to must be memory that nothing else uses.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub unsafe fn syscall6(n: usize, a: [usize; 6]) -> isize {
    let [a0, a1, a2, a3, a4, a5] = a;
    let ret: isize;
    // SAFETY: the arm64 system call convention: only x0 changes. What the call does is the caller's promise.
    unsafe {
        asm!("svc 0", in("x8") n, inlateout("x0") a0.cast_signed() => ret, in("x1") a1, in("x2") a2, in("x3") a3,
            in("x4") a4, in("x5") a5, options(nostack));
    }
    ret
}

/// Where `st_mode` stands in struct stat.
#[cfg(target_arch = "x86_64")]
pub const MODE_OFFSET: usize = 24;
/// Where `st_nlink` stands (its low half, on x86-64).
#[cfg(target_arch = "x86_64")]
pub const NLINK_OFFSET: usize = 16;
/// Where `st_mode` stands in struct stat.
#[cfg(target_arch = "aarch64")]
pub const MODE_OFFSET: usize = 16;
/// Where `st_nlink` stands.
#[cfg(target_arch = "aarch64")]
pub const NLINK_OFFSET: usize = 20;
