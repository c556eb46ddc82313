//! `process`: what runs in the container, and as whom.

object! {
    /// The container's process, or one that `exec` adds.
    pub struct Process {
        /// Allocate a pseudo-terminal.
        pub terminal: bool = "terminal",
        /// Size of that terminal.
        pub console_size: Option<ConsoleSize> = "consoleSize",
        /// User and groups.
        pub user: User = "user" always,
        /// argv; `args[0]` is looked up in the PATH of `env`.
        pub args: Vec<String> = "args",
        /// Environment, `NAME=value`.
        pub env: Vec<String> = "env",
        /// Working directory, absolute.
        pub cwd: String = "cwd" always,
        /// Capability sets. Absent, and all sets are empty.
        pub capabilities: Option<Capabilities> = "capabilities",
        /// Resource limits, see getrlimit(2).
        pub rlimits: Vec<Rlimit> = "rlimits",
        /// Set the no_new_privs bit, see prctl(2).
        pub no_new_privileges: bool = "noNewPrivileges",
        /// AppArmor profile.
        pub apparmor_profile: String = "apparmorProfile",
        /// For `/proc/PID/oom_score_adj`.
        pub oom_score_adj: Option<i32> = "oomScoreAdj",
        /// For sched_setattr(2).
        pub scheduler: Option<Scheduler> = "scheduler",
        /// SELinux label.
        pub selinux_label: String = "selinuxLabel",
        /// For ioprio_set(2).
        pub io_priority: Option<IoPriority> = "ioPriority",
        /// CPUs of an `exec`.
        pub exec_cpu_affinity: Option<ExecCpuAffinity> = "execCPUAffinity",
    }
    ignores "commandLine";

    /// `process.consoleSize`, in characters.
    pub struct ConsoleSize {
        /// Rows.
        pub height: u64 = "height" always,
        /// Columns.
        pub width: u64 = "width" always,
    }

    /// `process.user`; ids are those inside the container.
    pub struct User {
        /// User id.
        pub uid: u32 = "uid" always,
        /// Group id.
        pub gid: u32 = "gid" always,
        /// File mode creation mask.
        pub umask: Option<u32> = "umask",
        /// Supplementary groups.
        pub additional_gids: Vec<u32> = "additionalGids",
    }
    ignores "username";

    /// `process.capabilities`: names such as `CAP_KILL`, see capabilities(7).
    pub struct Capabilities {
        /// What can be gained at all.
        pub bounding: Vec<String> = "bounding",
        /// What the kernel checks.
        pub effective: Vec<String> = "effective",
        /// What survives execve(2) of a file that names it too.
        pub inheritable: Vec<String> = "inheritable",
        /// What may become effective.
        pub permitted: Vec<String> = "permitted",
        /// What survives execve(2) of an unprivileged file.
        pub ambient: Vec<String> = "ambient",
    }

    /// One of `process.rlimits`.
    pub struct Rlimit {
        /// Name such as `RLIMIT_NOFILE`.
        pub kind: String = "type" always,
        /// Hard limit.
        pub hard: u64 = "hard" always,
        /// Soft limit.
        pub soft: u64 = "soft" always,
    }

    /// `process.scheduler`, see sched_setattr(2).
    pub struct Scheduler {
        /// Name such as `SCHED_FIFO`.
        pub policy: String = "policy" always,
        /// Nice value, for SCHED_OTHER and SCHED_BATCH.
        pub nice: i32 = "nice",
        /// Static priority, for SCHED_FIFO and SCHED_RR.
        pub priority: i32 = "priority",
        /// Names such as `SCHED_FLAG_RESET_ON_FORK`.
        pub flags: Vec<String> = "flags",
        /// Nanoseconds, for SCHED_DEADLINE.
        pub runtime: u64 = "runtime",
        /// Nanoseconds, for SCHED_DEADLINE.
        pub deadline: u64 = "deadline",
        /// Nanoseconds, for SCHED_DEADLINE.
        pub period: u64 = "period",
    }

    /// `process.ioPriority`, see ioprio_set(2).
    pub struct IoPriority {
        /// Name such as `IOPRIO_CLASS_BE`.
        pub class: String = "class" always,
        /// 0 (highest) to 7.
        pub priority: i64 = "priority" always,
    }

    /// `process.execCPUAffinity`: lists such as `0-3,7`, see cpuset(7).
    pub struct ExecCpuAffinity {
        /// CPUs until the process has joined the container's cgroup.
        pub initial: String = "initial",
        /// CPUs from then on.
        pub final_: String = "final",
    }
}
