//! Joining namespaces, and what a new one needs before it is of use.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
};

use brig_plan::{Namespaces, Ns, Plan};
use brig_sys::process::{CloneFlags, Cloned, clone_process, exit_now, unshare};
use brig_sys::{Context, SysError};

use super::create::Creation;
use super::{Inbox, process};
use crate::channel::{Channel, FromChild};
use crate::error::{Doing, Error, Result};

/// Flags of clone3 for the namespaces that are made new. The cgroup namespace is not among them: its root is where the
/// process is, and clone3 takes the caller's place for it.
pub fn clone_flags(ns: &Namespaces) -> CloneFlags {
    [
        (&ns.user, CloneFlags::NEWUSER),
        (&ns.mount, CloneFlags::NEWNS),
        (&ns.pid, CloneFlags::NEWPID),
        (&ns.network, CloneFlags::NEWNET),
        (&ns.ipc, CloneFlags::NEWIPC),
        (&ns.uts, CloneFlags::NEWUTS),
    ]
    .into_iter()
    .filter(|(ns, _)| **ns == Ns::New)
    .fold(CloneFlags::empty(), |flags, (_, flag)| flags | flag)
}

/// Joins the namespaces given by path that can be joined late, in runc's order. A pid namespace is not among them: the
/// process must not be seen in it before it is the init program.
pub(super) fn join(c: &mut Creation<'_>) -> Result<()> {
    join_all(&c.job.plan.namespaces, Early::No)
}

/// Which namespaces to join: those that come before a user namespace is made, or the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// All, in a process of its own before the clone.
    Yes,
    /// All that need no such process.
    No,
}

/// Goes through what [`needs_stage`] is about: joins, makes what must be there before, and is cloned. The clone returns from here.
pub(super) fn go_through_stage(
    plan: &Plan,
    proc: &OwnedFd,
    channel: &Channel,
    inbox: &mut Inbox,
) -> Result<()> {
    // The clone is born where this process is.
    inbox.wait_attached(channel)?;
    let ns = &plan.namespaces;
    // Opened while this process owns it: after joining or making a user namespace the file belongs to nobody that it could be.
    let offsets = open_time_offsets(ns, proc)?;
    join_all(ns, Early::Yes)?;
    let mut flags = clone_flags(ns) | CloneFlags::PARENT;
    if ns.time == Ns::New {
        if ns.user == Ns::New {
            unshare(CloneFlags::NEWUSER)?;
            flags.remove(CloneFlags::NEWUSER);
            channel.report(&FromChild::NeedIdMaps);
            inbox.wait_mapped(channel)?;
            become_root()?;
        }
        unshare(CloneFlags::NEWTIME)?;
        write_time_offsets(plan, offsets.as_ref())?;
    }
    match clone_process(flags, None)? {
        Cloned::Child => Ok(()),
        Cloned::Parent(child) => {
            channel.report(&FromChild::Cloned(child.pid.as_raw_nonzero().get(), child.pidfd));
            exit_now(0)
        }
    }
}

fn open_time_offsets(ns: &Namespaces, proc: &OwnedFd) -> Result<Option<OwnedFd>> {
    if ns.time != Ns::New {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, "self/timens_offsets", flags, Mode::empty());
    Ok(Some(file.on("open", "/proc/self/timens_offsets")?))
}

/// Clocks of a new time namespace can be set until a process is in it, time_namespaces(7).
fn write_time_offsets(plan: &Plan, file: Option<&OwnedFd>) -> Result<()> {
    let mut text = String::new();
    for (clock, offset) in
        [("monotonic", plan.time_offsets.monotonic), ("boottime", plan.time_offsets.boottime)]
    {
        if let Some((seconds, nanoseconds)) = offset {
            text.push_str(&format!("{clock} {seconds} {nanoseconds}\n"));
        }
    }
    let (Some(file), false) = (file, text.is_empty()) else {
        return Ok(());
    };
    rustix::io::write(file, text.as_bytes())
        .on("write", "/proc/self/timens_offsets")
        .doing(|| "linux.timeOffsets")?;
    Ok(())
}

/// Whether joining needs a process of its own before the one that becomes the container's: a user namespace that is joined
/// must own the namespaces made after it, and one that is made cannot join what belongs to the host.
pub fn needs_stage(ns: &Namespaces) -> bool {
    let joins = [&ns.mount, &ns.network, &ns.ipc, &ns.uts, &ns.cgroup, &ns.time]
        .iter()
        .any(|n| matches!(n, Ns::Join(_)));
    matches!(ns.user, Ns::Join(_)) || (ns.user == Ns::New && joins) || ns.time == Ns::New
}

/// Joins namespaces by path.
///
/// # Errors
///
/// The path is no namespace of that kind, or may not be joined.
pub fn join_all(ns: &Namespaces, early: Early) -> Result<()> {
    if needs_stage(ns) != (early == Early::Yes) {
        return Ok(());
    }
    let kinds = [
        (&ns.user, LinkNameSpaceType::User, "user"),
        (&ns.ipc, LinkNameSpaceType::InterProcessCommunication, "ipc"),
        (&ns.uts, LinkNameSpaceType::HostNameAndNISDomainName, "uts"),
        (&ns.network, LinkNameSpaceType::Network, "network"),
        (&ns.mount, LinkNameSpaceType::Mount, "mount"),
        (&ns.cgroup, LinkNameSpaceType::ControlGroup, "cgroup"),
        (&ns.time, LinkNameSpaceType::Time, "time"),
    ];
    // All are opened before the first is joined: the paths are the host's.
    let mut opened = Vec::new();
    for (ns, kind, name) in kinds {
        if let Ns::Join(path) = ns {
            let doing = || format!("linux.namespaces: {name} namespace {}", path.display());
            opened.push((open(path).doing(doing)?, path, kind, name));
        }
    }
    let join = |(fd, path, kind, name): &(OwnedFd, &PathBuf, LinkNameSpaceType, &str)| {
        move_into_link_name_space(fd.as_fd(), Some(*kind))
            .on_path("setns", path)
            .doing(|| format!("linux.namespaces: {name} namespace {}", path.display()))
    };
    let Ns::Join(_) = ns.user else {
        return opened.iter().try_for_each(join);
    };
    process::hide_from_others()?;
    // What belongs to the host can be joined only before the user namespace is, and what belongs to that one only after.
    let mut later = Vec::new();
    for one in opened {
        if one.3 == "user" || join(&one).is_err_and(|e| e.errno() == Some(Errno::PERM)) {
            later.push(one);
        }
    }
    later.iter().try_for_each(join)?;
    become_root()?;
    // A change of ids sets it to what fs.suid_dumpable says.
    process::hide_from_others()
}

fn open(path: &Path) -> Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).on_path("open", path)?)
}

/// Opens the pid namespace given by path, if one is.
pub(super) fn open_pid_namespace(ns: &Namespaces) -> Result<Option<OwnedFd>> {
    let Ns::Join(path) = &ns.pid else {
        return Ok(None);
    };
    open(path).map(Some).doing(|| format!("linux.namespaces: pid namespace {}", path.display()))
}

/// Enters a pid namespace, for the child that the init program will make.
pub(super) fn join_pid_namespace(fd: BorrowedFd<'_>) -> Result<()> {
    let joined = move_into_link_name_space(fd, Some(LinkNameSpaceType::ProcessID));
    Ok(joined.on("setns", "the pid namespace")?)
}

/// Root of the user namespace: files and processes made from here on belong to it.
pub fn become_root() -> Result<()> {
    let root = rustix::process::Uid::ROOT;
    rustix::thread::set_thread_res_gid(
        rustix::process::Gid::ROOT,
        rustix::process::Gid::ROOT,
        rustix::process::Gid::ROOT,
    )
    .on("setresgid", "0")?;
    Ok(rustix::thread::set_thread_res_uid(root, root, root).on("setresuid", "0")?)
}

/// Waits for the id mappings of a new user namespace and becomes its root.
pub(super) fn map_ids(c: &mut Creation<'_>) -> Result<()> {
    if c.job.plan.namespaces.user != Ns::New || c.job.plan.namespaces.time == Ns::New {
        return Ok(());
    }
    c.channel.report(&FromChild::NeedIdMaps);
    c.inbox.wait_mapped(c.channel)?;
    become_root()
}

/// A new network namespace has its loopback interface down.
pub(super) fn loopback(c: &mut Creation<'_>) -> Result<()> {
    if c.job.plan.namespaces.network != Ns::New {
        return Ok(());
    }
    Ok(brig_sys::net::set_loopback_up()?)
}

/// The command moves interfaces into the network namespace.
pub(super) fn devices(c: &mut Creation<'_>) -> Result<()> {
    if c.job.plan.net_devices.is_empty() {
        return Ok(());
    }
    c.channel.report(&FromChild::NeedDevices);
    c.inbox.wait_go(c.channel)
}

/// Joins all namespaces of a running process at once (setns(2) with a pidfd, Linux 5.8).
///
/// # Errors
///
/// The process is gone; one of its namespaces may not be joined.
pub fn join_process(pidfd: BorrowedFd<'_>, flags: u64) -> Result<()> {
    let flags = ThreadNameSpaceType::from_bits_retain(u32::try_from(flags).unwrap_or(0));
    match move_into_thread_name_spaces(pidfd, flags) {
        Ok(()) => Ok(()),
        Err(Errno::SRCH) => Err(Error::state("cannot exec in a stopped container").with_errno(Errno::SRCH)),
        Err(e) => Err(SysError::new("setns", "the container's namespaces", e).into()),
    }
}
