//! `delete`: removes a container and all that belongs to it.

use crate::status::ExitCode;
use std::time::Duration;

use super::{container_id, span, store};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Removes a stopped container, or one that was never started, with everything that was made for
it. With --force a running one too; one that is not there, or was made by half, is no error
then.",
    flags: &[
        Flag::switch("force", "kill the container's processes first").short("f"),
        Flag::duration("timeout", "give up when processes have not ended after this time").default("10s"),
    ],
    ..Command::new("delete", "remove a container and what belongs to it", run)
};

/// What `delete` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteArgs {
    /// The container's name.
    pub id: ContainerId,
    /// `--force`.
    pub force: bool,
    /// `--timeout`.
    pub timeout: Duration,
}

impl DeleteArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self {
            id: container_id(parsed)?,
            force: parsed.flags.switch("force"),
            timeout: span(parsed, "timeout", 0)?.unwrap_or_default(),
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    delete(&DeleteArgs::new(parsed)?, global)
}

fn delete(args: &DeleteArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::delete(&store(global)?, &args.id, args.force, args.timeout)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{message, parsed};
    use super::DeleteArgs;

    #[test]
    fn force_and_timeout() {
        let args = DeleteArgs::new(&parsed(&["delete", "c1", "--force"])).unwrap();
        assert!(args.force);
        assert_eq!(args.timeout, Duration::from_secs(10));
        let args = DeleteArgs::new(&parsed(&["delete", "-timeout=500ms", "c1"])).unwrap();
        assert_eq!(args.timeout, Duration::from_millis(500));
        assert_eq!(
            message(DeleteArgs::new(&parsed(&["delete", "--timeout=-1s", "c1"]))),
            "--timeout must be at least 0"
        );
        assert!(DeleteArgs::new(&parsed(&["delete", "-f", ""])).is_err());
    }
}
