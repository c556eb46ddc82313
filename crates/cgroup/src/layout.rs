//! Which cgroup hierarchies this host has, and where.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dir::read_path;
use crate::error::{Error, Result};
use crate::parse::{self, CgroupMount, Membership};

/// Where the hierarchies are, by convention of systemd and everyone since.
const ROOT: &str = "/sys/fs/cgroup";

/// Superblock magic of cgroup v2, see statfs(2).
pub(crate) const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// Superblock magic of cgroup v1.
pub(crate) const CGROUP_MAGIC: u64 = 0x0027_e0eb;

/// The v1 hierarchies that a container joins, in the order in which they are set up. Others (`name=elogind`, say)
/// are somebody else's.
const V1_CONTROLLERS: [&str; 15] = [
    "cpuset",
    "devices",
    "memory",
    "cpu",
    "cpuacct",
    "pids",
    "blkio",
    "hugetlb",
    "net_cls",
    "net_prio",
    "perf_event",
    "freezer",
    "rdma",
    "name=systemd",
    "misc",
];

/// How the host arranges cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only v1 hierarchies.
    V1,
    /// v1 hierarchies for the controllers, and a v2 hierarchy beside them.
    Hybrid,
    /// One v2 hierarchy at /sys/fs/cgroup.
    V2,
}

/// One hierarchy.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// v1: its controllers, or `name=systemd`. v2: empty.
    pub controllers: Vec<String>,
    /// Whether it is the v2 one.
    pub unified: bool,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// This process's cgroup, relative to `mount`; looked up when first asked for.
    own: OnceCell<PathBuf>,
}

impl Hierarchy {
    /// A hierarchy in which this process's cgroup is `own`, relative to the mount point. `None` for the v2
    /// hierarchy at /sys/fs/cgroup has it looked up when needed.
    pub fn new(controllers: &[&str], unified: bool, mount: &str, own: Option<&str>) -> Self {
        Self {
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
            unified,
            mount: mount.into(),
            own: own.map_or_else(OnceCell::new, |own| OnceCell::from(parse::clean(own))),
        }
    }

    /// This process's own cgroup, relative to the mount point; empty for the root.
    ///
    /// # Errors
    ///
    /// `/proc/self/cgroup` cannot be read, or does not tell.
    pub fn own(&self) -> Result<&Path> {
        if let Some(own) = self.own.get() {
            return Ok(own);
        }
        let file = Path::new("/proc/self/cgroup");
        let text = read_proc(file)?;
        let own = parse::memberships(&text).into_iter().find(|entry| entry.id == 0).ok_or_else(|| {
            Error::Malformed { path: file.to_owned(), what: "no line for cgroup v2".to_owned() }
        })?;
        Ok(self.own.get_or_init(|| parse::relative(&own.path, Path::new("/"))))
    }
}

/// All hierarchies of the host that containers join.
#[derive(Debug, Clone)]
pub struct Layout {
    /// How they are arranged.
    pub mode: Mode,
    /// On v2 exactly one.
    pub hierarchies: Vec<Hierarchy>,
}

impl Layout {
    /// Looks at the host. On v2 this is one statfs(2); otherwise mountinfo and `/proc/self/cgroup` are read.
    ///
    /// # Errors
    ///
    /// [`Error::NoHierarchy`], or procfs cannot be read.
    pub fn detect() -> Result<Self> {
        match rustix::fs::statfs(ROOT) {
            Ok(stat) if magic(&stat) == CGROUP2_MAGIC => {
                return Ok(Self { mode: Mode::V2, hierarchies: vec![Hierarchy::new(&[], true, ROOT, None)] });
            }
            Ok(_) => {}
            Err(Errno::NOENT) => return Err(Error::NoHierarchy),
            Err(errno) => {
                return Err(Error::Io { doing: "looking at", path: ROOT.into(), errno });
            }
        }
        let mounts = read_proc(Path::new("/proc/self/mountinfo"))?;
        let own = read_proc(Path::new("/proc/self/cgroup"))?;
        Self::from_v1(&parse::cgroup_mounts(&mounts), &parse::memberships(&own))
    }

    /// The v1 or hybrid layout that mountinfo and `/proc/self/cgroup` describe.
    ///
    /// # Errors
    ///
    /// [`Error::NoHierarchy`] when none of the hierarchies that this process is in is mounted.
    pub fn from_v1(mounts: &[CgroupMount], own: &[Membership]) -> Result<Self> {
        let mut found: Vec<(usize, Hierarchy)> = Vec::new();
        for entry in own {
            let Some(rank) = rank(&entry.controllers) else {
                continue;
            };
            // The first: a container may see the host's mounts beneath its own.
            let mount = mounts.iter().find(|mount| {
                !mount.unified && entry.controllers.iter().all(|name| mount.options.contains(name))
            });
            if let Some(mount) = mount {
                let hierarchy = Hierarchy {
                    controllers: entry.controllers.clone(),
                    unified: false,
                    mount: mount.mount_point.clone(),
                    own: OnceCell::from(parse::relative(&entry.path, &mount.root)),
                };
                found.push((rank, hierarchy));
            }
        }
        if found.is_empty() {
            return Err(Error::NoHierarchy);
        }
        found.sort_by_key(|(rank, _)| *rank);
        let mut hierarchies: Vec<Hierarchy> = found.into_iter().map(|(_, hierarchy)| hierarchy).collect();
        let unified = unified_beside_v1(mounts, own);
        let mode = if unified.is_some() { Mode::Hybrid } else { Mode::V1 };
        hierarchies.extend(unified);
        Ok(Self { mode, hierarchies })
    }
}

/// Place of the first known controller in [`V1_CONTROLLERS`].
fn rank(controllers: &[String]) -> Option<usize> {
    V1_CONTROLLERS.iter().position(|known| controllers.iter().any(|name| name == known))
}

/// The v2 hierarchy of the hybrid layout: below /sys/fs/cgroup. One mounted elsewhere is not for us.
fn unified_beside_v1(mounts: &[CgroupMount], own: &[Membership]) -> Option<Hierarchy> {
    let mount = mounts.iter().find(|mount| mount.unified && mount.mount_point.starts_with(ROOT))?;
    let entry = own.iter().find(|entry| entry.id == 0)?;
    Some(Hierarchy {
        controllers: Vec::new(),
        unified: true,
        mount: mount.mount_point.clone(),
        own: OnceCell::from(parse::relative(&entry.path, &mount.root)),
    })
}

/// The magic number of a file system, in a type that compares.
pub(crate) fn magic(stat: &rustix::fs::StatFs) -> u64 {
    u64::try_from(stat.f_type).unwrap_or(0)
}

fn read_proc(path: &Path) -> Result<String> {
    read_path(path).map_err(|errno| Error::Io { doing: "reading", path: path.to_owned(), errno })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
36 31 0:33 /pod /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/elogind rw - cgroup cgroup rw,name=elogind
";

    const OWN: &str =
        "5:name=elogind:/s\n4:memory:/pod/x\n3:devices:/\n2:cpuset:/\n1:cpu,cpuacct:/d\n0::/u\n";

    fn detect(mounts: &str, own: &str) -> Result<Layout> {
        Layout::from_v1(&parse::cgroup_mounts(mounts), &parse::memberships(own))
    }

    #[test]
    fn v1_in_order_of_setup() {
        let layout = detect(HYBRID, OWN).unwrap();
        assert_eq!(layout.mode, Mode::V1);
        let found: Vec<(&str, &str)> = layout
            .hierarchies
            .iter()
            .map(|h| (h.controllers[0].as_str(), h.own().unwrap().to_str().unwrap()))
            .collect();
        assert_eq!(found, [("cpuset", ""), ("devices", ""), ("memory", "x"), ("cpu", "d")]);
        assert_eq!(layout.hierarchies[3].controllers, ["cpu", "cpuacct"]);
    }

    #[test]
    fn hybrid_has_the_unified_one_last() {
        let mounts = format!("{HYBRID}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        let layout = detect(&mounts, OWN).unwrap();
        assert_eq!(layout.mode, Mode::Hybrid);
        let last = layout.hierarchies.last().unwrap();
        assert!(last.unified && last.own().unwrap() == Path::new("u"));
    }

    #[test]
    fn a_unified_mount_elsewhere_is_left_alone() {
        let mounts = format!("{HYBRID}41 31 0:38 / /mnt/cgroup2 rw - cgroup2 cgroup2 rw\n");
        assert_eq!(detect(&mounts, OWN).unwrap().mode, Mode::V1);
    }

    #[test]
    fn nothing_mounted() {
        assert!(matches!(detect("", OWN), Err(Error::NoHierarchy)));
        assert!(matches!(detect(HYBRID, ""), Err(Error::NoHierarchy)));
    }
}
