//! Units: their names, and where systemd puts their cgroups.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Bus;
use super::address::Environment;
use crate::error::{Error, Result};
use crate::layout::{Layout, Mode};
use crate::names::{Driver, Name, Names, Request};

/// UNIT_NAME_MAX of systemd, without the zero byte.
const NAME_MAX: usize = 255;

/// The prefix where the configuration gives no path. Scripts look for it.
const PREFIX: &str = "runc";

/// Names that are not for a unit's cgroup, since the kernel has such files, or because they are escaped already.
const RESERVED: [&str; 3] = ["notify_on_release", "release_agent", "tasks"];

/// The unit of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Its name, such as `cri-containerd-4f2a.scope`.
    pub name: String,
    /// The slice that it is in, by its short name; `-.slice` is the root.
    pub slice: String,
    /// Whose systemd has it.
    pub bus: Bus,
}

impl Unit {
    /// Reads `slice:prefix:name`, or makes a name from the id.
    ///
    /// # Errors
    ///
    /// [`Error::BadPath`].
    pub(crate) fn decide(request: &Request<'_>, bus: Bus) -> Result<Self> {
        let path = request.cgroups_path;
        let bad = |why| Error::BadPath { path: path.to_owned(), why };
        let (slice, prefix, name) = if path.is_empty() {
            ("", PREFIX, request.id)
        } else {
            let mut parts = path.split(':');
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(slice), Some(prefix), Some(name), None) => (slice, prefix, name),
                _ => return Err(bad("not of the form slice:prefix:name")),
            }
        };
        let slice = match slice {
            "" if bus == Bus::User => "user.slice",
            "" => "system.slice",
            "-" => "-.slice",
            slice => slice,
        };
        let name = if name.ends_with(".slice") {
            name.to_owned()
        } else {
            escape(&format!("{prefix}-{name}")) + ".scope"
        };
        let unit = Self { name, slice: slice.to_owned(), bus };
        unit.check().map_err(bad)?;
        Ok(unit)
    }

    /// The scope that a cgroup belongs to, if systemd knows it.
    pub(crate) fn of_cgroup(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_prefix('_').unwrap_or(name);
        let slice = path.parent().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str);
        let of_user = path.components().any(|part| {
            part.as_os_str()
                .to_str()
                .is_some_and(|part| part.starts_with("user@") && part.ends_with(".service"))
        });
        let unit = Self {
            name: name.to_owned(),
            slice: slice.unwrap_or("-.slice").to_owned(),
            bus: if of_user { Bus::User } else { Bus::System },
        };
        (name.ends_with(".scope") && super::driver::is_known(&unit)).then_some(unit)
    }

    /// Whether systemd would take the names.
    fn check(&self) -> Result<(), &'static str> {
        if self.name.len() > NAME_MAX {
            return Err("the unit's name would be longer than 255 bytes");
        }
        // They are file names, and go into messages.
        if self.name.chars().chain(self.slice.chars()).any(char::is_control) {
            return Err("a control character in the name of a unit");
        }
        expand(&self.slice).ok_or("invalid slice name")?;
        if self.is_slice() {
            expand(&self.name)
                .filter(|path| path.components().next().is_some())
                .ok_or("invalid slice name")?;
        }
        Ok(())
    }

    /// Whether it is a slice rather than a scope.
    pub fn is_slice(&self) -> bool {
        self.name.ends_with(".slice")
    }

    /// The cgroup, relative to that of its systemd.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let bad = || Error::BadPath { path: self.name.clone(), why: "invalid slice name" };
        if self.is_slice() {
            return expand(&self.name).ok_or_else(bad);
        }
        Ok(expand(&self.slice).ok_or_else(bad)?.join(cgroup_name(&self.name)))
    }

    /// The slice's cgroup, relative to that of its systemd; empty for the root.
    pub(crate) fn slice_path(&self) -> Result<PathBuf> {
        let path = self.path()?;
        Ok(path.parent().unwrap_or(Path::new("")).to_owned())
    }

    /// The file that systemd keeps for a transient unit for as long as it knows the unit, see systemd.unit(5).
    pub(crate) fn file(&self) -> PathBuf {
        match self.bus {
            Bus::System => Path::new("/run/systemd/transient").join(&self.name),
            Bus::User => Environment::of_process().user_dir().join("systemd/transient").join(&self.name),
        }
    }

    /// The object of it on the bus.
    pub(crate) fn object(&self) -> String {
        let mut path = "/org/freedesktop/systemd1/unit/".to_owned();
        for (index, byte) in self.name.bytes().enumerate() {
            if byte.is_ascii_alphabetic() || (index > 0 && byte.is_ascii_digit()) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("_{byte:02x}"));
            }
        }
        path
    }
}

impl Names {
    /// Names the cgroups of a container that systemd is to make: `root` is the cgroup of that systemd, see
    /// [`super::Systemd::control_group`].
    ///
    /// # Errors
    ///
    /// [`Error::BadPath`]: systemd would not take the names.
    pub fn decide_unit(layout: &Layout, request: &Request<'_>, bus: Bus, root: &Path) -> Result<Self> {
        let unit = Unit::decide(request, bus)?;
        let path = root.join(unit.path()?);
        let groups = layout.hierarchies.iter().map(|hierarchy| Name {
            controllers: hierarchy.controllers.clone(),
            unified: hierarchy.unified,
            mount: hierarchy.mount.clone(),
            path: path.clone(),
        });
        let names = Self {
            driver: Driver::Systemd,
            mode: layout.mode,
            rootless: request.rootless,
            explicit: true,
            groups: groups.collect(),
            unit: Some(unit),
        };
        for name in &names.groups {
            name.check()?;
        }
        Ok(names)
    }

    /// The cgroup v2 directory of the slice that the unit is in; `None` without a unit, or on cgroup v1.
    pub(crate) fn slice_dir(&self) -> Result<Option<PathBuf>> {
        let (Some(unit), Some(group)) = (&self.unit, self.groups.iter().find(|group| group.unified)) else {
            return Ok(None);
        };
        if self.mode != Mode::V2 || unit.slice_path()?.as_os_str().is_empty() {
            return Ok(None);
        }
        Ok(group.dir().parent().map(Path::to_owned))
    }
}

/// The cgroup of a slice: `a-b.slice` is in `a.slice`, see systemd.slice(5).
fn expand(slice: &str) -> Option<PathBuf> {
    let name = slice.strip_suffix(".slice")?;
    let mut path = PathBuf::new();
    if name == "-" {
        return Some(path);
    }
    let mut prefix = String::new();
    for part in name.split('-') {
        if part.is_empty() || part.contains('/') {
            return None;
        }
        prefix.push_str(part);
        path.push(format!("{prefix}.slice"));
        prefix.push('-');
    }
    Some(path)
}

/// The cgroup's name for a unit's: with an underscore in front where it could be taken for a file of the kernel.
fn cgroup_name(unit: &str) -> String {
    if unit.starts_with(['_', '.']) || unit.starts_with("cgroup.") || RESERVED.contains(&unit) {
        format!("_{unit}")
    } else {
        unit.to_owned()
    }
}

/// Writes what a unit's name may not have (ids may have a `+`) as systemd-escape(1) does.
fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Hierarchy;

    fn unit(cgroups_path: &str, bus: Bus) -> Unit {
        Unit::decide(&Request { cgroups_path, id: "c1", rootless: false }, bus).unwrap()
    }

    fn parts(cgroups_path: &str) -> (String, String) {
        let unit = unit(cgroups_path, Bus::System);
        (unit.name.clone(), unit.path().unwrap().to_str().unwrap().to_owned())
    }

    fn pair(name: &str, path: &str) -> (String, String) {
        (name.to_owned(), path.to_owned())
    }

    #[test]
    fn names_and_places() {
        for (path, name, cgroup) in [
            ("", "runc-c1.scope", "system.slice/runc-c1.scope"),
            (":docker:x", "docker-x.scope", "system.slice/docker-x.scope"),
            ("a.slice:b:c", "b-c.scope", "a.slice/b-c.scope"),
            ("a-b-c.slice:cri:d", "cri-d.scope", "a.slice/a-b.slice/a-b-c.slice/cri-d.scope"),
            ("-.slice:b:c", "b-c.scope", "b-c.scope"),
            ("-:b:c", "b-c.scope", "b-c.scope"),
            ("a.slice::c", "-c.scope", "a.slice/-c.scope"),
            ("a.slice::b-c.slice", "b-c.slice", "b.slice/b-c.slice"),
            (":cgroup.x:c", "cgroup.x-c.scope", "system.slice/_cgroup.x-c.scope"),
            (":_x:c", "_x-c.scope", "system.slice/__x-c.scope"),
            (":a:b+c", "a-b\\x2bc.scope", "system.slice/a-b\\x2bc.scope"),
        ] {
            assert_eq!(parts(path), pair(name, cgroup), "{path}");
        }
        assert_eq!(unit("", Bus::User).path().unwrap(), Path::new("user.slice/runc-c1.scope"));
    }

    #[test]
    fn what_is_refused() {
        let long = format!(":a:{}", "x".repeat(260));
        for path in ["a", "a:b", "a:b:c:d", "x:b:c", "a--b.slice:b:c", ".slice:b:c", "::-.slice", &long] {
            let request = Request { cgroups_path: path, id: "c1", rootless: false };
            assert!(matches!(Unit::decide(&request, Bus::System), Err(Error::BadPath { .. })), "{path}");
        }
    }

    #[test]
    fn objects() {
        let unit = Unit { name: "1a-b.scope".to_owned(), slice: String::new(), bus: Bus::System };
        assert_eq!(unit.object(), "/org/freedesktop/systemd1/unit/_31a_2db_2escope");
    }

    #[test]
    fn names_for_the_record() {
        let layout = Layout {
            mode: Mode::V2,
            hierarchies: vec![Hierarchy::new(&[], true, "/sys/fs/cgroup", Some("/s"))],
        };
        let request = Request { cgroups_path: "a-b.slice:p:n", id: "c1", rootless: true };
        let names = Names::decide_unit(&layout, &request, Bus::User, Path::new("u/m")).unwrap();
        assert_eq!(names.groups[0].dir(), Path::new("/sys/fs/cgroup/u/m/a.slice/a-b.slice/p-n.scope"));
        assert_eq!(names.slice_dir().unwrap().unwrap(), Path::new("/sys/fs/cgroup/u/m/a.slice/a-b.slice"));
        let json = serde_json::to_string(&names).unwrap();
        assert!(json.contains(r#""unit":{"name":"p-n.scope","slice":"a-b.slice","bus":"user"}"#), "{json}");
        assert_eq!(serde_json::from_str::<Names>(&json).unwrap(), names);
    }
}
