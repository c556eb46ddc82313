//! The first process of a new container.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use brig_plan::{Namespaces, Ns, Plan};
use brig_spec::Status;
use brig_sys::process::{CloneFlags, die_with_parent, reset_signals};
use brig_sys::{Context, SysError};

use super::{Inbox, Step, console, debug, devices, finish, hidden, mounts, namespaces, process, root, work};
use crate::channel::{Channel, FromChild};
use crate::error::{Error, Result};
use crate::hooks::{self, HookKind};
use crate::id::ContainerId;
use crate::rootfs::{MountApi, MountTarget, RootDir};

/// What the command prepared for the process. It crosses the clone as it is.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// What to set up.
    pub plan: &'a Plan,
    /// Whose process it is.
    pub id: &'a ContainerId,
    /// The container's cgroups.
    pub cgroup: &'a brig_cgroup::Names,
    /// The process is born in its (v2) cgroup and needs not wait to be moved.
    pub born_in_cgroup: bool,
    /// `exec.fifo`, see [`crate::gate`].
    pub gate: BorrowedFd<'a>,
    /// The record as it is now (O_PATH).
    pub record: BorrowedFd<'a>,
    /// Where the command leaves the compiled seccomp filter.
    pub filter: Option<BorrowedFd<'a>>,
    /// Connected socket to which the terminal goes.
    pub console: Option<BorrowedFd<'a>>,
    /// Descriptors from 3 on that the payload gets.
    pub preserve_fds: u32,
    /// What brig was called as.
    pub called_as: &'a str,
}

/// The process on its way.
#[derive(Debug)]
pub(super) struct Creation<'a> {
    pub job: Job<'a>,
    pub channel: &'a Channel,
    pub inbox: Inbox,
    /// `/proc` of the host, verified.
    pub proc: OwnedFd,
    pub api: MountApi,
    /// The container's root: first the tree attached on the host, later `/`.
    pub root: Option<RootDir>,
    pub place_of_root: Cell<Option<mounts::Place>>,
    /// procfs and sysfs of the container: where they were asked for, and the roots of their mounts.
    pub pseudo: Vec<(std::path::PathBuf, OwnedFd)>,
    /// Mounts to be made read-only once everything below them is in place.
    pub read_only_later: Vec<(OwnedFd, std::path::PathBuf)>,
    /// The pid namespace to join at the end, opened where its path leads to it.
    pub pid_namespace: Option<OwnedFd>,
    /// The cgroup namespace is made, or none is to be.
    pub cgroup_namespace_done: bool,
}

fn steps<'a>() -> [Step<Creation<'a>>; 25] {
    [
        ("tying the process to its creator", |c| tie(c.channel)),
        ("setting oom_score_adj", process::oom_score_adj),
        ("joining namespaces", namespaces::join),
        ("mapping ids", namespaces::map_ids),
        ("starting a session", session),
        ("joining the session keyring", process::keyring),
        ("bringing up the loopback interface", namespaces::loopback),
        ("waiting for network devices", namespaces::devices),
        ("setting the propagation of /", root::set_propagation),
        ("attaching the root file system", root::attach),
        (mounts::STEP, mounts::mount_all),
        ("populating /dev", devices::make_all),
        ("waiting for the host side", host_side),
        ("running createContainer hooks", create_container_hooks),
        ("entering the root file system", root::enter),
        ("making the working directory", process::make_cwd),
        ("setting up the terminal", console::set_up),
        ("making mounts read-only", root::make_read_only),
        ("setting hostname and domainname", process::names),
        ("writing sysctls", process::sysctls),
        ("making paths read-only", hidden::read_only_paths),
        ("masking paths", hidden::masked_paths),
        ("setting the propagation of the new /", root::set_own_propagation),
        ("setting scheduling and memory policy", process::attributes),
        ("becoming the init program", finish::create),
    ]
}

/// Flags of the clone that the command makes: none where the process must first join namespaces.
pub fn first_flags(ns: &Namespaces) -> CloneFlags {
    if namespaces::needs_stage(ns) { CloneFlags::empty() } else { namespaces::clone_flags(ns) }
}

/// Whether the process that the command makes only leads to the container's.
pub fn goes_through_stage(ns: &Namespaces) -> bool {
    namespaces::needs_stage(ns)
}

/// Becomes the container's first process.
pub fn run(job: Job<'_>, channel: &Channel) -> ! {
    debug(channel, || format!("nsexec container setup: process {} was cloned", std::process::id()));
    let mut inbox = Inbox { attached: job.born_in_cgroup, ..Inbox::default() };
    let begun = host_proc().and_then(|proc| {
        let pid_namespace = namespaces::open_pid_namespace(&job.plan.namespaces)?;
        if namespaces::needs_stage(&job.plan.namespaces) {
            tie(channel)?;
            // With the privilege that a joined user namespace does not give.
            process::set_oom_score_adj(&proc, &job.plan.process)?;
            namespaces::go_through_stage(job.plan, &proc, channel, &mut inbox)?;
        }
        let api_proc = proc.try_clone().map_err(|e| crate::error::io_error("dup", "/proc".as_ref(), &e))?;
        Ok((proc, MountApi::new(Some(api_proc)), pid_namespace))
    });
    let (proc, api, pid_namespace) = match begun {
        Ok(begun) => begun,
        Err(e) => {
            channel.report(&FromChild::Failed(e));
            brig_sys::process::exit_now(1);
        }
    };
    let mut creation = Creation {
        job,
        channel,
        inbox,
        proc,
        api,
        root: None,
        place_of_root: Cell::new(None),
        pseudo: Vec::new(),
        read_only_later: Vec::new(),
        pid_namespace,
        cgroup_namespace_done: job.plan.namespaces.cgroup != Ns::New,
    };
    work(&mut creation, &steps(), channel)
}

/// Opens the host's `/proc` and makes sure that it is one: writes go through it later.
pub(super) fn host_proc() -> Result<OwnedFd> {
    const PROC_ROOT_INODE: u64 = 1;
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/proc", flags, Mode::empty()).on("open", "/proc")?;
    let kind = rustix::fs::fstatfs(&fd).on("fstatfs", "/proc")?.f_type;
    let inode = rustix::fs::fstat(&fd).on("fstat", "/proc")?.st_ino;
    if u64::try_from(kind).ok() != Some(PROC_SUPER_MAGIC) || inode != PROC_ROOT_INODE {
        return Err(Error::host("/proc is not a procfs").hint("mount -t proc proc /proc"));
    }
    Ok(fd)
}

impl Creation<'_> {
    pub fn root(&self) -> Result<&RootDir> {
        self.root.as_ref().ok_or_else(|| Error::new(crate::error::Kind::Internal, "there is no root yet"))
    }

    /// Where the root is, to tell whether a path led to it.
    pub fn place_of_root(&self) -> Result<mounts::Place> {
        match self.place_of_root.get() {
            Some(place) => Ok(place),
            None => {
                let place = mounts::place(self.root()?.as_fd())?;
                self.place_of_root.set(Some(place));
                Ok(place)
            }
        }
    }

    pub fn target(&self, fd: OwnedFd, path: &std::path::Path) -> MountTarget {
        MountTarget { fd, path: path.to_owned() }
    }

    /// Whether the container's user namespace is not the runtime's.
    pub fn in_user_namespace(&self) -> bool {
        self.job.plan.namespaces.user.is_private()
    }

    /// Makes the cgroup namespace, whose root is the cgroup that the process is in by then.
    pub fn make_cgroup_namespace(&mut self) -> Result<()> {
        if !self.cgroup_namespace_done {
            self.inbox.wait_attached(self.channel)?;
            brig_sys::process::unshare(CloneFlags::NEWCGROUP)?;
            self.cgroup_namespace_done = true;
        }
        Ok(())
    }
}

/// Dies with the creator until the container counts as created.
pub(super) fn tie(channel: &Channel) -> Result<()> {
    die_with_parent(true)?;
    // The creator may have died before: then its end of the channel is closed.
    let mut byte = [0_u8; 1];
    let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
    if let Ok((0, _)) = rustix::net::recv(channel.as_fd(), &mut byte, flags) {
        brig_sys::process::exit_now(1);
    }
    reset_signals();
    Ok(())
}

fn session(_: &mut Creation<'_>) -> Result<()> {
    match rustix::process::setsid() {
        Ok(_) => Ok(()),
        // Only a process group leader is refused, which a fresh process is not, unless it is process 1 already.
        Err(rustix::io::Errno::PERM) => Ok(()),
        Err(e) => Err(SysError::new("setsid", "", e).into()),
    }
}

/// The command sets limits, moves interfaces in and runs the hooks that belong to the host's side.
fn host_side(c: &mut Creation<'_>) -> Result<()> {
    c.make_cgroup_namespace()?;
    c.channel.report(&FromChild::RootfsReady);
    c.inbox.wait_go(c.channel)
}

fn create_container_hooks(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    if plan.hooks.create_container.is_empty() {
        return Ok(());
    }
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let state = hooks::state_json(plan, c.job.id, Status::Creating, pid);
    hooks::run_all(HookKind::CreateContainer, &plan.hooks.create_container, &state, Some(&plan.rootfs))
}
