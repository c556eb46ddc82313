//! Which cgroups there are, and what a container could have of them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode as FileMode, OFlags, accessat};
use rustix::io::Errno;

use brig_cgroup::{Layout, Mode};
use brig_sys::bpf::{Insn, load_device_filter};
use brig_sys::process::CloneFlags;

use super::probe::in_child;
use super::{Findings, minor, vital};

/// The controllers, by their names on v2 and on v1, and what does not work without one.
const CONTROLLERS: [(&str, &str, &str); 7] = [
    ("memory", "memory", "memory limits are refused, and nobody is told of OOM kills"),
    ("cpu", "cpu", "CPU shares and quotas are refused"),
    ("cpuset", "cpuset", "containers cannot be bound to CPUs and memory nodes"),
    ("pids", "pids", "the number of processes cannot be limited: a fork bomb takes the host along"),
    ("io", "blkio", "limits on block devices are refused"),
    ("hugetlb", "hugetlb", "limits on huge pages are refused"),
    ("rdma", "rdma", "limits on RDMA devices are refused"),
];

pub fn look(findings: &mut Findings) {
    findings.topic("cgroups");
    let layout = match Layout::detect() {
        Ok(layout) => layout,
        Err(error) => {
            let absence = vital("no container can be made", "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
            return findings.add("hierarchies", false, error, absence);
        }
    };
    let mode = match layout.mode {
        Mode::V1 => "v1",
        Mode::Hybrid => "hybrid: v1 for the controllers, v2 beside",
        Mode::V2 => "v2",
    };
    findings.fact("hierarchies", mode);
    controllers(&layout, findings);
    writable(&layout, findings);
    born_inside(&layout, findings);
    devices(&layout, findings);
}

fn available(layout: &Layout) -> Vec<String> {
    if layout.mode != Mode::V2 {
        return layout.hierarchies.iter().flat_map(|hierarchy| hierarchy.controllers.clone()).collect();
    }
    let list = std::fs::read_to_string(place(layout).join("cgroup.controllers")).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

fn controllers(layout: &Layout, findings: &mut Findings) {
    let available = available(layout);
    let mend = if layout.mode == Mode::V2 {
        "write it to cgroup.subtree_control from the root of the hierarchy down to where containers are made; for a user, Delegate= in user@.service.d; a v1 mount of it takes it away, and cgroup_disable= on the kernel's command line"
    } else {
        "mount it below /sys/fs/cgroup, and see cgroup_disable= and cgroup_enable= on the kernel's command line"
    };
    for (v2, v1, means) in CONTROLLERS {
        let name = if layout.mode == Mode::V2 { v2 } else { v1 };
        let there = available.iter().any(|known| known == name);
        let found = if there { "available" } else { "missing" };
        findings.add(format!("controller {name}"), there, found, minor(means, mend));
    }
    let freezer = layout.mode == Mode::V2 || available.iter().any(|name| name == "freezer");
    let found = if freezer { "available" } else { "missing" };
    findings.add(
        "freezer",
        freezer,
        found,
        minor("containers cannot be paused", "mount the freezer hierarchy"),
    );
}

/// Where the cgroups of containers are made unless their configuration says otherwise: v2, beside that of the caller.
fn place(layout: &Layout) -> PathBuf {
    let Some(unified) = layout.hierarchies.iter().find(|hierarchy| hierarchy.unified) else {
        return PathBuf::new();
    };
    let own = unified.own().unwrap_or(Path::new(""));
    let parent =
        if rustix::process::geteuid().is_root() { Path::new("") } else { own.parent().unwrap_or(own) };
    unified.mount.join(parent)
}

fn writable(layout: &Layout, findings: &mut Findings) {
    let dirs: Vec<PathBuf> = if layout.mode == Mode::V2 {
        vec![place(layout)]
    } else {
        let v1 = layout.hierarchies.iter().filter(|hierarchy| !hierarchy.unified);
        v1.map(|hierarchy| hierarchy.mount.join(hierarchy.own().unwrap_or(Path::new("")))).collect()
    };
    let refused = dirs.iter().find_map(|dir| {
        let answer = accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        answer.err().map(|errno| format!("{}: {}", dir.display(), brig_sys::errno_text(errno)))
    });
    let root = rustix::process::geteuid().is_root();
    let (means, mend) = if root {
        ("no container can be made", "mount /sys/fs/cgroup writable")
    } else {
        (
            "containers run without limits",
            "delegation: run it in a session of systemd with --systemd-cgroup, or have root chown a cgroup to the user and start the shell in it",
        )
    };
    let good = refused.is_none();
    let found = refused.unwrap_or_else(|| "writable".to_owned());
    findings.add("delegation", good, found, super::Absence { vital: root, means, mend });
}

fn own_dir(layout: &Layout) -> Result<std::os::fd::OwnedFd, Errno> {
    let unified = layout.hierarchies.iter().find(|hierarchy| hierarchy.unified).ok_or(Errno::NOENT)?;
    let dir = unified.mount.join(unified.own().map_err(|_| Errno::NOENT)?);
    rustix::fs::open(&dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, FileMode::empty())
}

fn born_inside(layout: &Layout, findings: &mut Findings) {
    if !layout.hierarchies.iter().any(|hierarchy| hierarchy.unified) {
        return findings.fact("birth in a cgroup", "no v2 hierarchy to be born in");
    }
    let born = own_dir(layout)
        .and_then(|dir| in_child(CloneFlags::empty(), Some(std::os::fd::AsFd::as_fd(&dir)), || Ok(())));
    let absence = super::Absence {
        vital: layout.mode == Mode::V2,
        means: "processes cannot be born in the container's cgroup",
        mend: "Linux 5.7 or later, and a cgroup that this shell may write to",
    };
    // A cgroup with controllers for those below it takes no processes but the ones that it has.
    let born = if born == Err(Errno::BUSY) { Ok(()) } else { born };
    findings.tried("birth in a cgroup", born, absence);
}

fn devices(layout: &Layout, findings: &mut Findings) {
    if layout.mode != Mode::V2 {
        let there = available(layout).iter().any(|name| name == "devices");
        let found = if there { "controller available" } else { "missing" };
        let absence = vital("device rules cannot be kept", "mount the devices hierarchy");
        return findings.add("device rules", there, found, absence);
    }
    // r0 = 1; exit: everything is allowed. It is attached to nothing.
    let program = [Insn::new(0xb7, 0, 0, 0, 1), Insn::new(0x95, 0, 0, 0, 0)];
    let loaded = load_device_filter(&program, "brig_doctor", None).map(drop);
    let absence = minor(
        "device rules are refused, for rootless containers left out",
        "CAP_BPF or CAP_SYS_ADMIN, and a kernel with CONFIG_CGROUP_BPF",
    );
    findings.tried("device rules (eBPF)", loaded, absence);
}
