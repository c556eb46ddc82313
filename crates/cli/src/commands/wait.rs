//! `wait`: waits for the end of a container or of a process in it.

use std::process::ExitCode;

use super::container_id;
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::{ContainerId, id};

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Waits until the container's process, or one that exec started under a name, has ended.",
    flags: &[Flag::text(
        "exec-id",
        "wait for the process that exec started under this name",
    )],
    hidden: true,
    ..Command::new("wait", "wait for the end of a container", run)
};

/// What `wait` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitArgs {
    /// The container's name.
    pub id: ContainerId,
    /// `--exec-id`.
    pub exec_id: Option<String>,
}

impl WaitArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let exec_id = parsed.flags.raw("exec-id");
        Ok(Self {
            id: container_id(parsed)?,
            exec_id: exec_id.map(|text| id::exec_id(&text)).transpose()?,
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    wait(&WaitArgs::new(parsed)?, global)
}

fn wait(_args: &WaitArgs, _global: &Global) -> Result<ExitCode, Error> {
    Err(Error::unsupported("wait"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use super::WaitArgs;

    #[test]
    fn whom_to_wait_for() {
        assert_eq!(WaitArgs::new(&parsed(&["wait", "c1"])).unwrap().exec_id, None);
        let args = WaitArgs::new(&parsed(&["wait", "c1", "--exec-id", "e1"])).unwrap();
        assert_eq!(args.exec_id.as_deref(), Some("e1"));
        let error = message(WaitArgs::new(&parsed(&["wait", "c1", "--exec-id="])));
        assert_eq!(error, "exec id cannot be empty");
    }
}
