//! The v1 devices controller.

use std::collections::BTreeMap;

use super::policy::Policy;
use super::rule::Access;
use crate::dir::Dir;
use crate::error::{Error, Result};

const LIST: &str = "devices.list";

/// Stands in the list for all devices, all uses. The exceptions are then not shown.
const ALL: &str = "a *:*";

/// Devices as v1's files name them (`c 1:3`), and what is allowed, or denied, with them.
type Exceptions = BTreeMap<String, Access>;

/// Makes the cgroup enforce `policy`. Where it has an allow list already, only the difference is written, so that
/// nothing that is allowed before and after is denied in between.
pub(crate) fn set(dir: &Dir, policy: &Policy) -> Result<()> {
    let mut wanted = Exceptions::new();
    for rule in policy.exceptions()? {
        let access = wanted.entry(rule.devices()).or_insert(Access::NONE);
        *access = access.union(rule.access);
    }
    let mut present = read(dir)?;
    let (add, remove) = if policy.default_allow {
        ("devices.deny", "devices.allow")
    } else {
        ("devices.allow", "devices.deny")
    };
    if present.contains_key(ALL) || policy.default_allow {
        // The opposite of an exception, for all devices: this sets the default and clears the list.
        write(dir, remove, "a")?;
        present.clear();
    }
    let none = |devices: &Exceptions, name: &str| devices.get(name).copied().unwrap_or(Access::NONE);
    for (name, access) in &wanted {
        write_some(dir, add, name, access.without(none(&present, name)))?;
    }
    for (name, access) in &present {
        write_some(dir, remove, name, access.without(none(&wanted, name)))?;
    }
    // The kernel passes over in silence what it cannot express.
    let present = read(dir)?;
    let matches = if policy.default_allow { present.contains_key(ALL) } else { present == wanted };
    if matches {
        return Ok(());
    }
    Err(Error::DeviceMismatch { path: dir.file(LIST) })
}

fn read(dir: &Dir) -> Result<Exceptions> {
    let list = dir.read(LIST).map_err(|errno| dir.error("reading", LIST, errno))?;
    list.lines()
        .map(|line| {
            let parsed =
                line.rsplit_once(' ').and_then(|(name, access)| Some((name, Access::parse(access)?)));
            match parsed {
                Some((name, access)) => Ok((name.to_owned(), access)),
                None => Err(Error::Malformed { path: dir.file(LIST), what: line.to_owned() }),
            }
        })
        .collect()
}

fn write_some(dir: &Dir, file: &str, devices: &str, access: Access) -> Result<()> {
    if access.is_empty() {
        return Ok(());
    }
    write(dir, file, &format!("{devices} {access}"))
}

fn write(dir: &Dir, file: &str, value: &str) -> Result<()> {
    dir.write(file, value).map_err(|errno| Error::Limit {
        source_path: "linux.resources.devices".to_owned(),
        file: dir.file(file),
        value: value.to_owned(),
        errno,
        hint: if errno == rustix::io::Errno::PERM { " (the cgroup above does not allow it)" } else { "" },
    })
}
