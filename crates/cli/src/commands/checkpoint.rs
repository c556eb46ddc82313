//! `checkpoint`: understood, because clients probe its flags, but not done.

use crate::status::ExitCode;

use super::container_id;
use crate::error::Error;
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;

pub(super) const IMAGE_PATH: Flag = Flag::path("image-path", "directory of the images");
pub(super) const WORK_PATH: Flag = Flag::path("work-path", "directory of CRIU's log and statistics");
pub(super) const TCP_ESTABLISHED: Flag = Flag::switch("tcp-established", "allow open TCP connections");
pub(super) const EXT_UNIX_SK: Flag = Flag::switch("ext-unix-sk", "allow AF_UNIX sockets with a peer outside");
pub(super) const SHELL_JOB: Flag = Flag::switch("shell-job", "allow a session that began outside");
pub(super) const FILE_LOCKS: Flag = Flag::switch("file-locks", "allow file locks");
pub(super) const AUTO_DEDUP: Flag = Flag::switch("auto-dedup", "remove duplicate memory from the images");
pub(super) const LAZY_PAGES: Flag = Flag::switch("lazy-pages", "restore memory when it is used");
pub(super) const MANAGE_CGROUPS_MODE: Flag =
    Flag::text("manage-cgroups-mode", "'soft' (default), 'full', 'strict' or 'ignore'");
pub(super) const EMPTY_NS: Flag =
    Flag::text("empty-ns", "leave this namespace empty; only 'network'").repeated();

/// The table.
pub static COMMAND: Command = Command {
    flags: &[
        IMAGE_PATH,
        WORK_PATH,
        Flag::path("parent-path", "images of an earlier --pre-dump, relative to --image-path"),
        Flag::switch("leave-running", "let the container go on"),
        TCP_ESTABLISHED,
        Flag::switch("tcp-skip-in-flight", "skip TCP connections that are being made"),
        Flag::switch("link-remap", "allow files that were removed but are open"),
        EXT_UNIX_SK,
        SHELL_JOB,
        LAZY_PAGES,
        Flag::int("status-fd", "write a NUL byte to this descriptor when pages can be served").default("-1"),
        Flag::text("page-server", "send the pages to <address>:<port>"),
        FILE_LOCKS,
        Flag::switch("pre-dump", "save the memory only, and let the container go on"),
        MANAGE_CGROUPS_MODE,
        EMPTY_NS,
        AUTO_DEDUP,
        Flag::switch("tcp-close", "close TCP connections").hidden(),
    ],
    hidden: true,
    ..Command::new("checkpoint", "save a running container (not supported by this build)", run)
};

fn run(parsed: &Parsed, _global: &Global) -> Result<ExitCode, Error> {
    container_id(parsed)?;
    Err(Error::unsupported("checkpoint"))
}
