//! Clients from the distribution, with the runtime below them.
//!
//! Each client has daemons and storage of its own in a temporary folder, shared by the tests that run at the same time, and its
//! cgroups below `/brig-test`. `RUNTIME=runc` tests another runtime, `CLIENTS_FULL=1` with more of everything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and work with files and programs by std"
)]

mod containerd;
mod docker;
mod documented;
mod engine;
mod image;
mod kubernetes;
mod pidfds;
mod podman;
mod takeover;
