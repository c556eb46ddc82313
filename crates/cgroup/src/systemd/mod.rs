//! systemd makes the cgroup: a transient scope for each container, over D-Bus on our own socket.
//!
//! ```text
//! Names::decide_unit, NewUnit::decide ─ (record) ─ prepare ─ Cgroup::make_in_slice ─ (clone into it) ─ begin ┄ finish
//!                                       (record) ─ Cgroup::update ─ set_limits
//!                                       (record) ─ Cgroup::remove ─ stop
//! ```
//!
//! A scope needs a process to begin with. So that this one is never anywhere else, the scope's directory is made first, inside
//! the slice, and the process is born there; then systemd is told of both and finds the process where it wanted to move it.
//! While systemd works, the process sets up the container. Only where the kernel does not let the caller do that (a user's session
//! is not in the part of the tree that is the user's) systemd moves the process.
//!
//! systemd keeps a file for each transient unit that it knows. It says without a message whether there is something to stop, and
//! its end when a unit is gone for good. It is what a killed creator's unit is found by, too; one that systemd was told of only after the
//! process had ended does not come into being.
//!
//! No call takes longer than [`Systemd::timeout`], and nothing waits without a deadline.

mod address;
mod devices;
mod driver;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gvariant;
mod manager;
mod properties;
mod socket;
mod unit;
mod user;
mod value;
mod wire;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use driver::NewUnit;
pub use unit::Unit;
pub use user::user_bus_owner;

/// Whose systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// The host's.
    System,
    /// The user's own.
    User,
}

/// How long a call may take unless `$BRIG_SYSTEMD_TIMEOUT` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A systemd that is talked to.
#[derive(Debug)]
pub struct Systemd {
    bus: Bus,
    timeout: Duration,
    link: manager::Link,
}

impl Systemd {
    /// The systemd of a bus. Nothing is sent yet.
    pub fn new(bus: Bus) -> Self {
        Self { bus, timeout: timeout(), link: manager::Link::default() }
    }

    /// Whether this host was booted with systemd, see sd_booted(3).
    pub fn is_running() -> bool {
        rustix::fs::lstat("/run/systemd/system")
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
    }

    /// The longest that one call may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// `$BRIG_SYSTEMD_TIMEOUT`: seconds, fractions too.
fn timeout() -> Duration {
    let seconds = std::env::var("BRIG_SYSTEMD_TIMEOUT").ok().and_then(|text| text.parse::<f64>().ok());
    let given = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // More than a day is as good as for ever, and would overflow clocks.
    given.filter(|given| !given.is_zero() && given.as_secs() < 86_400).unwrap_or(TIMEOUT)
}
