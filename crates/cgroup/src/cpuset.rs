//! v1 cpusets start empty, and an empty one takes no process.

use std::path::Path;

use brig_spec::Resources;

use crate::dir::Dir;
use crate::error::{Error, Result};

const FILES: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

/// Gives the new cpuset `leaf` (at `path` below `mount`) and those above it CPUs and memory nodes: those asked for,
/// else the parent's.
///
/// What is asked for comes first rather than on top of the parent's: with `cpuset.cpu_exclusive` a copy of the
/// parent's could clash with a sibling.
pub(crate) fn fill(mount: &Dir, path: &Path, leaf: &Dir, resources: &Resources) -> Result<()> {
    let cpu = resources.cpu.as_ref();
    let asked = [cpu.map_or("", |cpu| cpu.cpus.trim()), cpu.map_or("", |cpu| cpu.mems.trim())];
    for (file, asked) in FILES.into_iter().zip(asked) {
        if !is_empty(leaf, file)? {
            continue;
        }
        let inherited = inherit(mount, path.parent().unwrap_or(Path::new("")), file)?;
        // A list that is refused is reported when the limits are applied, with its JSON path.
        if asked.is_empty() || leaf.write(file, asked).is_err() {
            write(leaf, file, &inherited)?;
        }
    }
    Ok(())
}

/// The value of the cpuset at `path`, which gets its parent's if it has none.
fn inherit(mount: &Dir, path: &Path, file: &str) -> Result<String> {
    if path.as_os_str().is_empty() {
        return read(mount, file);
    }
    let dir = mount
        .open_below(path)
        .map_err(|errno| mount.error("opening cgroup", &path.to_string_lossy(), errno))?;
    let value = read(&dir, file)?;
    if !value.is_empty() {
        return Ok(value);
    }
    let value = inherit(mount, path.parent().unwrap_or(Path::new("")), file)?;
    write(&dir, file, &value)?;
    Ok(value)
}

fn is_empty(dir: &Dir, file: &str) -> Result<bool> {
    Ok(read(dir, file)?.is_empty())
}

fn read(dir: &Dir, file: &str) -> Result<String> {
    let text = dir.read(file).map_err(|errno| dir.error("reading", file, errno))?;
    Ok(text.trim().to_owned())
}

fn write(dir: &Dir, file: &str, value: &str) -> Result<(), Error> {
    dir.write(file, value).map_err(|errno| dir.error("writing", file, errno))
}
