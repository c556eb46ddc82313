//! A process on its way into a container.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use brig_cgroup::{Cgroup, Mode};
use brig_plan::{Process, ProcessContext};
use brig_spec::Status;
use brig_sys::process::{Child, CloneFlags, Cloned, ExitStatus, affinity, clone_process, reap, set_affinity};
use brig_sys::trace::{self, span};
use brig_sys::{Context, SysError};

use super::{ExecEnd, ExecRequest, Program, process, stopped};
use crate::channel::{Channel, FromChild, Hearing, ToChild, adopt};
use crate::child;
use crate::container::Container;
use crate::create::{from_problem, tell};
use crate::deadline::after;
use crate::ending::end;
use crate::error::{Doing, Error, Kind, Result};
use crate::execs::ExecRecord;
use crate::foreground::{Awaited, Foreground, connect_console};
use crate::ident::Ident;
use crate::listener::{self, Agent};
use crate::store::names;
use crate::tree::{self, SIGKILL};
use crate::{clock, fds, host, pidfile, scheduler, socket, takeover};

/// Signals by which a caller wants a command to end: SIGHUP, SIGINT, SIGQUIT, SIGTERM.
const ENDING: [i32; 4] = [1, 2, 3, 15];

/// A process on its way into a container.
#[derive(Debug)]
pub(super) struct Joining<'a> {
    request: &'a ExecRequest,
    container: Container,
    process: Process,
    channel: Hearing,
    /// Processes made, the last of them the container's; the one before it only led to it.
    children: Vec<Child>,
    /// Our end of the socket that a terminal in the foreground comes through.
    console: Option<OwnedFd>,
    pidfd_socket: Option<OwnedFd>,
    /// The process as an object with a name, or with a cgroup of its own.
    exec: Option<ExecRecord>,
}

impl<'a> Joining<'a> {
    /// Checks what can be checked beforehand and lets the process be born, inside the container's cgroup.
    pub fn begin(request: &'a ExecRequest, foreground: Option<&mut Foreground>) -> Result<Self> {
        let container = Container::load(&request.store, &request.id)?;
        check_status(&container, request.ignore_paused)?;
        let init = container.init()?.ok_or_else(stopped)?;
        let process = plan(request, &container)?;
        let (console, theirs) =
            connect_console(process.terminal, request.console_socket.as_deref(), foreground)?;
        let pidfd_socket = match &request.pidfd_socket {
            Some(path) => Some(socket::dial(path).doing(|| format!("failed to dail {}", path.display()))?),
            None => None,
        };
        let passed = fds::passed(request.preserve_fds, false)?;
        let filter = match &container.record.filter {
            Some(_) => Some(open_filter(&container)?),
            None => None,
        };
        let cgroup = cgroup(request, &container)?;
        let exec = name(request, &container, &process)?;
        let own = exec.as_ref().and_then(|exec| exec.cgroup.as_ref());
        let own =
            own.map(Cgroup::make_below).transpose().inspect_err(|_| forget(exec.as_ref(), &container))?;
        let birthplace = match &own {
            Some(own) => Some(own.as_fd()),
            None => cgroup.dir_fd()?,
        };
        let (ours, channel) = Channel::pair()?;
        let before =
            run_on(process.affinity_initial.as_deref()).inspect_err(|_| forget(exec.as_ref(), &container))?;
        let cloning = span("cloning");
        let (cloned, born_in_cgroup) = birth(&container, &cgroup, birthplace, own.is_none())
            .inspect_err(|_| forget(exec.as_ref(), &container))?;
        let child = match cloned {
            Cloned::Parent(child) => {
                drop(cloning);
                child
            }
            Cloned::Child => {
                std::mem::forget(cloning);
                trace::child("exec");
                drop(ours);
                let job = child::exec::Job {
                    id: &request.id,
                    record: &container.record,
                    init: init.as_fd(),
                    process: &process,
                    filter: filter.as_ref().map(AsFd::as_fd),
                    born_in_cgroup,
                    console: theirs.as_ref().map(AsFd::as_fd),
                    preserve_fds: passed.count,
                    called_as: &request.called_as,
                };
                child::exec::run(job, &channel)
            }
        };
        if let Some(before) = before {
            let _ = set_affinity(Some(&before));
        }
        drop(channel);
        let pid = child.pid.as_raw_nonzero().get();
        let channel = Hearing::begin(ours, child.pid);
        let mut joining =
            Self { request, process, channel, children: vec![child], console, pidfd_socket, container, exec };
        if !born_in_cgroup {
            let attached = cgroup.attach(pid, birthplace.is_none()).map_err(Error::from);
            if let Err(e) = attached.and_then(|()| joining.channel.tell(ToChild::Attached, None)) {
                joining.undo();
                return Err(e);
            }
        }
        Ok(joining)
    }

    fn child(&self) -> Result<&Child> {
        self.children.last().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))
    }

    /// Works for the process until it is ready to go on, or there is no need for it any more: it is told then how the command ends.
    ///
    /// Signals wait until there is somebody to pass them to, but in a paused container that may be never.
    pub fn until_ready(
        &mut self,
        mut foreground: Option<&mut Foreground>,
        deadline: Option<Instant>,
    ) -> Result<Option<ExecEnd>> {
        let _span = span("waiting for the process");
        loop {
            let newest =
                self.children.last().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))?;
            let newest = newest.pidfd.as_fd();
            if let Some(foreground) = foreground.as_mut().filter(|_| !self.channel.has_next()) {
                match foreground.wait_readable([self.channel.as_fd(), newest], deadline)? {
                    Awaited::Readable => {}
                    Awaited::TimedOut => return Ok(Some(ExecEnd::TimedOut)),
                    Awaited::Signal(number)
                        if ENDING.contains(&number) && self.container.status()? == Status::Paused =>
                    {
                        return Ok(Some(ExecEnd::Ended(ExitStatus::Signaled(number))));
                    }
                    Awaited::Signal(_) => continue,
                }
            }
            let Some(message) = self.channel.next(newest)? else { return Err(self.vanished()) };
            match message {
                FromChild::Cloned(_, pidfd) => self.children.push(adopt(pidfd)?),
                FromChild::Listener(number) => {
                    self.hand_over_listener(number)?;
                    self.channel.tell(ToChild::Go, None)?;
                }
                FromChild::Ready => return Ok(None),
                FromChild::Failed(e) => return Err(e),
                FromChild::InitFailed(fault) => return Err(fault.into_error(self.program())),
                FromChild::Log(level, line) => log::log!(level, "{line}"),
                other => {
                    return Err(Error::new(Kind::Internal, format!("unexpected message {other:?}")));
                }
            }
        }
    }

    fn program(&self) -> &str {
        self.process.args.first().map_or("", String::as_str)
    }

    fn hand_over_listener(&self, number: i32) -> Result<()> {
        let filter = self.container.record.filter.clone().unwrap_or_default();
        let path = filter.listener_path.ok_or_else(|| Error::config("seccomp listenerPath is not set"))?;
        let agent = Agent { path: &path, metadata: &filter.listener_metadata };
        let record = &self.container.record;
        let state = brig_spec::State {
            oci_version: record.oci_version.clone(),
            id: self.request.id.as_str().to_owned(),
            status: Status::Running,
            pid: record.init.map_or(0, |init| init.pid),
            bundle: record.bundle.to_string_lossy().into_owned(),
            annotations: record.annotations.clone(),
        };
        let child = self.child()?;
        listener::hand_over(child.pidfd.as_fd(), number, agent, child.pid.as_raw_nonzero().get(), state)
    }

    /// Sets what needs the host's privilege, tells whoever waits for it, and lets the process execute its program.
    pub fn let_go(&mut self, foreground: Option<&mut Foreground>) -> Result<()> {
        if let (Some(foreground), Some(console)) = (foreground, &self.console) {
            foreground.connect(console)?;
        }
        let (child, before) =
            self.children.split_last().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))?;
        for led_here in before {
            reap(led_here.pidfd.as_fd(), true)?;
        }
        if self.container.record.namespaces & CloneFlags::NEWUSER.bits() != 0 {
            crate::rlimits::set(child.pid, &self.process)?;
        }
        let cloned_again = self.container.record.namespaces & CloneFlags::NEWPID.bits() != 0;
        if cloned_again && !scheduler::survives_clone(&self.process) {
            scheduler::set(Some(child.pid), &self.process)?;
        }
        if let Some(groups) = &self.container.record.rdt {
            groups.join(child.pid.as_raw_nonzero().get())?;
        }
        if let Some(socket) = &self.pidfd_socket {
            socket::send_fd(socket.as_fd(), b"setns", child.pidfd.as_fd())
                .map_err(Error::from)
                .doing(|| "failed to setup pidfd")?;
        }
        if let Some(exec) = &mut self.exec {
            exec.process = Some(Ident::of(child.pid, child.pidfd.as_fd())?);
            exec.write(&self.container)?;
        }
        if let Some(path) = &self.request.pid_file {
            pidfile::write(path, child.pid.as_raw_nonzero().get())?;
        }
        log::debug!("setns_init: about to exec {:?}", self.process.args);
        self.channel.tell(ToChild::Go, None)?;
        // The channel closes with the execve.
        match self.channel.next(child.pidfd.as_fd())? {
            Some(FromChild::InitFailed(fault)) => {
                if let Some(path) = &self.request.pid_file {
                    let _ = rustix::fs::unlink(path);
                }
                Err(self.channel.last_words(fault).into_error(self.program()))
            }
            _ => Ok(()),
        }
    }

    fn vanished(&self) -> Error {
        let killed = self.children.last().and_then(|child| reap(child.pidfd.as_fd(), true).ok().flatten());
        let oom =
            self.container.cgroup().and_then(|cgroup| Ok(cgroup.oom_kills()?)).is_ok_and(|n| n > Some(0));
        let suffix = if oom { " (possibly OOM-killed)" } else { "" };
        log::debug!("the process ended with {killed:?}");
        Error::host(format!("procReady not received{suffix}"))
    }

    /// Ends whatever there is of the process.
    pub fn undo(&mut self) {
        for child in self.children.drain(..) {
            if let Err(e) = end(&child) {
                log::debug!("{e}");
            }
        }
        forget(self.exec.as_ref(), &self.container);
    }

    /// Hands over the running process.
    pub fn into_running(mut self) -> Result<Running> {
        let child = self.children.pop().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))?;
        Ok(Running { container: self.container, child, exec: self.exec })
    }
}

/// A process of the container in the foreground.
#[derive(Debug)]
pub(super) struct Running {
    container: Container,
    child: Child,
    exec: Option<ExecRecord>,
}

impl Running {
    pub fn pidfd(&self) -> &OwnedFd {
        &self.child.pidfd
    }

    /// Kills it with all that it has started, and waits for its end.
    pub fn kill_tree(&self) -> Result<()> {
        let deadline = after(Duration::from_secs(10));
        let cgroup = self.exec.as_ref().map(ExecRecord::cgroup).transpose()?.flatten();
        match &cgroup {
            Some(cgroup) => drop(cgroup.kill_all(deadline)?),
            None => tree::kill(self.child.pid.as_raw_nonzero().get(), self.child.pidfd.as_fd(), SIGKILL)?,
        }
        end(&self.child)?;
        if let Some(cgroup) = &cgroup {
            cgroup.wait_empty(deadline)?;
        }
        Ok(())
    }

    /// It has ended: so has its name.
    pub fn forget(&self) {
        if let Some(exec) = &self.exec {
            let _ = exec.forget(&self.container);
        }
    }
}

/// Clones into `birthplace`; where the kernel does not allow that and another place will do, `elsewhere`. Says whether the process
/// is where it belongs from its birth.
fn birth(
    container: &Container,
    cgroup: &Cgroup,
    birthplace: Option<BorrowedFd<'_>>,
    elsewhere: bool,
) -> Result<(Cloned, bool)> {
    let record = &container.record;
    let born_in_cgroup = birthplace.is_some() && record.cgroup.mode == Mode::V2;
    match clone_process(CloneFlags::empty(), birthplace) {
        Err(e) if e.errno == Errno::BUSY && elsewhere && *cgroup.names() == record.cgroup => {
            // Processes of the container have moved to cgroups below its own, which then can hold none: join the first of them.
            let init = record.init.map_or(0, |init| init.pid);
            let current = cgroup.current_of(init)?;
            let cloned = match &current {
                Some(current) => clone_process(CloneFlags::empty(), Some(current.as_fd())),
                None => Err(e),
            };
            Ok((cloned.map_err(|e| explain_birth(e, cgroup))?, born_in_cgroup))
        }
        // From a user's session, systemd has to move it.
        Err(e) if e.errno == Errno::ACCESS && elsewhere && born_in_cgroup && record.cgroup.unit.is_some() => {
            let cloned = clone_process(CloneFlags::empty(), None);
            Ok((cloned.map_err(|e| explain_birth(e, cgroup))?, false))
        }
        cloned => Ok((cloned.map_err(|e| explain_birth(e, cgroup))?, born_in_cgroup)),
    }
}

/// Gives the process a name, or at least a cgroup, where one is asked for.
fn name(request: &ExecRequest, container: &Container, process: &Process) -> Result<Option<ExecRecord>> {
    if request.exec_id.is_none() && !request.exec_cgroup && request.timeout.is_none() {
        return Ok(None);
    }
    let creator = Ident::own()?;
    let id = request.exec_id.clone().unwrap_or_else(|| format!("pid-{}", creator.pid));
    // Whatever a process with a time limit starts ends with it: by its cgroup where that is possible.
    let wants_cgroup = request.exec_cgroup || request.timeout.is_some() && request.cgroup.is_empty();
    let names = container.record.cgroup.below(&ExecRecord::cgroup_name(&id)).filter(|_| wants_cgroup);
    if request.exec_cgroup && names.is_none() {
        return Err(Error::host("--exec-cgroup needs a cgroup v2 hierarchy, and this host has none"));
    }
    let record = ExecRecord {
        id,
        creator,
        process: None,
        args: process.args.clone(),
        started: clock::now_ns(),
        cgroup: names,
    };
    record.reserve(container)?;
    Ok(Some(record))
}

fn forget(exec: Option<&ExecRecord>, container: &Container) {
    if let Some(exec) = exec {
        let _ = exec.forget(container);
    }
}

/// The cgroup that the process is to be in.
fn cgroup(request: &ExecRequest, container: &Container) -> Result<Cgroup> {
    let cgroup = container.cgroup()?;
    let cgroup = if request.cgroup.is_empty() { cgroup } else { cgroup.sub(&request.cgroup)? };
    // Born there, the process would never come to tell that it is ready.
    if !request.ignore_paused && cgroup.is_frozen()? {
        let text = "cannot exec into a frozen cgroup (--ignore-paused waits until it is thawed)";
        return Err(Error::state(text));
    }
    Ok(cgroup)
}

fn check_status(container: &Container, ignore_paused: bool) -> Result<()> {
    match container.status()? {
        Status::Created | Status::Running => Ok(()),
        Status::Paused if ignore_paused => Ok(()),
        Status::Paused => {
            Err(Error::state("cannot exec in a paused container (use --ignore-paused to override)"))
        }
        Status::Stopped | Status::Creating => Err(stopped()),
    }
}

/// `execCPUAffinity.initial`: the process is to be born on these CPUs, before it is in the container's cgroup. Answers which
/// ones this process was on.
fn run_on(cpus: Option<&[usize]>) -> Result<Option<Vec<usize>>> {
    let Some(cpus) = cpus else {
        return Ok(None);
    };
    let before = affinity().on("sched_getaffinity", "")?;
    set_affinity(Some(cpus))
        .on("sched_setaffinity", format!("{cpus:?}"))
        .doing(|| "process.execCPUAffinity.initial")?;
    Ok(Some(before))
}

fn plan(request: &ExecRequest, container: &Container) -> Result<Process> {
    let record = &container.record;
    let base = match &request.program {
        Program::Changes(_) if record.adopted => &takeover::process(record)?,
        _ => &record.process,
    };
    let described = process::describe(&request.program, base)?;
    let context = ProcessContext {
        rootless_euid: record.rootless,
        user_namespace: record.namespaces & CloneFlags::NEWUSER.bits() != 0,
        detached: request.detach,
        console_socket: request.console_socket.is_some(),
        ..ProcessContext::default()
    };
    let draft = brig_plan::process(&described, &context, &host::probe_process(&described));
    let (mut process, warnings) = draft.into_result().map_err(from_problem)?;
    warnings.iter().for_each(tell);
    let keep_groups = brig_plan::extensions(&record.annotations).keep_groups;
    process.user.keep_groups = keep_groups && process.user.additional_gids.is_empty();
    // These hold for every process of the container.
    process.personality = record.personality;
    process.memory_policy =
        brig_plan::memory_policy_of(record.memory_policy.as_ref()).map_err(from_problem)?;
    Ok(process)
}

fn open_filter(container: &Container) -> Result<OwnedFd> {
    if container.record.adopted {
        return takeover::filter(&container.dir);
    }
    let path = container.dir.file(names::FILTER);
    Ok(container.dir.open_file(names::FILTER, OFlags::RDONLY).on_path("open", path)?)
}

fn explain_birth(e: SysError, cgroup: &Cgroup) -> Error {
    let errno = e.errno;
    let error = Error::from(e);
    match errno {
        Errno::NOENT | Errno::NODEV => Error::host(format!(
            "error adding process to cgroups: {}: no such file or directory",
            cgroup
                .names()
                .groups
                .iter()
                .find(|g| g.unified)
                .map(|g| g.dir().display().to_string())
                .unwrap_or_default()
        ))
        .with_errno(errno),
        Errno::BUSY => error.hint("the cgroup has sub-cgroups with controllers, so it cannot hold processes"),
        Errno::OPNOTSUPP => error.hint(
            "the cgroup is below a threaded one and not threaded itself, so it can hold no processes: see its cgroup.type",
        ),
        Errno::AGAIN => {
            error.hint("the limit of processes is reached: RLIMIT_NPROC, pids.max or kernel.pid_max")
        }
        _ => error,
    }
}
