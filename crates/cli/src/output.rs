//! What commands print.
//!
//! Each output is put together first and written at once: a reader sees all of it or, where standard output is
//! broken, an error.

pub mod doctor;
pub mod execs;
pub mod features;
pub mod problems;
pub mod ps;
pub mod summary;
pub mod table;
pub mod usage;

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::{Error, Kind, os_text};

/// How `list`, `ps` and the like print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

impl Format {
    /// Reads `--format`.
    ///
    /// # Errors
    ///
    /// `invalid format option`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "table" => Ok(Self::Table),
            "json" => Ok(Self::Json),
            _ => Err(Error::caller("invalid format option")
                .with_hint(format!("--format takes table or json, not '{text}'"))),
        }
    }
}

/// Writes `text` to standard output, as far as that goes in one write(2).
///
/// # Errors
///
/// Standard output is closed or full.
pub fn print(text: &str) -> Result<(), Error> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // Not through std's buffer, which writes up to the last newline and then what follows.
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => {
                let message = format!("write /dev/stdout: {}", os_text(&errno.into()));
                return Err(Error::new(Kind::Host, message));
            }
        }
    }
    Ok(())
}

/// Lets that time pass. Ends early, and says `false`, when nobody reads standard output any more.
pub fn is_read_for(time: Duration) -> bool {
    let end = Instant::now().checked_add(time);
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let stdout = rustix::stdio::stdout();
        // No event is asked for: errors and hang-ups are always told.
        let mut fds = [PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return true,
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Writes one line to standard error, in a single write(2) so that lines of several processes do not mix.
///
/// Nothing can be done if that fails.
pub fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
