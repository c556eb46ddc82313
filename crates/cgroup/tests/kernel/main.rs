//! The crate against the kernel: on the host's own layout, and in a private mount namespace where cgroup v2 is all
//! that /sys/fs/cgroup has. Needs root; says so and passes otherwise.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests spawn processes, write files as they like, and stop at once; their helpers too"
)]

mod devices;
mod events;
mod freeze;
mod kill;
mod lifecycle;
mod limits;
mod stuck;
mod view;
