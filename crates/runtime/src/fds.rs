//! Descriptors that the caller passes through to the container, from 3 on.

use brig_sys::errno_text;
use brig_sys::process::borrow_inherited;
use rustix::io::Errno;

use crate::error::{Error, Result};

/// What is passed through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// How many, from 3 on.
    pub count: u32,
    /// What the container's environment says about them.
    pub env: Vec<String>,
}

/// Counts `--preserve-fds` and, unless it is `exec`, the sockets of systemd's protocol (`LISTEN_FDS` meant for this process),
/// which come first.
///
/// # Errors
///
/// One that is to be passed is not open.
pub fn passed(preserve: u32, with_listen_fds: bool) -> Result<Passed> {
    let listening = if with_listen_fds { listen_fds() } else { 0 };
    for n in 0..preserve {
        let number = i32::try_from(3 + listening + n).unwrap_or(i32::MAX);
        inherited(number).map_err(|e| {
            Error::config(format!("unable to stat preserved-fd {n} (of {preserve}): {}", errno_text(e)))
                .hint("--preserve-fds N needs descriptors 3 to 2+N open")
        })?;
    }
    let env = if listening > 0 {
        // LISTEN_FDNAMES is not passed on: runc does not either. The process sees itself as 1.
        vec![format!("LISTEN_FDS={listening}"), "LISTEN_PID=1".to_owned()]
    } else {
        Vec::new()
    };
    Ok(Passed { count: listening + preserve, env })
}

/// Refuses descriptors that are brig's own: those it opened itself are closed on exec, as none can be that it was born with.
fn inherited(number: i32) -> std::result::Result<(), Errno> {
    let fd = borrow_inherited(number)?;
    if rustix::io::fcntl_getfd(fd)?.contains(rustix::io::FdFlags::CLOEXEC) {
        return Err(Errno::BADF);
    }
    Ok(())
}

/// sd_listen_fds(3): the variables count only when they are meant for this process.
fn listen_fds() -> u32 {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let count = match (number("LISTEN_PID"), number("LISTEN_FDS")) {
        (Some(pid), Some(count)) if pid == own => count,
        _ => return 0,
    };
    // What is not open is not passed, whatever the variable says: by the time of the execve a file of brig's has its number.
    let open = (0..count).take_while(|n| i32::try_from(3 + n).is_ok_and(|fd| inherited(fd).is_ok())).count();
    u32::try_from(open).unwrap_or(0)
}
