//! What the tests of this crate share.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod docker;
pub mod generate;
pub mod interpreter;
pub mod model;
