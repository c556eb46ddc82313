//! Decides, before anything is made, which cgroups a container will have.
//!
//! The names go into the record of the container. From them alone everything can be found again and removed,
//! however far the creation got.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layout::{Layout, Mode};
use crate::parse;
use crate::systemd::Unit;

/// Who makes the directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Driver {
    /// This crate, through the file system.
    #[default]
    Cgroupfs,
    /// systemd, see [`crate::systemd`].
    Systemd,
}

/// What a container's configuration says about its place.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `linux.cgroupsPath`, may be empty.
    pub cgroups_path: &'a str,
    /// The container's id: the name when there is no path.
    pub id: &'a str,
    /// A lack of permission is to be tolerated, unless a path is given.
    pub rootless: bool,
}

/// The cgroups of one container, one in each hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Who makes them.
    #[serde(default)]
    pub driver: Driver,
    /// How the host arranged cgroups when they were named.
    pub mode: Mode,
    /// There may be no permission: no device filter, and without a path of the configuration no cgroup either.
    #[serde(default)]
    pub rootless: bool,
    /// The configuration gives a path.
    #[serde(default)]
    pub explicit: bool,
    /// One for each hierarchy, in the order of setup.
    pub groups: Vec<Name>,
    /// With systemd: the unit that they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
}

/// The cgroup in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The controllers of a v1 hierarchy; empty for the v2 one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<String>,
    /// Whether it is in the v2 hierarchy.
    #[serde(default)]
    pub unified: bool,
    /// Where the hierarchy is mounted.
    pub mount: PathBuf,
    /// The cgroup, relative to the mount point: one or more plain names.
    pub path: PathBuf,
}

impl Name {
    /// The directory, absolute.
    pub fn dir(&self) -> PathBuf {
        self.mount.join(&self.path)
    }

    /// Whether it is a place that a container may have: in a hierarchy, but not its root. Everything below it will
    /// be removed with the container, so a damaged record must not name more.
    pub(crate) fn check(&self) -> Result<()> {
        let plain = self.path.components().all(|part| matches!(part, Component::Normal(_)));
        if plain && !self.path.as_os_str().is_empty() && self.mount.is_absolute() {
            return Ok(());
        }
        Err(Error::BadPath {
            path: self.path.to_string_lossy().into_owned(),
            why: "not a cgroup below the root of its hierarchy",
        })
    }
}

impl Names {
    /// Names the cgroups of a container.
    ///
    /// An absolute path is one in each hierarchy. A relative one, or without any the id, is below this process's
    /// own cgroup on v1; on v2 it is beside it, as a cgroup with processes cannot hand controllers down.
    /// `..` cannot lead out.
    ///
    /// # Errors
    ///
    /// The path names the root or this process's own cgroup; there is no devices controller (cgroup v1).
    pub fn decide(layout: &Layout, request: &Request<'_>) -> Result<Self> {
        let explicit = !request.cgroups_path.is_empty();
        let asked = if explicit { request.cgroups_path } else { request.id };
        let inner = parse::clean(asked);
        if inner.as_os_str().is_empty() || asked.contains('\0') {
            return Err(Error::BadPath { path: asked.to_owned(), why: "it names no cgroup of its own" });
        }
        let controls_devices =
            |h: &crate::layout::Hierarchy| h.unified || h.controllers.iter().any(|name| name == "devices");
        if !request.rootless && !layout.hierarchies.iter().any(controls_devices) {
            return Err(Error::NoDevices);
        }
        let mut groups = Vec::with_capacity(layout.hierarchies.len());
        for hierarchy in &layout.hierarchies {
            let path = if asked.starts_with('/') {
                inner.clone()
            } else {
                let own = hierarchy.own()?;
                let beside = base(layout.mode, own);
                let may = |dir: &Path| may_make_in(&hierarchy.mount.join(dir));
                // The cgroup that a user owns need not lie in one that it owns.
                let inside = request.rootless && !explicit && beside != own && !may(beside) && may(own);
                if inside { own } else { beside }.join(&inner)
            };
            groups.push(Name {
                controllers: hierarchy.controllers.clone(),
                unified: hierarchy.unified,
                mount: hierarchy.mount.clone(),
                path,
            });
        }
        Ok(Self {
            driver: Driver::Cgroupfs,
            mode: layout.mode,
            rootless: request.rootless,
            explicit,
            groups,
            unit: None,
        })
    }

    /// The cgroups that runc's `state.json` lists as `cgroup_paths`: controller (or `""` for v2) to directory.
    /// What is not in a hierarchy of `layout` is left out.
    ///
    /// # Errors
    ///
    /// A directory is the root of its hierarchy.
    pub fn adopt(layout: &Layout, paths: &BTreeMap<String, PathBuf>, rootless: bool) -> Result<Self> {
        let mut groups = Vec::new();
        for hierarchy in &layout.hierarchies {
            let dir = if hierarchy.unified {
                paths.get("")
            } else {
                hierarchy.controllers.iter().find_map(|controller| paths.get(controller))
            };
            let Some(path) = dir.and_then(|dir| dir.strip_prefix(&hierarchy.mount).ok()) else {
                continue;
            };
            let name = Name {
                controllers: hierarchy.controllers.clone(),
                unified: hierarchy.unified,
                mount: hierarchy.mount.clone(),
                path: path.to_owned(),
            };
            name.check()?;
            groups.push(name);
        }
        let (driver, mode) = (Driver::Cgroupfs, layout.mode);
        Ok(Self { driver, mode, rootless, explicit: false, groups, unit: None })
    }

    /// Whether permission errors are to be tolerated: rootless, and the place was our choice.
    pub fn lenient(&self) -> bool {
        self.rootless && !self.explicit
    }

    /// The directories in the form of runc's `cgroup_paths`: controller to directory, `""` for the v2 one.
    pub fn paths(&self) -> BTreeMap<String, PathBuf> {
        let mut paths = BTreeMap::new();
        for name in &self.groups {
            if name.unified {
                paths.insert(String::new(), name.dir());
            }
            for controller in &name.controllers {
                paths.insert(controller.clone(), name.dir());
            }
        }
        paths
    }
}

/// Whether this process may make cgroups in a directory.
fn may_make_in(dir: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, dir, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

fn base(mode: Mode, own: &Path) -> &Path {
    match mode {
        Mode::V2 => own.parent().unwrap_or(own),
        Mode::V1 | Mode::Hybrid => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Hierarchy;

    fn v1() -> Layout {
        Layout {
            mode: Mode::Hybrid,
            hierarchies: vec![
                Hierarchy::new(&["devices"], false, "/sys/fs/cgroup/devices", Some("/")),
                Hierarchy::new(&["cpu", "cpuacct"], false, "/sys/fs/cgroup/cpu", Some("/own")),
                Hierarchy::new(&[], true, "/sys/fs/cgroup/unified", Some("/u/v")),
            ],
        }
    }

    fn v2(own: &str) -> Layout {
        Layout { mode: Mode::V2, hierarchies: vec![Hierarchy::new(&[], true, "/sys/fs/cgroup", Some(own))] }
    }

    fn request<'a>(cgroups_path: &'a str, rootless: bool) -> Request<'a> {
        Request { cgroups_path, id: "c1", rootless }
    }

    fn dirs(layout: &Layout, path: &str) -> Vec<String> {
        let names = Names::decide(layout, &request(path, false)).unwrap();
        names.groups.iter().map(|name| name.dir().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn absolute_is_the_same_everywhere() {
        assert_eq!(
            dirs(&v1(), "/a/../b//c"),
            ["/sys/fs/cgroup/devices/b/c", "/sys/fs/cgroup/cpu/b/c", "/sys/fs/cgroup/unified/b/c"]
        );
        assert_eq!(dirs(&v2("/s/x"), "/../../a"), ["/sys/fs/cgroup/a"]);
    }

    #[test]
    fn relative_is_below_ones_own_on_v1_and_beside_it_on_v2() {
        assert_eq!(
            dirs(&v1(), "a/b"),
            ["/sys/fs/cgroup/devices/a/b", "/sys/fs/cgroup/cpu/own/a/b", "/sys/fs/cgroup/unified/u/v/a/b"]
        );
        assert_eq!(dirs(&v2("/s/x"), "a"), ["/sys/fs/cgroup/s/a"]);
        assert_eq!(dirs(&v2("/"), "a"), ["/sys/fs/cgroup/a"]);
        assert_eq!(dirs(&v2("/s/x"), "../../../a"), ["/sys/fs/cgroup/s/a"]);
    }

    #[test]
    fn without_a_path_it_is_the_id() {
        assert_eq!(dirs(&v2("/s/x"), ""), ["/sys/fs/cgroup/s/c1"]);
    }

    #[test]
    fn the_root_and_ones_own_are_refused() {
        for path in ["/", "..", "/..", ".", "a/.."] {
            assert!(
                matches!(Names::decide(&v2("/s"), &request(path, false)), Err(Error::BadPath { .. })),
                "{path}"
            );
        }
    }

    #[test]
    fn rootless_is_lenient_only_about_its_own_choice() {
        assert!(Names::decide(&v1(), &request("", true)).unwrap().lenient());
        assert!(!Names::decide(&v1(), &request("/x", true)).unwrap().lenient());
        assert!(!Names::decide(&v1(), &request("", false)).unwrap().lenient());
    }

    #[test]
    fn the_devices_controller_is_needed() {
        let mut layout = v1();
        layout.hierarchies.remove(0);
        // The v2 hierarchy filters devices too.
        assert!(Names::decide(&layout, &request("", false)).is_ok());
        layout.hierarchies.pop();
        assert!(matches!(Names::decide(&layout, &request("", false)), Err(Error::NoDevices)));
    }

    #[test]
    fn runc_paths_both_ways() {
        let names = Names::decide(&v1(), &request("/x", false)).unwrap();
        let paths = names.paths();
        assert_eq!(paths.keys().map(String::as_str).collect::<Vec<_>>(), ["", "cpu", "cpuacct", "devices"]);
        assert_eq!(Names::adopt(&v1(), &paths, false).unwrap().groups, names.groups);
        let root = BTreeMap::from([(String::new(), PathBuf::from("/sys/fs/cgroup"))]);
        assert!(Names::adopt(&v2("/"), &root, false).is_err());
    }

    #[test]
    fn a_damaged_record_names_nothing() {
        for path in ["", "/etc", "../x", "a/../../b"] {
            let name = Name {
                controllers: vec![],
                unified: true,
                mount: "/sys/fs/cgroup".into(),
                path: path.into(),
            };
            assert!(name.check().is_err(), "{path}");
        }
    }

    #[test]
    fn the_record_keeps_everything() {
        let names = Names::decide(&v1(), &request("", true)).unwrap();
        let json = serde_json::to_string(&names).unwrap();
        assert_eq!(serde_json::from_str::<Names>(&json).unwrap(), names);
        assert!(json.starts_with(r#"{"driver":"cgroupfs","mode":"hybrid""#), "{json}");
    }
}
