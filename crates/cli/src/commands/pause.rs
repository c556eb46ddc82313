//! `pause`: freezes a container.

use crate::status::ExitCode;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Stops all processes of the container where they are, until resume.",
    ..Command::new("pause", "freeze all processes of a container", run)
};

/// What `pause` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseArgs {
    /// The container's name.
    pub id: ContainerId,
}

impl PauseArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self { id: container_id(parsed)? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    pause(&PauseArgs::new(parsed)?, global)
}

fn pause(args: &PauseArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::pause(&store(global)?, &args.id)?;
    Ok(ExitCode::SUCCESS)
}
