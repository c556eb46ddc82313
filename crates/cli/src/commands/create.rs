//! `create`: makes a container and leaves its process waiting for `start`.

use crate::status::ExitCode;

use super::container_id;
use super::setup::{self, SetupArgs};
use crate::error::Error;
use crate::flags::{Command, Parsed};
use crate::global::Global;
use crate::value::ContainerId;

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Makes a container with the name <container-id>, which nothing below --root may have yet, from
a bundle: a directory with a config.json and, as a rule, the root file system. The process of
config.json is ready but not executed until start.",
    flags: &[
        setup::BUNDLE,
        setup::CONSOLE_SOCKET,
        setup::PIDFD_SOCKET,
        setup::PID_FILE,
        setup::NO_PIVOT,
        setup::NO_NEW_KEYRING,
        setup::PRESERVE_FDS,
        // go-runc passes it where its caller asked for a detached run; create always is.
        setup::DETACH.hidden(),
    ],
    error_prefix: "runc create failed: ",
    ..Command::new("create", "make a container from a bundle", run)
};

/// What `create` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateArgs {
    /// The container's name.
    pub id: ContainerId,
    /// How it is set up.
    pub setup: SetupArgs,
}

impl CreateArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self { id: container_id(parsed)?, setup: SetupArgs::new(parsed)? })
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    create(&CreateArgs::new(parsed)?, global)
}

fn create(args: &CreateArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::create(&args.setup.request(&args.id, global)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, parsed};
    use super::CreateArgs;

    fn args(words: &[&str]) -> Result<CreateArgs, crate::error::Error> {
        CreateArgs::new(&parsed(&[&["create"], words].concat()))
    }

    #[test]
    fn defaults() {
        let here = std::env::current_dir().unwrap();
        for bundle in [&[][..], &["--bundle", ""], &["-b", "."]] {
            let args = args(&[bundle, &["c1"]].concat()).unwrap();
            assert_eq!(args.id.as_str(), "c1");
            assert_eq!(args.setup.bundle, here);
            assert_eq!(args.setup.preserve_fds, 0);
            assert_eq!(args.setup.pid_file, None);
            assert!(!args.setup.no_pivot && !args.setup.no_new_keyring);
        }
    }

    #[test]
    fn as_containerd_calls_it() {
        let args = args(&[
            "--bundle",
            "/b",
            "--pid-file",
            "/b/init.pid",
            "--console-socket",
            "/tmp/pty.sock",
            "--no-pivot",
            "--no-new-keyring",
            "--detach",
            "--preserve-fds",
            "2",
            "c1",
        ]);
        let setup = args.unwrap().setup;
        assert_eq!(setup.bundle.to_str(), Some("/b"));
        assert_eq!(setup.pid_file.unwrap().to_str(), Some("/b/init.pid"));
        assert_eq!(setup.console_socket.unwrap().to_str(), Some("/tmp/pty.sock"));
        assert!(setup.no_pivot && setup.no_new_keyring);
        assert_eq!(setup.preserve_fds, 2);
    }

    #[test]
    fn relative_paths() {
        let setup = args(&["-b", "/b/../c", "--pid-file=p", "--pidfd-socket=s", "x"]).unwrap().setup;
        assert_eq!(setup.bundle.to_str(), Some("/c"));
        assert_eq!(setup.pidfd_socket.unwrap().to_str(), Some("/c/s"));
        assert_eq!(setup.pid_file.unwrap(), std::env::current_dir().unwrap().join("p"));
    }

    #[test]
    fn refusals() {
        assert_eq!(message(args(&[""])), "container id cannot be empty");
        assert_eq!(message(args(&["../x"])), "invalid container ID format");
        assert!(message(args(&["--preserve-fds", "-1", "x"])).starts_with("--preserve-fds: -1"));
    }
}
