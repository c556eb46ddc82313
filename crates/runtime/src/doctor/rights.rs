//! Who asks, and what they may do.

use std::path::{Path, PathBuf};

use rustix::thread::CapabilitySet;

use super::{Findings, minor, vital};

pub fn look(findings: &mut Findings) {
    findings.topic("users");
    let uid = rustix::process::geteuid();
    let whose = if crate::host::in_user_namespace() { " in a user namespace" } else { "" };
    findings.fact("caller", format!("uid {}{whose}", uid.as_raw()));
    if uid.is_root() {
        capabilities(findings);
    }
    subordinate(findings, uid.is_root());
}

fn capabilities(findings: &mut Findings) {
    let own = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    for (name, capability, is_vital, means) in [
        ("CAP_SYS_ADMIN", CapabilitySet::SYS_ADMIN, true, "no namespaces, no mounts"),
        ("CAP_SETUID", CapabilitySet::SETUID, true, "processes cannot become the container's user"),
        ("CAP_SETGID", CapabilitySet::SETGID, true, "processes cannot become the container's group"),
        ("CAP_CHOWN", CapabilitySet::CHOWN, false, "terminals cannot be given to the container's user"),
        ("CAP_DAC_OVERRIDE", CapabilitySet::DAC_OVERRIDE, false, "files of other users stay closed"),
        ("CAP_MKNOD", CapabilitySet::MKNOD, false, "device nodes are bound from the host instead of made"),
        (
            "CAP_NET_ADMIN",
            CapabilitySet::NET_ADMIN,
            false,
            "linux.netDevices is refused, and loopback stays down",
        ),
        (
            "CAP_SYS_RESOURCE",
            CapabilitySet::SYS_RESOURCE,
            false,
            "process.rlimits above the caller's own, and a lower process.oomScoreAdj, are refused",
        ),
        (
            "CAP_SYS_PTRACE",
            CapabilitySet::SYS_PTRACE,
            false,
            "namespaces of other users' processes cannot be joined",
        ),
    ] {
        let there = own.contains(capability);
        let mend = "whoever started this shell took it away: a container, or a systemd unit with CapabilityBoundingSet=";
        let absence = if is_vital { vital(means, mend) } else { minor(means, mend) };
        findings.add(name, there, if there { "effective" } else { "missing" }, absence);
    }
}

/// What users besides root need for more than one id in a container.
fn subordinate(findings: &mut Findings, root: bool) {
    for program in ["newuidmap", "newgidmap"] {
        let found = find_program(program);
        let shown = found.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
        let means = "ordinary users can map a single id only";
        findings.add(program, found.is_some(), shown, minor(means, "apt-get install uidmap"));
    }
    let uid = rustix::process::getuid().as_raw();
    let name = user_name(uid);
    for file in ["/etc/subuid", "/etc/subgid"] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let entries = text.lines().filter(|line| line.split(':').count() == 3);
        let own = entries.clone().filter(|line| {
            let owner = line.split(':').next().unwrap_or_default();
            owner == uid.to_string() || name.as_deref() == Some(owner)
        });
        if root {
            // Root needs none for itself; Podman's --userns=auto does.
            findings.fact(file, format!("{} range(s)", entries.count()));
            continue;
        }
        let count = own.clone().filter_map(|line| line.rsplit(':').next()?.parse::<u64>().ok()).sum::<u64>();
        let means = "containers have a single id, so most images do not work";
        let mend = "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER";
        findings.add(file, count > 0, format!("{count} ids"), minor(means, mend));
    }
}

fn user_name(uid: u32) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = text.lines().find(|line| line.split(':').nth(2) == Some(uid.to_string().as_str()))?;
    line.split(':').next().map(str::to_owned)
}

/// A program in `$PATH`, or where systems have them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    const FALLBACK: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(FALLBACK.split(':'))
        .map(|dir| Path::new(dir).join(name))
        .find(|file| file.is_file())
}
