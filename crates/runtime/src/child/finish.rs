//! The last step: the init program is put together and takes over.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use brig_plan::{Hook, Ns, Process};
use brig_spec::Status;
use brig_sys::Context;
use brig_sys::init::abi::{
    FLAG_CLONE, FLAG_CLONE_EARLY, FLAG_CREDENTIALS, FLAG_LISTENER, FLAG_NO_NEW_PRIVS, FLAG_SEARCH,
    FLAG_SET_GROUPS, FLAG_TERMINAL, Params,
};
use brig_sys::init::{COMM_MAX, HookSpec, InitSpec};
use brig_sys::process::{cloexec_from, execute_fd, inherit};
use brig_sys::trace::span;

use super::create::Creation;
use super::{namespaces, process};
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::filter::LoadedFilter;
use crate::hooks;
use crate::passwd;
use crate::rootfs::RootDir;

/// What the init program is made from.
pub(super) struct Finish<'a> {
    pub process: &'a Process,
    pub root: &'a RootDir,
    /// The host's procfs.
    pub proc: BorrowedFd<'a>,
    pub channel: &'a Channel,
    /// `exec.fifo`, for a process that waits for `start`.
    pub gate: Option<BorrowedFd<'a>>,
    /// The record while it says `creating`.
    pub record: Option<BorrowedFd<'a>>,
    pub filter: Option<LoadedFilter>,
    pub start_hooks: &'a [Hook],
    /// State for them, split where the pid belongs.
    pub hook_state: (Vec<u8>, Vec<u8>),
    pub called_as: &'a str,
    pub preserve_fds: u32,
    /// A pid namespace for children has been set: one more clone to be in it.
    pub clone: bool,
    pub in_user_namespace: bool,
}

/// The step of `create`.
pub(super) fn create(c: &mut Creation<'_>) -> Result<()> {
    let plan = c.job.plan;
    if let Some(pid_namespace) = &c.pid_namespace {
        namespaces::join_pid_namespace(pid_namespace.as_fd())?;
    }
    let filter = c.job.filter.map_or(Ok(None), LoadedFilter::read)?;
    let state = hooks::state_json(plan, c.job.id, Status::Created, 1);
    take_over(&Finish {
        process: &plan.process,
        root: c.root()?,
        proc: c.proc.as_fd(),
        channel: c.channel,
        gate: Some(c.job.gate),
        record: Some(c.job.record),
        filter,
        start_hooks: &plan.hooks.start_container,
        hook_state: split_state(&state),
        called_as: c.job.called_as,
        preserve_fds: c.job.preserve_fds,
        clone: matches!(plan.namespaces.pid, Ns::Join(_)),
        in_user_namespace: c.in_user_namespace(),
    })
}

/// The hooks' state holds the pid that the process will have, which it alone knows.
fn split_state(json: &str) -> (Vec<u8>, Vec<u8>) {
    const PID: &str = "\"pid\":";
    match json.split_once(&format!("{PID}1,")) {
        Some((before, after)) => (format!("{before}{PID}").into_bytes(), format!(",{after}").into_bytes()),
        None => (json.as_bytes().to_vec(), Vec::new()),
    }
}

/// Executes the init program. Returns only with an error.
pub(super) fn take_over(f: &Finish<'_>) -> Result<()> {
    let preparing = span("preparing the init program");
    if !f.process.terminal {
        process::own_stdio(f.process.user.uid, f.root)?;
    }
    let late_cwd = process::enter_cwd(f.root, &f.process.cwd)?;
    let label = label(f)?;
    let environment = environment(f);
    let spec = InitSpec {
        params: params(f, label.as_ref().map(|(fd, _)| fd.as_fd())),
        groups: f.process.user.additional_gids.clone(),
        filter: f.filter.as_ref().map(|filter| filter.program.clone()).unwrap_or_default(),
        label: label.as_ref().map(|(_, text)| text.clone().into_bytes()).unwrap_or_default(),
        late_cwd,
        candidates: candidates(f.process)?,
        args: c_strings(&f.process.args)?,
        env: c_strings(&environment)?,
        hooks: f.start_hooks.iter().map(|hook| hook_spec(hook, &environment)).collect::<Result<_>>()?,
        hook_state: f.hook_state.clone(),
        comm: comm(f.called_as),
    };
    let program = spec.executable()?;
    // Whatever the caller of brig had open stays out, but for what is named here.
    cloexec_from(3, Some(f.proc))?;
    for fd in [Some(f.channel.as_fd()), f.gate, f.record, label.as_ref().map(|(fd, _)| fd.as_fd())]
        .into_iter()
        .flatten()
    {
        inherit(fd.as_raw_fd()).on("fcntl(F_SETFD)", "a descriptor of the init program")?;
    }
    for fd in (3..).take(usize::try_from(f.preserve_fds).unwrap_or(0)) {
        inherit(fd).on("fcntl(F_SETFD)", format!("preserved descriptor {fd}"))?;
    }
    if !f.in_user_namespace {
        crate::rlimits::set(rustix::process::getpid(), f.process)?;
    }
    let args = [c_string(f.called_as)?, CString::from(c"init")];
    drop(preparing);
    Err(Error::from(execute_fd(program.as_fd(), &args, &[])).context("the init program"))
}

fn params(f: &Finish<'_>, label: Option<BorrowedFd<'_>>) -> Params {
    let raw = |fd: Option<BorrowedFd<'_>>| fd.map_or(-1, |fd| fd.as_raw_fd());
    let capabilities = f.process.capabilities;
    let filter = f.filter.as_ref();
    let flag = |yes: bool, flag: u32| if yes { flag } else { 0 };
    let flags = FLAG_CREDENTIALS
        | flag(f.clone, FLAG_CLONE)
        | flag(f.clone && filter.is_some_and(|filter| !filter.allows_fork), FLAG_CLONE_EARLY)
        | flag(f.process.no_new_privileges, FLAG_NO_NEW_PRIVS)
        | flag(may_set_groups(f), FLAG_SET_GROUPS)
        | flag(filter.is_some_and(|filter| filter.notifies), FLAG_LISTENER)
        | flag(is_search(f.process), FLAG_SEARCH)
        | flag(f.clone && f.process.terminal, FLAG_TERMINAL);
    Params {
        flags,
        sync_fd: f.channel.as_fd().as_raw_fd(),
        fifo_fd: raw(f.gate),
        record_fd: raw(f.record),
        label_fd: raw(label),
        uid: f.process.user.uid,
        gid: f.process.user.gid,
        filter_flags: filter.map_or(0, |filter| filter.flags),
        cap_bounding: capabilities.bounding,
        cap_effective: capabilities.effective,
        cap_permitted: capabilities.permitted,
        cap_inheritable: capabilities.inheritable,
        cap_ambient: capabilities.ambient,
        cap_last: crate::host::last_capability().into(),
        ..Params::default()
    }
}

/// A user namespace made without privilege has setgroups(2) denied for good.
fn may_set_groups(f: &Finish<'_>) -> bool {
    if f.process.user.keep_groups {
        return false;
    }
    if !f.in_user_namespace && !f.process.user.additional_gids.is_empty() {
        return true;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = [0_u8; 16];
    match rustix::fs::openat(f.proc, "self/setgroups", flags, Mode::empty()) {
        Ok(file) => {
            !matches!(rustix::io::read(file, &mut text), Ok(n) if text.get(..n).is_some_and(|t| t.starts_with(b"deny")))
        }
        // A kernel without user namespaces.
        Err(_) => true,
    }
}

/// The LSM label for the execve: the directory whose `exec` takes it, and what to write.
fn label(f: &Finish<'_>) -> Result<Option<(OwnedFd, String)>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |path: &str| rustix::fs::openat(f.proc, path, flags, Mode::empty());
    if let Some(profile) = &f.process.apparmor_profile {
        // The first is the place for it since Linux 5.8, where several modules may be stacked.
        let fd = open("self/attr/apparmor")
            .or_else(|_| open("self/attr"))
            .on("open", "/proc/self/attr")
            .map_err(|e| Error::from(e).context("unable to apply apparmor profile"))?;
        return Ok(Some((fd, format!("exec {profile}"))));
    }
    if let Some(label) = &f.process.selinux_label {
        let fd = open("self/attr").on("open", "/proc/self/attr")?;
        return Ok(Some((fd, label.clone())));
    }
    Ok(None)
}

fn is_search(process: &Process) -> bool {
    process.args.first().is_some_and(|program| !program.contains('/'))
}

/// Paths to try for argv[0]. Only the process's own PATH counts; without one a bare name is not found.
fn candidates(process: &Process) -> Result<Vec<CString>> {
    let Some(program) = process.args.first() else {
        return Ok(Vec::new());
    };
    if !is_search(process) {
        return Ok(vec![c_string(program)?]);
    }
    let path = process.env.iter().rev().find_map(|e| e.strip_prefix("PATH=")).unwrap_or_default();
    // Relative directories would depend on where the process happens to be.
    path.split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| c_string(&format!("{dir}/{program}")))
        .collect()
}

/// The environment with HOME: from the container's user list, else `/`.
fn environment(f: &Finish<'_>) -> Vec<String> {
    let mut env = f.process.env.clone();
    if !env.iter().any(|e| e.starts_with("HOME=")) {
        let home = passwd::home_of(f.root, f.process.user.uid).unwrap_or_else(|| "/".to_owned());
        env.push(format!("HOME={home}"));
    }
    env
}

/// Without an environment of its own, a hook has that of the process.
fn hook_spec(hook: &Hook, environment: &[String]) -> Result<HookSpec> {
    Ok(HookSpec {
        path: CString::new(hook.path.as_os_str().as_encoded_bytes()).map_err(nul)?,
        args: c_strings(&hook.args)?,
        env: c_strings(hook.env.as_deref().unwrap_or(environment))?,
        timeout_ms: u64::from(hook.timeout.unwrap_or(0)) * 1000,
    })
}

/// `NAME:[2:INIT]`, as security monitors know it of runc.
fn comm(called_as: &str) -> CString {
    const STAGE: &str = ":[2:INIT]";
    let name: String =
        called_as.chars().filter(char::is_ascii_graphic).take(COMM_MAX - STAGE.len()).collect();
    CString::new(format!("{name}{STAGE}")).unwrap_or_default()
}

fn c_strings(list: &[String]) -> Result<Vec<CString>> {
    list.iter().map(|s| c_string(s)).collect()
}

fn c_string(s: &str) -> Result<CString> {
    CString::new(s).map_err(nul)
}

fn nul(_: std::ffi::NulError) -> Error {
    Error::config("a string of the process contains a NUL byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(args: &[&str], env: &[&str]) -> Process {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Process { args: own(args), env: own(env), ..Process::default() }
    }

    fn paths(p: &Process) -> Vec<String> {
        candidates(p).unwrap().into_iter().map(|c| c.into_string().unwrap()).collect()
    }

    #[test]
    fn a_bare_name_is_looked_for_in_the_containers_path_only() {
        assert_eq!(paths(&process(&["x"], &["PATH=/bin::rel:/usr/bin"])), ["/bin/x", "/usr/bin/x"]);
        assert_eq!(paths(&process(&[".hidden"], &["PATH=/bin"])), ["/bin/.hidden"]);
        assert!(paths(&process(&["x"], &[])).is_empty());
        assert_eq!(paths(&process(&["./x"], &["PATH=/bin"])), ["./x"]);
    }

    #[test]
    fn the_name_of_the_waiting_process_fits() {
        assert_eq!(comm("brig").to_str().unwrap(), "brig:[2:INIT]");
        assert_eq!(comm("a-very-long-name").to_bytes().len(), COMM_MAX);
    }

    #[test]
    fn the_state_is_split_at_the_pid() {
        let (before, after) = split_state("{\"id\":\"x\",\"pid\":1,\"bundle\":\"/b\"}");
        assert_eq!(before, b"{\"id\":\"x\",\"pid\":");
        assert_eq!(after, b",\"bundle\":\"/b\"}");
    }
}
