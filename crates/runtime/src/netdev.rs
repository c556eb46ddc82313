//! `linux.netDevices`: interfaces of the host that move into the container's network namespace.
//!
//! With an interface go its global addresses and its routes, which the kernel drops on the way. Requests about the container's
//! namespace go through a socket that was opened there: this process goes in for that moment and comes back.

mod rtnetlink;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use brig_plan::NetDevice;
use brig_sys::Context;

use crate::error::{Doing, Error, Result};
use rtnetlink::{Message, Socket, kind};

/// Attributes of a link, linux/if_link.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_NET_NS_FD: u16 = 28;
const IFF_UP: u32 = 1;
/// Where `ifinfomsg` has the index; `ifaddrmsg` has it there too.
const INDEX: usize = 4;

/// Attributes of an address, linux/if_addr.h.
const IFA_LABEL: u16 = 3;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const IFA_F_PERMANENT: u32 = 0x80;
/// Where `ifaddrmsg` has its scope.
const ADDRESS_SCOPE: usize = 3;

/// Attributes of a route, linux/rtnetlink.h.
const RTA_OIF: u16 = 4;
const RTA_CACHEINFO: u16 = 12;
/// Where `rtmsg` has its protocol, scope and type.
const ROUTE_PROTOCOL: usize = 5;
const ROUTE_SCOPE: usize = 6;
const ROUTE_TYPE: usize = 7;
const RTPROT_KERNEL: u8 = 2;
const RTPROT_RA: u8 = 9;
const RTN_UNICAST: u8 = 1;

/// Interfaces that have been moved. Those of a creation that fails go back when this is dropped.
#[derive(Debug)]
pub struct Moved {
    host: Socket,
    host_namespace: OwnedFd,
    container: Socket,
    devices: Vec<NetDevice>,
}

/// What belongs to an interface and is lost when it changes its namespace.
struct Belongings {
    addresses: Vec<Message>,
    routes: Vec<Message>,
}

/// Checks that the interfaces are there.
///
/// # Errors
///
/// The first that is not.
pub fn check(devices: &[NetDevice]) -> Result<()> {
    if devices.is_empty() {
        return Ok(());
    }
    let socket = Socket::open()?;
    for device in devices {
        index_of(&socket, &device.host_name).map(drop).doing(|| json_path(device))?;
    }
    Ok(())
}

/// Moves the interfaces into the network namespace of process `pid`, a child of this process, and brings them up there.
///
/// # Errors
///
/// The kernel's, by JSON path; those moved before go back.
pub fn move_in(devices: &[NetDevice], pid: i32) -> Result<Moved> {
    let path = format!("/proc/{pid}/ns/net");
    let container_namespace = open_namespace(Path::new(&path))?;
    let host_namespace = open_namespace(Path::new("/proc/self/ns/net"))?;
    let host = Socket::open()?;
    let container = socket_in(container_namespace.as_fd(), host_namespace.as_fd())?;
    let mut moved = Moved { host, host_namespace, container, devices: Vec::new() };
    for device in devices {
        let ends = Ends { from: &moved.host, to: &moved.container, namespace: container_namespace.as_fd() };
        ends.carry(&device.host_name, &device.name, true).doing(|| json_path(device))?;
        moved.devices.push(device.clone());
    }
    Ok(moved)
}

impl Moved {
    /// The container is made: they are its own now.
    pub fn keep(&mut self) {
        self.devices.clear();
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        for device in self.devices.drain(..) {
            let ends = Ends { from: &self.container, to: &self.host, namespace: self.host_namespace.as_fd() };
            if let Err(e) = ends.carry(&device.name, &device.host_name, false) {
                log::warn!("moving the network device {} back: {e}", device.host_name);
            }
        }
    }
}

fn json_path(device: &NetDevice) -> String {
    format!("linux.netDevices[{:?}]", device.host_name)
}

fn open_namespace(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty()).on_path("open", path)?)
}

/// A socket for the network namespace `there`. This process has one thread, which goes in and comes back.
fn socket_in(there: BorrowedFd<'_>, back: BorrowedFd<'_>) -> Result<Socket> {
    let enter = |namespace| {
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
            .on("setns", "a network namespace")
    };
    enter(there)?;
    let socket = Socket::open();
    enter(back)?;
    Ok(socket?)
}

fn index_of(socket: &Socket, name: &str) -> Result<u32> {
    let request = Message::link(kind::GETLINK, 0, 0, 0).with(IFLA_IFNAME, &name_bytes(name));
    let link = socket.get(&request).on("netlink(RTM_GETLINK)", name).map_err(|e| {
        let missing = e.errno == Errno::NODEV;
        let e = Error::from(e);
        if missing {
            e.hint("there is no such interface in the network namespace that brig runs in")
        } else {
            e
        }
    })?;
    Ok(link.word(INDEX))
}

fn name_bytes(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

/// From where to where an interface moves.
struct Ends<'a> {
    from: &'a Socket,
    to: &'a Socket,
    namespace: BorrowedFd<'a>,
}

impl Ends<'_> {
    /// Moves one interface with its belongings. `up` brings it up whatever it was; otherwise it is as it was.
    fn carry(&self, old: &str, new: &str, up: bool) -> Result<()> {
        let index = index_of(self.from, old)?;
        let link = self.from.get(&about(kind::GETLINK, index, 0)).on("netlink(RTM_GETLINK)", old)?;
        let was_up = link.word(8) & IFF_UP != 0;
        let belongings = belongings(self.from, index).on("netlink(dump)", old)?;
        let namespace = self.namespace.as_raw_fd().to_ne_bytes();
        let request = about(kind::NEWLINK, index, 0)
            .with(IFLA_NET_NS_FD, &namespace)
            .with(IFLA_IFNAME, &name_bytes(new));
        self.from.change(&request).on("netlink(RTM_NEWLINK)", format!("{old} to {new}")).map_err(explain)?;
        // A name with %d is completed by the kernel; the index stays if nobody has it there.
        let index = if new.contains("%d") { index } else { index_of(self.to, new)? };
        for address in &belongings.addresses {
            let address = Message { fixed: with_index(address, index), ..address.clone() };
            self.to.create(&relabelled(address, old, new)).on("netlink(RTM_NEWADDR)", new)?;
        }
        if !up && !was_up {
            return Ok(());
        }
        self.to
            .change(&about(kind::NEWLINK, index, IFF_UP))
            .on("netlink(RTM_NEWLINK)", format!("{new} up"))?;
        for route in &belongings.routes {
            let mut route = route.clone();
            for (attribute, value) in &mut route.attributes {
                if *attribute == RTA_OIF {
                    *value = index.to_ne_bytes().to_vec();
                }
            }
            self.to.create(&route).on("netlink(RTM_NEWROUTE)", new)?;
        }
        Ok(())
    }
}

fn about(kind: u16, index: u32, up: u32) -> Message {
    Message::link(kind, i32::try_from(index).unwrap_or(0), up, up)
}

fn explain(e: brig_sys::SysError) -> Error {
    let errno = e.errno;
    let error = Error::from(e);
    match errno {
        Errno::EXIST => error.hint("there is an interface of that name in the container's network namespace"),
        Errno::INVAL => error.hint("the interface cannot leave its network namespace"),
        Errno::PERM => error.hint("moving interfaces needs CAP_NET_ADMIN in both network namespaces"),
        _ => error,
    }
}

/// Global addresses that somebody has set, and routes that somebody has set; those that the kernel makes are made again.
fn belongings(socket: &Socket, index: u32) -> std::result::Result<Belongings, Errno> {
    let mut addresses: Vec<Message> = socket
        .all(&Message::dump(kind::GETADDR, 8))?
        .into_iter()
        .filter(|address| address.word(INDEX) == index && is_lasting(address))
        .collect();
    for address in &mut addresses {
        address.kind = kind::NEWADDR;
        address.attributes.retain(|(attribute, _)| *attribute != IFA_CACHEINFO);
    }
    let mut routes: Vec<Message> = socket
        .all(&Message::dump(kind::GETROUTE, 12))?
        .into_iter()
        .filter(|route| route.number(RTA_OIF) == Some(index) && is_set_by_hand(route))
        .collect();
    for route in &mut routes {
        route.kind = kind::NEWROUTE;
        route.attributes.retain(|(attribute, _)| *attribute != RTA_CACHEINFO);
    }
    // A gateway must be reachable before a route may lead through it: links first.
    routes.sort_by_key(|route| std::cmp::Reverse(route.byte(ROUTE_SCOPE)));
    Ok(Belongings { addresses, routes })
}

fn is_lasting(address: &Message) -> bool {
    const GLOBAL: u8 = 0;
    address.byte(ADDRESS_SCOPE) == GLOBAL
        && address.number(IFA_FLAGS).is_some_and(|flags| flags & IFA_F_PERMANENT != 0)
}

fn is_set_by_hand(route: &Message) -> bool {
    route.byte(ROUTE_TYPE) == RTN_UNICAST && !matches!(route.byte(ROUTE_PROTOCOL), RTPROT_KERNEL | RTPROT_RA)
}

fn with_index(address: &Message, index: u32) -> Vec<u8> {
    let mut changed = address.clone();
    changed.set_word(INDEX, index);
    changed.fixed
}

/// The label of an IPv4 address begins with the name of its interface.
fn relabelled(mut address: Message, old: &str, new: &str) -> Message {
    for (attribute, value) in &mut address.attributes {
        if *attribute == IFA_LABEL
            && let Some(rest) = value.strip_prefix(old.as_bytes())
        {
            *value = [new.as_bytes(), rest].concat();
        }
    }
    // Names are at most 15 bytes long, and so are labels.
    address.attributes.retain(|(attribute, value)| *attribute != IFA_LABEL || value.len() <= 16);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_follows_the_name() {
        let labelled = |label: &[u8]| Message::dump(kind::NEWADDR, 8).with(IFA_LABEL, label);
        let of = |message: Message| message.get(IFA_LABEL).map(<[u8]>::to_vec);
        assert_eq!(of(relabelled(labelled(b"eth0:1\0"), "eth0", "data")), Some(b"data:1\0".to_vec()));
        assert_eq!(of(relabelled(labelled(b"eth0:abcdefghi\0"), "eth0", "a-longer-name")), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let device = NetDevice { host_name: "no-such-link".into(), name: "x".into() };
        let e = check(&[device]).unwrap_err().message();
        assert_eq!(
            e,
            "linux.netDevices[\"no-such-link\"]: netlink(RTM_GETLINK) no-such-link: no such device"
        );
    }

    #[test]
    fn what_the_kernel_makes_is_not_carried() {
        let mut route = Message::dump(kind::NEWROUTE, 12);
        route.fixed[ROUTE_TYPE] = RTN_UNICAST;
        assert!(is_set_by_hand(&route));
        route.fixed[ROUTE_PROTOCOL] = RTPROT_KERNEL;
        assert!(!is_set_by_hand(&route));
        let address = Message::dump(kind::NEWADDR, 8).with(IFA_FLAGS, &IFA_F_PERMANENT.to_ne_bytes());
        assert!(is_lasting(&address));
        assert!(!is_lasting(&Message::dump(kind::NEWADDR, 8)));
    }
}
