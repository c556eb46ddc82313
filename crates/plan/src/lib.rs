//! Decides, before anything is made, what a container will be.
//!
//! `config.json` and the facts about this host go in, a [`Plan`] comes out, and with it every complaint that
//! can be made without asking the kernel. Nothing here makes a system call, so all of it can be tested by the
//! hundred without root. The runtime then only carries the plan out.
//!
//! [`Plan::new`] is for `create` and stops at what is wrong first; [`Plan::draft`] is for `check` and tells all.
//! [`process`] decides a process alone, for `exec`. Warnings are handed back and never printed: whether a caller
//! can bear them on its log is not known here.

#![forbid(unsafe_code)]

pub mod capabilities;
mod cgroup;
mod cpu_list;
mod devices;
mod env;
mod extensions;
mod hooks;
mod host;
mod id_maps;
mod intel_rdt;
pub mod memory_policy;
mod model;
pub mod mount_options;
mod mounts;
pub mod namespaces;
mod net_devices;
mod path;
mod plan;
mod problem;
mod process;
mod resources;
mod rlimits;
mod root;
mod scheduler;
mod seccomp;
mod sysctl;

#[cfg(test)]
mod testing;

pub use extensions::{Extensions, extensions};
pub use hooks::hooks;
pub use host::{CgroupMode, Host, IntelRdtSupport, Request, Subordinate};
pub use memory_policy::memory_policy_of;
pub use model::*;
pub use mounts::may_be_inside_proc;
pub use problem::{Draft, Problem, Severity};
pub use process::{ProcessContext, process};
