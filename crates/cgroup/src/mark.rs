//! A mark on a container's cgroups that says whose they are: found when the record is lost, which names them otherwise.
//!
//! It is an extended attribute of the directory: `trusted.brig`, which only the host's root can write and read, or, on
//! cgroup v2 where that is refused, `user.brig` (kernel 5.7). Without permission for either there is none: a mark is
//! only ever the second way to find something.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use rustix::io::Errno;

use crate::cgroup::Cgroup;
use crate::dir::{Dir, walk};
use crate::error::Result;
use crate::layout::{Layout, Mode};
use crate::names::{Driver, Name, Names};
use crate::systemd::Unit;

const TRUSTED: &str = "trusted.brig";
const USER: &str = "user.brig";
/// A mark is a path, an id and a number.
const MAX: usize = 8192;

/// Whose a cgroup is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The directory that holds the container's record directory; absolute.
    pub root: PathBuf,
    /// `st_dev` of that directory: the same path inside of another container, whose cgroups can be seen from here, is
    /// on another file system.
    pub device: u64,
    /// The container.
    pub id: String,
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let head = format!("{} {} ", self.device, self.id);
        [head.as_bytes(), self.root.as_os_str().as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(3, |&byte| byte == b' ');
        let device = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let id = std::str::from_utf8(parts.next()?).ok()?.to_owned();
        let root = PathBuf::from(OsStr::from_bytes(parts.next()?));
        root.is_absolute().then_some(Self { root, device, id })
    }

    fn write(&self, dir: &Path, unified: bool) -> Result<(), Errno> {
        let bytes = self.encode();
        match lsetxattr(dir, TRUSTED, &bytes, XattrFlags::empty()) {
            Err(Errno::PERM) if unified => lsetxattr(dir, USER, &bytes, XattrFlags::empty()),
            done => done,
        }
    }

    fn read(dir: &Path) -> Option<Self> {
        let mut buffer = [0_u8; MAX];
        let length = [TRUSTED, USER].iter().find_map(|name| lgetxattr(dir, *name, &mut buffer[..]).ok())?;
        Self::decode(buffer.get(..length)?)
    }
}

impl Cgroup {
    /// Marks the cgroups that exist. Where that is not possible they go without, which is not an error.
    pub fn mark(&self, mark: &Mark) {
        for (node, dir) in self.dirs().unwrap_or_default() {
            if let Err(errno) = mark.write(dir.path(), node.name.unified) {
                log::debug!("not marked: {}: {}", dir.path().display(), brig_sys::errno_text(errno));
            }
        }
    }
}

/// All marked cgroups of the host that this process can see, those of one mark together.
///
/// # Errors
///
/// A hierarchy cannot be listed.
pub fn marked(layout: &Layout) -> Result<Vec<(Mark, Names)>> {
    let mut found: Vec<(Mark, Names)> = Vec::new();
    for hierarchy in &layout.hierarchies {
        let Ok(top) = Dir::open(&hierarchy.mount) else { continue };
        walk(&top, &mut |dir| {
            let (Some(mark), Ok(path)) = (Mark::read(dir.path()), dir.path().strip_prefix(&hierarchy.mount))
            else {
                return Ok(());
            };
            let name = Name {
                controllers: hierarchy.controllers.clone(),
                unified: hierarchy.unified,
                mount: hierarchy.mount.clone(),
                path: path.to_owned(),
            };
            match found.iter_mut().find(|(known, _)| *known == mark) {
                Some((_, names)) => names.groups.push(name),
                None => found.push((mark, only(layout.mode, name))),
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn only(mode: Mode, name: Name) -> Names {
    // Whose scope it is (or was, before it was killed) tells its name.
    let unit = Unit::of_cgroup(&name.path);
    let driver = if unit.is_some() { Driver::Systemd } else { Driver::Cgroupfs };
    Names { driver, mode, rootless: false, explicit: true, groups: vec![name], unit }
}

#[cfg(test)]
mod tests {
    use super::Mark;

    #[test]
    fn a_mark_reads_as_it_was_written() {
        let mark = Mark { root: "/run/a b".into(), device: 42, id: "c1".to_owned() };
        assert_eq!(mark.encode(), b"42 c1 /run/a b");
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        for other in ["", "x c1 /r", "1 c1", "1 c1 r", "-1 c1 /r"] {
            assert_eq!(Mark::decode(other.as_bytes()), None, "{other:?}");
        }
    }
}
