//! The types of the OCI runtime specification 1.3 for Linux, read the way runtimes written in Go read them.
//!
//! Callers rely on that leniency:
//!
//! - A member's name matches exactly, else without regard to case; unknown ones are skipped, and reported.
//! - `null` is the same as absent, for every type.
//! - Of duplicates the last wins; objects, whether structs or maps, are merged member by member.
//! - What follows the first value is not looked at. Invalid UTF-8 becomes U+FFFD.
//! - A value of the wrong type, or a number that is no integer or does not fit, is an error that names its place.
//!
//! What the values mean is for `brig-plan` to decide, so whatever the specification keeps growing (names of
//! capabilities, namespaces, seccomp actions …) stays a string here.
//!
//! ```
//! let (spec, unknown) = brig_spec::Spec::from_slice(br#"{"ociVersion":"1.3.0","Root":{"path":"rootfs","colour":1}}"#)?;
//! assert_eq!(spec.root.map(|root| root.path).as_deref(), Some("rootfs"));
//! assert_eq!(unknown[0].path, "root.colour");
//! # Ok::<(), brig_spec::ReadError>(())
//! ```

#![forbid(unsafe_code)]

#[macro_use]
mod object;

pub mod config;
pub mod default;
pub mod features;
pub mod linux;
mod nearest;
mod node;
pub mod process;
mod read;
pub mod resources;
pub mod seccomp;
pub mod state;

pub use config::{Hook, Hooks, Mount, Root, Spec};
pub use features::Features;
pub use linux::{
    Device, IdMapping, IntelRdt, Linux, MemoryPolicy, Namespace, NetDevice, Personality, TimeOffset,
};
pub use nearest::nearest;
pub use process::{Capabilities, ConsoleSize, ExecCpuAffinity, IoPriority, Process, Rlimit, Scheduler, User};
pub use read::{ReadError, Survey, UnknownKey, fields, from_slice, survey};
pub use resources::{
    BlockIo, Cpu, DeviceRule, HugepageLimit, InterfacePriority, Memory, Network, Pids, Rdma, Resources,
    ThrottleDevice, WeightDevice,
};
pub use seccomp::{Seccomp, SeccompArg, SeccompSyscall};
pub use state::{ExecSummary, ProcessState, State, Status, Summary};

/// The version of the specification that these types follow.
pub const OCI_VERSION: &str = "1.3.0";

/// Writes `value` as JSON with `indent` for each level, without a newline at the end.
///
/// # Errors
///
/// Only what the serialization of `value` itself reports; the types of this crate report nothing.
pub fn to_string_indented<T: serde::Serialize>(value: &T, indent: &str) -> Result<String, serde_json::Error> {
    let mut out = Vec::with_capacity(4096);
    let format = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, format))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests;
