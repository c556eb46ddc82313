//! A container in the making: everything made so far, and how it is unmade.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use brig_cgroup::Cgroup;
use brig_plan::Ns;
use brig_sys::process::{Child, CloneFlags, Cloned, ExitStatus, clone_process, reap};
use brig_sys::trace::{self, span};
use brig_sys::{Context, SysError};

use super::plan::{Decided, decide, first_record};
use super::{CreateRequest, host_side, unit};
use crate::channel::{Channel, FromChild, Hearing, ToChild, adopt};
use crate::child;
use crate::deadline::after;
use crate::delete;
use crate::ending::end;
use crate::error::{Doing, Error, Kind, Result};
use crate::filter::LoadedFilter;
use crate::foreground::{Foreground, connect_console};
use crate::gate;
use crate::ident::Ident;
use crate::listener::{self, Agent};
use crate::record::{Record, Stage};
use crate::socket;
use crate::store::{ContainerDir, Lock, names};
use crate::{clock, hooks, netdev, notify, rlimits, scheduler};

/// crun's annotation for what `--pidfd-socket` is here.
const PIDFD_RECEIVER: &str = "run.oci.pidfd_receiver";

/// Clients of runc know the sentence.
const UNKILLABLE: &str = "Creating a rootless container with no cgroup and no private pid namespace. Such configuration is strongly discouraged (as it is impossible to properly kill all container's processes)";

/// A container in the making.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    request: &'a CreateRequest,
    pub(super) decided: Decided,
    dir: ContainerDir,
    lock: Lock,
    record: Box<Record>,
    pub(super) cgroup: Option<Cgroup>,
    channel: Option<Hearing>,
    /// Processes made, the last of them the container's; the ones before it only lead to it.
    children: Vec<Child>,
    gate: Option<OwnedFd>,
    filter_file: Option<OwnedFd>,
    pidfd_socket: Option<OwnedFd>,
    /// Interfaces that were moved into its network namespace.
    net_devices: Option<netdev::Moved>,
    /// The process waits for word that systemd has it in the unit.
    waits_for_unit: bool,
    /// All limits but the memory's are set.
    pub(super) limits_set: bool,
    /// Our end of the socket that a terminal in the foreground comes through.
    console: Option<OwnedFd>,
}

/// A container that is made.
#[derive(Debug)]
pub(crate) struct Made {
    pub dir: ContainerDir,
    pub lock: Lock,
    pub record: Box<Record>,
    pub pidfd: OwnedFd,
    /// Our end of the socket that its terminal comes through.
    pub console: Option<OwnedFd>,
}

impl<'a> Making<'a> {
    /// Decides, reserves the id, records what will be made, makes the cgroup and lets the process be born.
    ///
    /// With a foreground, the terminal comes to this process instead of going to `--console-socket`.
    pub fn begin(request: &'a CreateRequest, foreground: Option<&mut Foreground>) -> Result<Self> {
        let decided = decide(request, foreground.is_none())?;
        netdev::check(&decided.plan.net_devices)?;
        // Before the id is taken: a mistaken path leaves nothing to clean up.
        let terminal = decided.plan.process.terminal;
        let (console, theirs) = connect_console(terminal, request.console_socket.as_deref(), foreground)?;
        let receiver = decided.plan.annotations.get(PIDFD_RECEIVER).map(Path::new);
        let pidfd_socket = match request.pidfd_socket.as_deref().or(receiver) {
            Some(path) => {
                let failed = || format!("failed to dail {}", path.display());
                Some(socket::dial(path).doing(failed)?)
            }
            None => None,
        };
        let (dir, lock) = request.store.reserve(&request.id)?;
        let record = match vacant_then_record(request, &decided) {
            Ok(record) => record,
            Err(e) => {
                let _ = dir.remove();
                return Err(e);
            }
        };
        let mut making = Self {
            request,
            decided,
            dir,
            lock,
            record,
            cgroup: None,
            channel: None,
            children: Vec::new(),
            gate: None,
            filter_file: None,
            pidfd_socket,
            net_devices: None,
            waits_for_unit: false,
            limits_set: false,
            console,
        };
        match making.give_birth(theirs) {
            Ok(()) => Ok(making),
            Err(e) => {
                making.undo();
                Err(e)
            }
        }
    }

    fn give_birth(&mut self, console: Option<OwnedFd>) -> Result<()> {
        // The record comes first, then what it names.
        self.record.write(&self.dir)?;
        let record =
            self.dir.open_file(names::RECORD, OFlags::PATH).on_path("open", self.dir.file(names::RECORD))?;
        let gate = gate::make(&self.dir)?;
        if notify::manager().is_some() {
            notify::make_directory(&self.dir)?;
        }
        if self.decided.plan.seccomp.is_some() || self.decided.plan.raw_filter.is_some() {
            self.filter_file = Some(self.dir.create(names::FILTER)?);
        }
        let making = span("making the cgroup");
        let (names, plan) = (&self.decided.cgroup, &self.decided.plan);
        let cgroup = match &mut self.decided.unit {
            Some(unit) => unit.make_birthplace(names, &plan.cgroup)?,
            None => Some(make_cgroup(names, plan, goes_without_limits(self.request, names))?),
        };
        if let Some(cgroup) = &cgroup {
            cgroup.mark(&self.dir.mark()?);
        }
        beside_cgroup(&self.decided, cgroup.as_ref())?;
        drop(making);
        let (ours, theirs) = Channel::pair()?;
        let birthplace = cgroup.as_ref().map_or(Ok(None), Cgroup::dir_fd)?;
        let born_in_cgroup = birthplace.is_some() && names.mode == brig_cgroup::Mode::V2;
        // A process that only leads to the container's must be there when systemd looks.
        let waits = self.decided.unit.is_some() && child::create::goes_through_stage(&plan.namespaces);
        let mut job = child::create::Job {
            plan,
            id: &self.request.id,
            cgroup: names,
            born_in_cgroup: born_in_cgroup && !waits,
            gate: gate.as_fd(),
            record: record.as_fd(),
            filter: self.filter_file.as_ref().map(AsFd::as_fd),
            console: console.as_ref().map(AsFd::as_fd),
            preserve_fds: self.decided.passed.count,
            called_as: &self.request.called_as,
        };
        let flags = child::create::first_flags(&plan.namespaces);
        let cloning = span("cloning");
        let mut cloned = clone_process(flags, birthplace);
        if let Err(e) = &cloned
            && self.decided.unit.is_some()
            && unit::may_not_be_born_there(e.errno)
        {
            job.born_in_cgroup = false;
            cloned = clone_process(flags, None);
        }
        let waits = !job.born_in_cgroup;
        match cloned.map_err(|e| explain_clone(e, flags))? {
            Cloned::Child => {
                std::mem::forget(cloning);
                trace::child("container");
                drop(ours);
                drop(self.decided.unit.take());
                child::create::run(job, &theirs)
            }
            Cloned::Parent(child) => {
                drop(cloning);
                self.children.push(child);
            }
        }
        let pid = self.pid()?;
        match (&mut self.decided.unit, &cgroup) {
            (Some(unit), _) => {
                unit.begin(&self.decided.cgroup, pid)?;
                self.waits_for_unit = waits;
            }
            (None, Some(cgroup)) if waits => {
                cgroup.attach(pid, birthplace.is_none())?;
                ours.tell(ToChild::Attached, None)?;
            }
            (None, _) => {}
        }
        self.channel = Some(Hearing::begin(ours, self.child()?.pid));
        (self.cgroup, self.gate) = (cgroup, Some(gate));
        Ok(())
    }

    /// systemd has been making the unit meanwhile.
    fn await_unit(&mut self) -> Result<()> {
        let Some(mut unit) = self.decided.unit.take() else {
            return Ok(());
        };
        unit.finish(&self.decided.cgroup)?;
        if self.cgroup.is_none() {
            let cgroup = Cgroup::open(&self.decided.cgroup)?;
            cgroup.mark(&self.dir.mark()?);
            self.cgroup = Some(cgroup);
        }
        if !self.waits_for_unit {
            return Ok(());
        }
        if let Some(cgroup) =
            self.cgroup.as_ref().filter(|_| self.decided.cgroup.mode != brig_cgroup::Mode::V2)
        {
            // systemd has moved it in the hierarchies that it uses itself.
            cgroup.attach(self.pid()?, false)?;
        }
        self.tell(ToChild::Attached, None)
    }

    /// Why the process has ended, if it has and could still say so.
    fn reason_of_its_end(&mut self) -> Option<Error> {
        if !self.has_ended() {
            return None;
        }
        while let Ok(Some(message)) = self.hear() {
            if let FromChild::Failed(e) = message {
                return Some(e);
            }
        }
        None
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.child().is_ok_and(|child| crate::ident::has_ended(child.pidfd.as_fd()))
    }

    /// See [`goes_without_limits`].
    pub(super) fn goes_without_limits(&self) -> bool {
        goes_without_limits(self.request, &self.decided.cgroup)
    }

    /// The container's process.
    fn child(&self) -> Result<&Child> {
        self.children.last().ok_or_else(|| Error::new(Kind::Internal, "there is no process yet"))
    }

    /// Whose making it is.
    pub fn id(&self) -> &crate::id::ContainerId {
        &self.request.id
    }

    /// Its pid, for the pid file and for files below `/proc`.
    pub fn pid(&self) -> Result<i32> {
        Ok(self.child()?.pid.as_raw_nonzero().get())
    }

    /// Works beside the process, and for it, until it is ready to go on.
    pub fn until_ready(&mut self) -> Result<()> {
        // A process that ends takes its unit along: what then fails here is not what went wrong.
        let mut ready = self.work_until_ready();
        if let Err(e) = ready {
            ready = Err(self.reason_of_its_end().unwrap_or(e));
        }
        // The words that callers know from elsewhere.
        ready.doing(|| "error during container init").doing(|| "unable to start container process")
    }

    fn work_until_ready(&mut self) -> Result<()> {
        // While it mounts, this process does what takes longest here.
        self.compile_filter()?;
        self.await_unit()?;
        host_side::filter_devices(self)?;
        while let Some(message) = self.hear()? {
            match message {
                FromChild::NeedIdMaps => {
                    crate::userns::write_id_maps(self.pid()?, &self.decided.plan.id_maps)?;
                    self.tell(ToChild::Mapped, None)?;
                }
                // A process that only led here has been followed by the next one.
                FromChild::Cloned(_, pidfd) => self.children.push(adopt(pidfd)?),
                FromChild::NeedSource(index) => {
                    let source =
                        crate::sources::prepare(&self.decided.plan, index, self.child()?.pidfd.as_fd())?;
                    self.tell(ToChild::Source, source.as_ref().map(AsFd::as_fd))?;
                }
                FromChild::NeedDevices => {
                    let moved = netdev::move_in(&self.decided.plan.net_devices, self.pid()?)?;
                    self.net_devices = Some(moved);
                    self.tell(ToChild::Go, None)?;
                }
                FromChild::RootfsReady => {
                    host_side::hooks_and_limits(self)?;
                    self.tell(ToChild::Go, None)?;
                }
                FromChild::Listener(number) => {
                    self.hand_over_listener(number)?;
                    self.tell(ToChild::Go, None)?;
                }
                FromChild::Ready => return self.last_touches(),
                FromChild::Failed(e) => return Err(e),
                FromChild::InitFailed(fault) => return Err(fault.into_error(self.program())),
                FromChild::Log(level, line) => log::log!(level, "{line}"),
                FromChild::ProcContext(_) => {}
            }
        }
        Err(self.vanished())
    }

    fn program(&self) -> &str {
        self.decided.plan.process.args.first().map_or("", String::as_str)
    }

    fn hear(&mut self) -> Result<Option<FromChild>> {
        let _span = span("waiting for the container's process");
        match (&mut self.channel, self.children.last()) {
            (Some(channel), Some(newest)) => channel.next(newest.pidfd.as_fd()),
            _ => Ok(None),
        }
    }

    fn tell(&self, what: ToChild, fd: Option<std::os::fd::BorrowedFd<'_>>) -> Result<()> {
        self.channel.as_ref().map_or(Ok(()), |channel| channel.tell(what, fd))
    }

    fn compile_filter(&mut self) -> Result<()> {
        let Some(file) = &self.filter_file else {
            return Ok(());
        };
        let _span = span("compiling the seccomp filter");
        let plan = &self.decided.plan;
        let filter = match (&plan.raw_filter, &plan.seccomp) {
            (Some(program), _) => Some(LoadedFilter::compiled(program)),
            (None, Some(seccomp)) => LoadedFilter::compile(seccomp).doing(|| "linux.seccomp")?,
            (None, None) => None,
        };
        if let Some(filter) = filter {
            log::debug!("seccomp filter flags: {}", filter.flags);
            filter.write(file.as_fd())?;
        }
        Ok(())
    }

    fn hand_over_listener(&self, number: i32) -> Result<()> {
        let path = self.record.filter.as_ref().and_then(|f| f.listener_path.as_deref());
        let filter = self.record.filter.clone().unwrap_or_default();
        let path = path.ok_or_else(|| Error::config("seccomp listenerPath is not set"))?;
        let pid = self.pid()?;
        let state = hooks::state(&self.decided.plan, &self.request.id, brig_spec::Status::Creating, pid);
        let agent = Agent { path, metadata: &filter.listener_metadata };
        listener::hand_over(self.child()?.pidfd.as_fd(), number, agent, pid, state)
    }

    /// The process is set up: what remains is what would have been in its way.
    fn last_touches(&mut self) -> Result<()> {
        if self.decided.plan.namespaces.user.is_private() {
            rlimits::set(self.child()?.pid, &self.decided.plan.process)?;
        }
        host_side::remaining_limits(self)?;
        if let Some(groups) = &self.decided.rdt {
            groups.join(self.pid()?)?;
        }
        let process = &self.decided.plan.process;
        if matches!(self.decided.plan.namespaces.pid, Ns::Join(_)) && !scheduler::survives_clone(process) {
            scheduler::set(Some(self.child()?.pid), process)?;
        }
        if let Some(socket) = &self.pidfd_socket {
            socket::send_fd(socket.as_fd(), b"standard", self.child()?.pidfd.as_fd())
                .map_err(Error::from)
                .doing(|| "failed to setup pidfd")?;
        }
        Ok(())
    }

    /// From the replacement of the record on, the container depends on nobody; the word to go on only says so.
    pub fn commit(&mut self) -> Result<()> {
        let (child, before) =
            self.children.split_last().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))?;
        for led_here in before {
            reap(led_here.pidfd.as_fd(), true)?;
        }
        self.record.init = Some(Ident::of(child.pid, child.pidfd.as_fd())?);
        if let Some(cgroup) = &self.cgroup {
            // Without those that there was no permission for: what joins the container later finds none of them.
            self.record.cgroup = cgroup.names().clone();
        }
        self.record.stage = Stage::Created;
        self.record.created = clock::now_ns();
        if let Some(cgroup) = self.cgroup.as_ref().filter(|_| !self.decided.plan.cgroup.systemd) {
            // Without those that could not be made for want of permission.
            self.record.cgroup = cgroup.names().clone();
        }
        self.record.write(&self.dir)?;
        if let Some(cgroup) = &mut self.cgroup {
            cgroup.keep();
        }
        if let Some(devices) = &mut self.net_devices {
            devices.keep();
        }
        log::debug!("init: closing the pipe to signal completion is next, the record says created");
        self.tell(ToChild::Go, None)
    }

    /// Hands over a committed container.
    pub fn into_made(mut self) -> Result<Made> {
        let child = self.children.pop().ok_or_else(|| Error::new(Kind::Internal, "there is no process"))?;
        Ok(Made {
            dir: self.dir,
            lock: self.lock,
            record: self.record,
            pidfd: child.pidfd,
            console: self.console,
        })
    }

    /// The process ended without a word.
    fn vanished(&mut self) -> Error {
        let status = self.children.last().and_then(|child| reap(child.pidfd.as_fd(), true).ok().flatten());
        let killed = status == Some(ExitStatus::Signaled(rustix::process::Signal::KILL.as_raw()));
        let out_of_memory =
            self.cgroup.as_ref().is_some_and(|cgroup| cgroup.oom_kills().is_ok_and(|n| n > Some(0)));
        if killed && out_of_memory {
            return host_side::oom_killed();
        }
        Error::host("procReady not received").hint(match status {
            Some(ExitStatus::Signaled(signal)) => {
                format!("the container's process was ended by signal {signal}")
            }
            Some(ExitStatus::Exited(status)) => {
                format!("the container's process exited with status {status}")
            }
            None => "the container's process is gone".to_owned(),
        })
    }

    /// Takes everything away again. What cannot be taken away stays in the record, for `delete`.
    pub fn undo(&mut self) {
        self.channel = None;
        self.gate = None;
        // Back to where they came from, while there is a namespace that they are in.
        self.net_devices = None;
        let had_process = !self.children.is_empty();
        for child in self.children.drain(..) {
            if let Err(e) = end(&child) {
                log::debug!("{e}");
            }
        }
        let deadline = after(Duration::from_secs(10));
        if let Err(e) = delete::remove_all(&self.dir, &self.record, deadline) {
            log::debug!("undoing the creation of {}: {e}", self.request.id);
            return;
        }
        if had_process {
            delete::poststop_hooks(&self.record, &self.request.id);
        }
    }
}

/// `--rootless=true`: limits that the caller may not set are left out, and named on the log.
fn goes_without_limits(request: &CreateRequest, names: &brig_cgroup::Names) -> bool {
    request.rootless == Some(true) && names.lenient()
}

fn make_cgroup(names: &brig_cgroup::Names, plan: &brig_plan::Plan, without_limits: bool) -> Result<Cgroup> {
    match Cgroup::make(names, &plan.cgroup.resources) {
        Err(brig_cgroup::Error::RootlessLimits(_)) if without_limits => {
            Cgroup::make(names, &brig_spec::Resources::default())
        }
        other => other,
    }
    .doing(|| "unable to apply cgroup configuration")
}

/// What goes with the cgroup: a warning where there is none and one would be needed, and resctrl groups.
fn beside_cgroup(decided: &Decided, cgroup: Option<&Cgroup>) -> Result<()> {
    let plan = &decided.plan;
    if cgroup.is_some_and(|cgroup| cgroup.names().groups.is_empty()) && plan.namespaces.pid == Ns::Host {
        log::warn!("{UNKILLABLE}");
    }
    match (&decided.rdt, &plan.intel_rdt) {
        (Some(groups), Some(given)) => groups.make(given),
        _ => Ok(()),
    }
}

fn vacant_then_record(request: &CreateRequest, decided: &Decided) -> Result<Box<Record>> {
    // Whoever finds the record takes what lives in its cgroup for the container's.
    decided.cgroup.check_vacant()?;
    let mut record = first_record(request, decided)?;
    if decided.plan.namespaces.mount == Ns::Host {
        record.mounted_over = Some(crate::rootfs::mount_id_of(&decided.plan.rootfs)?);
    }
    Ok(record)
}

/// Which namespaces were asked for is in the call; what the errno means for them is not.
fn explain_clone(e: SysError, flags: CloneFlags) -> Error {
    let errno = e.errno;
    let error = Error::from(e);
    match errno {
        Errno::PERM if !flags.is_empty() => {
            error.hint("new namespaces need CAP_SYS_ADMIN, or a user namespace")
        }
        Errno::NOSPC => error.hint("the limit of namespaces in /proc/sys/user is reached"),
        Errno::AGAIN => error.hint(crate::explain::PROCESS_LIMIT),
        Errno::NOSYS => error
            .hint("clone3 needs Linux 5.3, and brig 5.10; or a seccomp filter around the caller hides it"),
        Errno::BUSY => error.hint("the cgroup has sub-cgroups with controllers, so it cannot hold processes"),
        _ => error,
    }
}
