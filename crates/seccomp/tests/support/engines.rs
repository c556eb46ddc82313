//! Profiles like those that engines use by default, on x86_64.

use brig_seccomp::Syscall;
use brig_spec::{Seccomp, SeccompArg, SeccompSyscall};

/// What a container without capabilities may not call.
const BLOCKED: [&str; 64] = [
    "_sysctl",
    "acct",
    "add_key",
    "bpf",
    "clock_adjtime",
    "clock_adjtime64",
    "clock_settime",
    "clock_settime64",
    "clone",
    "clone3",
    "create_module",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_kernel_syms",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "personality",
    "pivot_root",
    "query_module",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "set_mempolicy",
    "set_mempolicy_home_node",
    "setns",
    "settimeofday",
    "socket",
    "stime",
    "swapoff",
    "swapon",
    "sysfs",
    "syslog",
    "umount",
    "umount2",
    "unshare",
    "uprobe",
    "uretprobe",
    "userfaultfd",
    "vhangup",
];

/// Calls of other architectures, or that no kernel has any more.
const ELSEWHERE: [&str; 14] = [
    "arm",
    "mips",
    "osf",
    "ppc",
    "riscv",
    "s390",
    "spu",
    "swapcontext",
    "sysmips",
    "vm86",
    "uselib",
    "ustat",
    "rtas",
    "sys_debug",
];

/// Calls that containers make most.
pub const COMMON: [&str; 12] = [
    "read",
    "write",
    "close",
    "mmap",
    "futex",
    "openat",
    "newfstatat",
    "epoll_wait",
    "recvfrom",
    "sendto",
    "clock_nanosleep",
    "getrandom",
];

/// The newest call that the profile knows: `futex_waitv`.
const NEWEST: u32 = 449;

/// Docker's: default EPERM, three architectures, and everything allowed that is not blocked above.
pub fn docker() -> Seccomp {
    use brig_seccomp::Arch::{X32, X86, X86_64};
    let known = |call: &Syscall| {
        [X86, X86_64, X32]
            .iter()
            .filter_map(|&arch| call.number(arch))
            .any(|number| number & 0xffff <= NEWEST)
    };
    let name = |call: Syscall| call.name();
    let wanted =
        |name: &&str| !BLOCKED.contains(name) && !ELSEWHERE.iter().any(|prefix| name.starts_with(prefix));
    let allowed: Vec<&str> = Syscall::all().filter(known).map(name).filter(wanted).collect();
    let mut syscalls = vec![allow(&allowed, &[])];
    for persona in [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff] {
        syscalls.push(allow(&["personality"], &[arg(0, "SCMP_CMP_EQ", persona, 0)]));
    }
    // AF_VSOCK
    syscalls.push(allow(&["socket"], &[arg(0, "SCMP_CMP_NE", 40, 0)]));
    syscalls.push(allow(&["process_vm_readv", "process_vm_writev", "ptrace"], &[]));
    // All CLONE_NEW* but CLONE_NEWTIME.
    syscalls.push(allow(&["clone"], &[arg(0, "SCMP_CMP_MASKED_EQ", 0x7e02_0000, 0)]));
    syscalls.push(SeccompSyscall {
        names: vec!["clone3".to_owned()],
        action: "SCMP_ACT_ERRNO".to_owned(),
        errno_ret: Some(38),
        args: Vec::new(),
    });
    Seccomp {
        default_action: "SCMP_ACT_ERRNO".to_owned(),
        default_errno_ret: Some(1),
        architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"].map(str::to_owned).to_vec(),
        syscalls,
        ..Seccomp::default()
    }
}

/// Podman's, as far as sockets go: netlink but not its audit family.
pub fn podman_sockets() -> Seccomp {
    let not_audit = allow(&["socket"], &[arg(2, "SCMP_CMP_NE", 9, 0)]);
    let not_netlink = allow(&["socket"], &[arg(0, "SCMP_CMP_NE", 16, 0)]);
    let audit = SeccompSyscall {
        names: vec!["socket".to_owned()],
        action: "SCMP_ACT_ERRNO".to_owned(),
        errno_ret: Some(22),
        args: vec![arg(0, "SCMP_CMP_EQ", 16, 0), arg(2, "SCMP_CMP_EQ", 9, 0)],
    };
    let plain = allow(&["bind", "connect", "socketcall", "socketpair", "statx"], &[]);
    Seccomp {
        default_errno_ret: Some(38),
        syscalls: vec![plain, audit, not_audit.clone(), not_netlink, not_audit],
        ..docker()
    }
}

fn allow(names: &[&str], args: &[SeccompArg]) -> SeccompSyscall {
    SeccompSyscall {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        action: "SCMP_ACT_ALLOW".to_owned(),
        errno_ret: None,
        args: args.to_vec(),
    }
}

fn arg(index: u32, op: &str, value: u64, value_two: u64) -> SeccompArg {
    SeccompArg { index, value, value_two, op: op.to_owned() }
}
