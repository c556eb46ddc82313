//! Where the sockets are.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Bus;

/// The system bus of every distribution since 2016, and what the specification names.
const SYSTEM: [&str; 2] = ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"];

/// The environment as far as it says where a bus is.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    /// `DBUS_SYSTEM_BUS_ADDRESS`.
    pub system: Option<OsString>,
    /// `DBUS_SESSION_BUS_ADDRESS`.
    pub session: Option<OsString>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<OsString>,
    /// The user's number, for the place where logind makes that directory.
    pub uid: u32,
}

impl Environment {
    /// This process's.
    pub(super) fn of_process() -> Self {
        let get = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            system: get("DBUS_SYSTEM_BUS_ADDRESS"),
            session: get("DBUS_SESSION_BUS_ADDRESS"),
            runtime_dir: get("XDG_RUNTIME_DIR"),
            uid: rustix::process::getuid().as_raw(),
        }
    }

    /// `$XDG_RUNTIME_DIR`, or where it would be.
    pub(super) fn user_dir(&self) -> PathBuf {
        match &self.runtime_dir {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(format!("/run/user/{}", self.uid)),
        }
    }

    /// The sockets of a bus, in the order in which they are tried.
    pub(super) fn sockets(&self, bus: Bus) -> Vec<Socket> {
        let (given, usual, private) = match bus {
            Bus::System => {
                let usual = SYSTEM.iter().map(PathBuf::from).collect();
                (&self.system, usual, PathBuf::from("/run/systemd/private"))
            }
            Bus::User => {
                let dir = self.user_dir();
                (&self.session, vec![dir.join("bus")], dir.join("systemd/private"))
            }
        };
        let mut sockets: Vec<Socket> = match given {
            Some(given) => parse(given.as_bytes()),
            None => usual.into_iter().map(|path| Socket { name: Name::Path(path), private: false }).collect(),
        };
        // systemd itself, without a bus in between: while that is restarted, on hosts that have none, and in sessions whose bus
        // systemd is not on. A given system bus is somebody's wish for this one and no other.
        if given.is_none() || bus == Bus::User {
            sockets.push(Socket { name: Name::Path(private), private: true });
        }
        sockets
    }
}

/// A place to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket {
    /// Its name.
    pub name: Name,
    /// systemd's own: without bus names, and every signal comes unasked.
    pub private: bool,
}

/// The name of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// In the file system.
    Path(PathBuf),
    /// In the abstract namespace.
    Abstract(Vec<u8>),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
        }
    }
}

/// Reads a list of addresses, see the D-Bus specification, "Server Addresses". Others than those of Unix sockets are passed over.
fn parse(addresses: &[u8]) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for address in addresses.split(|&byte| byte == b';') {
        let Some(pairs) = address.strip_prefix(b"unix:") else {
            continue;
        };
        for pair in pairs.split(|&byte| byte == b',') {
            let name = if let Some(path) = pair.strip_prefix(b"path=") {
                Name::Path(Path::new(&OsString::from_vec(unescape(path))).to_owned())
            } else if let Some(name) = pair.strip_prefix(b"abstract=") {
                Name::Abstract(unescape(name))
            } else {
                continue;
            };
            sockets.push(Socket { name, private: false });
        }
    }
    sockets
}

/// Takes `%20` and the like back.
fn unescape(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        if let (b'%', [high, low, after @ ..]) = (first, tail)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            plain.push(high * 16 + low);
            rest = after;
        } else {
            plain.push(*first);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &Environment, bus: Bus) -> Vec<String> {
        environment
            .sockets(bus)
            .iter()
            .map(|socket| format!("{}{}", socket.name, if socket.private { "!" } else { "" }))
            .collect()
    }

    #[test]
    fn the_usual_places_and_then_systemd_itself() {
        let environment = Environment { uid: 1000, ..Environment::default() };
        assert_eq!(
            names(&environment, Bus::System),
            ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/systemd/private!"]
        );
        assert_eq!(names(&environment, Bus::User), ["/run/user/1000/bus", "/run/user/1000/systemd/private!"]);
        let environment = Environment { runtime_dir: Some("/x".into()), ..environment };
        assert_eq!(names(&environment, Bus::User), ["/x/bus", "/x/systemd/private!"]);
    }

    #[test]
    fn a_given_address_is_the_only_one() {
        let given = |text: &str| {
            let environment = Environment {
                system: Some(text.into()),
                session: Some("unix:path=/s".into()),
                ..Environment::default()
            };
            names(&environment, Bus::System)
        };
        assert_eq!(given("unix:path=/a%20b,guid=00"), ["/a b"]);
        assert_eq!(given("tcp:host=x;unix:abstract=/tmp/y;unix:guid=1,path=/z"), ["@/tmp/y", "/z"]);
        assert_eq!(given("unix:path=/a%zz%4"), ["/a%zz%4"]);
        assert_eq!(given("tcp:host=x"), [""; 0]);
        let environment = Environment { session: Some("unix:path=/s".into()), ..Environment::default() };
        assert_eq!(names(&environment, Bus::User), ["/s", "/run/user/0/systemd/private!"]);
    }
}
