//! libFuzzer on the target that `BRIG_FUZZ_TARGET` names. Its own options are those of libFuzzer.

#![no_main]

use std::sync::OnceLock;

use brig_fuzz::{TARGETS, Target};

fn target() -> &'static Target {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("BRIG_FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("BRIG_FUZZ_TARGET={name} is none of {:?}", TARGETS.iter().map(|t| t.name).collect::<Vec<_>>()))
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (target().run)(bytes));
