//! Points in time until which something is waited for.

use std::time::{Duration, Instant};

use rustix::fs::Timespec;

/// A deadline that far from now.
pub fn after(duration: Duration) -> Instant {
    // An absurd duration is as good as a day.
    Instant::now().checked_add(duration).unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400))
}

/// How long it is until then, for poll(2); `None` when it has passed.
pub fn timespec_until(deadline: Instant) -> Option<Timespec> {
    let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
    Timespec::try_from(left).ok()
}
