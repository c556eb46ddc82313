//! What else a container may want of its host: systemd, security modules, limits, programs.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::rights::find_program;
use super::{Findings, minor};

pub fn systemd(findings: &mut Findings) {
    findings.topic("systemd");
    let running = Path::new("/run/systemd/system").is_dir();
    let mend = "boot with systemd, or use the cgroupfs driver: without --systemd-cgroup, native.cgroupdriver=cgroupfs for Docker, cgroup_manager=\"cgroupfs\" for Podman";
    let found = if running { "running" } else { "not running" };
    findings.add("systemd", running, found, minor("--systemd-cgroup is refused", mend));
    let system = PathBuf::from("/run/dbus/system_bus_socket");
    bus(
        "system bus",
        Some(system),
        "--systemd-cgroup goes by systemd's private socket, if that is there",
        findings,
    );
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("bus"));
    let root = rustix::process::geteuid().is_root();
    if root && user.is_none() {
        return findings.fact("user bus", "not needed by root");
    }
    bus("user bus", user, "rootless containers cannot have limits by systemd", findings);
}

fn bus(name: &str, path: Option<PathBuf>, means: &str, findings: &mut Findings) {
    let answer = match &path {
        Some(path) => reach(path),
        None => Err(rustix::io::Errno::NOENT),
    };
    let shown =
        path.map_or_else(|| "XDG_RUNTIME_DIR is not set".to_owned(), |path| path.display().to_string());
    let found = match answer {
        Ok(()) => shown,
        Err(errno) => format!("{shown}: {}", brig_sys::errno_text(errno)),
    };
    let mend = "start dbus; for a user, log in by a session of systemd (loginctl enable-linger USER) and set XDG_RUNTIME_DIR";
    findings.add(name, answer.is_ok(), found, minor(means, mend));
}

/// Whether somebody listens there.
fn reach(path: &Path) -> Result<(), rustix::io::Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(socket.as_fd(), &SocketAddrUnix::new(path)?)
}

pub fn security(findings: &mut Findings) {
    findings.topic("security");
    let list = std::fs::read_to_string("/sys/kernel/security/lsm");
    findings.fact("modules", list.map_or_else(|_| "not shown".to_owned(), |list| list.trim().to_owned()));
    let apparmor = crate::host::apparmor_enabled();
    let absence = minor(
        "process.apparmorProfile is refused",
        "apparmor=1 security=apparmor on the kernel's command line",
    );
    findings.add("AppArmor", apparmor, if apparmor { "enabled" } else { "not enabled" }, absence);
    let selinux = crate::host::selinux_enabled();
    let absence = minor(
        "process.selinuxLabel and linux.mountLabel are refused",
        "a kernel and a system with SELinux, if they are wanted",
    );
    findings.add("SELinux", selinux, if selinux { "enabled" } else { "not enabled" }, absence);
    let resctrl = crate::rdt::support().is_some();
    let absence = minor(
        "linux.intelRdt is refused",
        "mount -t resctrl resctrl /sys/fs/resctrl, on a processor that has it",
    );
    findings.add("resctrl", resctrl, if resctrl { "mounted" } else { "not mounted" }, absence);
}

pub fn limits(findings: &mut Findings) {
    use rustix::process::{Resource, getrlimit};
    findings.topic("limits");
    let shown = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    for (name, resource, least, means) in [
        ("open files", Resource::Nofile, 64, "configurations with many mounts may run out of descriptors"),
        ("processes", Resource::Nproc, 256, "few containers fit into the limit of this user"),
        ("locked memory", Resource::Memlock, 65_536, "before Linux 5.11, device filters do not fit"),
    ] {
        let limit = getrlimit(resource);
        let good = limit.current.is_none_or(|current| current >= least);
        let found = format!("{} (at most {})", shown(limit.current), shown(limit.maximum));
        findings.add(
            name,
            good,
            found,
            minor(means, "ulimit, or LimitNOFILE= and its like in the unit that starts it"),
        );
    }
    for (name, least) in [
        ("kernel/pid_max", 4096),
        ("kernel/threads-max", 4096),
        ("user/max_user_namespaces", 64),
        ("user/max_mnt_namespaces", 64),
        ("user/max_net_namespaces", 64),
        ("user/max_pid_namespaces", 64),
        ("fs/mount-max", 1000),
        ("kernel/keys/maxkeys", 200),
    ] {
        let text = std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
        let Ok(limit) = text.trim().parse::<u64>() else { continue };
        let sysctl = name.replace('/', ".");
        let mend = format!("sysctl {sysctl}=N");
        findings.add(sysctl, limit >= least, limit, minor("few containers fit in", &mend));
    }
}

pub fn tools(findings: &mut Findings) {
    findings.topic("tools");
    let criu = find_program("criu");
    let found = criu.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
    findings.add(
        "criu",
        criu.is_some(),
        found,
        minor("containers cannot be checkpointed", "apt-get install criu"),
    );
}
