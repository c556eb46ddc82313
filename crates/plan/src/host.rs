//! What a plan is made from besides the configuration: the caller's wishes and the facts about the host.

use std::path::PathBuf;

use crate::IdMaps;

/// What the command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The container's id, checked.
    pub id: String,
    /// The bundle directory, absolute.
    pub bundle: PathBuf,
    /// `--no-pivot`.
    pub no_pivot: bool,
    /// `--systemd-cgroup`.
    pub systemd_cgroup: bool,
    /// `--rootless`: whether errors about cgroup permissions are ignored; `None` is `auto`.
    pub rootless: Option<bool>,
    /// `--no-new-keyring`.
    pub keep_keyring: bool,
    /// The command returns while the process runs: `create`, `run -d`.
    pub detached: bool,
    /// `--console-socket` was given.
    pub console_socket: bool,
}

impl Request {
    /// Whether errors about cgroup permissions are ignored.
    ///
    /// Left to itself that is so for callers who probably do not own the cgroups: those who are not root, and those
    /// who are root of a user namespace only, unless a systemd of that namespace's root manages cgroups for them.
    pub(crate) fn rootless_cgroups(&self, host: &Host) -> bool {
        self.rootless.unwrap_or_else(|| {
            let owned_by_systemd = self.systemd_cgroup && host.user_bus_owner == Some(0);
            host.euid != 0 || (host.in_user_ns && !owned_by_systemd)
        })
    }
}

/// Facts about the host, as the runtime found them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Effective user id.
    pub euid: u32,
    /// The runtime is not in the initial user namespace.
    pub in_user_ns: bool,
    /// Owner of the user's systemd, told by its D-Bus. Only of interest to root in a user namespace with
    /// `--systemd-cgroup`.
    pub user_bus_owner: Option<u32>,
    /// Which cgroups there are.
    pub cgroups: CgroupMode,
    /// AppArmor is enabled.
    pub apparmor: bool,
    /// SELinux is enabled.
    pub selinux: bool,
    /// `/proc/sys/kernel/cap_last_cap`.
    pub last_capability: u32,
    /// The kernel has user namespaces.
    pub user_namespaces: bool,
    /// The kernel has cgroup namespaces.
    pub cgroup_namespaces: bool,
    /// The kernel has time namespaces.
    pub time_namespaces: bool,
    /// What the mounted resctrl file system offers; `None` when there is none.
    pub intel_rdt: Option<IntelRdtSupport>,
    /// Those paths of `linux.namespaces`, as written, that lead to a namespace which the runtime itself is in.
    pub own_namespaces: Vec<PathBuf>,
    /// Id mappings of the user namespace that `linux.namespaces` joins; `None` when it joins none.
    pub joined_user_namespace: Option<IdMaps>,
    /// What /etc/subuid and /etc/subgid grant to the caller: first id and how many. Looked up only for a caller who is not root
    /// and a configuration without a user namespace.
    pub subordinate: Subordinate,
}

/// Subordinate ids, see subuid(5).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subordinate {
    /// Effective group id of the caller.
    pub egid: u32,
    /// User ids.
    pub uid: Vec<(u32, u32)>,
    /// Group ids.
    pub gid: Vec<(u32, u32)>,
}

impl Default for Host {
    /// Root on a host with cgroup v2 and a kernel of 5.10 or later, without a security module.
    fn default() -> Self {
        Self {
            euid: 0,
            in_user_ns: false,
            user_bus_owner: None,
            cgroups: CgroupMode::V2,
            apparmor: false,
            selinux: false,
            last_capability: 40,
            user_namespaces: true,
            cgroup_namespaces: true,
            time_namespaces: true,
            intel_rdt: None,
            own_namespaces: Vec::new(),
            joined_user_namespace: None,
            subordinate: Subordinate::default(),
        }
    }
}

/// The cgroup hierarchies of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupMode {
    /// One hierarchy per controller.
    V1,
    /// The same, and a v2 hierarchy without controllers.
    Hybrid,
    /// One hierarchy for all.
    #[default]
    V2,
}

/// What resctrl can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntelRdtSupport {
    /// Cache allocation.
    pub l3_cache: bool,
    /// Memory bandwidth allocation.
    pub memory_bandwidth: bool,
}
