//! What a container's process has besides namespaces and mounts.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use brig_plan::Process;
use brig_sys::process::{set_affinity, set_io_priority, set_memory_policy, set_personality};
use brig_sys::{Context, keyring};

use super::create::Creation;
use crate::error::{Doing, Error, Result};
use crate::rootfs::{RootDir, open_in_proc_by_steps};
use crate::scheduler;

/// The descriptors and the memory of this process, still an image of brig, are not for the container's other processes, whatever they
/// share with it from here on (CVE-2016-9962): a user namespace, in which they may have CAP_SYS_PTRACE, or a pid namespace.
pub(super) fn hide_from_others() -> Result<()> {
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .on("prctl(PR_SET_DUMPABLE)", "")?)
}

/// `process.oomScoreAdj`.
pub(super) fn oom_score_adj(c: &mut Creation<'_>) -> Result<()> {
    if super::namespaces::needs_stage(&c.job.plan.namespaces) {
        // Done before that, and inherited.
        return Ok(());
    }
    set_oom_score_adj(&c.proc, &c.job.plan.process)
}

/// Writes `/proc/self/oom_score_adj`.
pub(super) fn set_oom_score_adj(proc: impl AsFd, process: &Process) -> Result<()> {
    let Some(score) = process.oom_score_adj else {
        return Ok(());
    };
    let path = Path::new("/proc/self/oom_score_adj");
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, "self/oom_score_adj", flags, Mode::empty()).on_path("open", path)?;
    rustix::io::write(&file, score.to_string().as_bytes()).map_err(|e| {
        let text = brig_sys::errno_text(e);
        Error::host(format!("failed to update /proc/self/oom_score_adj: {text}"))
            .with_errno(e)
            .hint("a value lower than the caller's needs CAP_SYS_RESOURCE")
    })?;
    Ok(())
}

/// A session keyring of its own, so that the container cannot use the keys of whoever started it.
pub(super) fn keyring(c: &mut Creation<'_>) -> Result<()> {
    if c.job.plan.keep_keyring {
        return Ok(());
    }
    join_keyring(c.job.id.as_str(), c.in_user_namespace())
}

/// Joins the session keyring of the container with this id.
pub(super) fn join_keyring(id: &str, in_user_namespace: bool) -> Result<()> {
    const SEARCH_BY_USER: u32 = 0x8_0000;
    const SEARCH_BY_OTHERS: u32 = 0x8;
    let name =
        CString::new(format!("_ses.{id}")).map_err(|_| Error::config("invalid container ID format"))?;
    let Some(serial) = keyring::join_session(&name)? else {
        return Ok(());
    };
    let others = if in_user_namespace { SEARCH_BY_OTHERS } else { 0 };
    match keyring::add_permission(serial, SEARCH_BY_USER | others) {
        // exec joins a ring that belongs to the container's user: its permissions are set already.
        Err(e) if e.errno == Errno::ACCESS => Ok(()),
        other => Ok(other?),
    }
}

/// `process.cwd` is made if it is missing, owned by root.
pub(super) fn make_cwd(c: &mut Creation<'_>) -> Result<()> {
    let cwd = &c.job.plan.process.cwd;
    match c.root()?.ensure_dir(cwd, 0o755) {
        Ok(_) => Ok(()),
        // Only the container's user may look inside; it will say what is wrong.
        Err(e) if matches!(e.errno(), Some(Errno::ACCESS | Errno::PERM)) => Ok(()),
        Err(e) if e.errno() == Some(Errno::LOOP) || e.errno() == Some(Errno::XDEV) => {
            Err(e).doing(|| format!("process.cwd {} leads through a magic link", cwd.display()))
        }
        Err(e) => Err(e),
    }
}

/// Goes there; `Some` when only the container's user may, later.
pub(super) fn enter_cwd(root: &RootDir, cwd: &Path) -> Result<Option<CString>> {
    let late = || {
        let path = CString::new(cwd.as_os_str().as_encoded_bytes());
        path.map(Some).map_err(|_| Error::config("process.cwd contains a NUL byte"))
    };
    let dir = match root.resolve(cwd) {
        Ok(dir) => dir,
        Err(e) if matches!(e.errno(), Some(Errno::ACCESS | Errno::PERM)) => return late(),
        Err(e) => {
            return Err(e)
                .doing(|| format!("chdir to cwd (\"{}\") set in config.json failed", cwd.display()));
        }
    };
    match rustix::process::fchdir(&dir) {
        Ok(()) => {}
        Err(Errno::ACCESS) => return late(),
        Err(e) => {
            return Err(e)
                .on_path("chdir", cwd)
                .doing(|| format!("chdir to cwd (\"{}\") set in config.json failed", cwd.display()));
        }
    }
    // The directory was found below the root, so this is a second lock on the same door (CVE-2024-21626).
    match rustix::process::getcwd(Vec::new()) {
        Ok(path) if path.as_bytes().starts_with(b"/") => Ok(None),
        _ => Err(cwd_outside()),
    }
}

/// The words for a working directory that is not in the container.
pub fn cwd_outside() -> Error {
    Error::attack(
        "current working directory is outside of container mount namespace root -- possible container breakout detected",
    )
}

/// Host and domain name, and the umask.
pub(super) fn names(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    if let Some(name) = &plan.hostname {
        rustix::system::sethostname(name.as_bytes()).on("sethostname", name.as_str())?;
    }
    if let Some(name) = &plan.domainname {
        rustix::system::setdomainname(name.as_bytes()).on("setdomainname", name.as_str())?;
    }
    rustix::process::umask(Mode::from_raw_mode(plan.process.user.umask));
    Ok(())
}

/// `linux.sysctl`, written through the procfs of the host: which namespace is meant follows from the writer, and nothing in
/// the container can have put a file of its own in the way (CVE-2025-52881).
pub(super) fn sysctls(c: &mut Creation<'_>) -> Result<()> {
    let sysctls = &c.job.plan.sysctls;
    if sysctls.is_empty() {
        return Ok(());
    }
    for sysctl in sysctls {
        let write = || -> Result<()> {
            let path = Path::new("sys").join(&sysctl.path);
            let file = open_in_proc(c.proc.as_fd(), &path)?;
            rustix::io::write(&file, sysctl.value.as_bytes()).on("write", &sysctl.value)?;
            Ok(())
        };
        write().doing(|| format!("sysctl \"{}\"", sysctl.key)).map_err(|e| match e.errno() {
            Some(Errno::NOENT) => e.hint("this kernel has no such parameter: look for it below /proc/sys"),
            Some(Errno::INVAL) => e.hint("the kernel does not take this value"),
            _ => e,
        })?;
    }
    Ok(())
}

/// Opens a file of procfs for writing: no link is followed, and nothing that is mounted in it is entered.
fn open_in_proc(proc: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let opened = match openat2(proc, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => open_in_proc_by_steps(proc, path, flags),
        other => other,
    };
    Ok(opened.on_path("openat2", path)?)
}

/// Scheduling, I/O priority, personality, memory policy, CPUs.
pub(super) fn attributes(c: &mut Creation<'_>) -> Result<()> {
    // `execCPUAffinity` is not for the first process of a container.
    set_cpus(None)?;
    let cloned_again = c.pid_namespace.is_some();
    set_attributes(&c.job.plan.process, cloned_again)
}

/// The caller's CPUs are not the container's: without any of its own, it may use all that its cpuset has.
pub(super) fn set_cpus(cpus: Option<&[usize]>) -> Result<()> {
    match (set_affinity(cpus), cpus) {
        (Ok(()), _) => Ok(()),
        // Nobody asked for it, and a sandbox may not know the call.
        (Err(_), None) => Ok(()),
        (Err(e), Some(cpus)) => {
            Err(e).on("sched_setaffinity", format!("{cpus:?}")).doing(|| "process.execCPUAffinity.final")
        }
    }
}

/// The rest of what [`attributes`] does. See [`scheduler`] for the clone.
pub(super) fn set_attributes(process: &Process, cloned_again: bool) -> Result<()> {
    if !cloned_again || scheduler::survives_clone(process) {
        scheduler::set(None, process)?;
    }
    if let Some(priority) = process.io_priority {
        set_io_priority(priority)?;
    }
    if let Some(persona) = process.personality {
        set_personality(persona)?;
    }
    if let Some(policy) = &process.memory_policy {
        set_memory_policy(policy.mode, &policy.nodes)?;
    }
    Ok(())
}

/// Standard input, output and error belong to the container's user, but for devices that everybody shares. Whoever passed
/// them may not allow it: then they stay as they are.
pub(super) fn own_stdio(uid: u32, root: &RootDir) -> Result<()> {
    let mut null = None;
    for number in 0..=2 {
        let Ok(fd) = brig_sys::process::borrow_inherited(number) else {
            continue;
        };
        let stat = rustix::fs::fstat(fd).on("fstat", format!("descriptor {number}"))?;
        let is_null = rustix::fs::FileType::from_raw_mode(stat.st_mode)
            == rustix::fs::FileType::CharacterDevice
            && stat.st_rdev == rustix::fs::makedev(1, 3);
        if is_null {
            // The host's null device is a way to the host's file system; the container has one of its own.
            if let Some(null) = null.get_or_insert_with(|| open_null(root)) {
                brig_sys::process::place_fd(null, number)?;
            }
        } else if stat.st_uid != uid {
            let _ = rustix::fs::fchown(fd, Some(rustix::fs::Uid::from_raw(uid)), None);
        }
    }
    Ok(())
}

/// The container's null device, for use; `None` when what stands there is something else.
fn open_null(root: &RootDir) -> Option<OwnedFd> {
    let path = Path::new("/dev/null");
    let found = root.resolve_nofollow(path).ok()?;
    let is_null = |fd: BorrowedFd<'_>| {
        rustix::fs::fstat(fd).is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::CharacterDevice
                && stat.st_rdev == rustix::fs::makedev(1, 3)
        })
    };
    if !is_null(found.as_fd()) {
        return None;
    }
    root.open(path, OFlags::RDWR | OFlags::NOFOLLOW).ok().filter(|fd| is_null(fd.as_fd()))
}
