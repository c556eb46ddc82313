//! Units for containers: making, changing and stopping them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use brig_spec::Resources;
use rustix::fs::{Access, access, inotify};
use rustix::io::Errno;

use super::manager::{self, Failure, Method, NO_SUCH_UNIT, Retry, UNIT_EXISTS};
use super::properties::{self, Property};
use super::socket::Fault;
use super::value::{Type, Value};
use super::wire::Kind;
use super::{Bus, Systemd, Unit};
use crate::deadline::wait;
use crate::dir::read_path;
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::names::Names;
use crate::parse;

/// What systemd is told about a new unit, but for its process.
#[derive(Debug)]
pub struct NewUnit {
    properties: Vec<Property>,
    /// The call that it was sent with, on the present connection.
    sent: Option<u32>,
    pid: Option<i32>,
}

/// What became of a job.
enum Outcome {
    Done,
    Failed(Failure),
    /// The job ended with another word than `done`.
    Result(String),
}

impl NewUnit {
    /// Decides on the properties; asks nobody. `annotations` are those of `org.systemd.property.`, without that prefix; they win
    /// over what is decided here.
    ///
    /// # Errors
    ///
    /// A limit or an annotation makes no sense.
    pub fn decide(
        names: &Names,
        description: &str,
        resources: &Resources,
        annotations: &[(String, String)],
    ) -> Result<Self> {
        let Some(unit) = &names.unit else {
            return Ok(Self { properties: Vec::new(), sent: None, pid: None });
        };
        let mut all = vec![Property::new("Description", description.to_owned())];
        if unit.is_slice() {
            all.push(Property::new("Wants", Value::texts(&[&unit.slice])));
        } else {
            all.push(Property::new("Slice", unit.slice.clone()));
            all.push(Property::new("Delegate", true));
        }
        // Since systemd 236: one that fails goes as others do, and its name can be used again.
        all.push(Property::optional("CollectMode", "inactive-or-failed"));
        all.push(Property::new("DefaultDependencies", false));
        let io = if names.mode == Mode::V2 { "IOAccounting" } else { "BlockIOAccounting" };
        for accounting in ["CPUAccounting", "MemoryAccounting", "TasksAccounting", io] {
            all.push(Property::new(accounting, true));
        }
        all.extend(properties::device_rules(resources)?);
        all.extend(properties::limits(resources, names.mode, None)?.properties);
        for given in properties::annotations(annotations)? {
            all.retain(|property| property.name != given.name);
            all.push(given);
        }
        Ok(Self { properties: all, sent: None, pid: None })
    }

    /// The arguments of StartTransientUnit.
    fn arguments(&self, unit: &Unit) -> [Value; 4] {
        let mut list = of_bus(&self.properties);
        if let Some(pid) = self.pid.and_then(|pid| u32::try_from(pid).ok()) {
            list.push(entry("PIDs", Value::Array(Type::Uint32, vec![Value::Uint32(pid)])));
        }
        // No auxiliary units, which would have properties of their own.
        let auxiliary = Type::Struct(vec![Type::Text, Type::Array(Box::new(property_type()))]);
        let properties = Value::Array(property_type(), list);
        [unit.name.as_str().into(), "fail".into(), properties, Value::Array(auxiliary, Vec::new())]
    }
}

impl Systemd {
    /// The cgroup of this systemd, relative to the root of the hierarchies. That of the host's is found without asking it.
    ///
    /// # Errors
    ///
    /// A user's systemd cannot be asked.
    pub fn control_group(&mut self) -> Result<PathBuf> {
        let path = match self.bus {
            Bus::System => {
                let text = read_path(Path::new("/proc/1/cgroup")).unwrap_or_default();
                let own = parse::memberships(&text).into_iter().find(|entry| entry.id == 0);
                own.map(|own| own.path).unwrap_or_default()
            }
            Bus::User => {
                let answer = self.property(manager::MANAGER, manager::INTERFACE, "ControlGroup");
                let answer = answer
                    .map_err(|failure| failure.into_error("asking the user's systemd for its cgroup"))?;
                PathBuf::from(answer)
            }
        };
        // Processes of systemd itself are in a scope of their own.
        let path = path.strip_prefix("/").unwrap_or(&path);
        Ok(if path.ends_with("init.scope") { path.parent().unwrap_or(path) } else { path }.to_owned())
    }

    /// Gets a property that is a string.
    fn property(&mut self, path: &str, interface: &str, name: &str) -> Result<String, Failure> {
        let arguments = [interface.into(), name.into()];
        let interface = "org.freedesktop.DBus.Properties";
        let answer = self.call(&Method { path, interface, member: "Get", arguments: &arguments })?;
        Ok(answer.text(0).unwrap_or_default().to_owned())
    }

    /// Prepares for the unit that `names` names: connects, takes a left-over unit of that name away, sees to it that its slice
    /// is there. A container that is a slice itself is made here.
    ///
    /// # Errors
    ///
    /// There is no systemd to talk to; what it says.
    pub fn prepare(&mut self, names: &Names, new: &mut NewUnit) -> Result<()> {
        let Some(unit) = &names.unit else { return Ok(()) };
        let doing = || format!("error creating systemd unit `{}`", unit.name);
        let deadline = self.deadline();
        let mut retry = Retry::until(deadline);
        while let Err(failure) = self.connect(deadline) {
            retry.after(failure).map_err(|failure| failure.into_error(doing()))?;
        }
        if is_known(unit) {
            // Nobody lives in it: that is checked before the name goes into a record.
            self.stop(unit, self.deadline())?;
        }
        if let Some(slice) = names.slice_dir()?
            && access(&slice, Access::EXISTS).is_err()
        {
            self.start_slice(&unit.slice)?;
        }
        if unit.is_slice() {
            self.begin(names, new, None)?;
            return self.finish(names, new);
        }
        // The greeting is on its way while the process is made.
        self.watch(&unit.name)
            .and_then(|()| self.connect(deadline))
            .map_err(|failure| failure.into_error(doing()))?;
        let deadline = self.deadline();
        // Whatever is wrong with the connection, the next call finds out.
        let _ = self.flush(deadline);
        Ok(())
    }

    /// Tells systemd of the unit and its first process, and does not wait.
    ///
    /// # Errors
    ///
    /// The connection is lost and cannot be made anew.
    pub fn begin(&mut self, names: &Names, new: &mut NewUnit, pid: Option<i32>) -> Result<()> {
        let Some(unit) = &names.unit else { return Ok(()) };
        new.pid = pid;
        // A failure is dealt with where the answer is waited for.
        new.sent = self.send_start(unit, new, self.deadline()).ok();
        Ok(())
    }

    fn send_start(&mut self, unit: &Unit, new: &NewUnit, deadline: Instant) -> Result<u32, Failure> {
        self.connect(deadline)?;
        self.watch(&unit.name)?;
        self.send(&Method::of_manager("StartTransientUnit", &new.arguments(unit)), deadline)
    }

    /// Waits until the unit is there, with the process in it.
    ///
    /// # Errors
    ///
    /// What systemd says; it did not say anything in time; it put the process elsewhere.
    pub fn finish(&mut self, names: &Names, new: &mut NewUnit) -> Result<()> {
        let Some(unit) = &names.unit else { return Ok(()) };
        let deadline = self.deadline();
        let mut retry = Retry::until(deadline);
        let mut lost = false;
        let mut reset = false;
        loop {
            let outcome = match new.sent.take() {
                Some(serial) => self.job(unit, serial, deadline),
                None => match self.send_start(unit, new, deadline) {
                    Ok(serial) => self.job(unit, serial, deadline),
                    Err(failure) => Outcome::Failed(failure),
                },
            };
            let failure = match outcome {
                Outcome::Done => break,
                Outcome::Result(result) => return Err(Error::Job { unit: unit.name.clone(), result }),
                Outcome::Failed(failure) => failure,
            };
            match &failure {
                Failure::Lost(_, Fault::TimedOut) => {
                    return Err(Error::JobTimeout { unit: unit.name.clone() });
                }
                // The call before, whose answer was lost, has done it.
                Failure::Refused { name, .. } if name == UNIT_EXISTS && lost && self.is_active(unit) => break,
                // One that was left behind a moment ago.
                Failure::Refused { name, .. } if name == UNIT_EXISTS && !reset => {
                    reset = true;
                    self.reset_failed(unit);
                }
                Failure::Refused { text, .. } if drop_unknown(&mut new.properties, text) => {}
                _ => {
                    let doing = || format!("error creating systemd unit `{}`", unit.name);
                    retry.after(failure).map_err(|failure| failure.into_error(doing()))?;
                    lost = true;
                    // The job may be over, and nobody would tell again.
                    if self.is_active(unit) {
                        break;
                    }
                }
            }
        }
        new.pid.map_or(Ok(()), |pid| check_place(unit, names, pid))
    }

    /// Waits for the answer to a call that starts a job, then for the end of that job.
    fn job(&mut self, unit: &Unit, serial: u32, deadline: Instant) -> Outcome {
        let name = unit.name.as_str();
        let mut job = None;
        loop {
            let message = match self.receive(deadline) {
                Ok(message) => message,
                Err(failure) => return Outcome::Failed(failure),
            };
            if message.answers == Some(serial) {
                match self.checked(message) {
                    Ok(answer) => job = answer.text(0).map(str::to_owned),
                    Err(failure) => return Outcome::Failed(failure),
                }
                continue;
            }
            if message.kind == Some(Kind::Signal)
                && message.name == "JobRemoved"
                && message.text(2) == Some(name)
            {
                // Jobs of a unit of the same name that is going are others.
                if job.is_some() && message.text(1) == job.as_deref() {
                    return match message.text(3) {
                        Some("done") => Outcome::Done,
                        result => Outcome::Result(result.unwrap_or_default().to_owned()),
                    };
                }
                continue;
            }
            if let Err(failure) = self.greeted(&message) {
                return Outcome::Failed(failure);
            }
        }
    }

    fn start_slice(&mut self, slice: &str) -> Result<()> {
        let unit = Unit { name: slice.to_owned(), slice: String::new(), bus: self.bus };
        let deadline = self.deadline();
        let mut retry = Retry::until(deadline);
        loop {
            let arguments = [slice.into(), "replace".into()];
            let sent = self.connect(deadline).and_then(|()| self.watch(slice));
            let sent = sent.and_then(|()| self.send(&Method::of_manager("StartUnit", &arguments), deadline));
            let outcome = match sent {
                Ok(serial) => self.job(&unit, serial, deadline),
                Err(failure) => Outcome::Failed(failure),
            };
            let doing = || format!("error starting systemd unit `{slice}`");
            match outcome {
                Outcome::Done => return Ok(()),
                Outcome::Result(result) => return Err(Error::Job { unit: unit.name, result }),
                // Starting it again does no harm.
                Outcome::Failed(failure) => {
                    retry.after(failure).map_err(|failure| failure.into_error(doing()))?
                }
            }
        }
    }

    fn is_active(&mut self, unit: &Unit) -> bool {
        let state = self.property(&unit.object(), "org.freedesktop.systemd1.Unit", "ActiveState");
        state.is_ok_and(|state| state == "active")
    }

    fn reset_failed(&mut self, unit: &Unit) {
        if let Err(failure) = self.call(&Method::of_manager("ResetFailedUnit", &[unit.name.as_str().into()]))
        {
            log::debug!("{}", failure.into_error(format!("resetting unit {}", unit.name)));
        }
    }

    /// Stops a unit and waits until systemd has forgotten it. Processes in it get systemd's signals, so there should be none any
    /// more. Nothing is sent if systemd does not know the unit.
    ///
    /// # Errors
    ///
    /// The unit is still there at the deadline; with what systemd says to that.
    pub fn stop(&mut self, unit: &Unit, deadline: Instant) -> Result<()> {
        if !is_known(unit) {
            return Ok(());
        }
        let arguments = [unit.name.as_str().into(), "replace".into()];
        let stopped = match self.call(&Method::of_manager("StopUnit", &arguments)) {
            Err(Failure::Refused { name, .. }) if name == NO_SUCH_UNIT => Ok(()),
            Err(failure) => Err(failure.into_error(format!("stopping systemd unit `{}`", unit.name))),
            Ok(_) => Ok(()),
        };
        let half = deadline.saturating_duration_since(Instant::now()) / 2;
        // One that nobody lives in goes by itself too, be there a bus or not.
        let patience = if stopped.is_ok() { half } else { half.min(self.timeout) };
        if wait_forgotten(unit, Instant::now() + patience) {
            return Ok(());
        }
        stopped?;
        self.reset_failed(unit);
        if wait_forgotten(unit, deadline) {
            return Ok(());
        }
        Err(Error::UnitRemains { unit: unit.name.clone() })
    }

    /// Changes limits of a unit in use. Says whether systemd rounds one, so that the file has to be written again.
    ///
    /// # Errors
    ///
    /// What systemd says.
    pub fn set_limits(
        &mut self,
        names: &Names,
        resources: &Resources,
        cpu_max: Option<&str>,
    ) -> Result<bool> {
        let Some(unit) = &names.unit else { return Ok(false) };
        let properties::Limits { mut properties, rounded } =
            properties::limits(resources, names.mode, cpu_max)?;
        // Can be set when a unit is made only.
        properties.retain(|property| property.name != "OOMPolicy");
        let doing = || format!("setting properties of systemd unit `{}`", unit.name);
        while !properties.is_empty() {
            // Until the next boot only.
            let list = Value::Array(property_type(), of_bus(&properties));
            let arguments = [unit.name.as_str().into(), true.into(), list];
            match self.call(&Method::of_manager("SetUnitProperties", &arguments)) {
                Ok(_) => break,
                Err(Failure::Refused { text, .. }) if drop_unknown(&mut properties, &text) => {}
                Err(failure) => return Err(failure.into_error(doing())),
            }
        }
        if rounded && !properties.is_empty() {
            // The values are written after the answer, but before anything else is answered.
            self.ping().map_err(|failure| failure.into_error(doing()))?;
        }
        Ok(rounded)
    }

    /// Waits until systemd has done all that it was asked before, by whomever.
    fn ping(&mut self) -> Result<(), Failure> {
        let (path, interface) = (manager::MANAGER, "org.freedesktop.DBus.Peer");
        self.call(&Method { path, interface, member: "Ping", arguments: &[] }).map(drop)
    }

    /// Makes sure that what a creator, dead by now, asked for has been done. Its process may be a zombie that its new parent has
    /// not asked for yet, and with that systemd would still make a unit: after somebody looked for one, and found none.
    ///
    /// # Errors
    ///
    /// There is a bus, and no answer.
    pub fn outrun(&mut self, unit: &Unit) -> Result<()> {
        match self.ping() {
            Err(failure @ Failure::Lost(_, Fault::TimedOut | Fault::Closed | Fault::Garbage(_))) => {
                Err(failure
                    .into_error(format!("asking whether systemd unit `{}` is still to come", unit.name)))
            }
            // Without a bus, or without systemd on it, nothing is on its way.
            _ => Ok(()),
        }
    }

    /// Moves a process into the unit's cgroup, or the one at `below` in it, where only systemd may.
    ///
    /// # Errors
    ///
    /// What systemd says.
    pub fn attach(&mut self, unit: &Unit, below: &str, pid: i32) -> Result<()> {
        let doing = || format!("moving process {pid} to systemd unit `{}`", unit.name);
        let pids = vec![Value::Uint32(u32::try_from(pid).unwrap_or(0))];
        let arguments = [unit.name.as_str().into(), below.into(), Value::Array(Type::Uint32, pids)];
        self.call(&Method::of_manager("AttachProcessesToUnit", &arguments))
            .map(drop)
            .map_err(|failure| failure.into_error(doing()))
    }
}

/// Whether systemd knows the unit.
pub(crate) fn is_known(unit: &Unit) -> bool {
    access(unit.file(), Access::EXISTS).is_ok()
}

/// Waits until systemd does not know the unit any more.
fn wait_forgotten(unit: &Unit, deadline: Instant) -> bool {
    // To close a watch takes the kernel some milliseconds.
    if !is_known(unit) {
        return true;
    }
    let file = unit.file();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    let watch = watch.and_then(|watch| {
        let directory = file.parent().unwrap_or(Path::new("/"));
        inotify::add_watch(
            &watch,
            directory,
            inotify::WatchFlags::DELETE | inotify::WatchFlags::DELETE_SELF,
        )?;
        Ok(watch)
    });
    while is_known(unit) {
        // Without a directory there is no file.
        let Ok(watch) = &watch else { return !is_known(unit) };
        match wait(std::os::fd::AsFd::as_fd(watch), rustix::event::PollFlags::IN, deadline) {
            Ok(true) => {}
            _ => return !is_known(unit),
        }
        let mut events = [0_u8; 4096];
        let _ = rustix::io::read(watch, &mut events);
    }
    true
}

/// Makes sure that the process is where the record says.
fn check_place(unit: &Unit, names: &Names, pid: i32) -> Result<()> {
    if names.mode != Mode::V2 {
        return Ok(());
    }
    let text = match read_path(Path::new(&format!("/proc/{pid}/cgroup"))) {
        Ok(text) => text,
        // It has ended, which is told elsewhere.
        Err(Errno::NOENT | Errno::SRCH) => return Ok(()),
        Err(errno) => {
            return Err(Error::Io { doing: "reading", path: format!("/proc/{pid}/cgroup").into(), errno });
        }
    };
    let found = parse::memberships(&text).into_iter().find(|entry| entry.id == 0).map(|entry| entry.path);
    match found {
        Some(found) if !found.ends_with(unit.path()?) => {
            Err(Error::Misplaced { unit: unit.name.clone(), found, wanted: unit.path()? })
        }
        _ => Ok(()),
    }
}

/// Takes an optional property out that systemd complains of. `false` if it is none of these.
fn drop_unknown(properties: &mut Vec<Property>, complaint: &str) -> bool {
    let named = |property: &Property| {
        complaint.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == property.name)
    };
    let before = properties.len();
    properties.retain(|property| !(property.optional && named(property)));
    properties.len() < before
}

/// Properties as the bus wants them: names and variants.
fn of_bus(properties: &[Property]) -> Vec<Value> {
    properties.iter().map(|property| entry(&property.name, property.value.clone())).collect()
}

fn entry(name: &str, value: Value) -> Value {
    Value::Struct(vec![name.into(), Value::Variant(Box::new(value))])
}

fn property_type() -> Type {
    Type::Struct(vec![Type::Text, Type::Variant])
}
