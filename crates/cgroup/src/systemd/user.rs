//! Who has the user's bus.

use std::time::Instant;

use super::address::Environment;
use super::socket::Connection;
use super::{Bus, timeout};
use crate::dir::read_path;

/// The owner of the user's bus, as the host numbers users; `None` if there is no bus.
///
/// To root of a user namespace it tells whether cgroups are managed by a systemd of this root's, or by that of the user outside.
pub fn user_bus_owner() -> Option<u32> {
    let sockets = Environment::of_process().sockets(Bus::User);
    let deadline = Instant::now() + timeout();
    let connection = sockets.iter().find_map(|socket| Connection::open(socket, deadline).ok())?;
    let inside = connection.peer().ok()?;
    let map = read_path("/proc/self/uid_map".as_ref()).ok()?;
    outside(&map, inside)
}

/// Translates a number by a uid_map, see user_namespaces(7).
fn outside(map: &str, inside: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u32>().ok());
        let (first, host, length) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = inside.checked_sub(first).filter(|offset| *offset < length)?;
        host.checked_add(offset)
    })
}

#[cfg(test)]
mod tests {
    use super::outside;

    #[test]
    fn numbers_are_translated() {
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(outside(map, 0), Some(1000));
        assert_eq!(outside(map, 7), Some(100_006));
        assert_eq!(outside(map, 65_534), Some(165_533));
        assert_eq!(outside(map, 70_000), None);
        assert_eq!(outside("0 0 4294967295\n", 5), Some(5));
        assert_eq!(outside("garbage", 5), None);
    }
}
