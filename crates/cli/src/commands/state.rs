//! `state`: prints the state of a container.

use crate::status::ExitCode;

use brig_runtime::Container;
use brig_spec::Summary;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::output::{self, summary};
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Prints the state that the OCI runtime specification defines, as JSON, with a few members more.",
    ..Command::new("state", "print the state of a container as JSON", run)
};

/// What `state` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateArgs {
    /// The container's name.
    pub id: ContainerId,
}

impl StateArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self { id: container_id(parsed)? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    let args = StateArgs::new(parsed)?;
    output::print(&summary::state(&state(&args, global)?)?)?;
    Ok(ExitCode::SUCCESS)
}

fn state(args: &StateArgs, global: &Global) -> Result<Summary, Error> {
    let container = Container::load(&store(global)?, &args.id)?;
    Ok(container.summary(String::new())?)
}
