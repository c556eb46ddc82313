//! `check`: tells, without making anything, whether a bundle would work.

use std::path::PathBuf;
use std::process::ExitCode;

use super::list::FORMAT;
use super::setup;
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::Format;
use crate::paths;

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Reads a bundle's config.json and tells what create would do with it on this host, what would be
ignored and what would be refused. Makes nothing.",
    flags: &[setup::BUNDLE, FORMAT],
    min_operands: 0,
    max_operands: 0,
    hidden: true,
    ..Command::new("check", "tell whether a bundle would work on this host", run)
};

/// What `check` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckArgs {
    /// `--bundle`, absolute.
    pub bundle: PathBuf,
    /// `--format`.
    pub format: Format,
}

impl CheckArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let bundle = parsed.flags.path("bundle").unwrap_or_default();
        let format = parsed.flags.raw("format").unwrap_or_default();
        Ok(Self {
            bundle: paths::absolute(bundle.as_ref())?,
            format: Format::parse(&format.to_string_lossy())?,
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    check(&CheckArgs::new(parsed)?, global)
}

fn check(_args: &CheckArgs, _global: &Global) -> Result<ExitCode, Error> {
    Err(Error::unsupported("check"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::parsed;
    use super::CheckArgs;
    use crate::output::Format;

    #[test]
    fn a_bundle() {
        let args = CheckArgs::new(&parsed(&["check", "-b", "/b/", "-f", "json"])).unwrap();
        assert_eq!(args.bundle.to_str(), Some("/b"));
        assert_eq!(args.format, Format::Json);
    }
}
