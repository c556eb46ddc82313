//! Control groups for containers, v1, hybrid and v2, by ourselves or by [systemd]; it knows nothing of containers otherwise.
//!
//! ```text
//! Layout::detect ─ Names::decide ─ (record) ─ Cgroup::make ─ apply ─ (clone into dir_fd, attach) ─ keep
//!                                  (record) ─ Cgroup::open ─ update, freeze, thaw, stats, pids, watch_oom, sub
//!                                  (record) ─ Cgroup::open ─ kill_all ─ wait_empty ─ remove
//! ```
//!
//! [`Names`] says where everything will be before anything is made; put in a record, it is all that is needed to
//! find and remove it again. Limits are turned into files and values by pure functions ([`v1::convert`],
//! [`v2::convert`]), device rules into an eBPF program by another.
//!
//! Waiting is for events, and never beyond the caller's deadline. Processes are signalled by pidfd. Directories are
//! held open, so that no path is resolved twice.

mod cgroup;
mod cpuset;
mod deadline;
mod delegate;
mod devices;
mod dir;
mod error;
mod exec;
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    //! What the fuzz targets in `fuzz/` reach of this crate.
    pub use crate::devices::fuzzing::devices;
    pub use crate::systemd::fuzzing::{annotation, message as bus_message, unit};
}
mod freezer;
mod kill;
mod layout;
mod limits;
mod make;
mod mark;
mod names;
mod oom;
pub mod parse;
mod procs;
mod remove;
pub mod stats;
mod straggler;
mod sub;
pub mod systemd;
mod watch;

pub use cgroup::Cgroup;
pub use error::{Error, Result};
pub use exec::release_frozen;
pub use layout::{Hierarchy, Layout, Mode};
pub use limits::{Converted, Invalid, Link, Missing, Shape, Skipped, Write, v1, v2};
pub use mark::{Mark, marked};
pub use names::{Driver, Name, Names, Request};
pub use oom::{OomEvent, OomWatch};
pub use stats::Stats;
pub use straggler::Straggler;
