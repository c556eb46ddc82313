//! The exit status.

/// What the program ends with. The standard library's type of this name cannot be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// Not done.
    pub const FAILURE: Self = Self(1);

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(status: u8) -> Self {
        Self(status)
    }
}
