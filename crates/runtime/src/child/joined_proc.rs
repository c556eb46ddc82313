//! procfs of a pid namespace that this process is not in.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use brig_plan::{FsOptions, MountAttrs};
use brig_sys::Context;
use brig_sys::init::InitSpec;
use brig_sys::init::abi::{FLAG_CLONE, FLAG_PROC_CONTEXT, Params};
use brig_sys::process::{CloneFlags, Cloned, clone_process, execute_fd, exit_now, inherit, reap};

use super::namespaces::{join_pid_namespace, open_pid_namespace};
use crate::channel::{Channel, FromChild};
use crate::error::{Doing, Error, Kind, Result};

/// A procfs of the pid namespace at `path`, mounted nowhere yet.
///
/// # Errors
///
/// The kernel's.
pub(super) fn mount(path: &Path, options: &FsOptions, attrs: MountAttrs) -> Result<OwnedFd> {
    let context = context(path)?;
    let fs = context.as_fd();
    for (key, value) in &options.params {
        match value {
            Some(value) => fsconfig_set_string(fs, key.as_str(), value.as_str()),
            None => fsconfig_set_flag(fs, key.as_str()),
        }
        .on("fsconfig", key.as_str())?;
    }
    fsconfig_create(fs).on("fsconfig", "proc")?;
    let attrs = MountAttrFlags::from_bits_retain(u32::try_from(attrs.set).unwrap_or(0));
    Ok(fsmount(fs, FsMountFlags::FSMOUNT_CLOEXEC, attrs).on("fsmount", "proc")?)
}

fn context(path: &Path) -> Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).on("fsopen", "proc")?;
    // Linux 6.17.
    match fsconfig_set_string(context.as_fd(), "pidns", path) {
        Ok(()) => Ok(context),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => context_by_helper(path),
        Err(e) => Err(e).on_path("fsconfig pidns", path).map_err(Error::from),
    }
}

/// On older kernels a process in the namespace has to open it. The helper is the init program, since the namespace's other
/// processes can look at it (CVE-2019-5736).
fn context_by_helper(path: &Path) -> Result<OwnedFd> {
    let (ours, theirs) = Channel::pair()?;
    let child = match clone_process(CloneFlags::empty(), None)? {
        Cloned::Parent(child) => child,
        Cloned::Child => become_helper(path, &theirs),
    };
    drop(theirs);
    let mut found = None;
    let mut helper = None;
    while let Some(message) = ours.next()? {
        match message {
            FromChild::ProcContext(fd) => found = Some(fd),
            FromChild::Cloned(_, pidfd) => helper = Some(pidfd),
            FromChild::Failed(e) => return Err(e),
            FromChild::InitFailed(fault) => return Err(fault.into_error("proc")),
            _ => {}
        }
    }
    reap(child.pidfd.as_fd(), true)?;
    if let Some(pidfd) = helper {
        // It was cloned as a child of this process.
        reap(pidfd.as_fd(), true)?;
    }
    found.ok_or_else(|| Error::new(Kind::Internal, "the helper ended without a word"))
}

fn become_helper(path: &Path, channel: &Channel) -> ! {
    let fail = |e: Error| -> ! {
        channel.report(&FromChild::Failed(e));
        exit_now(1)
    };
    let namespaces =
        brig_plan::Namespaces { pid: brig_plan::Ns::Join(path.to_owned()), ..Default::default() };
    let joined =
        open_pid_namespace(&namespaces).and_then(|fd| fd.map_or(Ok(()), |fd| join_pid_namespace(fd.as_fd())));
    if let Err(e) = joined {
        fail(e);
    }
    let sync_fd = channel.as_fd().as_raw_fd();
    let params = Params {
        flags: FLAG_CLONE | FLAG_PROC_CONTEXT,
        sync_fd,
        fifo_fd: -1,
        record_fd: -1,
        label_fd: -1,
        ..Params::default()
    };
    let spec = InitSpec { params, comm: CString::from(c"brig:[1:PROC]"), ..InitSpec::default() };
    let program = match spec.executable().doing(|| "the helper") {
        Ok(program) => program,
        Err(e) => fail(e),
    };
    if let Err(e) = inherit(sync_fd).on("fcntl(F_SETFD)", "the channel") {
        fail(e.into());
    }
    fail(execute_fd(program.as_fd(), &[CString::from(c"brig")], &[]).into())
}
