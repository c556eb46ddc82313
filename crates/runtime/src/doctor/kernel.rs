//! System calls and namespaces: each is made.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags, StatxFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use brig_sys::mount::{MountAttr, mount_setattr};
use brig_sys::process::{CloneFlags, cloexec_from, signal};

use super::probe::{in_child, own_user_namespace};
use super::{Findings, minor, vital};

pub fn look(findings: &mut Findings) {
    findings.topic("kernel");
    let name = rustix::system::uname();
    findings.fact(
        "version",
        format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
    );
    processes(findings);
    files(findings);
    mounts(findings);
    seccomp(findings);
    namespaces(findings);
}

fn processes(findings: &mut Findings) {
    const OLD: &str = "install Linux 5.10 or later, or lift the seccomp filter that this shell runs under";
    let born = in_child(CloneFlags::empty(), None, || Ok(()));
    findings.tried("clone3, waitid on a pidfd", born, vital("no process can be made", OLD));
    let own = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty());
    let signalled = own.as_ref().map_err(|errno| *errno).and_then(|own| signal(own.as_fd(), 0));
    findings.tried("pidfd_open, pidfd_send_signal", signalled, vital("no process can be signalled", OLD));
    let told = own.ok().and_then(|own| brig_sys::process::pidfd_info(own.as_fd()));
    let told = told.map(drop).ok_or(Errno::NOTTY);
    let means = "wait cannot tell the exit status of a process that is not its own child";
    findings.tried("PIDFD_GET_INFO", told, minor(means, "Linux 6.13 or later"));
    // No descriptor is that high, so nothing changes.
    let closed = cloexec_from(1 << 30, None).map_err(|error| error.errno);
    findings.tried("close_range", closed, vital("descriptors cannot be kept from the container", OLD));
}

fn files(findings: &mut Findings) {
    let opened =
        openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT).map(drop);
    let means = "paths in the root file system are resolved step by step, which is slower";
    findings.tried("openat2", opened, minor(means, "Linux 5.6 or later, or a seccomp filter that allows it"));
    let wanted = StatxFlags::MNT_ID;
    let told = rustix::fs::statx(CWD, "/", AtFlags::empty(), wanted)
        .and_then(|stat| if stat.stx_mask & wanted.bits() != 0 { Ok(()) } else { Err(Errno::OPNOTSUPP) });
    findings.tried("statx of mounts", told, vital("mounts cannot be told apart", "Linux 5.8 or later"));
    findings.tried(
        "sealed memfd",
        sealed_memfd(),
        minor("the init program is kept in a tmpfs instead", "set the sysctl vm.memfd_noexec below 2"),
    );
    let keyring = in_child(CloneFlags::empty(), None, || {
        brig_sys::keyring::join_session(c"_brig.doctor")
            .map_err(|error| error.errno)?
            .map(drop)
            .ok_or(Errno::NOSYS)
    });
    let means = "containers are made with --no-new-keyring only";
    findings.tried("session keyrings", keyring, minor(means, "raise kernel.keys.maxkeys, or allow keyctl"));
}

fn sealed_memfd() -> Result<(), Errno> {
    let exec = MemfdFlags::from_bits_retain(0x10);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match rustix::fs::memfd_create("brig-doctor", flags | exec) {
        Err(Errno::INVAL) => rustix::fs::memfd_create("brig-doctor", flags)?,
        other => other?,
    };
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)
}

/// A file system that is mounted nowhere and goes with its descriptor.
fn detached(fstype: &str) -> Result<OwnedFd, Errno> {
    let context = fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn mounts(findings: &mut Findings) {
    let own = own_user_namespace() | CloneFlags::NEWNS;
    findings.tried(
        "mount API (fsopen, fsmount)",
        in_child(own, None, || detached("tmpfs").map(drop)),
        minor(
            "mount(2) is used instead, which cannot do id-mapped and recursive attributes",
            "Linux 5.2 or later, or a seccomp filter that allows it",
        ),
    );
    let attributes = in_child(own, None, || {
        let mount = detached("tmpfs")?;
        let attr = MountAttr { set: brig_plan::MOUNT_ATTR_RDONLY, ..MountAttr::default() };
        mount_setattr(mount.as_fd(), c"", true, &attr)
    });
    findings.tried(
        "mount_setattr",
        attributes,
        minor("no recursive mount attributes (rro and its kin), no id-mapped mounts", "Linux 5.12 or later"),
    );
    id_mapped(findings);
    // The kernel wants a procfs that nothing hides before it gives a user namespace another.
    let nested = CloneFlags::NEWUSER | CloneFlags::NEWNS | CloneFlags::NEWPID;
    findings.tried(
        "procfs in a user namespace",
        in_child(nested, None, || detached("proc").map(drop)),
        minor(
            "rootless containers, and containers with user namespaces, cannot mount /proc",
            "parts of /proc are masked: allow user namespaces (user.max_user_namespaces), or run the outer container with unmasked paths (docker run --security-opt systempaths=unconfined)",
        ),
    );
}

fn id_mapped(findings: &mut Findings) {
    use rustix::mount::{OpenTreeFlags, open_tree};
    const NAME: &str = "id-mapped mounts of /";
    let absence = minor(
        "mounts with uidMappings of files that lie there are refused",
        "Linux 5.12 or later, and a file system that can (ext4, xfs, btrfs, overlay since 6.x, tmpfs since 6.3)",
    );
    if !rustix::process::geteuid().is_root() {
        return findings.fact(NAME, "for root only");
    }
    let map = brig_plan::IdMap { inside: 0, outside: 1, count: 1 };
    let maps = brig_plan::IdMaps { uid: vec![map], gid: vec![map] };
    let namespace = match crate::userns::with_maps(&maps) {
        Ok(namespace) => namespace,
        Err(error) => return findings.tried(NAME, Err(error.errno().unwrap_or(Errno::IO)), absence),
    };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mapped = open_tree(CWD, "/", flags).and_then(|tree| {
        let userns_fd = std::os::fd::AsRawFd::as_raw_fd(&namespace).unsigned_abs().into();
        let attr = MountAttr { set: brig_plan::MOUNT_ATTR_IDMAP, userns_fd, ..MountAttr::default() };
        mount_setattr(tree.as_fd(), c"", false, &attr)
    });
    findings.tried(NAME, mapped, absence);
}

fn seccomp(findings: &mut Findings) {
    const RET_ERRNO: u32 = 0x0005_0000;
    const RET_USER_NOTIF: u32 = 0x7fc0_0000;
    let known =
        |action: u32| if brig_sys::seccomp::knows_action(action) { Ok(()) } else { Err(Errno::OPNOTSUPP) };
    findings.tried(
        "seccomp filters",
        known(RET_ERRNO),
        minor(
            "containers with linux.seccomp are refused: all that Docker and Podman make",
            "a kernel with CONFIG_SECCOMP_FILTER",
        ),
    );
    let means = "SCMP_ACT_NOTIFY is refused";
    findings.tried("seccomp agents", known(RET_USER_NOTIF), minor(means, "Linux 5.0 or later"));
    let missing: Vec<&str> = brig_seccomp::FLAGS
        .iter()
        .filter(|(_, bit)| !brig_sys::seccomp::knows_flag(*bit))
        .map(|(name, _)| *name)
        .collect();
    let found =
        if missing.is_empty() { "all known".to_owned() } else { format!("missing: {}", missing.join(" ")) };
    let absence = minor("profiles that set them are refused", "a newer kernel (WAIT_KILLABLE_RECV: 5.19)");
    findings.add("seccomp flags", missing.is_empty(), found, absence);
}

fn namespaces(findings: &mut Findings) {
    findings.topic("namespaces");
    let user = own_user_namespace();
    let root = user.is_empty();
    for (name, flag) in [
        ("mount", CloneFlags::NEWNS),
        ("pid", CloneFlags::NEWPID),
        ("network", CloneFlags::NEWNET),
        ("ipc", CloneFlags::NEWIPC),
        ("uts", CloneFlags::NEWUTS),
        ("cgroup", CloneFlags::NEWCGROUP),
        ("time", CloneFlags::NEWTIME),
    ] {
        let usual = !matches!(name, "cgroup" | "time");
        let means = format!("containers with a {name} namespace of their own cannot be made");
        let mend = if root {
            "run it with CAP_SYS_ADMIN; check the limits in /proc/sys/user, and that the kernel was built with this type"
        } else {
            "allow user namespaces to ordinary users, see below"
        };
        let absence = if usual { vital(&means, mend) } else { minor(&means, mend) };
        // clone3 takes no new time namespace for the child itself before Linux 5.7, and brig uses unshare.
        let made = if flag == CloneFlags::NEWTIME {
            in_child(user, None, || brig_sys::process::unshare(flag).map_err(|error| error.errno))
        } else {
            in_child(user | flag, None, || Ok(()))
        };
        findings.tried(name, made, absence);
    }
    let means = if root {
        "containers with a user namespace cannot be made"
    } else {
        "no container can be made without root"
    };
    let mend = "sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 (Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or an AppArmor profile that allows userns";
    let absence = super::Absence { vital: !root, means, mend };
    findings.tried("user", in_child(CloneFlags::NEWUSER, None, || Ok(())), absence);
}
