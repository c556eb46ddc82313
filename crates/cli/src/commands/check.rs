//! `check`: tells, without making anything, whether a bundle would work.

use crate::status::ExitCode;
use std::path::PathBuf;

use brig_plan::Severity;
use brig_runtime::CheckRequest;

use super::list::FORMAT;
use super::setup;
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::{self, Format, problems};
use crate::paths;

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Reads a bundle's config.json and tells all that create would refuse on this host, and what would
have no effect, each with its place in the file. Makes nothing. Says nothing about a bundle that
is right. Exits with 1 where create would fail.",
    flags: &[setup::BUNDLE, FORMAT],
    min_operands: 0,
    max_operands: 0,
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

fn check(args: &CheckArgs, global: &Global) -> Result<ExitCode, Error> {
    let request = CheckRequest {
        bundle: args.bundle.clone(),
        systemd_cgroup: global.systemd_cgroup,
        rootless: global.rootless()?,
    };
    let problems = brig_runtime::check(&request)?;
    match args.format {
        Format::Table => output::print(&problems::text(&problems))?,
        Format::Json => output::print(&problems::json(&args.bundle, &problems)?)?,
    }
    let broken = problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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
