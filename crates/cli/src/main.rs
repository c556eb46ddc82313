//! The program `brig`, also installed as `runc`.

#![no_main]

use std::ffi::OsString;

brig_sys::program!(start);

fn start(words: Vec<OsString>) -> u8 {
    brig_cli::main(words.into_iter()).number()
}
