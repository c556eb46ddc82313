//! The init program's system calls, each as a plain function.
//!
//! Addresses (`u64`) in the arguments come from [`Params`](super::abi::Params): they point into the data segment, which
//! brig laid out, so that they are valid for as long as the program runs.

use super::abi::Slice;
use super::arch::{MODE_OFFSET, nr, syscall6};

/// An errno, positive.
pub type Errno = i32;

/// No such file or directory.
pub const ENOENT: Errno = 2;
/// Interrupted system call.
pub const EINTR: Errno = 4;
/// Resource temporarily unavailable.
pub const EAGAIN: Errno = 11;
/// Permission denied.
pub const EACCES: Errno = 13;
/// Is a directory.
pub const EISDIR: Errno = 21;
/// Function not implemented.
pub const ENOSYS: Errno = 38;
/// Operation not permitted.
pub const EPERM: Errno = 1;

/// SIGKILL.
pub const SIGKILL: usize = 9;
/// The signals by which a created container is told to end: HUP, INT, QUIT, TERM.
pub const ENDING_SIGNALS: [usize; 4] = [1, 2, 3, 15];

const AT_FDCWD: usize = -100_isize as usize;
const AT_EACCESS: usize = 0x200;
const X_OK: usize = 1;
const F_SETFD: usize = 2;
const FD_CLOEXEC: usize = 1;
const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;
const CLONE_PIDFD: usize = 0x1000;
const CLONE_PARENT: usize = 0x8000;
const SIGCHLD: usize = 17;
const PR_SET_PDEATHSIG: usize = 1;
const PR_SET_DUMPABLE: usize = 4;
const PR_SET_KEEPCAPS: usize = 8;
const PR_SET_NAME: usize = 15;
const PR_CAPBSET_DROP: usize = 24;
const PR_SET_NO_NEW_PRIVS: usize = 38;
const PR_CAP_AMBIENT: usize = 47;
const PR_CAP_AMBIENT_RAISE: usize = 2;
const TIOCSCTTY: usize = 0x540e;
const SECCOMP_SET_MODE_FILTER: usize = 1;
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// A call whose result is a number.
fn answer(ret: isize) -> Result<usize, Errno> {
    match usize::try_from(ret) {
        Ok(n) => Ok(n),
        // An errno is at most 4095.
        Err(_) => Err((-ret) as Errno),
    }
}

fn prctl(option: usize, a: usize, b: usize) -> Result<usize, Errno> {
    // SAFETY: the options used here take integers, or (PR_SET_NAME) a string of the data segment.
    answer(unsafe { syscall6(nr::PRCTL, [option, a, b, 0, 0, 0]) })
}

/// Ends the process without any clean-up.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: exit_group takes an integer.
        unsafe { syscall6(nr::EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// PR_SET_NAME; a name is a nicety, so failure is ignored.
pub fn set_name(name: u64) {
    if name != 0 {
        let _ = prctl(PR_SET_NAME, name as usize, 0);
    }
}

/// PR_SET_DUMPABLE.
pub fn set_dumpable(yes: bool) {
    let _ = prctl(PR_SET_DUMPABLE, usize::from(yes), 0);
}

/// PR_SET_PDEATHSIG; 0 switches it off.
pub fn set_parent_death_signal(signal: usize) {
    let _ = prctl(PR_SET_PDEATHSIG, signal, 0);
}

/// PR_SET_NO_NEW_PRIVS.
pub fn no_new_privs() -> Result<(), Errno> {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)
}

/// PR_SET_KEEPCAPS.
pub fn keep_capabilities() -> Result<(), Errno> {
    prctl(PR_SET_KEEPCAPS, 1, 0).map(drop)
}

/// PR_CAPBSET_DROP.
pub fn drop_bounding(cap: u64) -> Result<(), Errno> {
    prctl(PR_CAPBSET_DROP, cap as usize, 0).map(drop)
}

/// PR_CAP_AMBIENT_RAISE.
pub fn raise_ambient(cap: u64) -> Result<(), Errno> {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap as usize).map(drop)
}

/// setgroups(2).
pub fn set_groups(groups: Slice) -> Result<(), Errno> {
    // SAFETY: `groups` are `len` ids of four bytes in the data segment, which the kernel only reads.
    answer(unsafe { syscall6(nr::SETGROUPS, [groups.len as usize, groups.ptr as usize, 0, 0, 0, 0]) })
        .map(drop)
}

/// setresgid(2), all three ids.
pub fn set_gid(gid: u32) -> Result<(), Errno> {
    let gid = gid as usize;
    // SAFETY: integers only.
    answer(unsafe { syscall6(nr::SETRESGID, [gid, gid, gid, 0, 0, 0]) }).map(drop)
}

/// setresuid(2), all three ids.
pub fn set_uid(uid: u32) -> Result<(), Errno> {
    let uid = uid as usize;
    // SAFETY: integers only.
    answer(unsafe { syscall6(nr::SETRESUID, [uid, uid, uid, 0, 0, 0]) }).map(drop)
}

/// capset(2) for this thread.
pub fn set_capabilities(effective: u64, permitted: u64, inheritable: u64) -> Result<(), Errno> {
    let header = [CAPABILITY_VERSION_3, 0];
    let data = [
        effective as u32,
        permitted as u32,
        inheritable as u32,
        (effective >> 32) as u32,
        (permitted >> 32) as u32,
        (inheritable >> 32) as u32,
    ];
    // SAFETY: header and data have the layout of version 3 (two u32; two times three u32) and live across the call.
    answer(unsafe { syscall6(nr::CAPSET, [header.as_ptr() as usize, data.as_ptr() as usize, 0, 0, 0, 0]) })
        .map(drop)
}

/// seccomp(2), SECCOMP_SET_MODE_FILTER; a descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER, else 0.
pub fn load_filter(filter: Slice, flags: u32) -> Result<usize, Errno> {
    // struct sock_fprog: a u16, padding, a pointer.
    let program = [filter.len, filter.ptr];
    // SAFETY: `program` is a sock_fprog (little-endian: the low 16 bits of the first word are the length) for
    // `len` instructions in the data segment; both live across the call.
    answer(unsafe {
        syscall6(nr::SECCOMP, [SECCOMP_SET_MODE_FILTER, flags as usize, program.as_ptr() as usize, 0, 0, 0])
    })
}

/// fsopen(2) of procfs.
pub fn open_proc_context() -> Result<i32, Errno> {
    const FSOPEN_CLOEXEC: usize = 1;
    // SAFETY: a live, NUL-terminated string.
    answer(unsafe { syscall6(nr::FSOPEN, [c"proc".as_ptr() as usize, FSOPEN_CLOEXEC, 0, 0, 0, 0]) })
        .map(|fd| fd as i32)
}

/// chdir(2).
pub fn chdir(path: u64) -> Result<(), Errno> {
    // SAFETY: `path` is a NUL-terminated string of the data segment.
    answer(unsafe { syscall6(nr::CHDIR, [path as usize, 0, 0, 0, 0, 0]) }).map(drop)
}

/// Whether the working directory cannot be reached from the root: the kernel then says "(unreachable)" in front.
pub fn cwd_is_outside() -> bool {
    let mut buf = [0_u8; 4096];
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`.
    let n = unsafe { syscall6(nr::GETCWD, [buf.as_mut_ptr() as usize, buf.len(), 0, 0, 0, 0]) };
    // A path too long for the buffer is inside, or the kernel would have said so first; a removed one cannot be judged.
    n < 0 && n != -34 || n > 0 && buf.first() != Some(&b'/')
}

/// Clones this process; the clone has the same parent. Returns 0 in the clone, its pid and a pidfd here.
///
/// clone(2) rather than clone3: seccomp profiles answer ENOSYS to the latter.
pub fn clone_sibling(pidfd: &mut i32) -> Result<usize, Errno> {
    clone(CLONE_PARENT | CLONE_PIDFD | SIGCHLD, pidfd)
}

/// Starts a session.
pub fn start_session() -> Result<(), Errno> {
    // SAFETY: setsid has no arguments.
    answer(unsafe { syscall6(nr::SETSID, [0; 6]) }).map(drop)
}

/// Makes a terminal the controlling one of the session that this process has started.
pub fn take_terminal(fd: i32) -> Result<(), Errno> {
    // SAFETY: this ioctl takes an integer: 0, to take it from no other session.
    answer(unsafe { syscall6(nr::IOCTL, [fd as usize, TIOCSCTTY, 0, 0, 0, 0]) }).map(drop)
}

/// Clones this process; the clone is its child.
pub fn fork(pidfd: &mut i32) -> Result<usize, Errno> {
    clone(CLONE_PIDFD | SIGCHLD, pidfd)
}

fn clone(flags: usize, pidfd: &mut i32) -> Result<usize, Errno> {
    // SAFETY: without CLONE_VM and with stack 0 the child goes on in a copy of this address space and stack; there is
    // one thread, and no lock. `pidfd` is where the kernel writes the descriptor.
    answer(unsafe { syscall6(nr::CLONE, [flags, 0, core::ptr::from_mut(pidfd) as usize, 0, 0, 0]) })
}

/// execve(2); returns only with an errno.
pub fn execve(path: u64, argv: u64, envp: u64) -> Errno {
    // SAFETY: a NUL-terminated string and two null-terminated arrays of such, all in the data segment.
    match answer(unsafe { syscall6(nr::EXECVE, [path as usize, argv as usize, envp as usize, 0, 0, 0]) }) {
        Ok(_) => 0,
        Err(e) => e,
    }
}

/// Whether the file may be executed by the present credentials: a regular file (or device, which execve then refuses) with an x bit that counts.
pub fn executable(path: u64) -> Result<(), Errno> {
    let mut stat = [0_u8; 256];
    // SAFETY: `path` is a NUL-terminated string of the data segment; struct stat is smaller than the buffer.
    answer(unsafe {
        syscall6(nr::NEWFSTATAT, [AT_FDCWD, path as usize, stat.as_mut_ptr() as usize, 0, 0, 0])
    })?;
    if field_u32(&stat, MODE_OFFSET) & S_IFMT == S_IFDIR {
        return Err(EISDIR);
    }
    // SAFETY: as above.
    let ret = unsafe { syscall6(nr::FACCESSAT2, [AT_FDCWD, path as usize, X_OK, AT_EACCESS, 0, 0]) };
    match answer(ret) {
        // A kernel before 5.8, or a filter that does not know the call. Real and effective ids are the same here.
        Err(ENOSYS | EPERM) => {
            // SAFETY: as above.
            answer(unsafe { syscall6(nr::FACCESSAT, [AT_FDCWD, path as usize, X_OK, 0, 0, 0]) }).map(drop)
        }
        other => other.map(drop),
    }
}

fn field_u32(raw: &[u8], offset: usize) -> u32 {
    match raw.get(offset..offset + 4) {
        Some(&[a, b, c, d]) => u32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Opens a file for reading; never waits for a writer.
pub fn open(path: u64) -> Result<i32, Errno> {
    const O_NONBLOCK: usize = 0o4000;
    const O_CLOEXEC: usize = 0o2_000_000;
    // SAFETY: `path` is a NUL-terminated string of the data segment.
    answer(unsafe { syscall6(nr::OPENAT, [AT_FDCWD, path as usize, O_NONBLOCK | O_CLOEXEC, 0, 0, 0]) })
        .map(|fd| fd as i32)
}

/// Whether the file has no name any more.
pub fn is_unlinked(fd: i32) -> bool {
    let mut stat = [0_u8; 256];
    // SAFETY: struct stat is smaller than the buffer.
    let ret = unsafe { syscall6(nr::FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    ret == 0 && field_u32(&stat, super::arch::NLINK_OFFSET) == 0
}

/// Opens a file of a directory for writing.
pub fn open_to_write(dir: i32, name: &core::ffi::CStr) -> Result<i32, Errno> {
    const O_WRONLY: usize = 1;
    const O_CLOEXEC: usize = 0o2_000_000;
    // SAFETY: a NUL-terminated string.
    answer(unsafe {
        syscall6(nr::OPENAT, [dir as usize, name.as_ptr() as usize, O_WRONLY | O_CLOEXEC, 0, 0, 0])
    })
    .map(|fd| fd as i32)
}

/// close(2); a bad descriptor is no matter.
pub fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: the init program owns all its descriptors and uses none after closing it.
        unsafe { syscall6(nr::CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Sets FD_CLOEXEC.
pub fn set_cloexec(fd: i32) -> Result<usize, Errno> {
    // SAFETY: integers only.
    answer(unsafe { syscall6(nr::FCNTL, [fd as usize, F_SETFD, FD_CLOEXEC, 0, 0, 0]) })
}

/// write(2) of bytes of the data segment.
pub fn write(fd: i32, bytes: Slice) -> Result<usize, Errno> {
    // SAFETY: `bytes` lie in the data segment.
    answer(unsafe { syscall6(nr::WRITE, [fd as usize, bytes.ptr as usize, bytes.len as usize, 0, 0, 0]) })
}

/// write(2).
pub fn write_bytes(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: a live slice.
    answer(unsafe { syscall6(nr::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) })
}

/// read(2).
pub fn read(fd: i32, buf: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: a live slice, of which the kernel fills at most the length.
    answer(unsafe { syscall6(nr::READ, [fd as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0, 0]) })
}

/// Reads one byte; `None` at the end or on an error.
pub fn read_byte(fd: i32) -> Option<u8> {
    let mut buf = [0_u8; 1];
    loop {
        match read(fd, &mut buf) {
            Ok(1) => return buf.first().copied(),
            Err(EINTR) => {}
            _ => return None,
        }
    }
}

/// Sends bytes and one descriptor over a socket.
pub fn send_with_fd(socket: i32, bytes: &[u8], fd: i32) {
    #[repr(C)]
    struct Iov {
        base: usize,
        len: usize,
    }
    #[repr(C)]
    struct Control {
        len: usize,
        level: i32,
        kind: i32,
        fd: i32,
        pad: i32,
    }
    #[repr(C)]
    struct Msg {
        name: usize,
        namelen: usize,
        iov: usize,
        iovlen: usize,
        control: usize,
        controllen: usize,
        flags: usize,
    }
    let iov = Iov { base: bytes.as_ptr() as usize, len: bytes.len() };
    // SOL_SOCKET, SCM_RIGHTS; the length does not count the padding.
    let control = Control { len: 20, level: 1, kind: 1, fd, pad: 0 };
    let msg = Msg {
        name: 0,
        namelen: 0,
        iov: core::ptr::from_ref(&iov) as usize,
        iovlen: 1,
        control: core::ptr::from_ref(&control) as usize,
        controllen: size_of::<Control>(),
        flags: 0,
    };
    const MSG_NOSIGNAL: usize = 0x4000;
    // SAFETY: `msg` has the layout of struct msghdr on 64-bit Linux, and all that it points to lives across the call.
    unsafe {
        syscall6(nr::SENDMSG, [socket as usize, core::ptr::from_ref(&msg) as usize, MSG_NOSIGNAL, 0, 0, 0])
    };
}

/// The addresses in a list of addresses.
pub fn addresses(list: Slice) -> impl Iterator<Item = u64> {
    items::<u64>(list).copied()
}

/// The elements of a list in the data segment.
pub fn items<T: 'static>(list: Slice) -> core::slice::Iter<'static, T> {
    if list.len == 0 {
        return [].iter();
    }
    // SAFETY: brig laid out `len` elements of this type at this aligned address of the data segment, which is mapped for
    // the life of the process and not written to.
    unsafe { core::slice::from_raw_parts(list.ptr as *const T, list.len as usize) }.iter()
}

#[repr(C)]
struct SigAction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

extern "C" fn exit_by_signal(signal: i32) {
    exit(128 + signal)
}

fn sigaction(signal: usize, handler: usize) {
    // The handler never returns, so there is nothing to restore; the kernel of x86-64 wants the flag all the same.
    const SA_RESTORER: usize = 0x0400_0000;
    let action = SigAction { handler, flags: SA_RESTORER, restorer: 0, mask: 0 };
    // SAFETY: `action` has the layout of the kernel's struct sigaction and lives across the call.
    unsafe { syscall6(nr::RT_SIGACTION, [signal, core::ptr::from_ref(&action) as usize, 0, 8, 0, 0]) };
}

/// Ends with status 128 + N on this signal.
pub fn handle_with_exit(signal: usize) {
    sigaction(signal, exit_by_signal as *const () as usize);
}

/// SIG_DFL.
pub fn handle_by_default(signal: usize) {
    sigaction(signal, 0);
}

/// SIG_IGN.
pub fn ignore(signal: usize) {
    sigaction(signal, 1);
}
