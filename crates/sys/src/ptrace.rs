//! ptrace(2), for tests that stop a command at each of its system calls. Not in the program: see the feature `ptrace`.

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Context, Result};
use crate::process::check;

/// Why a traced task stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is about to make a system call, or has made one: stops of a task alternate.
    Syscall,
    /// It made a child, which is traced too, or executed a program.
    Event,
    /// A signal is to be delivered.
    Signal(i32),
    /// It has ended, with this wait status.
    Ended(i32),
}

/// Traces a process that has stopped itself with SIGSTOP right after its fork, and all that descend from it. Tasks are released
/// unharmed when this process ends.
///
/// # Errors
///
/// EPERM when it is traced already.
pub fn seize(pid: Pid) -> Result<()> {
    const PTRACE_SEIZE: u32 = 0x4206;
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC;
    // SAFETY: no address; options are an integer.
    let ret = unsafe { libc::ptrace(PTRACE_SEIZE, pid.as_raw_nonzero().get(), 0, options) };
    check(ret).map(drop).on("ptrace(PTRACE_SEIZE)", pid.as_raw_nonzero().to_string())
}

/// Lets a stopped task go on to its next system call, with a signal if that is not 0.
///
/// # Errors
///
/// ESRCH when it has been killed meanwhile.
pub fn go_on(pid: Pid, signal: i32) -> std::result::Result<(), Errno> {
    // SAFETY: no address; the signal is an integer.
    let ret = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid.as_raw_nonzero().get(), 0, signal) };
    check(ret).map(drop)
}

/// Waits for the next stop of any traced task; `None` when there is none left.
///
/// # Errors
///
/// Those of waitpid(2) but ECHILD.
pub fn wait() -> Result<Option<(Pid, Stop)>> {
    let mut status = 0;
    // SAFETY: `status` is where the kernel writes an int.
    let ret = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    let pid = match check(libc::c_long::from(ret)) {
        Ok(pid) => i32::try_from(pid).ok().and_then(Pid::from_raw),
        Err(Errno::CHILD) => return Ok(None),
        Err(e) => return Err(e).on("waitpid", ""),
    };
    let Some(pid) = pid else { return Ok(None) };
    if !libc::WIFSTOPPED(status) {
        return Ok(Some((pid, Stop::Ended(status))));
    }
    let stop = match (libc::WSTOPSIG(status), status >> 16) {
        (signal, 0) if signal == libc::SIGTRAP | 0x80 => Stop::Syscall,
        (signal, 0) => Stop::Signal(signal),
        _ => Stop::Event,
    };
    Ok(Some((pid, stop)))
}

/// A system call that a task is about to make, or has just made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Its number.
    Entry(u64),
    /// Its result.
    Exit(i64),
    /// Neither.
    None,
}

/// Asks about the stop that a task is in (PTRACE_GET_SYSCALL_INFO, Linux 5.3).
///
/// # Errors
///
/// ESRCH when it has been killed meanwhile.
pub fn call(pid: Pid) -> std::result::Result<Call, Errno> {
    const PTRACE_GET_SYSCALL_INFO: u32 = 0x420e;
    const ENTRY: u8 = 1;
    const EXIT: u8 = 2;
    // struct ptrace_syscall_info: op, padding, arch, two addresses, then what belongs to the op.
    let mut info = [0_u64; 11];
    // SAFETY: the kernel writes at most the size passed.
    let ret = unsafe {
        libc::ptrace(
            PTRACE_GET_SYSCALL_INFO,
            pid.as_raw_nonzero().get(),
            size_of_val(&info),
            info.as_mut_ptr(),
        )
    };
    check(ret)?;
    let [head, _, _, value, ..] = info;
    Ok(match head.to_le_bytes() {
        [ENTRY, ..] => Call::Entry(value),
        [EXIT, ..] => Call::Exit(value.cast_signed()),
        _ => Call::None,
    })
}

/// Makes the system call that the task is about to make fail: at its entry the call is replaced by one that does not exist, at
/// its exit [`set_result`] puts in the errno.
///
/// # Errors
///
/// ESRCH when it has been killed meanwhile.
#[cfg(target_arch = "x86_64")]
pub fn skip_call(pid: Pid) -> std::result::Result<(), Errno> {
    change_registers(pid, |registers| registers.orig_rax = u64::MAX)
}

/// See [`skip_call`].
///
/// # Errors
///
/// ESRCH when it has been killed meanwhile.
#[cfg(target_arch = "x86_64")]
pub fn set_result(pid: Pid, result: i64) -> std::result::Result<(), Errno> {
    change_registers(pid, |registers| registers.rax = result.cast_unsigned())
}

#[cfg(target_arch = "x86_64")]
fn change_registers(
    pid: Pid,
    change: impl FnOnce(&mut libc::user_regs_struct),
) -> std::result::Result<(), Errno> {
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: all-zero is a valid user_regs_struct: integers only.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a user_regs_struct.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers) })?;
    change(&mut registers);
    // SAFETY: the kernel reads a user_regs_struct.
    check(unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, &raw const registers) }).map(drop)
}
