//! `wait`: waits for the end of a container or of a process in it.

use crate::status::ExitCode;

use brig_sys::process::ExitStatus;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::output;
use crate::value::{ContainerId, id};

/// Exit status when the process has ended and nobody can tell how.
const UNKNOWN: i32 = 125;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Waits until the container's process, or one that exec started under a name, has ended. Prints
its exit status (128 and its number for a signal) and exits with it; or prints 'unknown' and
exits with 125, where the kernel (before Linux 6.15) does not tell or where it had ended
before.",
    flags: &[Flag::text("exec-id", "wait for the process that exec started under this name")],
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
        Ok(Self { id: container_id(parsed)?, exec_id: exec_id.map(|text| id::exec_id(&text)).transpose()? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    wait(&WaitArgs::new(parsed)?, global)
}

fn wait(args: &WaitArgs, global: &Global) -> Result<ExitCode, Error> {
    let store = store(global)?;
    crate::log::release();
    let status = brig_runtime::wait(&store, &args.id, args.exec_id.as_deref())?;
    output::print(&status.map_or("unknown\n".to_owned(), |status| format!("{}\n", status.code())))?;
    Ok(super::exit_code(status.or(Some(ExitStatus::Exited(UNKNOWN)))))
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
