//! The kernel, as brig uses it: rustix for most of it, and here the dozen calls that rustix lacks.
//!
//! All of brig's unsafe code is in this crate; every block says why it holds here.

pub mod bpf;
pub mod error;
pub mod init;
mod io;
pub mod keyring;
pub mod mount;
pub mod net;
pub mod process;
pub mod program;
#[cfg(feature = "ptrace")]
pub mod ptrace;
pub mod seccomp;
pub mod trace;

pub use error::{Context, Result, SysError, errno_text};
pub use io::write_all;
