//! The plan itself: plain data, in the terms of the kernel rather than of JSON.
//!
//! Paths are as the runtime needs them: host paths absolute, paths inside the container absolute and cleaned
//! (no `.`, `..` or doubled slashes) but *not* resolved, since only the kernel can do that safely.

use std::collections::BTreeMap;
use std::path::PathBuf;

mod mount;
mod process;

pub use mount::*;
pub use process::*;

/// Everything the runtime does for one container, decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// `ociVersion` as the config has it; goes into state JSON.
    pub oci_version: String,
    /// The bundle directory, absolute.
    pub bundle: PathBuf,
    /// The root file system on the host, absolute.
    pub rootfs: PathBuf,
    /// `annotations`, unchanged.
    pub annotations: BTreeMap<String, String>,
    /// Which namespaces are made, joined or left alone.
    pub namespaces: Namespaces,
    /// Id mappings of the container's user namespace: of a new one what to write, of a joined one what it has (see
    /// [`Host::joined_user_namespace`](crate::Host::joined_user_namespace)). Empty without a user namespace.
    pub id_maps: IdMaps,
    /// Clock offsets of a new time namespace.
    pub time_offsets: TimeOffsets,
    /// How the container's `/` is set up.
    pub root: Root,
    /// Mounts in the order of the config.
    pub mounts: Vec<Mount>,
    /// Nodes to make in the container: the default ones, then the config's. Empty when `/dev` is a bind mount.
    pub devices: Vec<DeviceNode>,
    /// True when the runtime populates `/dev` (nodes, `ptmx`, `fd`, `stdin`, …); false when `/dev` is a bind mount.
    pub populate_dev: bool,
    /// `linux.maskedPaths`: absolute, cleaned, duplicates removed.
    pub masked_paths: Vec<PathBuf>,
    /// `linux.readonlyPaths`, likewise.
    pub readonly_paths: Vec<PathBuf>,
    /// `linux.sysctl`, keys turned into paths below `/proc/sys`.
    pub sysctls: Vec<Sysctl>,
    /// Host name of a private UTS namespace.
    pub hostname: Option<String>,
    /// NIS domain name of a private UTS namespace.
    pub domainname: Option<String>,
    /// The container's process.
    pub process: Process,
    /// The system call filter, still to be compiled.
    pub seccomp: Option<brig_spec::Seccomp>,
    /// A compiled one in its place, `struct sock_filter` each.
    pub raw_filter: Option<Vec<u8>>,
    /// Where the container lives among the cgroups, and within which limits.
    pub cgroup: CgroupPlan,
    /// Programs to run at the six points of the life cycle.
    pub hooks: Hooks,
    /// `linux.netDevices`: host interfaces to move in, host name to name inside.
    pub net_devices: Vec<NetDevice>,
    /// `linux.intelRdt`.
    pub intel_rdt: Option<brig_spec::IntelRdt>,
    /// Cgroup permission errors are to be ignored (`--rootless`).
    pub rootless_cgroups: bool,
    /// The caller is not root in the initial user namespace.
    pub rootless_euid: bool,
    /// Keep the caller's session keyring (`--no-new-keyring`).
    pub keep_keyring: bool,
}

/// A namespace of the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ns {
    /// The runtime's own.
    #[default]
    Host,
    /// A new one.
    New,
    /// The one that this path names.
    Join(PathBuf),
}

impl Ns {
    /// Whether the container has a namespace other than the runtime's.
    pub fn is_private(&self) -> bool {
        !matches!(self, Self::Host)
    }
}

/// The eight kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are namespaces(7)'s")]
pub struct Namespaces {
    pub user: Ns,
    pub mount: Ns,
    pub pid: Ns,
    pub network: Ns,
    pub ipc: Ns,
    pub uts: Ns,
    pub cgroup: Ns,
    pub time: Ns,
}

/// One range of a `uid_map` or `gid_map`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMap {
    /// First id inside the namespace.
    pub inside: u32,
    /// First id outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// A pair of id mappings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMaps {
    /// For `uid_map`.
    pub uid: Vec<IdMap>,
    /// For `gid_map`.
    pub gid: Vec<IdMap>,
}

impl IdMaps {
    /// Nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.uid.is_empty() && self.gid.is_empty()
    }

    /// What the user `uid` of the namespace is outside; `None` when it is not mapped.
    pub fn outside_uid(&self, uid: u32) -> Option<u32> {
        outside(&self.uid, uid)
    }

    /// What the group `gid` of the namespace is outside; `None` when it is not mapped.
    pub fn outside_gid(&self, gid: u32) -> Option<u32> {
        outside(&self.gid, gid)
    }
}

fn outside(maps: &[IdMap], inside: u32) -> Option<u32> {
    maps.iter().find_map(|map| {
        let offset = inside.checked_sub(map.inside).filter(|offset| *offset < map.count)?;
        map.outside.checked_add(offset)
    })
}

/// `linux.timeOffsets`, for `/proc/PID/timens_offsets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeOffsets {
    /// Seconds and nanoseconds added to CLOCK_MONOTONIC.
    pub monotonic: Option<(i64, u32)>,
    /// Seconds and nanoseconds added to CLOCK_BOOTTIME.
    pub boottime: Option<(i64, u32)>,
}

/// How `/` of the container is set up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Root {
    /// `root.readonly`.
    pub readonly: bool,
    /// `linux.rootfsPropagation`; `None` means the default, rslave while the container is made.
    pub propagation: Option<Propagation>,
    /// `--no-pivot`: move the root over `/` and chroot, for roots on a ramdisk.
    pub no_pivot: bool,
}

/// A propagation type, see mount_namespaces(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Propagation {
    /// The type.
    pub kind: PropagationKind,
    /// Also for all mounts below.
    pub recursive: bool,
}

/// See mount_namespaces(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are mount_namespaces(7)'s")]
pub enum PropagationKind {
    Shared,
    Slave,
    Private,
    Unbindable,
}

/// A device node in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNode {
    /// Absolute and cleaned.
    pub path: PathBuf,
    /// Kind.
    pub kind: NodeKind,
    /// Major number; 0 for a fifo.
    pub major: u32,
    /// Minor number; 0 for a fifo.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner inside the container.
    pub uid: u32,
    /// Group inside the container.
    pub gid: u32,
    /// One of the six that every container gets.
    pub default: bool,
}

/// Kind of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are mknod(2)'s")]
pub enum NodeKind {
    Char,
    Block,
    Fifo,
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// As the config has it.
    pub key: String,
    /// Relative to `/proc/sys`, made of plain names only (never `..`).
    pub path: PathBuf,
    /// What to write.
    pub value: String,
}

/// Cgroup placement and limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgroupPlan {
    /// `linux.cgroupsPath`; empty when the config gives none (then the name is the container's id). With systemd
    /// `slice:prefix:name`; else cleaned, and free of `..`.
    pub path: String,
    /// `--systemd-cgroup`.
    pub systemd: bool,
    /// `linux.resources`, checked, device rules completed with the default allow list.
    pub resources: brig_spec::Resources,
    /// `org.systemd.property.*` annotations: property name, as written, and GVariant text. Only with systemd.
    pub systemd_properties: Vec<(String, String)>,
    /// The user, as seen from the host, to whom the cgroup is given: set when the container can manage cgroups of
    /// its own, that is in a cgroup namespace with a writable cgroup file system.
    pub owner: Option<u32>,
}

/// The six kinds of hooks, each in the order of the config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub struct Hooks {
    pub prestart: Vec<Hook>,
    pub create_runtime: Vec<Hook>,
    pub create_container: Vec<Hook>,
    pub start_container: Vec<Hook>,
    pub poststart: Vec<Hook>,
    pub poststop: Vec<Hook>,
}

/// A program run at a point of the life cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Absolute path.
    pub path: PathBuf,
    /// argv, `[path]` when the config gives none.
    pub args: Vec<String>,
    /// Environment; `None` when the config has no `env` (runc then passes on its own).
    pub env: Option<Vec<String>>,
    /// Seconds until it is killed; always positive.
    pub timeout: Option<u32>,
    /// File on the host that its standard output is appended to.
    pub stdout: Option<PathBuf>,
    /// Likewise for its standard error.
    pub stderr: Option<PathBuf>,
}

/// An interface to move into the container's network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetDevice {
    /// Name on the host.
    pub host_name: String,
    /// Name inside.
    pub name: String,
}
