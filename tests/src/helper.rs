//! What tests need another process for, on the host or in a container:
//!
//! - `without ERRNO CALL,… COMMAND…` runs a command that gets this errno from these system calls;
//! - `notify TEXT…` sends each text to `$NOTIFY_SOCKET`, then sleeps;
//! - `init PID_MAX COMMAND…` is the first process of a pid namespace with that few numbers (Linux 6.14), and reaps; with
//!   `recycle` in place of `init` it has numbers used up all the time;
//! - `stuck DIRECTORY` mounts a file system whose server answers no more once it is mounted, until standard input ends.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::exit,
    clippy::zombie_processes,
    clippy::disallowed_methods,
    reason = "a helper fails its test by panicking, and starts programs by std"
)]

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;

use brig_spec::{Seccomp, SeccompSyscall};
use rustix::mount::{MountFlags, mount};
use rustix::process::{WaitOptions, wait};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["without", errno, calls, program, ref rest @ ..] => without(errno, calls, program, rest),
        ["notify", ref texts @ ..] => notify(texts),
        ["init", pid_max, program, ref rest @ ..] => init(pid_max, false, program, rest),
        ["recycle", pid_max, program, ref rest @ ..] => init(pid_max, true, program, rest),
        ["stuck", directory] => stuck(directory),
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
    panic!("{program}: {}", Command::new(program).args(args).exec());
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

fn init(pid_max: &str, recycle: bool, program: &str, args: &[&str]) {
    std::fs::write("/proc/sys/kernel/pid_max", pid_max).unwrap();
    let command = Command::new(program).args(args).spawn().unwrap();
    if recycle {
        std::thread::spawn(|| {
            loop {
                // Reaped below. There may be no number free for the moment.
                if Command::new("true").spawn().is_err() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
    }
    // Whatever has lost its parent is waited for here, as the first process of a host does it.
    loop {
        let (pid, status) = wait(WaitOptions::empty()).unwrap().unwrap();
        if pid.as_raw_nonzero().get() == i32::try_from(command.id()).unwrap() {
            std::process::exit(status.exit_status().unwrap_or(255));
        }
    }
}

/// linux/fuse.h: a server that knows its root directory, and keeps whoever asks for anything else waiting.
fn stuck(directory: &str) {
    const INIT: u32 = 26;
    const GETATTR: u32 = 3;
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other\0", device.as_raw_fd()).into_bytes();
    let options = std::ffi::CString::from_vec_with_nul(options).unwrap();
    mount("brig-test", directory, "fuse.stuck", MountFlags::empty(), options.as_c_str()).unwrap();
    std::thread::spawn(move || {
        let mut request = vec![0; 1 << 20];
        loop {
            let n = (&device).read(&mut request).unwrap_or(0);
            if n < 40 {
                break;
            }
            let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
            let (operation, unique) = (number(4), &request[8..16]);
            let body = match operation {
                // Major and minor version, then what is left at zero, with room for a page in a write.
                INIT => [
                    &7_u32.to_ne_bytes()[..],
                    &31_u32.to_ne_bytes(),
                    &[0; 12],
                    &4096_u32.to_ne_bytes(),
                    &[0; 40],
                ]
                .concat(),
                // Valid for ever; inode 1; a directory.
                GETATTR => {
                    let mut body = vec![0; 104];
                    body[..8].copy_from_slice(&1_000_000_u64.to_ne_bytes());
                    body[16..24].copy_from_slice(&1_u64.to_ne_bytes());
                    body[76..80].copy_from_slice(&0o040_755_u32.to_ne_bytes());
                    body[80..84].copy_from_slice(&2_u32.to_ne_bytes());
                    body
                }
                _ => continue,
            };
            let length = u32::try_from(16 + body.len()).unwrap();
            let answer = [&length.to_ne_bytes()[..], &0_i32.to_ne_bytes(), unique, &body].concat();
            (&device).write_all(&answer).unwrap();
        }
    });
    println!("mounted");
    // With this process the server ends, and with it the waiting.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    std::process::exit(0);
}
