//! The init program: what a container's process is before it becomes the container's program.
//!
//! `abi` is the layout that brig and the init program share; `program`, `calls`, `hooks` and `arch` are the init program
//! itself (compiled here too, so that they are linted, and once more without the standard library by `build.rs`);
//! `image` is brig's side: it joins program and parameters into an executable.

pub mod abi;
#[allow(dead_code, reason = "code of the init program; brig itself does not call it")]
mod arch;
#[allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "code of the init program"
)]
mod calls;
#[allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "code of the init program"
)]
mod hooks;
mod image;
#[allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "code of the init program"
)]
mod program;

pub use image::{COMM_MAX, HookSpec, InitSpec, PROGRAM_LEN};
