//! User namespaces: writing their id mappings, and making one only to map the ids of a mount.

use std::fmt::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use brig_plan::{IdMap, IdMaps};
use brig_sys::process::{CloneFlags, Cloned, clone_process, exit_now, reap, signal};
use brig_sys::{Context, SysError};

use crate::channel::Channel;
use crate::error::{Doing, Error, Result};
use crate::hooks::run_program;

/// Writes the mappings of the user namespace that process `pid`, a child of this process, is in.
///
/// Root writes them itself. Who is not may map its own id only (and then gives up setgroups for the namespace); for more
/// there are newuidmap(1) and newgidmap(1), which know the ids that /etc/subuid and /etc/subgid grant.
///
/// # Errors
///
/// The kernel or those programs refuse.
pub fn write_id_maps(pid: i32, maps: &IdMaps) -> Result<()> {
    if maps.uid.is_empty() {
        return Err(Error::config("no uid mappings found"));
    }
    if maps.gid.is_empty() {
        return Err(Error::config("no gid mappings found"));
    }
    let privileged = rustix::process::geteuid().is_root();
    write_one(pid, "gid_map", "newgidmap", &maps.gid, rustix::process::getegid().as_raw(), privileged)?;
    write_one(pid, "uid_map", "newuidmap", &maps.uid, rustix::process::geteuid().as_raw(), privileged)
}

fn write_one(pid: i32, file: &str, program: &str, map: &[IdMap], own: u32, privileged: bool) -> Result<()> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    let only_own = matches!(map, [IdMap { outside, count: 1, .. }] if *outside == own);
    if !privileged && !only_own {
        return by_program(pid, program, map);
    }
    if !privileged && file == "gid_map" {
        // Linux 3.19 wants this of whoever has no privilege over the group.
        let setgroups = PathBuf::from(format!("/proc/{pid}/setgroups"));
        write_file(&setgroups, "deny")?;
    }
    let mut text = String::new();
    for IdMap { inside, outside, count } in map {
        let _ = writeln!(text, "{inside} {outside} {count}");
    }
    match write_file(&path, &text) {
        // Root without CAP_SETUID, in a container perhaps.
        Err(e) if e.errno() == Some(Errno::PERM) => by_program(pid, program, map).map_err(|_| e),
        other => other,
    }
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    let file =
        rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).on_path("open", path)?;
    rustix::io::write(&file, text.as_bytes()).on_path("write", path)?;
    Ok(())
}

fn by_program(pid: i32, program: &str, map: &[IdMap]) -> Result<()> {
    let mut args = vec![program.to_owned(), pid.to_string()];
    for m in map {
        args.extend([m.inside.to_string(), m.outside.to_string(), m.count.to_string()]);
    }
    run_program(program, &args).doing(|| program.to_owned()).map_err(|e| {
        e.hint("the mapping must be within what /etc/subuid and /etc/subgid grant to the user; the program is in package uidmap")
    })
}

/// A user namespace with these mappings and no process in it, for id-mapped mounts.
///
/// # Errors
///
/// The kernel's.
pub fn with_maps(maps: &IdMaps) -> Result<OwnedFd> {
    let (ours, theirs) = Channel::pair()?;
    let child = match clone_process(CloneFlags::NEWUSER, None)? {
        Cloned::Parent(child) => child,
        Cloned::Child => {
            drop(ours);
            let _ = theirs.hear();
            exit_now(0)
        }
    };
    let pid = child.pid.as_raw_nonzero().get();
    let made = write_id_maps(pid, maps).and_then(|()| {
        let path = format!("/proc/{pid}/ns/user");
        Ok(rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).on_path("open", &path)?)
    });
    drop(theirs);
    let _ = signal(child.pidfd.as_fd(), rustix::process::Signal::KILL.as_raw());
    reap(child.pidfd.as_fd(), true)?;
    made
}

/// The mappings of the user namespace at `path`.
///
/// # Errors
///
/// It is no user namespace, or may not be joined.
pub fn maps_of(path: &Path) -> Result<IdMaps> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).on("pipe2", "")?;
    let child = match clone_process(CloneFlags::empty(), None)? {
        Cloned::Parent(child) => child,
        Cloned::Child => {
            let told = tell_maps(path, &write);
            exit_now(told.map_or_else(|e| e.errno.raw_os_error(), |()| 0))
        }
    };
    drop(write);
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut std::fs::File::from(read), &mut text);
    match reap(child.pidfd.as_fd(), true)? {
        Some(brig_sys::process::ExitStatus::Exited(0)) => {}
        Some(brig_sys::process::ExitStatus::Exited(errno)) => {
            return Err(SysError::path("setns", path, Errno::from_raw_os_error(errno)).into());
        }
        _ => return Err(SysError::path("setns", path, Errno::IO).into()),
    }
    let (uid, gid) = text.split_once('\0').unwrap_or_default();
    Ok(IdMaps { uid: parse_map(uid), gid: parse_map(gid) })
}

/// In a process of its own: `/proc/self` shows the mappings as seen from the reader's namespace, so they are opened before.
fn tell_maps(path: &Path, pipe: &OwnedFd) -> Result<(), SysError> {
    let open = |path: &Path| {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).on_path("open", path)
    };
    let namespace = open(path)?;
    rustix::thread::move_into_link_name_space(
        namespace.as_fd(),
        Some(rustix::thread::LinkNameSpaceType::User),
    )
    .on_path("setns", path)?;
    for (file, end) in [("/proc/self/uid_map", "\0"), ("/proc/self/gid_map", "")] {
        let mut text = [0_u8; 8192];
        let n = rustix::io::read(open(Path::new(file))?, &mut text).on("read", file)?;
        brig_sys::write_all(pipe.as_fd(), text.get(..n).unwrap_or_default()).on("write", "")?;
        brig_sys::write_all(pipe.as_fd(), end.as_bytes()).on("write", "")?;
    }
    Ok(())
}

/// Lines of `uid_map`, user_namespaces(7).
fn parse_map(text: &str) -> Vec<IdMap> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().map(str::parse);
            let mut next = || fields.next()?.ok();
            Some(IdMap { inside: next()?, outside: next()?, count: next()? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read() {
        let text = "         0     100000      65536\n 65536 0 1\nx\n";
        let maps = parse_map(text);
        assert_eq!(maps.len(), 2);
        assert_eq!(maps[0], IdMap { inside: 0, outside: 100_000, count: 65536 });
    }
}
