//! `exec`: runs one more process in a container.

use crate::status::ExitCode;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use brig_runtime::{Changes, ExecEnd, ExecRequest, Program};

use super::setup;
use super::{container_id, exit_code, span, store};
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::{ContainerId, UserSpec, id, user};

/// The exit status when the time is over; timeout(1) has the same.
const TIMED_OUT: u8 = 124;

/// Flags about the process, which a process file makes void.
const PROCESS_FLAGS: &[&str] =
    &["cwd", "env", "tty", "user", "additional-gids", "process-label", "apparmor", "no-new-privs", "cap"];

/// The table.
pub static COMMAND: Command = Command {
    operands: "<container-id> <command> [arguments]  ||  --process file <container-id>",
    description: "\
Runs a command in the container, with the environment, user, limits and filters of the
container's own process unless flags or a process file say otherwise. Exits with the status
of the command, with 128 and the number of the signal that ended it, or with 255 if the
command could not be run.",
    flags: &[
        setup::CONSOLE_SOCKET,
        setup::PIDFD_SOCKET,
        Flag::text("cwd", "working directory in the container"),
        Flag::text("env", "add NAME=VALUE to the environment").short("e").repeated(),
        Flag::switch("tty", "allocate a terminal").short("t"),
        Flag::text("user", "run as <uid>[:<gid>]").short("u"),
        Flag::int("additional-gids", "add a group").short("g").repeated(),
        Flag::path("process", "read the process from this JSON file; flags about it are void").short("p"),
        setup::DETACH,
        setup::PID_FILE,
        Flag::text("process-label", "SELinux label of the process"),
        Flag::text("apparmor", "AppArmor profile of the process"),
        Flag::switch("no-new-privs", "let the process gain no privileges by execve"),
        Flag::text("cap", "add a capability").short("c").repeated(),
        setup::PRESERVE_FDS,
        Flag::text("cgroup", "run in this cgroup below the container's: [<controller>[,…]:]<path>")
            .repeated(),
        Flag::switch("ignore-paused", "go ahead in a paused container, and wait until it is resumed"),
        Flag::text("exec-id", "a name for the process, to be used with kill and wait"),
        Flag::switch("exec-cgroup", "give the process a cgroup of its own below the container's"),
        Flag::duration("timeout", "end the process and all that it started after this time"),
        // exec never is a subreaper; callers of runc before 1.1 say so.
        setup::NO_SUBREAPER.hidden(),
    ],
    max_operands: usize::MAX,
    passes_on: true,
    error_prefix: "exec failed: ",
    failure: 255,
    ..Command::new("exec", "run a process in a container", run)
};

/// What `exec` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecArgs {
    /// The container's name.
    pub id: ContainerId,
    /// What to run.
    pub process: ExecProcess,
    /// `--console-socket`, absolute.
    pub console_socket: Option<PathBuf>,
    /// `--pidfd-socket`, absolute.
    pub pidfd_socket: Option<PathBuf>,
    /// `--pid-file`, absolute.
    pub pid_file: Option<PathBuf>,
    /// `--detach`.
    pub detach: bool,
    /// `--preserve-fds`.
    pub preserve_fds: u32,
    /// `--cgroup`.
    pub sub_cgroups: Vec<String>,
    /// `--ignore-paused`.
    pub ignore_paused: bool,
    /// `--exec-id`.
    pub exec_id: Option<String>,
    /// `--exec-cgroup`.
    pub exec_cgroup: bool,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

/// Where the process of an exec is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecProcess {
    /// In a file (`--process`), wholly.
    File(PathBuf),
    /// On the command line, on top of the container's own process.
    Command(Box<ExecCommand>),
}

/// A process described on the command line; what is absent is as the container's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecCommand {
    /// The command and its arguments; not empty.
    pub args: Vec<OsString>,
    /// `--cwd`.
    pub cwd: Option<String>,
    /// `--env`, added.
    pub env: Vec<String>,
    /// `--tty`: the container's own setting does not count.
    pub tty: bool,
    /// `--user`.
    pub user: Option<UserSpec>,
    /// `--additional-gids`, added.
    pub additional_gids: Vec<u32>,
    /// `--process-label`.
    pub process_label: Option<String>,
    /// `--apparmor`.
    pub apparmor: Option<String>,
    /// `--no-new-privs`, where it is given.
    pub no_new_privs: Option<bool>,
    /// `--cap`, added.
    pub caps: Vec<String>,
}

impl ExecArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let flags = &parsed.flags;
        Ok(Self {
            id: container_id(parsed)?,
            process: ExecProcess::new(parsed)?,
            console_socket: setup::absolute(parsed, "console-socket")?,
            pidfd_socket: setup::absolute(parsed, "pidfd-socket")?,
            pid_file: setup::absolute(parsed, "pid-file")?,
            detach: flags.switch("detach"),
            preserve_fds: setup::preserve_fds(parsed)?,
            sub_cgroups: flags.texts("cgroup")?,
            ignore_paused: flags.switch("ignore-paused"),
            exec_id: flags.raw("exec-id").map(|text| id::exec_id(&text)).transpose()?,
            exec_cgroup: flags.switch("exec-cgroup"),
            timeout: span(parsed, "timeout", 1)?,
        })
    }
}

impl ExecProcess {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        if let Some(file) = setup::absolute(parsed, "process")? {
            for flag in parsed.flags.names().filter(|name| PROCESS_FLAGS.contains(name)) {
                log::debug!("--{flag} is ignored because --process is given");
            }
            if parsed.operands.len() > 1 {
                log::warn!("the command is ignored because --process is given");
            }
            return Ok(Self::File(file));
        }
        ExecCommand::new(parsed).map(|command| Self::Command(Box::new(command)))
    }
}

impl ExecCommand {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let flags = &parsed.flags;
        let args = parsed.operands.get(1..).unwrap_or_default();
        if args.is_empty() {
            return Err(Error::caller("exec args cannot be empty"));
        }
        // An empty user is no user: taking the container's would make it another one than was meant.
        let user = flags.raw("user").map(|user| UserSpec::parse(&user.to_string_lossy()));
        Ok(Self {
            args: args.to_vec(),
            cwd: flags.text("cwd")?,
            env: flags.texts("env")?,
            tty: flags.switch("tty"),
            user: user.transpose()?,
            additional_gids: flags
                .ints("additional-gids")
                .map(user::additional_gid)
                .collect::<Result<_, _>>()?,
            process_label: flags.text("process-label")?,
            apparmor: flags.text("apparmor")?,
            no_new_privs: flags.is_set("no-new-privs").then(|| flags.switch("no-new-privs")),
            caps: flags.texts("cap")?,
        })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    exec(&ExecArgs::new(parsed)?, global)
}

fn exec(args: &ExecArgs, global: &Global) -> Result<ExitCode, Error> {
    let request = ExecRequest {
        id: args.id.clone(),
        store: store(global)?,
        program: args.process.program()?,
        console_socket: args.console_socket.clone(),
        pidfd_socket: args.pidfd_socket.clone(),
        pid_file: args.pid_file.clone(),
        detach: args.detach,
        preserve_fds: args.preserve_fds,
        cgroup: args.sub_cgroups.clone(),
        ignore_paused: args.ignore_paused,
        exec_id: args.exec_id.clone(),
        exec_cgroup: args.exec_cgroup,
        timeout: args.timeout,
        called_as: global.program.clone(),
    };
    match brig_runtime::exec(&request)? {
        ExecEnd::Detached => Ok(ExitCode::SUCCESS),
        ExecEnd::Ended(status) => Ok(exit_code(Some(status))),
        ExecEnd::TimedOut => {
            let limit = args.timeout.unwrap_or_default();
            let message =
                format!("exec timed out after {limit:?}: the process and what it started were killed");
            crate::log::fail(&Error::caller(message));
            Ok(ExitCode::from(TIMED_OUT))
        }
    }
}

impl ExecProcess {
    fn program(&self) -> Result<Program, Error> {
        match self {
            Self::File(path) => {
                let text = std::fs::read(path).map_err(|error| Error::path("open", path, &error))?;
                let (process, _unknown) = brig_spec::from_slice(&text)
                    .map_err(|error| Error::new(Kind::Config, format!("{}: {error}", path.display())))?;
                Ok(Program::File(Box::new(process)))
            }
            Self::Command(command) => command.changes().map(Program::Changes),
        }
    }
}

impl ExecCommand {
    fn changes(&self) -> Result<Changes, Error> {
        let text = |word: &OsString| {
            let text = word.to_str().map(str::to_owned);
            text.ok_or_else(|| Error::caller(format!("the argument {word:?} is not valid UTF-8")))
        };
        Ok(Changes {
            args: self.args.iter().map(text).collect::<Result<_, _>>()?,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            terminal: self.tty,
            user: self.user.map(|user| (user.uid, user.gid)),
            additional_gids: self.additional_gids.clone(),
            capabilities: self.caps.clone(),
            no_new_privileges: self.no_new_privs == Some(true),
            apparmor_profile: self.apparmor.clone(),
            selinux_label: self.process_label.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{message, parsed};
    use super::{COMMAND, ExecArgs, ExecCommand, ExecProcess, PROCESS_FLAGS};
    use crate::error::Error;
    use crate::value::UserSpec;

    fn args(words: &[&str]) -> Result<ExecArgs, Error> {
        ExecArgs::new(&parsed(&[&["exec"], words].concat()))
    }

    fn command(words: &[&str]) -> ExecCommand {
        match args(words).unwrap().process {
            ExecProcess::Command(command) => *command,
            ExecProcess::File(file) => panic!("{file:?}"),
        }
    }

    #[test]
    fn a_command() {
        let command = command(&[
            "-t",
            "-e",
            "A=1,2",
            "--env=B",
            "-u",
            "1:2",
            "-g",
            "3",
            "-g=4",
            "-c",
            "CAP_KILL",
            "--cwd",
            "/tmp",
            "--no-new-privs=false",
            "c1",
            "sh",
            "-c",
            "exit 3",
        ]);
        assert_eq!(command.args, ["sh", "-c", "exit 3"]);
        assert_eq!(command.env, ["A=1,2", "B"]);
        assert_eq!(command.user, Some(UserSpec { uid: 1, gid: Some(2) }));
        assert_eq!(command.additional_gids, [3, 4]);
        assert_eq!(command.caps, ["CAP_KILL"]);
        assert_eq!(command.cwd.as_deref(), Some("/tmp"));
        assert_eq!(command.no_new_privs, Some(false));
        assert!(command.tty);
    }

    #[test]
    fn a_command_with_nothing_said() {
        let expected = ExecCommand { args: vec!["true".into()], ..ExecCommand::default() };
        assert_eq!(command(&["c1", "true"]), expected);
        assert_eq!(command(&["c1", "--", "true"]), expected);
        let args = args(&["c1", "true"]).unwrap();
        assert!(!args.detach && args.exec_id.is_none() && args.timeout.is_none() && !args.exec_cgroup);
    }

    #[test]
    fn a_file() {
        let args = args(&["--process", "/p.json", "--detach", "--pid-file", "/p", "c1"]).unwrap();
        assert_eq!(args.process, ExecProcess::File("/p.json".into()));
        assert!(args.detach);
    }

    #[test]
    fn named_and_timed() {
        let args = args(&["--exec-id", "e1", "--exec-cgroup", "--timeout", "1m30s", "c1", "true"]).unwrap();
        assert_eq!(args.exec_id.as_deref(), Some("e1"));
        assert!(args.exec_cgroup);
        assert_eq!(args.timeout, Some(Duration::from_secs(90)));
    }

    #[test]
    fn refusals() {
        assert_eq!(message(args(&["c1"])), "exec args cannot be empty");
        assert_eq!(message(args(&["a/b", "true"])), "invalid container ID format");
        assert_eq!(
            message(args(&["-u", "x", "c1", "true"])),
            r#"bad uid: strconv.Atoi: parsing "x": invalid syntax"#
        );
        assert_eq!(
            message(args(&["-u", "", "c1", "true"])),
            r#"bad uid: strconv.Atoi: parsing "": invalid syntax"#
        );
        assert_eq!(
            message(args(&["-g", "-1", "c1", "true"])),
            "additional-gids must be a positive number -1"
        );
        assert_eq!(message(args(&["--timeout", "0s", "c1", "true"])), "--timeout must be greater than 0");
        assert_eq!(message(args(&["--exec-id", "..", "c1", "true"])), "invalid exec ID format");
    }

    #[test]
    fn the_list_of_process_flags_is_up_to_date() {
        for name in PROCESS_FLAGS {
            assert!(COMMAND.flags.iter().any(|flag| flag.name == *name), "{name}");
        }
    }
}
