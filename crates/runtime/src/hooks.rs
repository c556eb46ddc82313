//! Hooks that brig itself runs: those of the host's side, and `createContainer` in the container's namespaces before the
//! change of root. `startContainer` hooks are the init program's.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use brig_plan::{Hook, Plan};
use brig_spec::{State, Status};
use brig_sys::process::{
    Child, CloneFlags, Cloned, ExitStatus, cloexec_from, clone_process, die_with_parent, execute, exit_now,
    place_fd, reap, reset_signals, signal,
};
use brig_sys::{Context, SysError, errno_text};

use crate::deadline::{after, timespec_until};
use crate::error::{Error, Result};
use crate::id::ContainerId;

/// As much of a hook's output is kept for the error message.
const KEPT: usize = 4096;

/// Which hooks; the names are the specification's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// Deprecated, as `createRuntime`.
    Prestart,
    /// Before the change of root, in the runtime's namespaces.
    CreateRuntime,
    /// Before the change of root, in the container's namespaces.
    CreateContainer,
    /// In the container, before its program.
    StartContainer,
    /// After the program was started.
    Poststart,
    /// After the container was deleted.
    Poststop,
}

impl HookKind {
    /// The name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prestart => "prestart",
            Self::CreateRuntime => "createRuntime",
            Self::CreateContainer => "createContainer",
            Self::StartContainer => "startContainer",
            Self::Poststart => "poststart",
            Self::Poststop => "poststop",
        }
    }
}

/// The state of a container in the making.
pub fn state(plan: &Plan, id: &ContainerId, status: Status, pid: i32) -> State {
    State {
        oci_version: plan.oci_version.clone(),
        id: id.as_str().to_owned(),
        status,
        pid,
        bundle: plan.bundle.to_string_lossy().into_owned(),
        annotations: plan.annotations.clone(),
    }
}

/// The same, as hooks get it on their standard input.
pub fn state_json(plan: &Plan, id: &ContainerId, status: Status, pid: i32) -> String {
    to_json(&state(plan, id, status, pid))
}

/// A state as one line of JSON.
pub fn to_json<T: serde::Serialize>(state: &T) -> String {
    // Strings, numbers and maps of strings always have a JSON form.
    serde_json::to_string(state).unwrap_or_default()
}

/// Runs hooks in their order. The first that fails ends it.
///
/// # Errors
///
/// A hook could not be started, failed, or took longer than its timeout.
pub fn run_all(kind: HookKind, hooks: &[Hook], state: &str, cwd: Option<&Path>) -> Result<()> {
    for (index, hook) in hooks.iter().enumerate() {
        run(kind, hook, state, cwd).map_err(|e| failed(kind, index, &e))?;
    }
    Ok(())
}

/// Runs a program of the host, found in PATH, with brig's environment and no input.
///
/// # Errors
///
/// It is not there, failed, or took longer than ten seconds; its output is in the message.
pub(crate) fn run_program(name: &str, args: &[String]) -> Result<()> {
    const FALLBACK: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let path = std::env::var("PATH").unwrap_or_else(|_| FALLBACK.to_owned());
    let found = path.split(':').map(|dir| Path::new(dir).join(name)).find(|p| p.is_absolute() && p.exists());
    let Some(found) = found else {
        return Err(Error::host(format!("executable {name} not found in $PATH")));
    };
    let hook =
        Hook { path: found, args: args.to_vec(), env: None, timeout: Some(10), stdout: None, stderr: None };
    run(HookKind::CreateRuntime, &hook, "", None).map_err(Error::host)
}

/// The words for a failed hook.
pub(crate) fn failed(kind: HookKind, index: usize, why: &str) -> Error {
    let error = Error::config(format!("error running {} hook #{index}: {why}", kind.name()));
    if why.starts_with("fork/exec") {
        error.hint(format!("hooks.{}[{index}].path must name an executable file", kind.name()))
    } else {
        error.hint("the hook itself failed; what it printed is above")
    }
}

/// The words for how a hook ended.
pub(crate) fn describe_end(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> String {
    let how = match status {
        ExitStatus::Exited(status) => format!("exit status {status}"),
        ExitStatus::Signaled(signal) => format!("signal: {}", signal_text(signal)),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    format!("{how}, stdout: {}, stderr: {}", text(stdout), text(stderr))
}

/// The words for a hook that took too long.
pub(crate) fn timed_out(seconds: u64) -> String {
    format!("hook ran past specified timeout of {seconds}.0s")
}

fn signal_text(signal: i32) -> &'static str {
    match signal {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        6 => "aborted",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        15 => "terminated",
        31 => "bad system call",
        _ => "ended by a signal",
    }
}

fn run(kind: HookKind, hook: &Hook, state: &str, cwd: Option<&Path>) -> Result<(), String> {
    let text = |e: SysError| e.to_string();
    let mut running = Running::start(kind, hook, cwd).map_err(text)?;
    let seconds = u64::from(hook.timeout.unwrap_or(0));
    let deadline = (seconds > 0).then(|| after(Duration::from_secs(seconds)));
    let in_time = running.talk(state.as_bytes(), deadline).map_err(text)?;
    if !in_time {
        let _ = signal(running.child.pidfd.as_fd(), libc_sigkill());
    }
    let status = reap(running.child.pidfd.as_fd(), true).map_err(text)?;
    if let Some(errno) = running.exec_error() {
        return Err(format!("fork/exec {}: {}", hook.path.display(), errno_text(errno)));
    }
    match status {
        _ if !in_time => Err(timed_out(seconds)),
        Some(ExitStatus::Exited(0)) | None => Ok(()),
        Some(status) => Err(describe_end(status, &running.stdout.kept, &running.stderr.kept)),
    }
}

fn libc_sigkill() -> i32 {
    rustix::process::Signal::KILL.as_raw()
}

/// A hook at work.
struct Running {
    child: Child,
    stdin: Option<OwnedFd>,
    stdout: Stream,
    stderr: Stream,
    failed: OwnedFd,
}

/// One of its outputs.
struct Stream {
    pipe: Option<OwnedFd>,
    kept: Vec<u8>,
}

impl Stream {
    fn new(pipe: OwnedFd) -> Result<Self, SysError> {
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).on("fcntl(F_SETFL)", "a hook's output")?;
        Ok(Self { pipe: Some(pipe), kept: Vec::new() })
    }

    /// Takes what there is. What is not kept is read all the same, so that the hook does not block.
    fn fill(&mut self) {
        let mut buf = [0_u8; 4096];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut buf) {
                Ok(n @ 1..) => {
                    let room = KEPT.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(buf.get(..n.min(room)).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                _ => self.pipe = None,
            }
        }
    }
}

impl Running {
    fn start(kind: HookKind, hook: &Hook, cwd: Option<&Path>) -> Result<Self, SysError> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).on("pipe2", "");
        let (stdin, stdout, stderr, failed) = (pipe()?, pipe()?, pipe()?, pipe()?);
        let files = [output_file(hook.stdout.as_deref())?, output_file(hook.stderr.as_deref())?];
        let child = match clone_process(CloneFlags::empty(), None)? {
            Cloned::Parent(child) => child,
            Cloned::Child => {
                let [out, err] = &files;
                let (out, err) = (out.as_ref().unwrap_or(&stdout.1), err.as_ref().unwrap_or(&stderr.1));
                become_hook(kind, hook, cwd, [&stdin.0, out, err], &failed.1)
            }
        };
        rustix::fs::fcntl_setfl(&stdin.1, OFlags::NONBLOCK).on("fcntl(F_SETFL)", "a hook's input")?;
        Ok(Self {
            child,
            stdin: Some(stdin.1),
            stdout: Stream::new(stdout.0)?,
            stderr: Stream::new(stderr.0)?,
            failed: failed.0,
        })
    }

    /// Feeds it the state and takes its output until it ends; false when the deadline passed first.
    fn talk(&mut self, mut input: &[u8], deadline: Option<Instant>) -> Result<bool, SysError> {
        loop {
            let left = match deadline {
                None => None,
                Some(at) => match timespec_until(at) {
                    None => return Ok(false),
                    left => left,
                },
            };
            let mut fds = vec![PollFd::new(&self.child.pidfd, PollFlags::IN)];
            fds.extend(self.stdin.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
            fds.extend(self.stdout.pipe.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(self.stderr.pipe.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(SysError::new("poll", "a hook", e)),
            }
            let ended = fds.first().is_some_and(|fd| !fd.revents().is_empty());
            if let Some(stdin) = &self.stdin
                && !feed(stdin.as_fd(), &mut input)
            {
                self.stdin = None;
            }
            self.stdout.fill();
            self.stderr.fill();
            // What it wrote is in the pipes by now. Processes that it left behind are not waited for.
            if ended {
                return Ok(true);
            }
        }
    }

    /// The errno of a failed execve; the hook's process left it in the pipe, which a successful one closed.
    fn exec_error(&self) -> Option<Errno> {
        let mut raw = [0_u8; 4];
        rustix::fs::fcntl_setfl(&self.failed, OFlags::NONBLOCK).ok()?;
        match rustix::io::read(&self.failed, &mut raw) {
            Ok(4) => Some(Errno::from_raw_os_error(i32::from_ne_bytes(raw))),
            _ => None,
        }
    }
}

/// The file that an annotation names for the output of hooks.
fn output_file(path: Option<&Path>) -> Result<Option<OwnedFd>, SysError> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let open = |path| rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).on_path("open", path);
    path.map(open).transpose()
}

/// Writes on; false when all is written or nobody reads.
fn feed(stdin: BorrowedFd<'_>, input: &mut &[u8]) -> bool {
    while !input.is_empty() {
        match rustix::io::write(stdin, input) {
            Ok(n) => *input = input.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// The hook's side of the clone. It dies with whoever runs it: a killed command leaves no hook behind.
fn become_hook(kind: HookKind, hook: &Hook, cwd: Option<&Path>, stdio: [&OwnedFd; 3], failed: &OwnedFd) -> ! {
    let errno = prepare_hook(kind, hook, cwd, stdio)
        .map_or_else(|e| e.errno, |(path, args, env)| execute(&path, &args, &env).errno);
    let _ = rustix::io::write(failed, &errno.raw_os_error().to_ne_bytes());
    exit_now(127)
}

type Command = (CString, Vec<CString>, Vec<CString>);

fn prepare_hook(
    kind: HookKind,
    hook: &Hook,
    cwd: Option<&Path>,
    stdio: [&OwnedFd; 3],
) -> Result<Command, SysError> {
    die_with_parent(true)?;
    reset_signals();
    for (to, from) in (0..).zip(stdio) {
        place_fd(from, to)?;
    }
    cloexec_from(3, None)?;
    if let Some(cwd) = cwd {
        // Opened first, so that the error is about the directory.
        let dir = rustix::fs::open(cwd, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .on_path("open", cwd)?;
        rustix::process::fchdir(dir).on_path("fchdir", cwd)?;
    }
    let c_string = |s: &[u8]| CString::new(s).map_err(|_| SysError::new("execve", "", Errno::INVAL));
    let path = c_string(hook.path.as_os_str().as_encoded_bytes())?;
    let args = hook.args.iter().map(|a| c_string(a.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let env = match &hook.env {
        Some(env) => env.iter().map(|e| c_string(e.as_bytes())).collect::<Result<Vec<_>, _>>()?,
        // Without `env`, hooks of the host's side have always been given the runtime's environment.
        None if kind == HookKind::CreateContainer => Vec::new(),
        None => std::env::vars_os()
            .map(|(k, v)| c_string(&[k.as_encoded_bytes(), b"=", v.as_encoded_bytes()].concat()))
            .collect::<Result<Vec<_>, _>>()?,
    };
    Ok((path, args, env))
}
