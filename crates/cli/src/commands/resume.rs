//! `resume`: thaws a container.

use crate::status::ExitCode;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Lets the processes of a paused container go on.",
    ..Command::new("resume", "let a paused container go on", run)
};

/// What `resume` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeArgs {
    /// The container's name.
    pub id: ContainerId,
}

impl ResumeArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self { id: container_id(parsed)? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    resume(&ResumeArgs::new(parsed)?, global)
}

fn resume(args: &ResumeArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::resume(&store(global)?, &args.id)?;
    Ok(ExitCode::SUCCESS)
}
