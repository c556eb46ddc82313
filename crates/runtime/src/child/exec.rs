//! A process that joins a running container.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use brig_plan::Process;
use brig_sys::Context;
use brig_sys::process::{CloneFlags, affinity};

use super::create::{host_proc, tie};
use super::{Inbox, Step, console, debug, finish, namespaces, process, work};
use crate::channel::{Channel, FromChild};
use crate::error::{Error, Kind, Result};
use crate::filter::LoadedFilter;
use crate::id::ContainerId;
use crate::record::Record;
use crate::rootfs::RootDir;

/// What the command prepared for the process. It crosses the clone as it is.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The container.
    pub id: &'a ContainerId,
    /// Its record.
    pub record: &'a Record,
    /// Its first process, whose namespaces are joined.
    pub init: BorrowedFd<'a>,
    /// What to run.
    pub process: &'a Process,
    /// The container's seccomp filter.
    pub filter: Option<BorrowedFd<'a>>,
    /// The process is born in its (v2) cgroup and needs not wait to be moved.
    pub born_in_cgroup: bool,
    /// Connected socket to which the terminal goes.
    pub console: Option<BorrowedFd<'a>>,
    /// Descriptors from 3 on that the payload gets.
    pub preserve_fds: u32,
    /// What brig was called as.
    pub called_as: &'a str,
}

#[derive(Debug)]
struct Joining<'a> {
    job: Job<'a>,
    channel: &'a Channel,
    inbox: Inbox,
    /// `/proc` of the host, verified.
    proc: OwnedFd,
    root: Option<RootDir>,
}

fn steps<'a>() -> [Step<Joining<'a>>; 8] {
    [
        ("tying the process to its creator", |j| tie(j.channel)),
        ("setting oom_score_adj", |j| process::set_oom_score_adj(&j.proc, j.job.process)),
        ("joining the cgroup", |j| j.inbox.wait_attached(j.channel)),
        ("joining the container's namespaces", join),
        ("joining the session keyring", keyring),
        ("setting up the terminal", terminal),
        ("setting scheduling and memory policy", attributes),
        ("becoming the init program", become_init),
    ]
}

/// Becomes a process of the container.
pub fn run(job: Job<'_>, channel: &Channel) -> ! {
    let proc = match host_proc() {
        Ok(proc) => proc,
        Err(e) => {
            channel.report(&FromChild::Failed(e));
            brig_sys::process::exit_now(1);
        }
    };
    debug(channel, || format!("nsexec container setup: process {} was cloned", std::process::id()));
    debug(channel, || format!("nsexec: affinity: {}", cpu_mask(&affinity().unwrap_or_default())));
    let inbox = Inbox { attached: job.born_in_cgroup, ..Inbox::default() };
    let mut joining = Joining { job, channel, inbox, proc, root: None };
    work(&mut joining, &steps(), channel)
}

/// CPUs as the bits of one number.
fn cpu_mask(cpus: &[usize]) -> String {
    const BITS: usize = 4;
    let digits = cpus.iter().max().map_or(1, |cpu| cpu / BITS + 1);
    let digit = |place: usize| {
        let bits = (0..BITS).filter(|bit| cpus.contains(&(place * BITS + bit)));
        bits.fold(0_u8, |digit, bit| digit | 1 << bit)
    };
    (0..digits).rev().fold("0x".to_owned(), |text, place| format!("{text}{:x}", digit(place)))
}

/// Joins all namespaces of the container's first process at once. The pid namespace counts for children only: this process
/// is not seen in it before it is the init program.
fn join(j: &mut Joining<'_>) -> Result<()> {
    process::hide_from_others()?;
    let flags = j.job.record.namespaces;
    let has = |flag: CloneFlags| flags & flag.bits() != 0;
    namespaces::join_process(j.job.init, flags)?;
    if has(CloneFlags::NEWUSER) {
        namespaces::become_root()?;
        // A change of ids sets it to what fs.suid_dumpable says.
        process::hide_from_others()?;
    }
    if !has(CloneFlags::NEWNS) {
        // The container has the host's mounts, and a root of its own in them.
        let pid = j.job.record.init.map_or(0, |init| init.pid);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&j.proc, format!("{pid}/root"), flags, Mode::empty())
            .on("open", format!("/proc/{pid}/root"))?;
        rustix::process::fchdir(&root).on("fchdir", "the container's root")?;
        rustix::process::chroot(".").on("chroot", "the container's root")?;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    j.root = Some(RootDir::new(rustix::fs::open("/", flags, Mode::empty()).on("open", "/")?));
    Ok(())
}

impl Joining<'_> {
    fn root(&self) -> Result<&RootDir> {
        self.root.as_ref().ok_or_else(|| Error::new(Kind::Internal, "there is no root yet"))
    }

    fn in_pid_namespace(&self) -> bool {
        self.job.record.namespaces & CloneFlags::NEWPID.bits() != 0
    }

    fn in_user_namespace(&self) -> bool {
        self.job.record.namespaces & CloneFlags::NEWUSER.bits() != 0
    }
}

fn keyring(j: &mut Joining<'_>) -> Result<()> {
    if j.job.record.keep_keyring {
        return Ok(());
    }
    process::join_keyring(j.job.id.as_str(), j.in_user_namespace())
}

fn terminal(j: &mut Joining<'_>) -> Result<()> {
    // A session of its own also without a terminal: signals of the caller's terminal are not for this process.
    rustix::process::setsid().on("setsid", "")?;
    let (true, Some(socket)) = (j.job.process.terminal, j.job.console) else {
        return Ok(());
    };
    console::open(j.root()?, j.job.process)?.hand_over(socket, !j.in_pid_namespace())
}

fn attributes(j: &mut Joining<'_>) -> Result<()> {
    rustix::process::umask(Mode::from_raw_mode(j.job.process.user.umask));
    process::set_cpus(j.job.process.affinity_final.as_deref())?;
    process::set_attributes(j.job.process, j.in_pid_namespace())
}

fn become_init(j: &mut Joining<'_>) -> Result<()> {
    let filter = match j.job.filter {
        Some(file) => LoadedFilter::read(file)?,
        None => None,
    };
    finish::take_over(&finish::Finish {
        process: j.job.process,
        root: j.root()?,
        proc: j.proc.as_fd(),
        channel: j.channel,
        gate: None,
        record: None,
        filter,
        start_hooks: &[],
        hook_state: (Vec::new(), Vec::new()),
        called_as: j.job.called_as,
        preserve_fds: j.job.preserve_fds,
        clone: j.in_pid_namespace(),
        in_user_namespace: j.in_user_namespace(),
    })
}

#[cfg(test)]
mod tests {
    use super::cpu_mask;

    #[test]
    fn a_mask_has_as_many_digits_as_it_needs() {
        assert_eq!(cpu_mask(&[]), "0x0");
        assert_eq!(cpu_mask(&[1]), "0x2");
        assert_eq!(cpu_mask(&[0, 1, 4]), "0x13");
        assert_eq!(cpu_mask(&[64]), "0x10000000000000000");
    }
}
