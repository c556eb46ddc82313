//! `linux.cgroupsPath`, and what else places a container among the cgroups.

use std::collections::BTreeMap;

use brig_spec as spec;

use crate::path::{absolute, has_nul};
use crate::problem::Problems;
use crate::{CgroupMode, CgroupPlan, Host, Request, resources};

/// Who owns the cgroup depends on the mounts too, and is left open.
pub(crate) fn plan(
    spec: &spec::Spec,
    linux: &spec::Linux,
    request: &Request,
    host: &Host,
    problems: &mut Problems,
) -> CgroupPlan {
    let systemd = request.systemd_cgroup;
    if systemd && request.rootless_cgroups(host) && host.cgroups != CgroupMode::V2 {
        let message = "cannot use rootless systemd cgroups manager on cgroup v1";
        problems.error("--systemd-cgroup", message);
    }
    let systemd_properties =
        if systemd { systemd_properties(&spec.annotations, problems) } else { Vec::new() };
    CgroupPlan {
        path: path(&linux.cgroups_path, systemd, problems),
        systemd,
        resources: resources::plan(linux, host, problems),
        systemd_properties,
        owner: None,
    }
}

fn path(given: &str, systemd: bool, problems: &mut Problems) -> String {
    const PATH: &str = "linux.cgroupsPath";
    if given.is_empty() {
        return String::new();
    }
    if has_nul(given) {
        problems.error(PATH, "path contains nul byte (\\x00)");
    }
    if systemd {
        if let Err(message) = check_unit(given) {
            problems.error(PATH, message);
        }
        return given.to_owned();
    }
    if given.split(':').count() == 3 && !given.contains('/') {
        let message = format!("{given:?} has the form for systemd, but --systemd-cgroup is not given");
        problems.warn(PATH, message);
    }
    // A relative path stays one: it begins at the runtime's own cgroup.
    let clean = absolute(given).to_string_lossy().into_owned();
    let path = if given.starts_with('/') { clean.as_str() } else { clean.trim_start_matches('/') };
    if clean == "/" {
        problems.error(PATH, format!("{given:?} names no cgroup of its own"));
    }
    path.to_owned()
}

/// Checks `slice:prefix:name`.
fn check_unit(given: &str) -> Result<(), String> {
    let parts: Vec<&str> = given.split(':').collect();
    let [slice, prefix, name] = parts[..] else {
        return Err(format!(
            "expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups, got {given:?} instead"
        ));
    };
    if !is_slice(slice) {
        return Err(format!("invalid slice name: {slice}"));
    }
    let named = if name.ends_with(".slice") { is_slice(name) } else { !name.is_empty() };
    if named && !prefix.contains('/') && !name.contains('/') {
        Ok(())
    } else {
        Err(format!("invalid unit name: {prefix}-{name}"))
    }
}

/// Whether systemd.slice(5) allows the name. None at all stands for the manager's default, `-` for the root slice.
fn is_slice(name: &str) -> bool {
    let parents = name.strip_suffix(".slice");
    matches!(name, "" | "-" | "-.slice")
        || parents
            .is_some_and(|parents| !name.contains('/') && parents.split('-').all(|part| !part.is_empty()))
}

/// `org.systemd.property.*`: settings of the container's unit. Their values are GVariant text, which is for the driver
/// to read.
fn systemd_properties(
    annotations: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    const PREFIX: &str = "org.systemd.property.";
    const SHORTEST: usize = 3;
    let mut properties = Vec::new();
    for (key, value) in annotations {
        let Some(name) = key.strip_prefix(PREFIX) else {
            continue;
        };
        let fault = if name.len() < SHORTEST {
            Some("too short")
        } else if !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            Some("contains non-alphabetic character")
        } else {
            None
        };
        if let Some(fault) = fault {
            problems
                .error(format!("annotations[{key:?}]"), format!("annotation {key} name incorrect: {fault}"));
        }
        properties.push((name.to_owned(), value.clone()));
    }
    properties
}

#[cfg(test)]
mod tests;
