//! `kill`: sends a signal.

use crate::status::ExitCode;

use brig_runtime::Target;

use super::{container_id, store};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::{ContainerId, Signal, id};

/// The table.
pub static COMMAND: Command = Command {
    operands: "<container-id> [signal]",
    description: "\
Sends a signal, by name or number, SIGTERM by default, to the container's process. KILL goes to
all processes of a container without a pid namespace of its own.",
    flags: &[
        Flag::text("exec-id", "send it to the process that exec started under this name"),
        Flag::int("pid", "send it to this process of the container (a pid of the host)"),
        Flag::switch("tree", "with --exec-id or --pid: to all that descend from it, too"),
        Flag::switch("all", "(obsolete: a stopped container is no error)").short("a").hidden(),
    ],
    max_operands: 2,
    passes_on: true,
    ..Command::new("kill", "send a signal to a container", run)
};

/// What `kill` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillArgs {
    /// The container's name.
    pub id: ContainerId,
    /// The signal.
    pub signal: Signal,
    /// Whom to send it to.
    pub target: Target,
    /// `--tree`.
    pub tree: bool,
    /// `--all`: a container without processes is no error.
    pub all: bool,
}

impl KillArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let signal = parsed.operand(1).to_string_lossy();
        let target = target(parsed)?;
        let tree = parsed.flags.switch("tree");
        if tree && target == Target::Init {
            return Err(Error::caller("--tree needs --exec-id or --pid"));
        }
        Ok(Self {
            id: container_id(parsed)?,
            signal: Signal::parse(&signal)?,
            target,
            tree,
            all: parsed.flags.switch("all"),
        })
    }
}

/// Whom the flags mean.
fn target(parsed: &Parsed) -> Result<Target, Error> {
    match (parsed.flags.raw("exec-id"), parsed.flags.int("pid")) {
        (None, None) => Ok(Target::Init),
        (Some(name), None) => id::exec_id(&name).map(Target::Exec),
        (None, Some(pid)) => i32::try_from(pid)
            .ok()
            .filter(|&pid| pid > 0)
            .map(Target::Pid)
            .ok_or_else(|| Error::caller(format!("--pid: {pid} is not a pid"))),
        (Some(_), Some(_)) => Err(Error::caller("--exec-id and --pid exclude each other")),
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    kill(&KillArgs::new(parsed)?, global)
}

fn kill(args: &KillArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::kill(&store(global)?, &args.id, &args.target, args.signal.0, args.tree, args.all)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use brig_runtime::Target;

    use super::KillArgs;
    use crate::error::Error;
    use crate::value::Signal;

    fn args(words: &[&str]) -> Result<KillArgs, Error> {
        KillArgs::new(&parsed(&[&["kill"], words].concat()))
    }

    #[test]
    fn signals() {
        assert_eq!(args(&["c1"]).unwrap().signal, Signal::TERM);
        assert_eq!(args(&["c1", ""]).unwrap().signal, Signal::TERM);
        assert_eq!(args(&["c1", "KILL"]).unwrap().signal, Signal(9));
        assert_eq!(args(&["--all", "c1", "9"]).unwrap().signal, Signal(9));
        // A flag no more, since the name is before it; kill(2) will not have it.
        assert_eq!(args(&["c1", "-9"]).unwrap().signal, Signal(-9));
        assert_eq!(message(args(&["c1", "FOO"])), r#"unknown signal "FOO""#);
    }

    #[test]
    fn targets() {
        assert_eq!(args(&["c1"]).unwrap().target, Target::Init);
        let exec = args(&["--exec-id", "e1", "--tree", "c1", "9"]).unwrap();
        assert_eq!(exec.target, Target::Exec("e1".to_owned()));
        assert!(exec.tree);
        assert_eq!(args(&["--pid", "42", "c1"]).unwrap().target, Target::Pid(42));
        for pid in ["0", "-1", "4294967296"] {
            assert_eq!(message(args(&["--pid", pid, "c1"])), format!("--pid: {pid} is not a pid"));
        }
        assert!(args(&["--pid", "1", "--exec-id", "e", "c1"]).is_err());
        assert!(args(&["--tree", "c1"]).is_err());
    }
}
