//! A container's cgroups, one in each hierarchy, handled as one.

use std::cell::{Cell, OnceCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use crate::dir::{Dir, read_path};
use crate::error::{Error, Result, is_permission};
use crate::layout::{CGROUP_MAGIC, CGROUP2_MAGIC, Mode, magic};
use crate::make::{Directory, NotEnabled};
use crate::names::{Name, Names};
use crate::parse;
use crate::procs;
use crate::systemd::Systemd;

/// The cgroups of one container.
///
/// One that [`Cgroup::make`] made is removed again when dropped, until it is [kept](Cgroup::keep). Directories of
/// one that was [opened](Cgroup::open) are looked up when first needed, and may be missing.
#[derive(Debug)]
pub struct Cgroup {
    pub(crate) names: Names,
    pub(crate) nodes: Vec<Node>,
    /// Made by us, to be undone; parents before children.
    pub(crate) made: Vec<Directory>,
    /// Controllers that could not be handed down to the cgroup (v2).
    pub(crate) not_enabled: Vec<NotEnabled>,
}

/// The cgroup in one hierarchy.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Name,
    /// Made by us just now, and nothing has been written to it: all files have their default values.
    pub(crate) fresh: Cell<bool>,
    dir: OnceCell<Dir>,
}

impl Node {
    pub(crate) fn new(name: Name) -> Self {
        Self { name, fresh: Cell::new(false), dir: OnceCell::new() }
    }

    /// One whose directory has just been made or found.
    pub(crate) fn with_dir(name: Name, dir: Dir, fresh: bool) -> Self {
        Self { name, fresh: Cell::new(fresh), dir: OnceCell::from(dir) }
    }

    /// The directory, or `None` if there is none.
    pub(crate) fn dir(&self) -> Result<Option<&Dir>> {
        if let Some(dir) = self.dir.get() {
            return Ok(Some(dir));
        }
        let Some(mount) = open_mount(&self.name)? else {
            return Ok(None);
        };
        match mount.open_below(&self.name.path) {
            Ok(dir) => Ok(Some(self.dir.get_or_init(|| dir))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::Io { doing: "opening cgroup", path: self.name.dir(), errno }),
        }
    }

    pub(crate) fn controls(&self, controller: &str) -> bool {
        self.name.controllers.iter().any(|name| name == controller)
    }
}

/// Opens the mount point of a name's hierarchy. `None` if no such hierarchy is mounted there (any more): what is
/// there instead is nothing to make or remove directories in.
pub(crate) fn open_mount(name: &Name) -> Result<Option<Dir>> {
    let error = |errno| Error::Io { doing: "opening cgroup hierarchy", path: name.mount.clone(), errno };
    let mount = match Dir::open(&name.mount) {
        Ok(mount) => mount,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(error(errno)),
    };
    let stat = rustix::fs::fstatfs(&mount).map_err(error)?;
    let expected = if name.unified { CGROUP2_MAGIC } else { CGROUP_MAGIC };
    Ok((magic(&stat) == expected).then_some(mount))
}

impl Cgroup {
    /// The cgroups that `names` names, existing or not. Makes no system call.
    ///
    /// # Errors
    ///
    /// [`Error::BadPath`] if a name is none that a container may have, as in a damaged record.
    pub fn open(names: &Names) -> Result<Self> {
        for name in &names.groups {
            name.check()?;
        }
        Ok(Self {
            names: names.clone(),
            nodes: names.groups.iter().cloned().map(Node::new).collect(),
            made: Vec::new(),
            not_enabled: Vec::new(),
        })
    }

    /// The names. After [`Cgroup::make`], without those that could not be made for want of permission.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Leaves the directories in place when this is dropped.
    pub fn keep(&mut self) {
        self.made.clear();
    }

    /// Whether the container has a cgroup at all.
    ///
    /// # Errors
    ///
    /// A directory cannot be opened for a reason other than that it is missing.
    pub fn exists(&self) -> Result<bool> {
        let Some(dir) = self.primary()? else {
            return Ok(false);
        };
        // One that has been removed while it was open has no files any more.
        Ok(rustix::fs::accessat(dir, "cgroup.procs", Access::EXISTS, AtFlags::empty()).is_ok())
    }

    /// The cgroup v2 directory, for clone3(2) with CLONE_INTO_CGROUP: on v2 the container's only one, in the hybrid
    /// layout the one beside v1. `None` where there is none.
    ///
    /// # Errors
    ///
    /// It cannot be opened for a reason other than that it is missing.
    pub fn dir_fd(&self) -> Result<Option<BorrowedFd<'_>>> {
        Ok(self.unified_dir()?.map(AsFd::as_fd))
    }

    /// Moves a process into the v1 cgroups, and on a pure v2 host into the only one. In the hybrid layout the v2
    /// cgroup is joined only when `unified` is set: a process that was born there (see [`Cgroup::dir_fd`]) need
    /// not be moved, which saves the kernel's dearest write.
    ///
    /// # Errors
    ///
    /// [`Error::Attach`]. A lack of permission is tolerated where the names are lenient.
    pub fn attach(&self, pid: i32, unified: bool) -> Result<()> {
        let value = pid.to_string();
        for node in &self.nodes {
            if node.name.unified && !unified && self.names.mode == Mode::Hybrid {
                continue;
            }
            let file = || node.name.dir().join("cgroup.procs");
            let written = match node.dir()? {
                Some(dir) => dir.write("cgroup.procs", &value),
                // It could not be made.
                None if self.names.lenient() => continue,
                None => Err(Errno::NOENT),
            };
            match written {
                Ok(()) => {}
                Err(errno) if self.names.lenient() && is_permission(errno) => {
                    log::debug!("not joining {}: permission denied", file().display());
                }
                Err(errno) if is_permission(errno) && node.name.unified && self.names.unit.is_some() => {
                    self.attach_by_systemd(&node.name, pid)?;
                }
                Err(errno) => {
                    return Err(Error::Attach { pid, file: file(), errno });
                }
            }
        }
        Ok(())
    }

    /// A user may not move processes from the session into the own part of the tree; systemd may.
    fn attach_by_systemd(&self, name: &Name, pid: i32) -> Result<()> {
        let Some(unit) = &self.names.unit else { return Ok(()) };
        // The unit's own cgroup, or one below it.
        let own = unit.path()?;
        let below = name
            .path
            .ancestors()
            .find(|above| above.ends_with(&own))
            .and_then(|own| name.path.strip_prefix(own).ok());
        let below = Path::new("/").join(below.unwrap_or(Path::new("")));
        Systemd::new(unit.bus).attach(unit, &below.to_string_lossy(), pid)
    }

    /// The processes of the container as this process sees them; with those in sub-cgroups if `recursive`. One
    /// outside of this pid namespace is 0. Without a cgroup there are none.
    ///
    /// # Errors
    ///
    /// The lists cannot be read.
    pub fn pids(&self, recursive: bool) -> Result<Vec<i32>> {
        match self.primary()? {
            Some(dir) if recursive => procs::recursive(dir),
            Some(dir) => procs::direct(dir),
            None => Ok(Vec::new()),
        }
    }

    /// The CPUs that tasks of the container may use, for an affinity that is to be reset. `None` where the cpuset
    /// controller is not in use for it: then all.
    ///
    /// # Errors
    ///
    /// The file cannot be read or understood.
    pub fn effective_cpus(&self) -> Result<Option<Vec<u16>>> {
        let (dir, file) = match self.names.mode {
            Mode::V2 => (self.unified_dir()?, "cpuset.cpus.effective"),
            Mode::V1 | Mode::Hybrid => (self.v1_dir("cpuset")?, "cpuset.effective_cpus"),
        };
        let Some((dir, text)) = dir.map(|dir| Ok::<_, Error>((dir, dir.read_if_any(file)?))).transpose()?
        else {
            return Ok(None);
        };
        text.map(|text| {
            parse::number_list(&text)
                .ok_or_else(|| Error::Malformed { path: dir.file(file), what: text.clone() })
        })
        .transpose()
    }

    /// The v2 cgroup that process `pid` is in now, which a payload that manages cgroups itself may have moved. For
    /// exec where the container's own cgroup refuses processes because there are some below it (EBUSY). `None`
    /// outside of v2 mode.
    ///
    /// # Errors
    ///
    /// The process or the cgroup is gone.
    pub fn current_of(&self, pid: i32) -> Result<Option<OwnedFd>> {
        let Some(node) = self.unified().filter(|_| self.names.mode == Mode::V2) else {
            return Ok(None);
        };
        let file = PathBuf::from(format!("/proc/{pid}/cgroup"));
        let text =
            read_path(&file).map_err(|errno| Error::Io { doing: "reading", path: file.clone(), errno })?;
        let Some(entry) = parse::memberships(&text).into_iter().find(|entry| entry.id == 0) else {
            return Err(Error::Malformed { path: file, what: "no line for cgroup v2".to_owned() });
        };
        let path = node.name.mount.join(parse::relative(&entry.path, Path::new("/")));
        let dir = Dir::open(&path).map_err(|errno| Error::Io {
            doing: "opening cgroup",
            path: path.clone(),
            errno,
        })?;
        Ok(Some(dir.into()))
    }

    pub(crate) fn unified(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name.unified)
    }

    pub(crate) fn unified_dir(&self) -> Result<Option<&Dir>> {
        self.unified().map_or(Ok(None), Node::dir)
    }

    /// The v1 cgroup of a controller.
    pub(crate) fn v1_dir(&self, controller: &str) -> Result<Option<&Dir>> {
        self.nodes.iter().find(|node| node.controls(controller)).map_or(Ok(None), Node::dir)
    }

    /// All directories that exist, with the names they go by.
    pub(crate) fn dirs(&self) -> Result<Vec<(&Node, &Dir)>> {
        let mut found = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            if let Some(dir) = node.dir()? {
                found.push((node, dir));
            }
        }
        Ok(found)
    }

    /// The directory that stands for the container as a whole: on v1 that of the devices controller, since no
    /// process may ever leave it, else the first that exists.
    pub(crate) fn primary(&self) -> Result<Option<&Dir>> {
        if self.names.mode != Mode::V2
            && let Some(dir) = self.v1_dir("devices")?
        {
            return Ok(Some(dir));
        }
        for node in &self.nodes {
            if let Some(dir) = node.dir()? {
                return Ok(Some(dir));
            }
        }
        Ok(None)
    }
}
