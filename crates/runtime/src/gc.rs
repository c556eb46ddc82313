//! What commands that were killed have left below a root, and cgroups that are marked as a container's of that root which
//! has no record any more.

use std::path::PathBuf;
use std::time::Duration;

use brig_cgroup::Layout;

use crate::boot;
use crate::container::Container;
use crate::deadline::after;
use crate::delete::{delete, remove_marked};
use crate::error::{Kind, Result};
use crate::id::ContainerId;
use crate::record::{Record, Stage};
use crate::store::{ContainerDir, Store};

/// Something that belongs to no container that anybody could still use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The container that it was made for.
    pub id: ContainerId,
    /// Where it is: the record's directory, or a cgroup.
    pub path: PathBuf,
    /// Why nobody can use it.
    pub why: String,
}

/// Finds what is left below the root. Containers that are being made are none, nor are stopped ones: a manager deletes them.
///
/// # Errors
///
/// The root or a cgroup hierarchy cannot be read.
pub fn leftovers(store: &Store) -> Result<Vec<Leftover>> {
    let mut ids = if store.root().exists() { store.ids()? } else { Vec::new() };
    ids.sort_unstable();
    let mut found = Vec::new();
    for id in &ids {
        let dir = match store.open(id) {
            Ok(dir) => dir,
            // Deleted meanwhile, or somebody else's.
            Err(e) => {
                log::debug!("not looked at: container {id}: {e}");
                continue;
            }
        };
        if let Some(why) = abandoned(dir)? {
            found.push(Leftover { id: id.clone(), path: store.root().join(id.as_str()), why });
        }
    }
    found.extend(orphaned_cgroups(store)?);
    Ok(found)
}

/// Why a container cannot be used, if that is so.
fn abandoned(dir: ContainerDir) -> Result<Option<String>> {
    // Whoever holds the lock is at work on it.
    match dir.lock_holder() {
        Ok(None) => {}
        Ok(Some(_)) => return Ok(None),
        Err(e) if e.kind() == Kind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    }
    Ok(match Record::read(&dir) {
        Ok(None) if dir.is_foreign() => None,
        Ok(None) => Some("no record".to_owned()),
        Err(e) => Some(e.message()),
        Ok(Some(record)) if record.stage == Stage::Creating => {
            let earlier = !record.boot.is_empty() && record.boot != boot::current();
            let creator = record.creator.pid;
            let container = Container { dir, record };
            match container.creator()? {
                Some(_) => None,
                None if earlier => Some("its creation was cut off by a reboot".to_owned()),
                None => Some(format!("its creator, process {creator}, was killed")),
            }
        }
        Ok(Some(_)) => None,
    })
}

fn orphaned_cgroups(store: &Store) -> Result<Vec<Leftover>> {
    let Ok(layout) = Layout::detect() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (mark, names) in brig_cgroup::marked(&layout)? {
        if mark.root != store.root() || Some(mark.device) != store.device() {
            continue;
        }
        // Looked for after the cgroup was seen: the directory is made before it and removed after it.
        let Ok(id) = ContainerId::parse(&mark.id) else { continue };
        match store.open(&id) {
            Err(e) if e.kind() == Kind::NotFound => {}
            _ => continue,
        }
        for name in names.groups {
            found.push(Leftover {
                id: id.clone(),
                path: name.dir(),
                why: "a cgroup without a record".to_owned(),
            });
        }
    }
    Ok(found)
}

/// Removes what [`leftovers`] found, as `delete --force` would; all of the same container at once.
///
/// # Errors
///
/// See [`delete`].
pub fn remove_leftover(store: &Store, leftover: &Leftover, timeout: Duration) -> Result<()> {
    if leftover.path.starts_with(store.root()) {
        return delete(store, &leftover.id, true, timeout);
    }
    remove_marked(store, &leftover.id, after(timeout))
}
