//! `linux.intelRdt`: Intel Resource Director Technology, through the resctrl file system.
//!
//! A class of service is a directory there, made with `mkdir`, with its limits in `schemata` and its processes in `tasks`; a
//! monitoring group is a directory below it. Their names go into the record before they are made.

mod stats;
mod update;

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use brig_plan::IntelRdtSupport;
use brig_spec::IntelRdt;
use brig_sys::SysError;

use crate::error::{Doing, Error, Result};

pub use update::Changes;
pub(crate) use update::change;

/// Where the kernel makes a mount point for it.
const USUAL_PLACE: &str = "/sys/fs/resctrl";

/// A container's class and monitoring group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// The directory of its class, absolute.
    pub class: PathBuf,
    /// The class is the container's own and goes with it.
    pub own: bool,
    /// Its monitoring group, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<PathBuf>,
}

/// What the mounted resctrl file system offers; `None` when there is none.
pub fn support() -> Option<IntelRdtSupport> {
    let info = root()?.join("info");
    Some(IntelRdtSupport {
        l3_cache: info.join("L3").exists() || info.join("L3CODE").exists(),
        memory_bandwidth: info.join("MB").exists(),
    })
}

/// Where it is mounted: only root can do that, so what has an `info` there is it.
fn root() -> Option<PathBuf> {
    let usual = PathBuf::from(USUAL_PLACE);
    if usual.join("info").exists() {
        return Some(usual);
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    crate::mountinfo::parse(&table).find(|mount| mount.fstype == "resctrl").map(|mount| mount.mount_point())
}

impl Groups {
    /// Names the groups of a container; makes nothing.
    ///
    /// # Errors
    ///
    /// There is no resctrl file system; the class must be there and is not, or has other limits than are asked for.
    pub fn decide(given: &IntelRdt, id: &str) -> Result<Self> {
        let root = root().ok_or_else(|| {
            Error::host("intelRdt is specified in config, but Intel RDT is not enabled")
                .hint("mount -t resctrl resctrl /sys/fs/resctrl")
        })?;
        let groups = Self::below(&root, given, id);
        let exists = groups.class.exists();
        if !groups.own && !exists && lines(given).is_empty() {
            return Err(Error::config(format!(
                "clos dir not accessible (must be pre-created when schemata, l3CacheSchema and memBwSchema are empty): stat {}: no such file or directory",
                groups.class.display()
            )));
        }
        if !groups.own && exists {
            groups.compare(given)?;
        }
        Ok(groups)
    }

    fn below(root: &Path, given: &IntelRdt, id: &str) -> Self {
        let class = match given.clos_id.as_str() {
            "" => root.join(id),
            "/" => root.to_owned(),
            class => root.join(class),
        };
        let monitoring = given.enable_monitoring.then(|| class.join("mon_groups").join(id));
        Self { class, own: given.clos_id.is_empty(), monitoring }
    }

    /// A class that others use must have the limits already that this container asks for: setting them would change theirs.
    fn compare(&self, given: &IntelRdt) -> Result<()> {
        let path = self.class.join("schemata");
        let wanted = classic_lines(given);
        if wanted.is_empty() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&path).map_err(|e| crate::error::io_error("read", &path, &e))?;
        match wanted.iter().find(|line| !is_in_force(line, &text)) {
            None => Ok(()),
            Some(line) => Err(Error::config(format!(
                "linux.intelRdt: {line:?} does not match {}, and the class exists already",
                path.display()
            ))
            .hint("leave the schema out to use the class as it is, or name another closID")),
        }
    }

    /// Makes what is not there and sets the limits.
    ///
    /// # Errors
    ///
    /// The kernel's, with what it says in `info/last_cmd_status`.
    pub fn make(&self, given: &IntelRdt) -> Result<()> {
        make_directory(&self.class)?;
        let lines = lines(given);
        if !lines.is_empty() {
            let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
            self.write(&self.class.join("schemata"), &text)?;
        }
        match &self.monitoring {
            Some(group) => make_directory(group),
            None => Ok(()),
        }
    }

    /// Puts a process into the groups; what it starts from then on is in them too.
    ///
    /// # Errors
    ///
    /// As [`Groups::make`].
    pub fn join(&self, pid: i32) -> Result<()> {
        for group in [Some(&self.class), self.monitoring.as_ref()].into_iter().flatten() {
            self.write(&group.join("tasks"), &format!("{pid}\n"))?;
        }
        Ok(())
    }

    fn write(&self, file: &Path, text: &str) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let written = rustix::fs::open(file, flags, Mode::from_raw_mode(0o600))
            .and_then(|fd| rustix::io::write(fd, text.as_bytes()));
        match written {
            Ok(_) => Ok(()),
            Err(e) => {
                let e = Error::from(SysError::path("write", file, e)).context("linux.intelRdt");
                Err(match last_status() {
                    Some(status) => e.hint(format!("last_cmd_status: {status}")),
                    None => e,
                })
            }
        }
    }

    /// Removes what is the container's own. What is gone already is no error.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn remove(&self) -> Result<()> {
        if let Some(group) = &self.monitoring {
            remove_group(group)?;
        }
        if self.own { remove_group(&self.class) } else { Ok(()) }
    }
}

fn make_directory(path: &Path) -> Result<()> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(e) => {
            let e = Error::from(SysError::path("mkdir", path, e)).context("linux.intelRdt");
            Err(match last_status() {
                Some(status) => e.hint(format!("last_cmd_status: {status}")),
                None => e,
            })
        }
    }
}

/// With a group go its files; whatever only looks like resctrl has them removed one by one.
fn remove_group(path: &Path) -> Result<()> {
    let rmdir = || rustix::fs::unlinkat(rustix::fs::CWD, path, AtFlags::REMOVEDIR);
    let removed = match rmdir() {
        Err(Errno::NOTEMPTY) => {
            for file in ["tasks", "schemata"] {
                let _ = rustix::fs::unlink(path.join(file));
            }
            let _ = rustix::fs::rmdir(path.join("mon_groups"));
            rmdir()
        }
        other => other,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(SysError::path("rmdir", path, e).into()),
    }
}

fn last_status() -> Option<String> {
    let text = std::fs::read_to_string(root()?.join("info/last_cmd_status")).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty() && text != "ok")
}

/// `l3CacheSchema` and `memBwSchema` as lines; the latter has its say about `MB:` alone.
fn classic_lines(given: &IntelRdt) -> Vec<&str> {
    let l3 = given.l3_cache_schema.lines();
    let l3 = l3.filter(|line| given.mem_bw_schema.is_empty() || !line.trim_start().starts_with("MB:"));
    l3.chain(given.mem_bw_schema.lines()).filter(|line| !line.is_empty()).collect()
}

/// All lines for `schemata`, in the order of the specification.
fn lines(given: &IntelRdt) -> Vec<&str> {
    let more = given.schemata.iter().map(String::as_str).filter(|line| !line.is_empty());
    classic_lines(given).into_iter().chain(more).collect()
}

/// Whether what a line asks for is so: domains that it does not name may be anything, and numbers are compared as such.
fn is_in_force(line: &str, schemata: &str) -> bool {
    let Some((resource, wanted)) = line.split_once(':') else {
        return false;
    };
    let radix = if resource.trim() == "MB" { 10 } else { 16 };
    let domains = |text: &str| -> Vec<(String, Option<u64>)> {
        text.split(';')
            .filter_map(|domain| domain.split_once('='))
            .map(|(id, value)| (id.trim().to_owned(), u64::from_str_radix(value.trim(), radix).ok()))
            .collect()
    };
    let of_resource =
        |line: &&str| line.split_once(':').is_some_and(|(name, _)| name.trim() == resource.trim());
    let Some((_, actual)) = schemata.lines().find(of_resource).and_then(|line| line.split_once(':')) else {
        return false;
    };
    let actual = domains(actual);
    domains(wanted).iter().all(|domain| domain.1.is_some() && actual.contains(domain))
}

/// Adds what was being done to the removal.
pub(crate) fn remove(groups: Option<&Groups>) -> Result<()> {
    groups.map_or(Ok(()), Groups::remove).doing(|| "removing the resctrl group")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_from_class_and_id() {
        let root = Path::new("/r");
        let of = |class: &str, enable_monitoring| {
            let given = IntelRdt { clos_id: class.into(), enable_monitoring, ..IntelRdt::default() };
            let groups = Groups::below(root, &given, "c1");
            let shown = |path: PathBuf| path.display().to_string();
            (shown(groups.class), groups.own, groups.monitoring.map(shown))
        };
        assert_eq!(of("", false), ("/r/c1".into(), true, None));
        assert_eq!(of("gold", true), ("/r/gold".into(), false, Some("/r/gold/mon_groups/c1".into())));
        assert_eq!(of("/", true), ("/r".into(), false, Some("/r/mon_groups/c1".into())));
    }

    #[test]
    fn lines_are_in_the_order_of_the_specification() {
        let given = IntelRdt {
            l3_cache_schema: "L3:0=f\nMB:0=10".into(),
            mem_bw_schema: "MB:0=20".into(),
            schemata: vec!["L2:0=3".into()],
            ..IntelRdt::default()
        };
        assert_eq!(lines(&given), ["L3:0=f", "MB:0=20", "L2:0=3"]);
    }

    #[test]
    fn limits_are_compared_as_numbers() {
        let schemata = "    L3:0=00f;1=0ff\n    MB:0= 20;1=100\n";
        assert!(is_in_force("L3:0=f;1=ff", schemata));
        assert!(is_in_force("L3:1=ff", schemata));
        assert!(is_in_force("MB:0=20", schemata));
        assert!(!is_in_force("MB:0=0x20", schemata));
        assert!(!is_in_force("L3:0=7", schemata));
        assert!(!is_in_force("L2:0=f", schemata));
        assert!(!is_in_force("nonsense", schemata));
    }

    #[test]
    fn a_group_is_made_joined_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let given =
            IntelRdt { l3_cache_schema: "L3:0=f".into(), enable_monitoring: true, ..IntelRdt::default() };
        let groups = Groups::below(dir.path(), &given, "c1");
        // The kernel makes this one with the class.
        std::fs::create_dir(dir.path().join("c1")).unwrap();
        std::fs::create_dir(dir.path().join("c1/mon_groups")).unwrap();
        groups.make(&given).unwrap();
        groups.join(7).unwrap();
        let read = |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert_eq!(read("c1/schemata"), "L3:0=f\n");
        assert_eq!((read("c1/tasks"), read("c1/mon_groups/c1/tasks")), ("7\n".into(), "7\n".into()));
        groups.remove().unwrap();
        groups.remove().unwrap();
        assert!(!dir.path().join("c1").exists());
    }
}
