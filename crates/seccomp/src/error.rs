//! What can be wrong with a profile.

use crate::Arch;

/// Why a profile cannot be read or compiled. The text begins with the place in config.json.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An action that seccomp does not have.
    #[error("{path}: string {name} is not a valid action for seccomp")]
    Action {
        /// Where.
        path: String,
        /// What is there.
        name: String,
    },
    /// A comparison that seccomp does not have.
    #[error("{path}: string {name} is not a valid operator for seccomp")]
    Operator {
        /// Where.
        path: String,
        /// What is there.
        name: String,
    },
    /// An architecture that seccomp does not have.
    #[error("{path}: string {name} is not a valid arch for seccomp")]
    Arch {
        /// Where.
        path: String,
        /// What is there.
        name: String,
    },
    /// A flag that a profile cannot set. Clients know the phrase, product name included.
    #[error("{path}: seccomp flag {name} is not known to runc")]
    Flag {
        /// Where.
        path: String,
        /// What is there.
        name: String,
    },
    /// An empty name.
    #[error("{path}: empty string is not a valid syscall")]
    EmptyName {
        /// Where.
        path: String,
    },
    /// A condition on an argument that does not exist.
    #[error("{path}: system calls have 6 arguments, so {index} is not a valid index")]
    ArgIndex {
        /// Where.
        path: String,
        /// What is there.
        index: u32,
    },
    /// An error number that does not fit into a verdict.
    #[error("{path}: {value} is not a valid error number")]
    Errno {
        /// Where.
        path: String,
        /// What is there.
        value: u32,
    },
    /// Every call would wait for an agent that cannot have been told of the filter yet.
    #[error("linux.seccomp.defaultAction: SCMP_ACT_NOTIFY cannot be used as default action")]
    NotifyDefault,
    /// The listener could not be handed over any more.
    #[error("{path}: SCMP_ACT_NOTIFY cannot be used for the write syscall")]
    NotifyWrite {
        /// Where.
        path: String,
    },
    /// A rule notifies, and there is nobody to notify.
    #[error("linux.seccomp.listenerPath: seccomp listenerPath is not set")]
    NoListener,
    /// The kernel refuses this combination (seccomp(2), EINVAL).
    #[error("{path}: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs a rule with SCMP_ACT_NOTIFY")]
    WaitKillableWithoutNotify {
        /// Where.
        path: String,
    },
    /// No kernel serves both, and one program cannot be in two byte orders.
    #[error("linux.seccomp.architectures: {} has not the byte order of {}", listed.name(), native.name())]
    ByteOrder {
        /// The one in the list.
        listed: Arch,
        /// The one of this program.
        native: Arch,
    },
    /// Two rules with the same conditions and different actions, or one whose conditions are the beginning of an
    /// earlier one's.
    #[error(
        "linux.seccomp.syscalls: the rules for {name} on {} contradict each other: same arguments, different actions",
        arch.name()
    )]
    Contradiction {
        /// The system call.
        name: &'static str,
        /// Where it happens. On a 32-bit architecture values that differ in their high word are the same.
        arch: Arch,
    },
    /// More rules than fit into a program.
    #[error("linux.seccomp: the filter has {insns} instructions, the kernel takes at most 4096")]
    TooLong {
        /// How many there would be.
        insns: usize,
    },
}
