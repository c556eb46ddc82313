//! Container ids.

use std::fmt;

use crate::error::{Error, Result};

/// A checked container id: the only way to name a container, and safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(String);

impl ContainerId {
    /// Checks an id: not empty, of letters, digits and `_+-.` only, not `.` or `..`.
    ///
    /// # Errors
    ///
    /// The phrases that callers know for an empty and for a malformed id.
    pub fn parse(id: &str) -> Result<Self> {
        if id.is_empty() {
            return Err(Error::config("container id cannot be empty"));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_+-.".contains(&b);
        if id == "." || id == ".." || !id.bytes().all(plain) {
            return Err(Error::config("invalid container ID format"));
        }
        Ok(Self(id.to_owned()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_file_names() {
        for good in ["a", "A_b+c-d.9", "...", ".hidden", "-x"] {
            assert_eq!(ContainerId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a\n", "a\0", "../x", "a%"] {
            assert!(ContainerId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
