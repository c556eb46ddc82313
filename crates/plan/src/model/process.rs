//! A process, in the terms of the system calls that set it up.

use std::path::PathBuf;

/// A process of the container: its init, or what `exec` adds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    /// argv; never empty.
    pub args: Vec<String>,
    /// `NAME=value`, checked, the last of each name kept. Without HOME, the child appends the one that the
    /// container's `/etc/passwd` has for the user, else `/`.
    pub env: Vec<String>,
    /// Working directory: absolute, not resolved.
    pub cwd: PathBuf,
    /// Allocate a pseudo-terminal.
    pub terminal: bool,
    /// Columns and rows of the terminal, when both are given.
    pub console_size: Option<(u16, u16)>,
    /// Who.
    pub user: User,
    /// Capability sets.
    pub capabilities: Capabilities,
    /// Resource limits, `RLIMIT_*` number, soft, hard.
    pub rlimits: Vec<Rlimit>,
    /// PR_SET_NO_NEW_PRIVS.
    pub no_new_privileges: bool,
    /// `oomScoreAdj`; `None` leaves the caller's.
    pub oom_score_adj: Option<i32>,
    /// `scheduler`.
    pub scheduler: Option<Scheduler>,
    /// ioprio_set(2) value: class and level packed.
    pub io_priority: Option<u16>,
    /// CPUs for the time before the container's cgroup is joined, as a list of CPU numbers; `None` when not given.
    pub affinity_initial: Option<Vec<usize>>,
    /// CPUs afterwards; `None` resets to all.
    pub affinity_final: Option<Vec<usize>>,
    /// AppArmor profile for execve.
    pub apparmor_profile: Option<String>,
    /// SELinux label for execve.
    pub selinux_label: Option<String>,
    /// SELinux label for the mounts (`linux.mountLabel`). Like the next three, not part of [`process`](crate::process).
    pub mount_label: Option<String>,
    /// The mount option that it becomes, unless it is `context`.
    pub mount_context: Option<String>,
    /// personality(2) value.
    pub personality: Option<u32>,
    /// `linux.memoryPolicy`.
    pub memory_policy: Option<MemoryPolicy>,
}

/// Credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// User id inside the container.
    pub uid: u32,
    /// Group id inside the container.
    pub gid: u32,
    /// Supplementary groups.
    pub additional_gids: Vec<u32>,
    /// The caller's supplementary groups stay.
    pub keep_groups: bool,
    /// File mode creation mask; 022 unless the config says otherwise.
    pub umask: u32,
}

/// Five capability sets as bit masks, bit N is capability N.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are capabilities(7)'s")]
pub struct Capabilities {
    pub bounding: u64,
    pub effective: u64,
    pub permitted: u64,
    pub inheritable: u64,
    pub ambient: u64,
}

/// A resource limit, see getrlimit(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlimit {
    /// `RLIMIT_*`.
    pub resource: u32,
    /// Soft limit; `u64::MAX` is unlimited.
    pub soft: u64,
    /// Hard limit.
    pub hard: u64,
}

/// Arguments of sched_setattr(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduler {
    /// `SCHED_*`.
    pub policy: u32,
    /// Nice value.
    pub nice: i32,
    /// Real-time priority.
    pub priority: u32,
    /// `SCHED_FLAG_*`.
    pub flags: u64,
    /// Nanoseconds, SCHED_DEADLINE only.
    pub runtime: u64,
    /// Nanoseconds, SCHED_DEADLINE only.
    pub deadline: u64,
    /// Nanoseconds, SCHED_DEADLINE only.
    pub period: u64,
}

/// Arguments of set_mempolicy(2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// `MPOL_*`, with the `MPOL_F_*` flags or'ed in.
    pub mode: u32,
    /// NUMA nodes.
    pub nodes: Vec<u32>,
}
