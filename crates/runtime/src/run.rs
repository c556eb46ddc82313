//! `run`: create and start in one, and in the foreground wait and delete as well.

use std::os::fd::{AsFd, OwnedFd};

use brig_sys::Context;
use brig_sys::process::{ExitStatus, reap, signal};

use crate::container::Container;
use crate::create::{CreateRequest, Made, Making};
use crate::deadline::after;
use crate::delete::{self, DEFAULT_TIMEOUT, wait_ended};
use crate::error::Result;
use crate::foreground::Foreground;
use crate::notify::Proxy;
use crate::store::Lock;
use crate::{pidfile, start};

/// What the command line asks for besides a container.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// `--detach`.
    pub detach: bool,
    /// `--keep`: leave the container when its process has ended.
    pub keep: bool,
    /// `--no-subreaper`.
    pub no_subreaper: bool,
}

/// Makes a container and lets it run. The exit status of its process, or `None` when it goes on alone.
///
/// # Errors
///
/// As `create` and `start`; nothing is left then.
pub fn run(request: &CreateRequest, options: RunOptions) -> Result<Option<ExitStatus>> {
    let mut foreground = if options.detach { None } else { Some(Foreground::begin()?) };
    if foreground.is_some() && !options.no_subreaper {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .on("prctl(PR_SET_CHILD_SUBREAPER)", "")?;
    }
    let mut making = Making::begin(request, foreground.as_mut())?;
    if let Err(e) = making.until_ready().and_then(|()| making.commit()) {
        making.undo();
        return Err(e);
    }
    let made = making.into_made()?;
    let (container, pidfd) = started(request, made, foreground.as_mut(), options)?;
    let Some(mut foreground) = foreground else {
        return Ok(None);
    };
    let status = foreground.wait(&pidfd, None);
    if !options.keep {
        delete::delete(&request.store, container.id(), true, DEFAULT_TIMEOUT)?;
    }
    status
}

fn go_on(
    request: &CreateRequest,
    container: &Container,
    lock: Lock,
    pidfd: &OwnedFd,
    options: RunOptions,
) -> Result<()> {
    let proxy = Proxy::bind(&container.dir)?;
    start::go(container, lock)?;
    let pid = container.record.init.map_or(0, |init| init.pid);
    if let Some(path) = &request.pid_file {
        pidfile::write(path, pid)?;
    }
    match proxy {
        // In the foreground this process is what the manager has started and watches.
        Some(proxy) if !options.detach => {
            proxy.pass_on(pidfd, rustix::process::getpid().as_raw_nonzero().get())
        }
        Some(proxy) => proxy.pass_on(pidfd, pid),
        None => Ok(()),
    }
}

/// Starts the made container; what could not be started is removed.
fn started(
    request: &CreateRequest,
    made: Made,
    foreground: Option<&mut Foreground>,
    options: RunOptions,
) -> Result<(Container, OwnedFd)> {
    let Made { dir, lock, record, pidfd, console, .. } = made;
    let container = Container { dir, record };
    let connected = match (foreground, &console) {
        (Some(foreground), Some(console)) => foreground.connect(console),
        _ => Ok(()),
    };
    let result = connected.and_then(|()| go_on(request, &container, lock, &pidfd, options));
    let Err(e) = result else {
        return Ok((container, pidfd));
    };
    let _ = signal(pidfd.as_fd(), rustix::process::Signal::KILL.as_raw());
    if wait_ended(&pidfd, after(DEFAULT_TIMEOUT))? {
        reap(pidfd.as_fd(), false)?;
    }
    if !options.keep || options.detach {
        delete::delete(&request.store, container.id(), true, DEFAULT_TIMEOUT)?;
    }
    Err(e)
}
