//! Hands the seccomp listener of a process to the agent that is to answer its notifications.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use brig_spec::{ProcessState, State};
use brig_sys::Context;

use crate::error::{Doing, Error, Result};
use crate::hooks::to_json;
use crate::socket;

/// Where the agent is, and what it is to be told besides the descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// `linux.seccomp.listenerPath`.
    pub path: &'a str,
    /// `linux.seccomp.listenerMetadata`.
    pub metadata: &'a str,
}

/// Takes descriptor `number` out of the process and sends it to the agent, with the state of the container. `pid` is the
/// process that has the filter.
///
/// # Errors
///
/// The agent cannot be reached: then the process must not run, since its calls would wait for ever.
pub fn hand_over(pidfd: BorrowedFd<'_>, number: i32, agent: Agent<'_>, pid: i32, state: State) -> Result<()> {
    let listener =
        pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()).on("pidfd_getfd", "the seccomp listener")?;
    let message = ProcessState {
        oci_version: state.oci_version.clone(),
        fds: vec!["seccompFd".to_owned()],
        pid,
        metadata: agent.metadata.to_owned(),
        state,
    };
    let doing = || format!("handing the seccomp listener to the agent at {}", agent.path);
    let socket = socket::dial(Path::new(agent.path)).doing(|| {
        format!("failed to connect with seccomp agent specified in the seccomp profile at {}", agent.path)
    })?;
    socket::send_fd(socket.as_fd(), to_json(&message).as_bytes(), listener.as_fd())
        .map_err(Error::from)
        .doing(doing)
}
