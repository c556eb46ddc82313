//! What the fuzz targets in `fuzz/` reach of this crate: readers of bytes that somebody else wrote. Each takes anything, and panics
//! when one of its own promises is broken.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a broken promise is found by its panic")]

use std::os::fd::OwnedFd;

use crate::channel::{decode, decode_fault};
use crate::execs::ExecRecord;
use crate::record::Record;
use crate::{ident, mountinfo, passwd};

/// The record of a container, and that of a process with a name: what is read is written the same way.
pub fn record(bytes: &[u8]) {
    if let Ok(record) = Record::parse(bytes) {
        let again = serde_json::to_vec(&record).unwrap();
        assert_eq!(Record::parse(&again).unwrap(), record);
    }
    if let Ok(record) = serde_json::from_slice::<ExecRecord>(bytes) {
        let again = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<ExecRecord>(&again).unwrap(), record);
    }
}

/// A message from the container's process, with a descriptor or without, and a failure as it comes through the fifo.
pub fn message(bytes: &[u8], fd: Option<OwnedFd>) {
    if let Some(message) = decode(bytes, fd) {
        let _ = format!("{message:?}");
    }
    if let Some(fault) = decode_fault(bytes) {
        let error = fault.into_error("program");
        assert!(!error.to_string().is_empty());
    }
}

/// A user list of an image.
pub fn user_list(bytes: &[u8], uid: u32) {
    if let Some(home) = passwd::home(bytes, uid) {
        assert!(!home.is_empty() && !home.contains(['\n', ':']));
    }
    let _ = passwd::name(bytes, uid);
}

/// `/proc/PID/mountinfo` and `/proc/PID/stat`.
pub fn proc_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for mount in mountinfo::parse(&text) {
        let _ = (mount.is_whole(), mount.mount_point());
    }
    let _ = ident::parse_start_time(bytes);
}
