//! Which devices a container may use: rules, and what enforces them.
//!
//! The rules are a list, and the last one that matches an access decides it; what none matches is denied. Reading,
//! writing and making a node are decided one by one. This is what cgroup v1 does with most lists, and what those
//! who write them expect of the rest.

mod compile;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(any(test, feature = "fuzzing"))]
mod interpret;
mod policy;
mod rule;

pub(crate) mod v1;
pub(crate) mod v2;

pub(crate) use policy::Policy;
pub(crate) use rule::Kind;
