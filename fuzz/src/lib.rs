//! Fuzz targets: everything of brig that reads what somebody else wrote.
//!
//! A target is a plain function of bytes that panics when a promise is broken. Two drivers feed them:
//!
//! - `brig-fuzz`, the program of this crate: mutates the corpus by a seed, a fixed number of times, with a stable compiler and
//!   nothing else. CI runs it (`make fuzz-short`); a finding comes again with the same seed.
//! - libFuzzer, in `fuzz/libfuzzer`: guided by coverage, for hours (`make fuzz`). It needs a C++ compiler and a registry.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "findings are panics"
)]

pub mod driver;
pub mod mutate;
mod source;
pub mod targets;

pub use targets::{TARGETS, Target};
