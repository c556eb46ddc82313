//! `linux.seccomp`: the system call filter.

object! {
    /// A filter: the first rule that matches decides, else the default.
    pub struct Seccomp {
        /// Name such as `SCMP_ACT_ERRNO`.
        pub default_action: String = "defaultAction" always,
        /// Error number of a default action that takes one; EPERM when absent.
        pub default_errno_ret: Option<u32> = "defaultErrnoRet",
        /// Names such as `SCMP_ARCH_X86_64`, besides the native one.
        pub architectures: Vec<String> = "architectures",
        /// Names such as `SECCOMP_FILTER_FLAG_LOG`. An absent list and an empty one differ.
        pub flags: Option<Vec<String>> = "flags",
        /// Unix socket that gets the listener of `SCMP_ACT_NOTIFY`.
        pub listener_path: String = "listenerPath",
        /// Passed on to that socket.
        pub listener_metadata: String = "listenerMetadata",
        /// Rules.
        pub syscalls: Vec<SeccompSyscall> = "syscalls",
    }

    /// One rule.
    pub struct SeccompSyscall {
        /// System calls.
        pub names: Vec<String> = "names" always,
        /// Name such as `SCMP_ACT_ALLOW`.
        pub action: String = "action" always,
        /// Error number of an action that takes one; EPERM when absent.
        pub errno_ret: Option<u32> = "errnoRet",
        /// Conditions on arguments.
        pub args: Vec<SeccompArg> = "args",
    }

    /// A condition on one argument.
    pub struct SeccompArg {
        /// Which argument, 0 to 5.
        pub index: u32 = "index" always,
        /// What to compare with; the mask for `SCMP_CMP_MASKED_EQ`.
        pub value: u64 = "value" always,
        /// What the masked argument is compared with.
        pub value_two: u64 = "valueTwo",
        /// Name such as `SCMP_CMP_EQ`.
        pub op: String = "op" always,
    }
}
