//! v2: an eBPF program on the cgroup.

use std::os::fd::{AsFd, OwnedFd};

use brig_sys::bpf::{self, Insn};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::compile::compile;
use super::policy::Policy;
use crate::dir::Dir;
use crate::error::{Error, Result};

/// By this name we know our programs. systemd attaches its own, which stay.
const NAME: &str = "brig_device";

/// Makes the cgroup enforce `policy`. A filter of ours that is there (not looked for if the cgroup is `fresh`) is
/// replaced in one step.
pub(crate) fn set(dir: &Dir, policy: &Policy, fresh: bool) -> Result<()> {
    let program = compile(policy)?;
    let error = |doing, detail: String| {
        move |errno| Error::DeviceFilter { doing, path: dir.path().to_owned(), errno, detail }
    };
    let mut old = if fresh { Vec::new() } else { ours(dir).map_err(error("looking for", String::new()))? };
    if let Some(program) = program {
        let filter = load(&program).map_err(|(errno, detail)| error("loading", detail)(errno))?;
        let replaced = old.pop();
        bpf::attach_device_filter(dir.as_fd(), filter.as_fd(), replaced.as_ref().map(AsFd::as_fd))
            .map_err(error("attaching", String::new()))?;
    }
    for filter in old {
        match bpf::detach_device_filter(dir.as_fd(), filter.as_fd()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(error("detaching", String::new())(errno)),
        }
    }
    Ok(())
}

/// The filters on this cgroup that we have attached.
fn ours(dir: &Dir) -> Result<Vec<OwnedFd>, Errno> {
    let mut found = Vec::new();
    for id in bpf::device_filters(dir.as_fd())? {
        match bpf::program_by_id(id) {
            Ok(program) if bpf::program_name(program.as_fd())? == NAME => found.push(program),
            // Another's, gone in the meantime, or kept from us by an LSM: then it is not ours.
            Ok(_) | Err(Errno::NOENT | Errno::PERM | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

/// Loads the program, else says why not.
fn load(program: &[Insn]) -> Result<OwnedFd, (Errno, String)> {
    let errno = match bpf::load_device_filter(program, NAME, None) {
        Ok(filter) => return Ok(filter),
        Err(errno) => errno,
    };
    if errno == Errno::PERM {
        if !bpf::charges_memlock() {
            return Err((errno, " (it takes CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN)".to_owned()));
        }
        return load_with_memlock(program).map_err(|errno| {
            let limit = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
            let detail = format!(
                " (no capability for it, or RLIMIT_MEMLOCK, {limit} bytes, is used up: Linux before 5.11 \
                 charges eBPF programs to it)"
            );
            (errno, detail)
        });
    }
    // Once more, for the verifier's reasons.
    let mut log = vec![0; 64 * 1024];
    match bpf::load_device_filter(program, NAME, Some(&mut log)) {
        Ok(filter) => Ok(filter),
        Err(_) => {
            let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
            let text = String::from_utf8_lossy(text);
            let last: Vec<&str> = text.trim().lines().rev().take(2).collect();
            Err((errno, if last.is_empty() { String::new() } else { format!(": {}", last.join("; ")) }))
        }
    }
}

/// Tries with RLIMIT_MEMLOCK raised as far as we may, and puts it back: the container inherits our limits.
fn load_with_memlock(program: &[Insn]) -> Result<OwnedFd, Errno> {
    let before = getrlimit(Resource::Memlock);
    let unlimited = Rlimit { current: None, maximum: None };
    let as_far_as_allowed = Rlimit { current: before.maximum, maximum: before.maximum };
    if setrlimit(Resource::Memlock, unlimited).is_err() {
        // Lowering is always allowed, and this raises the soft limit only.
        setrlimit(Resource::Memlock, as_far_as_allowed)?;
    }
    let loaded = bpf::load_device_filter(program, NAME, None);
    setrlimit(Resource::Memlock, before)?;
    loaded
}
