//! Flags that stand before the command, or among its own.

use super::Flag;

/// Accepted everywhere; answered by the parser itself.
pub const HELP: Flag = Flag::switch("help", "show this help").short("h");

/// Accepted before the command only; answered by the parser itself.
pub const VERSION: Flag = Flag::switch("version", "show the version").short("v");

/// The global flags but for [`HELP`] and [`VERSION`].
pub static FLAGS: &[Flag] = &[
    Flag::switch("debug", "log debug messages too, and where in the program they come from"),
    Flag::path("log", "append the log to this file (default: standard error)"),
    Flag::text("log-format", "write the log as 'text' or 'json'").default("text"),
    Flag::path(
        "root",
        "keep the state of containers in this directory, best on a tmpfs (default: /run/runc; rootless: $XDG_RUNTIME_DIR/runc)",
    ),
    Flag::switch(
        "systemd-cgroup",
        "let systemd manage the cgroups; cgroupsPath is then of the form slice:prefix:name",
    ),
    Flag::text(
        "rootless",
        "whether errors for want of permission on cgroups are ignored: 'true', 'false' or 'auto'",
    )
    .default("auto"),
    Flag::path("trace", "write a trace of the command to this file (also: $BRIG_TRACE)"),
    Flag::path("criu", "(obsolete, ignored)").hidden(),
    Flag::text("cgroup-manager", "'cgroupfs', or 'systemd' for --systemd-cgroup").hidden(),
];
