//! Compiles a large profile once, to be counted with callgrind.

#![allow(clippy::unwrap_used, reason = "an example")]

#[allow(dead_code)]
#[path = "../tests/support/engines.rs"]
mod engines;

fn main() {
    let spec = engines::docker();
    count(&spec);
}

#[inline(never)]
fn count(spec: &brig_spec::Seccomp) {
    let profile = brig_seccomp::Profile::from_spec(spec).unwrap();
    let filter = brig_seccomp::compile(&profile, brig_seccomp::Arch::X86_64).unwrap();
    std::hint::black_box(filter);
}
