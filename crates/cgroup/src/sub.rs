//! `exec --cgroup`: a place below the container's own cgroup.

use std::path::{Component, PathBuf};

use crate::cgroup::{Cgroup, Node};
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::names::{Name, Names};

impl Cgroup {
    /// The cgroups that `--cgroup` arguments name: `PATH` for all hierarchies, or on v1 `CONTROLLER[,…]:PATH` for
    /// some; the others keep the container's own. They must exist to be joined; they are not made.
    ///
    /// # Errors
    ///
    /// [`Error::SubPath`] if a path leads out of the container's cgroup, [`Error::UnknownController`],
    /// [`Error::SubArgument`].
    pub fn sub<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Self> {
        let mut names: Names = self.names.clone();
        let mut chosen: Vec<&str> = Vec::new();
        for argument in arguments {
            let argument = argument.as_ref();
            let invalid = |why| Error::SubArgument { argument: argument.to_owned(), why };
            let Some((controllers, path)) = argument.split_once(':') else {
                if arguments.len() != 1 {
                    return Err(invalid("missing <controller>: prefix"));
                }
                for name in &mut names.groups {
                    descend(name, argument)?;
                }
                break;
            };
            for controller in controllers.split(',') {
                if controller.is_empty() {
                    return Err(invalid("empty <controller> prefix"));
                }
                if chosen.contains(&controller) {
                    return Err(invalid("controller specified multiple times"));
                }
                chosen.push(controller);
                choose(&mut names, controller, path)?;
            }
        }
        Ok(Self {
            nodes: names.groups.iter().cloned().map(Node::new).collect(),
            names,
            made: Vec::new(),
            not_enabled: Vec::new(),
        })
    }
}

/// Moves one hierarchy's name down.
fn choose(names: &mut Names, controller: &str, path: &str) -> Result<()> {
    let v2 = names.mode == Mode::V2;
    let name = names
        .groups
        .iter_mut()
        .find(|name| !v2 && name.controllers.iter().any(|other| other == controller))
        .ok_or_else(|| Error::UnknownController(controller.to_owned()))?;
    descend(name, path)
}

fn descend(name: &mut Name, path: &str) -> Result<()> {
    let mut below = PathBuf::new();
    for part in PathBuf::from(path).components() {
        match part {
            // A leading slash stands for the container's cgroup.
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => below.push(part),
            Component::ParentDir if below.pop() => {}
            Component::ParentDir | Component::Prefix(_) => return Err(Error::SubPath(path.to_owned())),
        }
    }
    if !below.as_os_str().is_empty() {
        name.path.push(below);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Hierarchy, Layout};
    use crate::names::Request;

    fn cgroup(mode: Mode) -> Cgroup {
        let hierarchies = match mode {
            Mode::V2 => vec![Hierarchy::new(&[], true, "/sys/fs/cgroup", Some("/"))],
            _ => vec![
                Hierarchy::new(&["devices"], false, "/sys/fs/cgroup/devices", Some("/")),
                Hierarchy::new(&["cpu", "cpuacct"], false, "/sys/fs/cgroup/cpu", Some("/")),
            ],
        };
        let request = Request { cgroups_path: "/c", id: "c", rootless: false };
        Cgroup::open(&Names::decide(&Layout { mode, hierarchies }, &request).unwrap()).unwrap()
    }

    fn paths(mode: Mode, arguments: &[&str]) -> Result<Vec<String>> {
        let sub = cgroup(mode).sub(arguments)?;
        Ok(sub.names.groups.iter().map(|name| name.path.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn one_path_for_all() {
        assert_eq!(paths(Mode::V1, &["a/b"]).unwrap(), ["c/a/b", "c/a/b"]);
        assert_eq!(paths(Mode::V2, &["a/../b/"]).unwrap(), ["c/b"]);
        assert_eq!(paths(Mode::V2, &["/"]).unwrap(), ["c"]);
        assert_eq!(paths(Mode::V1, &[]).unwrap(), ["c", "c"]);
    }

    #[test]
    fn by_controller_on_v1() {
        assert_eq!(paths(Mode::V1, &["cpu:x", "devices:y"]).unwrap(), ["c/y", "c/x"]);
        assert_eq!(paths(Mode::V1, &["cpu:x"]).unwrap(), ["c", "c/x"]);
    }

    #[test]
    fn what_is_refused() {
        for (mode, arguments, text) in [
            (Mode::V2, &["../.."][..], "bad sub cgroup path: ../.."),
            (Mode::V2, &["a/../../b"], "bad sub cgroup path: a/../../b"),
            (Mode::V1, &["cpu:.."], "bad sub cgroup path: .."),
            (Mode::V1, &["foo:x"], "unknown controller foo"),
            (Mode::V2, &["cpu:x"], "unknown controller cpu"),
            (Mode::V1, &["x", "y"], "invalid --cgroup argument: x (missing <controller>: prefix)"),
            (Mode::V1, &[":x"], "invalid --cgroup argument: :x (empty <controller> prefix)"),
            (
                Mode::V1,
                &["cpu:x", "cpu:y"],
                "invalid --cgroup argument: cpu:y (controller specified multiple times)",
            ),
        ] {
            assert_eq!(paths(mode, arguments).unwrap_err().to_string(), text);
        }
    }
}
