//! What a careless runtime does: single steps without protection. An attack has to succeed against these before it is tried on the
//! runtime under test, so that a test which finds nothing has looked.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "careless on purpose"
)]

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use brig_sys::process::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["exec", root, program, ref rest @ ..] => exec(Path::new(root), program, rest),
        [how @ ("join" | "join-user" | "join-dropped"), pid] => join(pid.parse().unwrap(), how),
        ["mkdir", root, path] => many(|i| drop(fs::create_dir_all(below(root, path).join(format!("m{i}"))))),
        ["file", root, path] => many(|i| drop(File::create(below(root, path).join(format!("n{i}"))))),
        ["write", root, path, text] => drop(fs::write(below(root, path), text)),
        ["chmod", root, path] => {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(below(root, path), fs::Permissions::from_mode(0o666)).unwrap();
        }
        ["mask", root] => mask(Path::new(root)),
        ["read", path] => print!("{}", fs::read_to_string(path).unwrap()),
        ["say", text] => eprintln!("cannot find {text}"),
        // Executed again out of a container, by whatever words.
        _ => println!("the host's program"),
    }
}

/// A path of the container, named on the host.
fn below(root: &str, path: &str) -> PathBuf {
    Path::new(root).join(path.trim_start_matches('/'))
}

fn many(act: impl Fn(usize)) {
    (0..40).for_each(act);
}

/// An image of the host's program until the end, with all that it inherited.
fn exec(root: &Path, program: &str, args: &[&str]) {
    unshare(CloneFlags::NEWNS).unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    mount("proc", root.join("proc"), "proc", MountFlags::empty(), None).unwrap();
    rustix::process::chroot(root).unwrap();
    std::env::set_current_dir("/").unwrap();
    panic!("{}", Command::new(program).args(args).exec());
}

/// Enters a container's namespaces, dumpable and with a directory of the host open.
fn join(pid: i32, how: &str) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
    let host = File::open("/").unwrap();
    let pidfd = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let mut namespaces = ThreadNameSpaceType::MOUNT | ThreadNameSpaceType::PROCESS_ID;
    if how == "join-user" {
        namespaces |= ThreadNameSpaceType::USER;
    }
    move_into_thread_name_spaces(std::os::fd::AsFd::as_fd(&pidfd), namespaces).unwrap();
    if how == "join-dropped" {
        // It has no more rights than the container, and so is open to whoever has the same.
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).unwrap();
    }
    let mut command = Command::new("/bin/true");
    // What is set up between the fork and the execve takes a moment, in any runtime.
    let _ = command.env("A", "B".repeat(4096)).status();
    drop(host);
}

/// procfs is mounted by path, and masked by path. Prints the mounts.
fn mask(root: &Path) {
    unshare(CloneFlags::NEWNS).unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    mount("proc", root.join("proc"), "proc", MountFlags::empty(), None).unwrap();
    for masked in ["keys", "cpuinfo"] {
        let _ = mount_bind("/dev/null", root.join("proc").join(masked));
    }
    let _ = mount_bind(root.join("proc/sys"), root.join("proc/sys"));
    print!("{}", fs::read_to_string("/proc/self/mountinfo").unwrap());
}
