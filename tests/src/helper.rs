//! What tests need another process for, on the host or in a container:
//!
//! - `without ERRNO CALL,… COMMAND…` runs a command that gets this errno from these system calls;
//! - `notify TEXT…` sends each text to `$NOTIFY_SOCKET`, then sleeps.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a helper fails its test by panicking, and starts programs by std"
)]

use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;

use brig_spec::{Seccomp, SeccompSyscall};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["without", errno, calls, program, ref rest @ ..] => without(errno, calls, program, rest),
        ["notify", ref texts @ ..] => notify(texts),
        _ => panic!("{args:?}"),
    }
}

fn without(errno: &str, calls: &str, program: &str, args: &[&str]) {
    let spec = Seccomp {
        default_action: "SCMP_ACT_ALLOW".to_owned(),
        flags: Some(Vec::new()),
        syscalls: vec![SeccompSyscall {
            names: calls.split(',').map(str::to_owned).collect(),
            action: "SCMP_ACT_ERRNO".to_owned(),
            errno_ret: Some(errno.parse().unwrap()),
            ..SeccompSyscall::default()
        }],
        ..Seccomp::default()
    };
    let profile = brig_seccomp::Profile::from_spec(&spec).unwrap();
    let native =
        if cfg!(target_arch = "x86_64") { brig_seccomp::Arch::X86_64 } else { brig_seccomp::Arch::Aarch64 };
    let filter = brig_seccomp::compile(&profile, native).unwrap();
    assert!(filter.unknown.is_empty(), "{:?}", filter.unknown);
    brig_sys::seccomp::load(&filter.to_bytes()).unwrap();
    panic!("{program}: {}", std::process::Command::new(program).args(args).exec());
}

fn notify(texts: &[&str]) {
    let path = std::env::var_os("NOTIFY_SOCKET").unwrap();
    let socket = UnixDatagram::unbound().unwrap();
    socket.connect(path).unwrap();
    for text in texts {
        socket.send(text.as_bytes()).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(1000));
}
