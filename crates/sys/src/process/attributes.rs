//! What a process may change about itself, and is asked before.

use rustix::io::Errno;
use rustix::process::Pid;

use super::check;
use crate::error::{Context, Result, SysError};

/// PR_SET_PDEATHSIG with SIGKILL, or nothing.
///
/// # Errors
///
/// None that the kernel documents for these values.
pub fn die_with_parent(yes: bool) -> Result<()> {
    let signal = if yes { Some(rustix::process::Signal::KILL) } else { None };
    rustix::process::set_parent_process_death_signal(signal).on("prctl(PR_SET_PDEATHSIG)", "")
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

/// sched_setattr(2) for this process, or for a child that is not reaped, so that its pid is its own.
///
/// # Errors
///
/// Those of sched_setattr(2).
pub fn set_scheduler(of: Option<Pid>, mut attr: SchedAttr) -> Result<()> {
    attr.size = 48;
    let pid = of.map_or(0, |pid| pid.as_raw_nonzero().get());
    // SAFETY: a live sched_attr of the size it names.
    let ret = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attr, 0) };
    check(ret).map(drop).on("sched_setattr", format!("policy {}", attr.policy))
}

/// CPUs that a mask can name here, as many as any kernel is built for (NR_CPUS).
const CPUS: usize = 8192;

/// sched_setaffinity(2) for this process: to the CPUs of the list, or to all that its cpuset has.
///
/// # Errors
///
/// EINVAL when no CPU of the list is in the cpuset, or one is beyond all that a kernel can have.
pub fn set_affinity(cpus: Option<&[usize]>) -> std::result::Result<(), Errno> {
    const BITS: usize = u64::BITS as usize;
    let mut mask = [0_u64; CPUS / BITS];
    match cpus {
        None => mask.fill(u64::MAX),
        Some(cpus) => {
            for cpu in cpus {
                *mask.get_mut(cpu / BITS).ok_or(Errno::INVAL)? |= 1 << (cpu % BITS);
            }
        }
    }
    // SAFETY: `mask` is live and as long as told; the kernel only reads it.
    let ret = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) };
    check(ret).map(drop)
}

/// sched_getaffinity(2) of this process: the numbers of its CPUs.
///
/// # Errors
///
/// None that the kernel documents for a mask of this size.
pub fn affinity() -> std::result::Result<Vec<usize>, Errno> {
    const BITS: usize = u64::BITS as usize;
    let mut mask = [0_u64; CPUS / BITS];
    // SAFETY: `mask` is live and as long as told; the kernel fills part of it.
    let ret = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    check(ret)?;
    let set = |cpu: &usize| mask.get(cpu / BITS).is_some_and(|word| word >> (cpu % BITS) & 1 == 1);
    Ok((0..CPUS).filter(set).collect())
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
