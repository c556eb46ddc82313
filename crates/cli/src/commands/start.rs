//! `start`: executes the process of a created container.

use crate::status::ExitCode;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Executes the process of a container that create made. Fails if the container is not waiting
for it, or if the process cannot be executed.",
    ..Command::new("start", "execute the process of a created container", run)
};

/// What `start` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartArgs {
    /// The container's name.
    pub id: ContainerId,
}

impl StartArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self { id: container_id(parsed)? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    start(&StartArgs::new(parsed)?, global)
}

fn start(args: &StartArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::start(&store(global)?, &args.id)?;
    Ok(ExitCode::SUCCESS)
}
