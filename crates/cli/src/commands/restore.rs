//! `restore`: understood, because clients probe its flags, but not done.

use crate::status::ExitCode;

use super::checkpoint as images;
use super::{container_id, setup};
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;

/// The table.
pub static COMMAND: Command = Command {
    flags: &[
        setup::CONSOLE_SOCKET,
        images::IMAGE_PATH,
        images::WORK_PATH,
        images::TCP_ESTABLISHED,
        images::EXT_UNIX_SK,
        images::SHELL_JOB,
        images::FILE_LOCKS,
        images::MANAGE_CGROUPS_MODE,
        setup::BUNDLE,
        setup::DETACH,
        setup::PID_FILE,
        setup::NO_SUBREAPER,
        setup::NO_PIVOT,
        images::EMPTY_NS,
        images::AUTO_DEDUP,
        images::LAZY_PAGES,
        Flag::text("lsm-profile", "restore under this profile: <type>:<name>"),
        Flag::text("lsm-mount-context", "restore mounts with this SELinux context"),
        Flag::switch("tcp-close", "close TCP connections").hidden(),
    ],
    hidden: true,
    ..Command::new("restore", "bring a saved container back (not supported by this build)", run)
};

fn run(parsed: &Parsed, _global: &Global) -> Result<ExitCode, Error> {
    container_id(parsed)?;
    Err(Error::unsupported("restore"))
}
