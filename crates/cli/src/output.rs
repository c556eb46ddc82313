//! What commands print.
//!
//! Each output is put together first and written at once: a reader sees all of it or, where standard output is
//! broken, an error.

pub mod execs;
pub mod features;
pub mod ps;
pub mod summary;
pub mod table;

use std::io::Write as _;

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

/// Writes one line to standard error, in a single write(2) so that lines of several processes do not mix.
///
/// Nothing can be done if that fails.
pub fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
