//! What can go wrong with cgroups, in words for the one who has to act.

use std::path::PathBuf;

use brig_sys::errno_text;
use rustix::io::Errno;

use crate::limits::Invalid;
use crate::straggler::{Straggler, list};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. The text names what was being done, to what, and the system's reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call on a cgroup directory or file failed.
    #[error("{doing} {}: {}", path.display(), errno_text(*errno))]
    Io {
        /// The activity, such as `creating cgroup`.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// Why it failed.
        errno: Errno,
    },

    /// A file of the kernel does not read as documented.
    #[error("{}: unexpected content: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What could not be understood.
        what: String,
    },

    /// No cgroup file system is mounted.
    #[error("no cgroup file system is mounted at /sys/fs/cgroup")]
    NoHierarchy,

    /// A cgroup v1 host without the devices controller, which is needed to keep containers off the host's disks.
    #[error("the devices cgroup controller is not mounted")]
    NoDevices,

    /// A `cgroupsPath`, or a name from the record, that no container may have.
    #[error("invalid cgroup path {path:?}: {why}")]
    BadPath {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },

    /// There are processes in the cgroup that a new container is to have.
    #[error("{}: container's cgroup is not empty: {count} process(es) found", path.display())]
    NotEmpty {
        /// The cgroup.
        path: PathBuf,
        /// How many, sub-cgroups included.
        count: usize,
    },

    /// The cgroup that a new container is to have, or one above it, is frozen: nothing could run in it.
    #[error("{}: container's cgroup unexpectedly frozen", path.display())]
    Frozen {
        /// The cgroup.
        path: PathBuf,
    },

    /// No cgroup could be made for want of permission, and there are limits to be set.
    #[error("rootless needs no limits + no cgrouppath when no permission is granted for cgroups: {0}")]
    RootlessLimits(#[source] Box<Error>),

    /// A limit for a v1 controller whose cgroup could not be made for want of permission.
    #[error("{source_path}: cannot set {controller} limit: container could not join or create cgroup")]
    NotJoined {
        /// The JSON path of the limit.
        source_path: String,
        /// The controller.
        controller: String,
    },

    /// Limits of controllers that work on whole processes, in a cgroup that cannot have such controllers.
    #[error(
        "cannot enter cgroupv2 {path:?} with domain controllers -- it is in {state}: a cgroup above it has \
         processes or is threaded, use another cgroupsPath"
    )]
    Threaded {
        /// The cgroup.
        path: PathBuf,
        /// `an invalid state`, or `threaded mode` and the like.
        state: String,
    },

    /// A limit was refused.
    #[error("{source_path}: writing {value:?} to {}: {}{hint}", file.display(), errno_text(*errno))]
    Limit {
        /// The JSON path of the limit.
        source_path: String,
        /// The file.
        file: PathBuf,
        /// What was written.
        value: String,
        /// The kernel's answer.
        errno: Errno,
        /// What to look at, or nothing.
        hint: &'static str,
    },

    /// A limit for a controller that the cgroup does not have.
    #[error("{source_path}: cgroup controller {controller:?} is not available{reason}")]
    NoController {
        /// The JSON path of the limit.
        source_path: String,
        /// The controller.
        controller: String,
        /// Where it is missing and why, or nothing.
        reason: String,
    },

    /// An entry of `unified` for a controller that the cgroup does not have.
    #[error(
        "linux.resources.unified: unified resource {key:?} can't be set: controller {controller:?} not available{reason}"
    )]
    NoUnifiedController {
        /// The file.
        key: String,
        /// The controller.
        controller: String,
        /// Where it is missing and why, or nothing.
        reason: String,
    },

    /// A limit that this kernel has no file for.
    #[error("{source_path}: this kernel offers no {}", file.display())]
    NoFile {
        /// The JSON path of the limit.
        source_path: String,
        /// The file.
        file: PathBuf,
    },

    /// A v1 memory limit below what cannot be reclaimed.
    #[error(
        "{source_path}: unable to set memory limit to {value} (current usage: {usage}, peak usage: {peak})"
    )]
    MemoryBusy {
        /// The JSON path of the limit.
        source_path: String,
        /// Bytes asked for.
        value: String,
        /// Bytes in use.
        usage: u64,
        /// Most bytes in use so far.
        peak: u64,
    },

    /// `checkBeforeUpdate` forbids a limit at or below what is in use.
    #[error("{source_path}: rejecting {what} limit {limit} <= usage {usage}")]
    BelowUsage {
        /// The JSON path of the limit.
        source_path: &'static str,
        /// `memory` or `memory+swap`.
        what: &'static str,
        /// Bytes asked for.
        limit: i64,
        /// Bytes in use.
        usage: u64,
    },

    /// An update failed, and a value that it had changed could not be put back.
    #[error("{update}; and the previous values could not be restored: {undo}")]
    NotUndone {
        /// Why the update failed.
        #[source]
        update: Box<Error>,
        /// Why the return failed.
        undo: Box<Error>,
    },

    /// A limit whose value makes no sense.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// A process could not be moved in.
    #[error("error adding pid {pid} to cgroups: writing {}: {}", file.display(), errno_text(*errno))]
    Attach {
        /// The process.
        pid: i32,
        /// The `cgroup.procs`.
        file: PathBuf,
        /// The kernel's answer.
        errno: Errno,
    },

    /// Not all tasks stopped in time; the cgroup has been thawed again.
    #[error("{}: unable to freeze{}", path.display(), list(left))]
    Freeze {
        /// The cgroup.
        path: PathBuf,
        /// Processes that the kernel has not stopped, when they are in an uninterruptible wait.
        left: Vec<Straggler>,
    },

    /// The container has no cgroup to freeze.
    #[error("cannot toggle freezer: the container has no cgroup with a freezer")]
    NoFreezer,

    /// `exec --cgroup` with a path that leads out of the container's cgroup.
    #[error("bad sub cgroup path: {0}")]
    SubPath(String),

    /// `exec --cgroup` with a controller that the container has no cgroup for.
    #[error("unknown controller {0}")]
    UnknownController(String),

    /// `exec --cgroup` that does not read as `[CONTROLLER,…:]PATH`.
    #[error("invalid --cgroup argument: {argument} ({why})")]
    SubArgument {
        /// The argument.
        argument: String,
        /// What is wrong with it.
        why: &'static str,
    },

    /// A cgroup directory would not go.
    #[error("removing cgroup {}: {}{}", path.display(), errno_text(*errno), list(left))]
    Remove {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer to the last try.
        errno: Errno,
        /// Processes that are still in it.
        left: Vec<Straggler>,
    },

    /// Processes outlived SIGKILL.
    #[error("cgroup {}: processes are still there after being killed{}", path.display(), list(left))]
    Survivors {
        /// The cgroup.
        path: PathBuf,
        /// Who.
        left: Vec<Straggler>,
    },

    /// Device rules that cgroup v1 cannot express.
    #[error(
        "linux.resources.devices: rule \"{rule}\" is not supported by cgroup v1: cannot punch a hole in \"{other}\""
    )]
    DeviceHole {
        /// The rule.
        rule: String,
        /// The one that it would cut into.
        other: String,
    },

    /// The devices cgroup does not hold what was written to it.
    #[error("{}: resulting devices cgroup doesn't precisely match the rules", path.display())]
    DeviceMismatch {
        /// The file that was read back.
        path: PathBuf,
    },

    /// An annotation about a property of the unit that does not read as GVariant text.
    #[error(
        "annotations[\"org.systemd.property.{name}\"]: annotation org.systemd.property.{name}={value} value parse \
         error: {fault}"
    )]
    Annotation {
        /// The property.
        name: String,
        /// The text.
        value: String,
        /// What is wrong with it, and where.
        fault: String,
    },

    /// systemd cannot be reached, or the connection to it broke.
    #[error("{doing}: {fault}")]
    Bus {
        /// What was being done.
        doing: String,
        /// Which sockets were tried, and what went wrong.
        fault: String,
    },

    /// systemd, or the bus, refused.
    #[error("{doing}: {name}: {text}")]
    Systemd {
        /// What was being done.
        doing: String,
        /// The name of the D-Bus error.
        name: String,
        /// Its text.
        text: String,
    },

    /// systemd began to make a unit and did not succeed.
    #[error("error creating systemd unit `{unit}`: got `{result}` (see the journal, journalctl -u {unit})")]
    Job {
        /// The unit.
        unit: String,
        /// The job's result: `failed`, `canceled`, `timeout`, `dependency` and so on.
        result: String,
    },

    /// systemd did not answer in time.
    #[error("Timeout waiting for systemd to create {unit}")]
    JobTimeout {
        /// The unit.
        unit: String,
    },

    /// A unit that was stopped is still there.
    #[error("systemd unit `{unit}` does not stop (see systemctl status {unit})")]
    UnitRemains {
        /// The unit.
        unit: String,
    },

    /// The unit is there, and the process is not in it.
    #[error("systemd put the process of unit `{unit}` in {}, not in {}", found.display(), wanted.display())]
    Misplaced {
        /// The unit.
        unit: String,
        /// Where the process is.
        found: PathBuf,
        /// Where the record says that it is, from the cgroup of systemd on.
        wanted: PathBuf,
    },

    /// bpf(2) refused the device filter.
    #[error("linux.resources.devices: {doing} the device filter of {}: bpf: {}{detail}", path.display(), errno_text(*errno))]
    DeviceFilter {
        /// `loading`, `attaching` and the like.
        doing: &'static str,
        /// The cgroup.
        path: PathBuf,
        /// The kernel's answer.
        errno: Errno,
        /// The verifier's last words, or what is probably missing.
        detail: String,
    },
}

impl Error {
    /// The system's error number, where there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Io { errno, .. }
            | Self::Limit { errno, .. }
            | Self::Attach { errno, .. }
            | Self::Remove { errno, .. }
            | Self::DeviceFilter { errno, .. } => Some(*errno),
            Self::MemoryBusy { .. } => Some(Errno::BUSY),
            Self::RootlessLimits(inner) | Self::NotUndone { update: inner, .. } => inner.errno(),
            _ => None,
        }
    }

    /// Whether the caller may not do this: what `--rootless` tolerates.
    pub(crate) fn is_permission(&self) -> bool {
        self.errno().is_some_and(is_permission)
    }
}

/// EROFS counts: a read-only /sys/fs/cgroup is how containers are told that they may not.
pub(crate) fn is_permission(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::ACCESS | Errno::ROFS)
}
