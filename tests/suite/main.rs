//! What brig does, seen from outside, by topic.
//!
//! Each test shows one behaviour on a container of its own, so all of them run in parallel. `RUNTIME=runc` runs them against
//! another runtime, `tests/pure-v2` where there is only cgroup v2, and `tests/with-systemd` with `DRIVER=systemd` under systemd,
//! which makes the cgroups then.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and work with files and programs by std"
)]

mod annotations;
mod bus;
mod cgroup;
mod check;
mod cli;
mod config;
mod delete;
mod doctor;
mod events;
mod exec;
mod execs;
mod explain;
mod fallbacks;
mod features;
mod gc;
mod hooks;
mod idmap;
mod lifecycle;
mod log;
mod many;
mod mounts;
mod namespaces;
mod netdev;
mod orphaned;
mod pause;
mod pid;
mod pidfd;
mod process;
mod rdt;
mod record;
mod rootless;
mod seccomp;
mod strangers;
mod systemd;
mod terminal;
mod trace;
mod update;
mod userns;
