//! The profile that most containers run with: size, and what common calls cost.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod support;

use brig_seccomp::{Arch, Profile, Syscall, compile};
use support::docker;
use support::interpreter::{Data, run, verify};

#[test]
fn dockers_profile() {
    let spec = docker::profile();
    let profile = Profile::from_spec(&spec).unwrap();
    let names: usize = profile.rules.iter().map(|rule| rule.names.len()).sum();
    let filter = compile(&profile, Arch::X86_64).unwrap();
    verify(&filter.insns);
    println!(
        "{names} names, {} instructions, unknown {:?}",
        filter.insns.len(),
        filter.unknown
    );
    for name in [
        "read",
        "write",
        "openat",
        "futex",
        "epoll_wait",
        "clock_gettime",
        "mmap",
        "close",
        "clone",
        "socket",
        "recvfrom",
        "statx",
        "clone3",
        "mount",
    ] {
        let number = Syscall::from_name(name).unwrap().number(Arch::X86_64).unwrap();
        let (v, n) = run(
            &filter.insns,
            &Data {
                number,
                arch: Arch::X86_64.audit(),
                args: [0; 6],
            },
            true,
        );
        println!("{name:15} {v:x} {n}");
    }
}
