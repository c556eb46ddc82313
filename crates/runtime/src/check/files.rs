//! Files that the configuration names: the root, sources of mounts, the program, hooks.

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{FileType, Stat, StatVfsMountFlags};
use rustix::io::Errno;

use brig_plan::{FsOptions, Mount, MountKind, Plan};
use brig_sys::errno_text;

use super::Complaints;
use super::view::{Found, View, head, open_place};
use crate::executable::{self, Format, HEAD};

/// `root.path`.
pub(super) fn root(plan: &Plan, complaints: &mut Complaints) -> Option<std::os::fd::OwnedFd> {
    match crate::bundle::open_rootfs(&plan.rootfs) {
        Ok(root) => Some(root),
        Err(error) => {
            complaints.of_error("root.path", &error);
            None
        }
    }
}

/// `mounts`.
pub(super) fn mounts(plan: &Plan, view: &View<'_>, complaints: &mut Complaints) {
    for (place, mount) in plan.mounts.iter().enumerate() {
        let path = format!("mounts[{}]", mount.index);
        let is_dir = match &mount.kind {
            MountKind::Bind { source, .. } => match source_is_dir(&path, source, complaints) {
                Some(is_dir) => is_dir,
                None => continue,
            },
            MountKind::Remount { .. } => continue,
            MountKind::Proc(options) => {
                parameters(&path, "proc", options, complaints);
                true
            }
            MountKind::Sysfs(_) | MountKind::Cgroup(_) => true,
            MountKind::Tmpfs { options, .. } => {
                parameters(&path, "tmpfs", options, complaints);
                true
            }
            MountKind::Other { fstype, options } => {
                file_system(&path, fstype, options, complaints);
                true
            }
        };
        target(&path, mount, is_dir, &view.find_below(&mount.target, place), view, complaints);
    }
}

fn source_is_dir(path: &str, source: &Path, complaints: &mut Complaints) -> Option<bool> {
    match open_place(source).and_then(|fd| rustix::fs::fstat(&fd)) {
        Ok(stat) => Some(kind(&stat) == FileType::Directory),
        Err(errno) => {
            let message = format!("open {}: {}", source.display(), errno_text(errno));
            let hint = "the source of a bind mount is not made: make it, or leave the mount out";
            complaints.error(format!("{path}.source"), message, Some(hint.to_owned()));
            None
        }
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn target(
    path: &str,
    mount: &Mount,
    is_dir: bool,
    found: &Found,
    view: &View<'_>,
    complaints: &mut Complaints,
) {
    let place = || format!("{path}.destination");
    let shown = mount.target.display();
    let pseudo = matches!(mount.kind, MountKind::Proc(_) | MountKind::Sysfs(_));
    match found {
        Found::File { stat, followed, .. } => {
            let there = kind(stat) == FileType::Directory;
            if pseudo && (*followed || !there) {
                let message = format!("{shown} must be mounted on ordinary directory");
                let hint = "the root file system has a link or a file there";
                complaints.error(place(), message, Some(hint.to_owned()));
            } else if there != is_dir {
                let what = |dir: bool| if dir { "a directory" } else { "not a directory" };
                let message = format!("mounting on {shown}: not a directory");
                let hint = format!("what is mounted is {}, what is there is {}", what(is_dir), what(there));
                complaints.error(place(), message, Some(hint));
            }
        }
        Found::Missing(Errno::NOTDIR) => {
            let hint = "a file of the root file system is in its way";
            complaints.error(place(), format!("mkdir {shown}: not a directory"), Some(hint.to_owned()));
        }
        Found::Missing(Errno::NOENT) if !can_be_made(&mount.target, mount, view) => {
            let message = format!("mkdir {shown}: read-only file system");
            let hint = "the root file system is read-only on the host, and has no such directory";
            complaints.error(place(), message, Some(hint.to_owned()));
        }
        Found::Missing(_) | Found::Unknown => {}
    }
}

/// Whether the file system that a missing mount point would be made in can be written to.
fn can_be_made(target: &Path, mount: &Mount, view: &View<'_>) -> bool {
    let writable = |found: Found| match found {
        Found::File { fd, .. } => {
            Some(rustix::fs::fstatvfs(&fd).is_ok_and(|stat| !stat.f_flag.contains(StatVfsMountFlags::RDONLY)))
        }
        Found::Unknown => Some(true),
        Found::Missing(_) => None,
    };
    let parents = target.ancestors().skip(1);
    parents.into_iter().find_map(|parent| writable(view.find_below(parent, mount.index))).unwrap_or(true)
}

/// Whether there is such a file system, and whether it knows its parameters.
fn file_system(path: &str, fstype: &str, options: &FsOptions, complaints: &mut Complaints) {
    let list = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let known = list.lines().filter_map(|line| line.split_whitespace().last());
    // What comes behind a dot is for a helper program, of which there is none here, and FUSE.
    let name = fstype.split('.').next().unwrap_or_default();
    if known.clone().any(|known| known == name) {
        parameters(path, fstype, options, complaints);
        return;
    }
    let near = brig_spec::nearest(fstype, known);
    let module = has_module(name);
    if !list.is_empty() && (module == Some(false) || module.is_none() && near.is_some()) {
        let hint = match near {
            Some(near) => format!("did you mean {near}?"),
            None => "the kernel has no such file system, and no module for it is installed".to_owned(),
        };
        complaints.error(format!("{path}.type"), format!("unknown filesystem type {fstype:?}"), Some(hint));
    }
}

/// Whether the kernel would find a module for a file system; `None` where that cannot be seen, from within a container
/// for one.
fn has_module(name: &str) -> Option<bool> {
    let release = rustix::system::uname();
    let dir = Path::new("/lib/modules").join(release.release().to_string_lossy().as_ref());
    let aliases = std::fs::read_to_string(dir.join("modules.alias")).ok()?;
    let wanted = format!("alias fs-{name} ");
    Some(aliases.lines().any(|line| line.starts_with(&wanted)))
}

/// Has the file system look at its parameters: a context that nothing is made of says no to those that it does not know.
fn parameters(path: &str, fstype: &str, options: &FsOptions, complaints: &mut Complaints) {
    use rustix::mount::{FsOpenFlags, fsconfig_set_flag, fsconfig_set_string, fsopen};
    // These have no parameter that could do harm by being looked at; others may open devices or connections.
    if !matches!(fstype, "tmpfs" | "proc" | "devpts" | "mqueue" | "ramfs") {
        return;
    }
    let Ok(context) = fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC) else { return };
    for (key, value) in &options.params {
        let answer = match value {
            Some(value) => fsconfig_set_string(context.as_fd(), key.as_str(), value.as_str()),
            None => fsconfig_set_flag(context.as_fd(), key.as_str()),
        };
        if let Err(errno @ (Errno::INVAL | Errno::RANGE)) = answer {
            let shown = value.as_ref().map_or_else(|| key.clone(), |value| format!("{key}={value}"));
            let message = format!("fsconfig {fstype} {shown}: {}", errno_text(errno));
            let hint = format!("{fstype} does not know this option, or not this value");
            complaints.error(format!("{path}.options"), message, Some(hint));
        }
    }
}

/// `process.cwd` and `process.args[0]`.
pub(super) fn program(plan: &Plan, view: &View<'_>, complaints: &mut Complaints) {
    let process = &plan.process;
    if let Found::File { stat, .. } = view.find(&process.cwd)
        && kind(&stat) != FileType::Directory
    {
        let cwd = process.cwd.display();
        complaints.error(
            "process.cwd",
            format!("chdir to cwd (\"{cwd}\") set in config.json failed: not a directory"),
            None,
        );
    }
    let Some(name) = process.args.first() else { return };
    const PATH: &str = "process.args[0]";
    if name.is_empty() {
        return complaints.error(PATH, "exec: \"\": executable file not found in $PATH", None);
    }
    if name.contains('/') {
        match usable(&process.cwd.join(name), plan, view) {
            Ok(Some(fd)) => interpreter(name, &head(&fd, HEAD), plan, view, complaints),
            Ok(None) => {}
            Err(errno) => {
                let error = crate::explain::lookup(name, errno);
                complaints.of_error(PATH, &error);
            }
        }
        return;
    }
    let search = process.env.iter().find_map(|variable| variable.strip_prefix("PATH=")).unwrap_or_default();
    for dir in search.split(':').filter(|dir| !dir.is_empty()) {
        let candidate = process.cwd.join(dir).join(name);
        match usable(&candidate, plan, view) {
            Ok(Some(fd)) => {
                return interpreter(&candidate.to_string_lossy(), &head(&fd, HEAD), plan, view, complaints);
            }
            // It may be there.
            Ok(None) => return,
            Err(_) => {}
        }
    }
    // More is known here than when the program has been looked for.
    let error = crate::error::Error::config(crate::explain::lookup(name, Errno::NOENT).message());
    let hint = if search.is_empty() {
        "process.env has no PATH to search, so process.args[0] must be a path".to_owned()
    } else {
        format!("none of the directories {search} has a program of this name")
    };
    complaints.of_error(PATH, &error.hint(hint));
}

/// A file that the container's user may execute; `None` when that cannot be known.
fn usable(path: &Path, plan: &Plan, view: &View<'_>) -> Result<Option<std::os::fd::OwnedFd>, Errno> {
    match view.find(path) {
        Found::Unknown => Ok(None),
        Found::Missing(errno) => Err(errno),
        Found::File { stat, .. } if kind(&stat) == FileType::Directory => Err(Errno::ISDIR),
        Found::File { fd, stat, .. } if may_execute(&stat, plan) => Ok(Some(fd)),
        Found::File { .. } => Err(Errno::ACCESS),
    }
}

fn may_execute(stat: &Stat, plan: &Plan) -> bool {
    let user = &plan.process.user;
    let private = plan.namespaces.user.is_private();
    let uid = if private { plan.id_maps.outside_uid(user.uid) } else { Some(user.uid) };
    let gid = |gid: u32| if private { plan.id_maps.outside_gid(gid) } else { Some(gid) };
    let groups: Vec<u32> = user.additional_gids.iter().chain([&user.gid]).filter_map(|g| gid(*g)).collect();
    let bits = if user.uid == 0 {
        // CAP_DAC_OVERRIDE needs one of the three, and without it root is an owner like others: mostly of everything.
        0o111
    } else if uid == Some(stat.st_uid) {
        0o100
    } else if groups.contains(&stat.st_gid) {
        0o010
    } else {
        0o001
    };
    stat.st_mode & bits != 0
}

/// What the kernel would look for next.
fn interpreter(program: &str, head: &[u8], plan: &Plan, view: &View<'_>, complaints: &mut Complaints) {
    const PATH: &str = "process.args[0]";
    let format = executable::inspect(head);
    let errno = match &format {
        Format::Script { interpreter, carriage_return } => {
            if interpreter.is_empty() {
                Some(Errno::NOEXEC)
            } else if *carriage_return {
                Some(Errno::NOENT)
            } else {
                usable(&plan.process.cwd.join(interpreter), plan, view).err()
            }
        }
        Format::Elf { machine, .. } if !executable::is_native(*machine) => {
            (!has_emulators()).then_some(Errno::NOEXEC)
        }
        Format::Elf { interpreter: Some(interpreter), .. } => {
            usable(Path::new(interpreter), plan, view).err()
        }
        Format::Elf { .. } => None,
        Format::Empty | Format::Unknown => (!has_emulators()).then_some(Errno::NOEXEC),
    };
    if let Some(errno) = errno {
        complaints.of_error(PATH, &crate::explain::exec(program, errno, Some(head)));
    }
}

/// Whether binfmt_misc has anything registered: then other formats may work.
fn has_emulators() -> bool {
    let own = |name: &std::ffi::OsStr| name == "register" || name == "status";
    std::fs::read_dir("/proc/sys/fs/binfmt_misc")
        .is_ok_and(|entries| entries.flatten().any(|entry| !own(&entry.file_name())))
}

/// `hooks`: all but those of the container are programs of the host.
pub(super) fn hooks(plan: &Plan, view: &View<'_>, complaints: &mut Complaints) {
    let hooks = &plan.hooks;
    for (name, list) in [
        ("prestart", &hooks.prestart),
        ("createRuntime", &hooks.create_runtime),
        ("createContainer", &hooks.create_container),
        ("poststart", &hooks.poststart),
        ("poststop", &hooks.poststop),
    ] {
        for (index, hook) in list.iter().enumerate() {
            let refusal = match std::fs::metadata(&hook.path) {
                Ok(file) if file.is_dir() => Some(Errno::ISDIR),
                Ok(file) if file.permissions().mode() & 0o111 == 0 => Some(Errno::ACCESS),
                Ok(_) => None,
                Err(error) => Some(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            };
            hook_complaint(&format!("hooks.{name}[{index}].path"), &hook.path, refusal, complaints);
        }
    }
    for (index, hook) in hooks.start_container.iter().enumerate() {
        let refusal = usable(&hook.path, &as_root(plan), view).err();
        hook_complaint(&format!("hooks.startContainer[{index}].path"), &hook.path, refusal, complaints);
    }
}

/// Hooks in the container run as its user too; whether they may is theirs to say, so only the x bits count.
fn as_root(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.process.user.uid = 0;
    plan
}

fn hook_complaint(path: &str, program: &Path, refusal: Option<Errno>, complaints: &mut Complaints) {
    // That it is not absolute is another complaint.
    let Some(errno) = refusal.filter(|_| program.is_absolute()) else { return };
    let message = format!("fork/exec {}: {}", program.display(), errno_text(errno));
    complaints.error(path.to_owned(), message, Some("a hook must be an executable file".to_owned()));
}
