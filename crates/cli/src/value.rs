//! What the words on the command line mean.
//!
//! Numbers, durations and sizes are read as Go reads them, and the errors have Go's wording: clients see them.

pub mod duration;
pub mod id;
pub mod number;
pub mod signal;
pub mod size;
pub mod user;

pub use brig_runtime::ContainerId;
pub use signal::Signal;
pub use user::UserSpec;
