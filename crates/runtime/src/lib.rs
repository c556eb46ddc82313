//! The life of a container: making it, letting it run, joining it, ending it.
//!
//! One file for each command; `create` and `exec` are stories of their own with the made process's side in `child`. What
//! they have in common: the [record](record) on disk, the [lock](store) in its directory, the [gate](gate) between created
//! and running, and processes as pidfds with an [identity](ident) that can be written down.

mod boot;
mod bundle;
mod channel;
mod check;
mod child;
mod clock;
mod container;
mod create;
mod deadline;
mod delete;
pub mod doctor;
mod ending;
mod error;
mod exec;
mod execs;
mod executable;
mod explain;
mod fds;
mod filter;
mod foreground;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gate;
mod gc;
mod hooks;
mod host;
mod id;
mod ident;
mod kill;
mod listener;
mod mountinfo;
mod netdev;
mod notify;
mod passwd;
mod pause;
mod pidfile;
mod rdt;
mod record;
mod rlimits;
mod rootfs;
mod run;
mod scheduler;
mod socket;
mod sources;
mod start;
mod stats;
mod store;
mod subids;
mod takeover;
pub mod timestamp;
mod tree;
mod update;
mod userns;
mod wait;

pub use check::{CheckRequest, check};
pub use container::{Container, Listed, execs, list};
pub use create::{CreateRequest, create};
pub use delete::{DEFAULT_TIMEOUT, delete};
pub use error::{Error, Kind, Result};
pub use exec::{Changes, ExecEnd, ExecRequest, Program, exec};
pub use gc::{Leftover, leftovers, remove_leftover};
pub use id::ContainerId;
pub use kill::{Target, kill};
pub use pause::{pause, resume};
pub use rdt::Changes as RdtChanges;
pub use run::{RunOptions, run};
pub use start::start;
pub use stats::{Event, Sample, events, processes, sample, stats};
pub use store::Store;
pub use update::update;
pub use wait::wait;
