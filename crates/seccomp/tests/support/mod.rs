//! What the tests of this crate share.

#![allow(
    dead_code,
    missing_docs,
    missing_debug_implementations,
    clippy::expect_used,
    reason = "tests, of which each uses a part"
)]

pub mod engines;
pub mod generate;
pub mod interpreter;
pub mod libseccomp;
pub mod model;
