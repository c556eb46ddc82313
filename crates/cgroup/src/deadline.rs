//! Waiting for the kernel, never longer than asked.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of `fds` has something to say. `false` when the deadline comes first.
pub(crate) fn wait_any(fds: &mut [PollFd<'_>], deadline: Instant) -> Result<bool, Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(fds, Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            // A signal, or a clock rounded down: what is left of the time is computed anew.
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}

/// The same for one descriptor.
pub(crate) fn wait(fd: BorrowedFd<'_>, events: PollFlags, deadline: Instant) -> Result<bool, Errno> {
    wait_any(&mut [PollFd::from_borrowed_fd(fd, events)], deadline)
}

/// Growing pauses, for the few things that the kernel has no event for.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Duration,
    deadline: Instant,
}

impl Backoff {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { pause: Duration::from_micros(50), deadline }
    }

    /// Pauses; `false` when there is no time left.
    pub(crate) fn pause(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(Duration::from_millis(10));
        true
    }
}
