//! What comes over the bus, and what annotations and paths make of it.

#![allow(clippy::panic, reason = "a broken promise is found by its panic")]

use super::unit::Unit;
use super::wire::{self, FIXED};
use super::{Bus, gvariant, properties};
use crate::names::Request;

/// Bytes that may be a message. What is announced in them is not believed.
pub fn message(bytes: &[u8]) {
    if bytes.len() < FIXED {
        return;
    }
    if let Ok(length) = wire::length(bytes) {
        assert!(length >= FIXED);
        let whole = bytes.get(..length).unwrap_or(bytes);
        if let Ok(message) = wire::Message::decode(whole) {
            let _ = (message.text(0), message.text(usize::MAX));
        }
    }
}

/// The text of an annotation `org.systemd.property.NAME`: one value, whatever else is in it.
pub fn annotation(text: &str) {
    let _ = gvariant::parse(text);
    let given = [("TimeoutStopSec".to_owned(), text.to_owned()), ("Description".to_owned(), text.to_owned())];
    for one in given {
        if let Ok(properties) = properties::annotations(&[one]) {
            assert_eq!(properties.len(), 1);
        }
    }
}

/// `cgroupsPath`: the names of a unit and of its slice are file names, and no other unit's.
pub fn unit(path: &str) {
    for bus in [Bus::System, Bus::User] {
        let request = Request { cgroups_path: path, id: "c1", rootless: false };
        let Ok(unit) = Unit::decide(&request, bus) else { continue };
        for name in [&unit.name, &unit.slice] {
            assert!(
                !name.is_empty() && !name.contains(['/', '\0', '\n']) && name != "." && name != "..",
                "{name:?}"
            );
        }
        assert!(unit.slice.ends_with(".slice"), "{unit:?}");
        assert!(unit.name.ends_with(".scope") || unit.name.ends_with(".slice"), "{unit:?}");
    }
}
