//! Compiles seccomp profiles.
//!
//! `linux.seccomp` of an OCI configuration goes in, a program in classic BPF for seccomp(2) comes out. It is a pure
//! function: nothing here makes a system call, and the same profile always gives the same program.
//!
//! A profile passes through three shapes. [`Profile`] is what the configuration says, checked. For each architecture
//! it becomes *ranges* of system call numbers that lead to the same: a verdict, or a *tree* of conditions on arguments.
//! The ranges become a binary search, the trees comparisons, and both together the program.
//!
//! What a profile means was settled by libseccomp and by what runc puts around it, so the tests run the programs of
//! both on the same data. Where we differ on purpose, [`compile()`] says so.

#![forbid(unsafe_code)]

mod arch;
mod bpf;
mod compile;
mod conditions;
mod emit;
mod error;
mod profile;
mod ranges;
mod resolve;
mod syscalls;

pub use arch::Arch;
pub use bpf::{Insn, MAX_INSNS};
pub use compile::{Filter, compile};
pub use error::Error;
pub use profile::{ACTIONS, Action, Condition, FLAG_NEW_LISTENER, FLAGS, OPERATORS, Op, Profile, Rule};
pub use syscalls::Syscall;
