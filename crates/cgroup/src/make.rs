//! Makes the cgroups, and unmakes them when the creation goes no further.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brig_spec::Resources;
use brig_sys::errno_text;
use rustix::fs::{AtFlags, Mode as Permissions, mkdirat, unlinkat};
use rustix::io::Errno;

use crate::cgroup::{Cgroup, Node, open_mount};
use crate::cpuset;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::freezer;
use crate::layout::Mode;
use crate::limits;
use crate::names::{Name, Names};
use crate::procs;
use crate::remove::remove_tree;
use crate::watch::Counts;

/// How long a half-made container may take to leave its cgroup, once its creation has failed and it was killed.
const UNDO: Duration = Duration::from_secs(2);

/// A directory that we made.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    mount: PathBuf,
    path: PathBuf,
    unified: bool,
    /// The container's own, not one above it.
    leaf: bool,
}

/// A v2 controller that a cgroup on the way could not hand down.
#[derive(Debug)]
pub(crate) struct NotEnabled {
    controller: String,
    file: PathBuf,
    errno: Errno,
}

impl NotEnabled {
    /// Why `controller` is missing, as the end of a message.
    pub(crate) fn reason(all: &[Self], controller: &str) -> String {
        let Some(found) = all.iter().find(|entry| entry.controller == controller) else {
            return String::new();
        };
        let hint = match found.errno {
            Errno::BUSY => " (there are processes in that cgroup, so it cannot hand controllers down)",
            Errno::INVAL if controller == "cpu" => {
                " (there are real-time tasks that are not in the root cgroup)"
            }
            Errno::OPNOTSUPP => " (that cgroup is threaded)",
            _ => "",
        };
        let text = errno_text(found.errno);
        format!(": enabling it in {}: {text}{hint}", found.file.display())
    }
}

impl Names {
    /// Checks that nobody lives in these cgroups.
    ///
    /// Do this before the names go into a record: whoever finds the record takes all processes in them for the
    /// container's, and kills them. [`Cgroup::make`] checks again.
    ///
    /// # Errors
    ///
    /// [`Error::NotEmpty`], [`Error::Frozen`].
    pub fn check_vacant(&self) -> Result<()> {
        let cgroup = Cgroup::open(self)?;
        for (node, dir) in cgroup.dirs()? {
            check_vacant(&node.name, dir, true)?;
        }
        Ok(())
    }
}

impl Cgroup {
    /// Makes the cgroups that `names` names, ready for processes. `resources` is looked at where it decides how:
    /// they are not applied.
    ///
    /// Directories that exist already are used if they are empty. Those that were made are removed when the result
    /// is dropped, until it is [kept](Cgroup::keep).
    ///
    /// # Errors
    ///
    /// [`Error::NotEmpty`], [`Error::Frozen`], [`Error::Threaded`]; [`Error::RootlessLimits`] if there is no
    /// permission to make any, the names are lenient, and there are limits to be set. Without limits the result
    /// then has no cgroup.
    pub fn make(names: &Names, resources: &Resources) -> Result<Self> {
        let mut cgroup = Self {
            names: names.clone(),
            nodes: Vec::with_capacity(names.groups.len()),
            made: Vec::new(),
            not_enabled: Vec::new(),
        };
        for name in &names.groups {
            name.check()?;
            let before = cgroup.made.len();
            match cgroup.make_one(name, resources) {
                Ok(node) => cgroup.nodes.push(node),
                Err(error) if names.lenient() && error.is_permission() => {
                    if names.mode == Mode::V2 && limits::any(resources) {
                        return Err(Error::RootlessLimits(Box::new(error)));
                    }
                    log::debug!("going without cgroup: {error}");
                    cgroup.undo(before);
                    cgroup.names.groups.retain(|group| group != name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cgroup)
    }

    /// Makes the cgroups of a unit that systemd does not know yet, so that its first process can be born there. `None` where
    /// only systemd may make them.
    ///
    /// # Errors
    ///
    /// As [`Cgroup::make`].
    pub fn make_in_slice(names: &Names, resources: &Resources) -> Result<Option<Self>> {
        match Self::make(names, resources) {
            Ok(cgroup) => {
                // systemd writes to it too.
                cgroup.not_fresh();
                Ok(Some(cgroup))
            }
            Err(error) if error.is_permission() => {
                log::debug!("leaving it to systemd: {error}");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn make_one(&mut self, name: &Name, resources: &Resources) -> Result<Node> {
        let Some(mount) = open_mount(name)? else {
            return Err(Error::Io {
                doing: "opening cgroup hierarchy",
                path: name.mount.clone(),
                errno: Errno::NOENT,
            });
        };
        let fresh = self.make_directory(&mount, name)?;
        let dir = mount
            .open_below(&name.path)
            .map_err(|errno| mount.error("opening cgroup", &name.path.to_string_lossy(), errno))?;
        check_vacant(name, &dir, !fresh)?;
        if !name.unified {
            if name.controllers.iter().any(|controller| controller == "cpuset") {
                cpuset::fill(&mount, &name.path, &dir, resources)?;
            }
        } else if self.names.mode == Mode::V2 {
            if self.names.lenient() {
                check_writable(&dir)?;
            }
            let complete = self.enable(&mount, &name.path, &dir)?;
            if !complete {
                check_type(&dir, resources)?;
            }
        }
        Ok(Node::with_dir(name.clone(), dir, fresh))
    }

    /// Makes the directory and those above it that are missing. Says whether it is new.
    fn make_directory(&mut self, mount: &Dir, name: &Name) -> Result<bool> {
        let error = |path: &Path, errno| mount.error("creating cgroup", &path.to_string_lossy(), errno);
        // Whoever else removes an empty parent may do so between our making it and its child.
        for _ in 0..10 {
            match self.mkdir(mount, &name.path, name) {
                Err(Errno::NOENT) => {}
                done => return done.map_err(|errno| error(&name.path, errno)),
            }
            let mut parents: Vec<&Path> = name.path.ancestors().skip(1).collect();
            parents.pop(); // The empty path: the mount point itself.
            for parent in parents.into_iter().rev() {
                match self.mkdir(mount, parent, name) {
                    Ok(_) => {}
                    Err(Errno::NOENT) => break,
                    Err(errno) => return Err(error(parent, errno)),
                }
            }
        }
        Err(error(&name.path, Errno::NOENT))
    }

    fn mkdir(&mut self, mount: &Dir, path: &Path, name: &Name) -> Result<bool, Errno> {
        match mkdirat(mount, path, Permissions::from_raw_mode(0o755)) {
            Ok(()) => {
                self.made.push(Directory {
                    mount: mount.path().to_owned(),
                    path: path.to_owned(),
                    unified: name.unified,
                    leaf: path == name.path,
                });
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Sees to it that all controllers of the hierarchy get down to `leaf` (v2). Those that do not are remembered:
    /// it matters only when a limit asks for one. Says whether the leaf has all, and domain controllers among them.
    fn enable(&mut self, mount: &Dir, path: &Path, leaf: &Dir) -> Result<bool> {
        let all = controllers(mount)?;
        // The usual case on a host that has run containers before.
        if controllers(leaf)? == all {
            return Ok(all.split(' ').any(|name| matches!(name, "memory" | "io")));
        }
        let mut levels: Vec<&Path> = path.ancestors().collect();
        levels.reverse();
        let mut above: Option<Dir> = None;
        let mut have = all;
        // The first is the mount point itself.
        for level in levels.into_iter().skip(1) {
            let dir = mount
                .open_below(level)
                .map_err(|errno| mount.error("opening cgroup", &level.to_string_lossy(), errno))?;
            let mut enabled = controllers(&dir)?;
            let missing: Vec<&str> = have
                .split(' ')
                .filter(|name| !name.is_empty() && !enabled.split(' ').any(|other| other == *name))
                .collect();
            if !missing.is_empty() {
                self.enable_here(above.as_ref().unwrap_or(mount), &missing);
                enabled = controllers(&dir)?;
            }
            have = enabled;
            above = Some(dir);
        }
        Ok(false)
    }

    /// Enables controllers for the cgroups in `dir`: all at once, else one by one, as one that cannot be enabled
    /// must not keep the others away.
    fn enable_here(&mut self, dir: &Dir, missing: &[&str]) {
        const FILE: &str = "cgroup.subtree_control";
        let value = format!("+{}", missing.join(" +"));
        let Err(errno) = dir.write(FILE, &value) else {
            return;
        };
        for &controller in missing {
            let errno = match errno {
                // No need to ask again: it is the file that may not be written.
                Errno::ACCESS | Errno::PERM | Errno::ROFS => errno,
                _ if missing.len() == 1 => errno,
                _ => match dir.write(FILE, &format!("+{controller}")) {
                    Ok(()) => continue,
                    Err(errno) => errno,
                },
            };
            self.not_enabled.push(NotEnabled {
                controller: controller.to_owned(),
                file: dir.file(FILE),
                errno,
            });
        }
    }
}

fn controllers(dir: &Dir) -> Result<String> {
    const FILE: &str = "cgroup.controllers";
    let text = dir.read(FILE).map_err(|errno| dir.error("reading", FILE, errno))?;
    Ok(text.trim_end().to_owned())
}

/// A new container's cgroup has no processes (only looked at when it `existed`) and is not frozen. A new one is
/// frozen when one above it is; the container's first process would be born and never run.
fn check_vacant(name: &Name, dir: &Dir, existed: bool) -> Result<()> {
    let mut occupied = existed && !name.unified;
    let mut frozen = false;
    if name.unified {
        let counts = Counts::read(dir).map_err(|errno| dir.error("reading", crate::watch::FILE, errno))?;
        occupied = existed && counts.populated;
        frozen = counts.frozen;
    } else if name.controllers.iter().any(|controller| controller == "freezer") {
        frozen = freezer::v1_frozen(dir)?;
    }
    if occupied {
        let count = procs::recursive(dir)?.len();
        if count > 0 || name.unified {
            return Err(Error::NotEmpty { path: dir.path().to_owned(), count });
        }
    }
    if frozen {
        return Err(Error::Frozen { path: dir.path().to_owned() });
    }
    Ok(())
}

/// A directory that exists, but belongs to someone else, is as good as none.
fn check_writable(dir: &Dir) -> Result<()> {
    const FILE: &str = "cgroup.procs";
    rustix::fs::accessat(dir, FILE, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|errno| dir.error("writing", FILE, errno))
}

/// Below a cgroup with processes or with threaded cgroups, a v2 cgroup cannot take processes unless it is made
/// threaded, and then has no use for controllers of whole processes.
fn check_type(dir: &Dir, resources: &Resources) -> Result<()> {
    const FILE: &str = "cgroup.type";
    let Some(kind) = dir.read_if_any(FILE)? else {
        return Ok(());
    };
    let state = match kind.trim() {
        "domain invalid" => "an invalid state",
        "threaded" => "threaded mode",
        "domain threaded" => "domain threaded mode",
        _ => return Ok(()),
    };
    if limits::any_of_domain(resources) {
        return Err(Error::Threaded { path: dir.path().to_owned(), state: state.to_owned() });
    }
    if kind.trim() == "domain invalid" {
        dir.write(FILE, "threaded").map_err(|errno| dir.error("writing", FILE, errno))?;
    }
    Ok(())
}

impl Cgroup {
    /// Removes the directories made since there were `from`: children before parents. A parent that someone else
    /// has begun to use in the meantime stays.
    fn undo(&mut self, from: usize) {
        let deadline = Instant::now() + UNDO;
        for directory in self.made.split_off(from.min(self.made.len())).into_iter().rev() {
            let Ok(mount) = Dir::open(&directory.mount) else {
                continue;
            };
            let removed = if directory.leaf {
                remove_tree(&mount, &directory.path, directory.unified, deadline)
            } else {
                match unlinkat(&mount, &directory.path, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT | Errno::BUSY) => Ok(()),
                    Err(errno) => {
                        Err(mount.error("removing cgroup", &directory.path.to_string_lossy(), errno))
                    }
                }
            };
            if let Err(error) = removed {
                log::warn!("{error}");
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.undo(0);
    }
}

/// Whether `controllers` (a `cgroup.controllers`) has `name`.
pub(crate) fn has_controller(dir: &Dir, name: &str) -> Result<bool> {
    Ok(controllers(dir)?.split(' ').any(|other| other == name))
}
