//! Calls of systemd's manager object, whatever becomes of the connection meanwhile.

use std::time::{Duration, Instant};

use super::address::{Environment, Socket};
use super::socket::{Connection, Fault};
use super::value::Value;
use super::wire::{Call, Kind, Message};
use super::{Bus, Systemd};
use crate::error::{Error, Result};

/// systemd's name on the bus.
const NAME: &str = "org.freedesktop.systemd1";
/// Its object for all that is not one unit's.
pub(super) const MANAGER: &str = "/org/freedesktop/systemd1";
/// That object's interface.
pub(super) const INTERFACE: &str = "org.freedesktop.systemd1.Manager";

/// There is such a unit already.
pub(super) const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";
/// There is no such unit.
pub(super) const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";

/// What a bus answers when systemd is not on it, or not at the moment.
const ABSENT: [&str; 5] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.DBus.Error.Spawn.ChildExited",
];

/// How often a lost connection is made anew, with growing pauses: some 2.5 s altogether.
const RETRIES: u32 = 8;
/// The first of the pauses.
const PAUSE: Duration = Duration::from_millis(10);

/// A method of systemd and its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method<'a> {
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
    pub arguments: &'a [Value],
}

impl<'a> Method<'a> {
    /// A method of the manager.
    pub(super) fn of_manager(member: &'a str, arguments: &'a [Value]) -> Self {
        Self { path: MANAGER, interface: INTERFACE, member, arguments }
    }
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is of no use; with the name of the socket.
    Lost(String, Fault),
    /// systemd, or the bus, says no.
    Refused { name: String, text: String },
    /// A method's arguments cannot be sent.
    Unsendable(String),
}

impl Failure {
    /// As an error, with what was being done.
    pub(super) fn into_error(self, doing: impl Into<String>) -> Error {
        let doing = doing.into();
        match self {
            Self::Lost(socket, fault) => Error::Bus { doing, fault: format!("{socket}: {fault}") },
            Self::Refused { name, text } => Error::Systemd { doing, name, text },
            Self::Unsendable(what) => Error::Bus { doing, fault: what },
        }
    }

    /// Whether it makes sense to try the same again on a new connection.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Lost(_, Fault::Closed) => true,
            Self::Lost(_, Fault::Os(_, errno)) => *errno == rustix::io::Errno::CONNREFUSED,
            Self::Refused { name, .. } => ABSENT.contains(&name.as_str()),
            _ => false,
        }
    }
}

/// The connection, and the units whose jobs are told of on it.
#[derive(Debug, Default)]
pub(super) struct Link {
    connection: Option<Connection>,
    /// Which of the sockets is next to be tried; the first ones had no systemd behind them.
    next: usize,
    /// Written, but not sent: goes out with the next call.
    pending: Vec<u8>,
    /// Units whose `JobRemoved` signals are wanted.
    watched: Vec<String>,
}

impl Systemd {
    /// The time by which a call that begins now has to be over.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Connects, if there is no connection.
    ///
    /// # Errors
    ///
    /// None of the sockets leads to systemd: what became of each is in the text.
    pub(super) fn connect(&mut self, deadline: Instant) -> Result<(), Failure> {
        if self.link.connection.is_some() {
            return Ok(());
        }
        let sockets = Environment::of_process().sockets(self.bus);
        if self.link.next >= sockets.len() {
            self.link.next = 0;
        }
        let mut tried: Vec<String> = Vec::new();
        let mut last = None;
        for (index, socket) in sockets.iter().enumerate().skip(self.link.next) {
            // One that hangs must leave time for the others.
            let left = deadline.saturating_duration_since(Instant::now());
            let until = if index + 1 < sockets.len() { Instant::now() + left / 2 } else { deadline };
            match Connection::open(socket, until) {
                Ok(connection) => {
                    self.link.next = index;
                    return self.greet(connection, socket);
                }
                Err(fault) => {
                    tried.push(socket.name.to_string());
                    // A refusal says more than a missing file.
                    let missing = |fault: &Fault| matches!(fault, Fault::Os(_, rustix::io::Errno::NOENT));
                    if last.as_ref().is_none_or(missing) || !missing(&fault) {
                        last = Some(fault);
                    }
                }
            }
        }
        self.link.next = 0;
        let none = || Fault::Os("connect", rustix::io::Errno::NOENT);
        let names = if tried.is_empty() { self.no_address() } else { self.without_address(tried.join(", ")) };
        Err(Failure::Lost(names, last.unwrap_or_else(none)))
    }

    /// Where nobody says where the user's bus is, that is mostly what is wrong.
    fn without_address(&self, tried: String) -> String {
        if self.bus == Bus::User && Environment::of_process().session.is_none() {
            return format!("could not detect DBUS_SESSION_BUS_ADDRESS from the environment; tried {tried}");
        }
        tried
    }

    fn no_address(&self) -> String {
        let variable = match self.bus {
            Bus::System => "DBUS_SYSTEM_BUS_ADDRESS",
            Bus::User => "DBUS_SESSION_BUS_ADDRESS",
        };
        format!("${variable} names no Unix socket")
    }

    /// What a bus has to be told first. It is sent with the call that follows.
    fn greet(&mut self, mut connection: Connection, socket: &Socket) -> Result<(), Failure> {
        self.link.pending.clear();
        if !socket.private {
            let serial = connection.next_serial();
            let hello = bus_call("Hello", true).encode(serial, &[]).map_err(Failure::Unsendable)?;
            self.link.pending.extend(hello);
        }
        self.link.connection = Some(connection);
        for unit in std::mem::take(&mut self.link.watched) {
            self.watch(&unit)?;
        }
        Ok(())
    }

    /// Has the bus tell when a job of `unit` is over.
    pub(super) fn watch(&mut self, unit: &str) -> Result<(), Failure> {
        if self.link.watched.iter().any(|watched| watched == unit) {
            return Ok(());
        }
        self.link.watched.push(unit.to_owned());
        let Some(connection) = self.link.connection.as_mut().filter(|connection| !connection.private) else {
            return Ok(());
        };
        let rule = format!(
            "type='signal',sender='{NAME}',path='{MANAGER}',interface='{INTERFACE}',member='JobRemoved',arg2='{unit}'"
        );
        let serial = connection.next_serial();
        let call = bus_call("AddMatch", false).encode(serial, &[rule.into()]).map_err(Failure::Unsendable)?;
        self.link.pending.extend(call);
        Ok(())
    }

    /// Sends what is still to be sent, so that the bus works on it meanwhile.
    pub(super) fn flush(&mut self, deadline: Instant) -> Result<(), Failure> {
        let pending = std::mem::take(&mut self.link.pending);
        self.with_connection(|connection| connection.send(&pending, deadline))
    }

    /// Sends a call. Its serial tells the answer.
    pub(super) fn send(&mut self, method: &Method<'_>, deadline: Instant) -> Result<u32, Failure> {
        self.connect(deadline)?;
        let mut pending = std::mem::take(&mut self.link.pending);
        let Some(connection) = self.link.connection.as_mut() else {
            return Err(Failure::Unsendable("no connection".to_owned()));
        };
        let serial = connection.next_serial();
        let call = Call {
            destination: (!connection.private).then_some(NAME),
            path: method.path,
            interface: method.interface,
            member: method.member,
            reply: true,
        };
        pending.extend(call.encode(serial, method.arguments).map_err(Failure::Unsendable)?);
        self.with_connection(|connection| connection.send(&pending, deadline))?;
        Ok(serial)
    }

    /// The next message. An error that answers none of our calls but the greeting is the bus's refusal to serve us.
    pub(super) fn receive(&mut self, deadline: Instant) -> Result<Message, Failure> {
        self.with_connection(|connection| connection.next(deadline))
    }

    fn with_connection<T>(
        &mut self,
        act: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, Failure> {
        let Some(mut connection) = self.link.connection.take() else {
            return Err(Failure::Lost("the bus".to_owned(), Fault::Closed));
        };
        let done = act(&mut connection).map_err(|fault| Failure::Lost(connection.name.to_string(), fault))?;
        // One with a fault is closed instead.
        self.link.connection = Some(connection);
        Ok(done)
    }

    /// Waits for the answer to a call.
    pub(super) fn answer(&mut self, serial: u32, deadline: Instant) -> Result<Message, Failure> {
        loop {
            let message = self.receive(deadline)?;
            if message.answers == Some(serial) {
                return self.checked(message);
            }
            self.greeted(&message)?;
        }
    }

    /// Whether a message is the bus's refusal to greet us.
    pub(super) fn greeted(&mut self, message: &Message) -> Result<(), Failure> {
        // The greeting is the first message of a connection.
        if message.kind == Some(Kind::Error) && message.answers == Some(1) {
            return Err(refusal(message));
        }
        Ok(())
    }

    /// An answer, unless it is a refusal.
    pub(super) fn checked(&mut self, answer: Message) -> Result<Message, Failure> {
        if answer.kind != Some(Kind::Error) {
            return Ok(answer);
        }
        let failure = refusal(&answer);
        if failure.is_passing() {
            // This bus has no systemd (now): the next socket may.
            self.link.connection = None;
            self.link.next += 1;
        }
        Err(failure)
    }

    /// Calls a method that can be called again when the connection is lost in between.
    pub(super) fn call(&mut self, method: &Method<'_>) -> Result<Message, Failure> {
        let deadline = self.deadline();
        let mut retry = Retry::until(deadline);
        loop {
            match self.send(method, deadline).and_then(|serial| self.answer(serial, deadline)) {
                Ok(answer) => return Ok(answer),
                Err(failure) => retry.after(failure)?,
            }
        }
    }
}

/// A call of the bus itself.
fn bus_call(member: &str, reply: bool) -> Call<'_> {
    Call {
        destination: Some("org.freedesktop.DBus"),
        path: "/org/freedesktop/DBus",
        interface: "org.freedesktop.DBus",
        member,
        reply,
    }
}

fn refusal(message: &Message) -> Failure {
    Failure::Refused {
        name: message.name.clone(),
        text: message.text(0).unwrap_or("no reason given").to_owned(),
    }
}

/// Pauses between attempts. That a bus is back is no event that could be waited for.
#[derive(Debug)]
pub(super) struct Retry {
    left: u32,
    pause: Duration,
    deadline: Instant,
    /// What began it: later ones are mostly about other sockets.
    first: Option<Failure>,
}

impl Retry {
    pub(super) fn until(deadline: Instant) -> Self {
        Self { left: RETRIES, pause: PAUSE, deadline, first: None }
    }

    /// Pauses, so that it can be tried again.
    ///
    /// # Errors
    ///
    /// It makes no sense, or no more: with the failure that began it.
    pub(super) fn after(&mut self, failure: Failure) -> Result<(), Failure> {
        let again = failure.is_passing() || (self.first.is_some() && matches!(failure, Failure::Lost(..)));
        let left = self.deadline.saturating_duration_since(Instant::now());
        if !again || self.left == 0 || left <= self.pause {
            return Err(match self.first.take() {
                Some(first) if again => first,
                _ => failure,
            });
        }
        self.first.get_or_insert(failure);
        std::thread::sleep(self.pause);
        self.left -= 1;
        self.pause *= 2;
        Ok(())
    }
}
