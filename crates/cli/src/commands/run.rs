//! `run`: `create` and `start` in one and, unless detached, the wait for the end.

use crate::status::ExitCode;

use brig_runtime::RunOptions;

use super::setup::{self, SetupArgs};
use super::{container_id, exit_code};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Makes a container with the name <container-id>, which nothing below --root may have yet, from
a bundle: a directory with a config.json and, as a rule, the root file system. Then executes
its process, waits for its end, deletes the container and exits with the status of the
process, or with 128 and the number of the signal that ended it.",
    flags: &[
        setup::BUNDLE,
        setup::CONSOLE_SOCKET,
        setup::PIDFD_SOCKET,
        setup::DETACH,
        Flag::switch("keep", "do not delete the container when its process has ended"),
        setup::PID_FILE,
        setup::NO_SUBREAPER,
        setup::NO_PIVOT,
        setup::NO_NEW_KEYRING,
        setup::PRESERVE_FDS,
    ],
    error_prefix: "runc run failed: ",
    ..Command::new("run", "make a container from a bundle and run it", run)
};

/// What `run` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunArgs {
    /// The container's name.
    pub id: ContainerId,
    /// How it is set up.
    pub setup: SetupArgs,
    /// `--detach`.
    pub detach: bool,
    /// `--keep`.
    pub keep: bool,
    /// `--no-subreaper`.
    pub no_subreaper: bool,
}

impl RunArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self {
            id: container_id(parsed)?,
            setup: SetupArgs::new(parsed)?,
            detach: parsed.flags.switch("detach"),
            keep: parsed.flags.switch("keep"),
            no_subreaper: parsed.flags.switch("no-subreaper"),
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    run_container(&RunArgs::new(parsed)?, global)
}

fn run_container(args: &RunArgs, global: &Global) -> Result<ExitCode, Error> {
    let options = RunOptions { detach: args.detach, keep: args.keep, no_subreaper: args.no_subreaper };
    let status = brig_runtime::run(&args.setup.request(&args.id, global)?, options)?;
    Ok(exit_code(status))
}

#[cfg(test)]
mod tests {
    use super::super::testing::parsed;
    use super::RunArgs;

    #[test]
    fn as_buildkit_and_go_runc_call_it() {
        let args = RunArgs::new(&parsed(&["run", "--bundle", "/b", "--keep", "c1"])).unwrap();
        assert!(args.keep && !args.detach && !args.no_subreaper);
        let args = RunArgs::new(&parsed(&["run", "-no-subreaper", "c1", "-d"])).unwrap();
        assert!(args.detach && args.no_subreaper && !args.keep);
    }
}
