//! `startContainer` hooks: run by the container's process itself, inside the container, after the go-ahead.

use super::abi::{HEAD_LEN, Head, Hook, Params, Slice, Step, TEXT_MAX, Tag};
use super::arch::{nr, syscall6};
use super::calls::{self as call, EAGAIN, EINTR, Errno};
use super::program::{Done, Fault};

const O_NONBLOCK: usize = 0o4000;
const O_CLOEXEC: usize = 0o2_000_000;
const SIGPIPE: usize = 13;
const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;
const P_PIDFD: usize = 3;
const WEXITED: usize = 4;
/// Kept of a hook's standard output, and as much of its standard error.
const KEPT: usize = TEXT_MAX / 2 - 16;

/// Runs the hooks in order; the first that fails ends it, with its output in the message.
pub fn run_all(p: &Params, channel: i32) -> Done {
    for (index, hook) in (0_i64..).zip(call::items::<Hook>(p.hooks)) {
        let mut output = Output::default();
        if let Err((step, errno, status)) = run(p, hook, &mut output) {
            let value = (index << 32) | i64::from(status);
            report(channel, Fault { step, errno, value }, &output);
            call::exit(255);
        }
    }
    Ok(())
}

/// What a hook printed.
#[derive(Clone, Copy)]
struct Stream {
    kept: [u8; KEPT],
    len: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self { kept: [0; KEPT], len: 0 }
    }
}

#[derive(Default)]
struct Output {
    out: Stream,
    err: Stream,
}

/// One message: head, a length of two bytes, standard output, standard error.
fn report(channel: i32, why: Fault, output: &Output) {
    let head = Head { tag: Tag::Failed as u16, step: why.step as u16, errno: why.errno, value: why.value };
    let mut text = [0_u8; HEAD_LEN + TEXT_MAX];
    let mut used = 0;
    let length = (output.out.len as u16).to_ne_bytes();
    for part in [head.encode().as_slice(), &length, output.out.bytes(), output.err.bytes()] {
        for (to, from) in text.iter_mut().skip(used).zip(part) {
            *to = *from;
        }
        used += part.len();
    }
    let _ = call::write_bytes(channel, text.get(..used).unwrap_or(&[]));
}

impl Stream {
    fn bytes(&self) -> &[u8] {
        self.kept.get(..self.len).unwrap_or(&[])
    }

    /// Takes what there is; what does not fit is read and dropped, so that the hook does not block. False at the end.
    fn fill(&mut self, fd: i32) -> bool {
        let mut buf = [0_u8; 512];
        loop {
            match call::read(fd, &mut buf) {
                Ok(0) => return false,
                Ok(n) => {
                    for (to, from) in self.kept.iter_mut().skip(self.len).zip(buf.iter().take(n)) {
                        *to = *from;
                    }
                    self.len = (self.len + n).min(KEPT);
                }
                Err(EINTR) => {}
                Err(EAGAIN) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// A failed hook: the step, an errno, a wait status or, where it took too long, the seconds that it had.
type HookFault = (Step, Errno, i32);

fn run(p: &Params, hook: &Hook, output: &mut Output) -> Result<(), HookFault> {
    let spawn = |errno| (Step::HookSpawn, errno, 0);
    let stdin = pipe(O_CLOEXEC).map_err(spawn)?;
    let stdout = pipe(O_CLOEXEC).map_err(spawn)?;
    let stderr = pipe(O_CLOEXEC).map_err(spawn)?;
    // The execve closes it; a failed one leaves its errno here.
    let failed = pipe(O_CLOEXEC).map_err(spawn)?;
    let mut pidfd = -1;
    if call::fork(&mut pidfd).map_err(spawn)? == 0 {
        become_hook(hook, [stdin.0, stdout.1, stderr.1], failed.1);
    }
    for fd in [stdin.0, stdout.1, stderr.1, failed.1] {
        call::close(fd);
    }
    let mut errno = [0_u8; 4];
    let execve_failed = call::read(failed.0, &mut errno) == Ok(4);
    call::close(failed.0);
    // A hook that does not read its input must not end this process.
    call::ignore(SIGPIPE);
    let in_time = talk(p, hook, stdin.1, stdout.0, stderr.0, pidfd, output);
    call::handle_by_default(SIGPIPE);
    if !in_time {
        kill(pidfd);
    }
    let status = wait(pidfd);
    for fd in [stdout.0, stderr.0, pidfd] {
        call::close(fd);
    }
    if execve_failed {
        return Err((Step::HookSpawn, i32::from_ne_bytes(errno), 0));
    }
    if !in_time {
        return Err((Step::HookTimeout, 0, (hook.timeout_ms / 1000) as i32));
    }
    if status == 0 { Ok(()) } else { Err((Step::HookFailed, 0, status)) }
}

/// The hook's side of the clone.
fn become_hook(hook: &Hook, stdio: [i32; 3], failed: i32) -> ! {
    // The four pipes are above 2 unless the container was started with closed stdio: first out of the way, then into place.
    let mut errno = 0;
    let high = |fd| dup_above(fd, 10);
    let [i, o, e] = stdio.map(high);
    let failed = high(failed);
    for (to, from) in (0..).zip([i, o, e]) {
        // SAFETY: descriptors only.
        unsafe { syscall6(nr::DUP3, [from as usize, to, 0, 0, 0, 0]) };
    }
    // Descriptors for the payload (--preserve-fds) are not the hook's.
    close_from(3, failed);
    if errno == 0 {
        errno = call::execve(hook.path, hook.argv, hook.envp);
    }
    let _ = call::write_bytes(failed, &errno.to_ne_bytes());
    call::exit(127)
}

fn dup_above(fd: i32, least: usize) -> i32 {
    const F_DUPFD_CLOEXEC: usize = 1030;
    // SAFETY: integers only.
    let ret = unsafe { syscall6(nr::FCNTL, [fd as usize, F_DUPFD_CLOEXEC, least, 0, 0, 0]) };
    ret as i32
}

/// Closes everything from `first` on but `keep`.
fn close_from(first: u32, keep: i32) {
    let keep = keep as u32;
    for (from, to) in [(first, keep.saturating_sub(1)), (keep + 1, u32::MAX)] {
        if from <= to {
            // SAFETY: integers only; the process goes on with 0 to 2 and `keep`.
            unsafe { syscall6(nr::CLOSE_RANGE, [from as usize, to as usize, 0, 0, 0, 0]) };
        }
    }
}

#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    revents: i16,
}

/// Feeds the hook its state and takes its output until it ends; false when its time is over.
fn talk(
    p: &Params,
    hook: &Hook,
    stdin: i32,
    stdout: i32,
    stderr: i32,
    pidfd: i32,
    output: &mut Output,
) -> bool {
    let mut digits = [0_u8; 20];
    let mut input = Input { parts: [p.state_before_pid, own_pid(&mut digits), p.state_after_pid] };
    let mut fds = [
        PollFd { fd: stdin, events: POLLOUT, revents: 0 },
        PollFd { fd: stdout, events: POLLIN, revents: 0 },
        PollFd { fd: stderr, events: POLLIN, revents: 0 },
        PollFd { fd: pidfd, events: POLLIN, revents: 0 },
    ];
    // The kernel counts this down from call to call.
    let mut left = [(hook.timeout_ms / 1000) as i64, (hook.timeout_ms % 1000 * 1_000_000) as i64];
    let timeout = if hook.timeout_ms == 0 { 0 } else { left.as_mut_ptr() as usize };
    nonblocking(stdin);
    nonblocking(stdout);
    nonblocking(stderr);
    loop {
        // SAFETY: four pollfd, a timespec or null, no signal mask.
        let n = unsafe { syscall6(nr::PPOLL, [fds.as_mut_ptr() as usize, fds.len(), timeout, 0, 8, 0]) };
        if n == 0 {
            return false;
        }
        let [i, o, e, end] = &mut fds;
        if i.revents != 0 && !input.feed(i.fd) {
            call::close(i.fd);
            i.fd = -1;
        }
        if o.revents != 0 && !output.out.fill(o.fd) {
            o.fd = -1;
        }
        if e.revents != 0 && !output.err.fill(e.fd) {
            e.fd = -1;
        }
        if end.revents != 0 {
            // It has ended: what it wrote is in the pipes. A child that it left behind is not waited for.
            let _ = (output.out.fill(stdout), output.err.fill(stderr));
            call::close(i.fd);
            return true;
        }
    }
}

/// The state JSON in three parts, being written.
struct Input {
    parts: [Slice; 3],
}

impl Input {
    /// Writes on; false when all is written or nobody reads.
    fn feed(&mut self, fd: i32) -> bool {
        for part in &mut self.parts {
            while part.len > 0 {
                match call::write(fd, *part) {
                    Ok(n) => {
                        part.ptr += n as u64;
                        part.len -= n as u64;
                    }
                    Err(EINTR) => {}
                    Err(EAGAIN) => return true,
                    Err(_) => return false,
                }
            }
        }
        false
    }
}

/// This process's pid in decimal, in the tail of `digits`.
fn own_pid(digits: &mut [u8; 20]) -> Slice {
    // SAFETY: getpid has no arguments.
    let mut pid = unsafe { syscall6(nr::GETPID, [0; 6]) } as u64;
    let mut len = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (pid % 10) as u8;
        pid /= 10;
        len += 1;
        if pid == 0 {
            break;
        }
    }
    Slice { ptr: digits.as_ptr() as u64 + (20 - len), len }
}

fn pipe(flags: usize) -> Result<(i32, i32), Errno> {
    let mut fds = [-1_i32; 2];
    // SAFETY: the kernel writes two descriptors.
    let ret = unsafe { syscall6(nr::PIPE2, [fds.as_mut_ptr() as usize, flags, 0, 0, 0, 0]) };
    let [read, write] = fds;
    if ret < 0 { Err(-ret as Errno) } else { Ok((read, write)) }
}

fn nonblocking(fd: i32) {
    const F_SETFL: usize = 4;
    // SAFETY: integers only.
    unsafe { syscall6(nr::FCNTL, [fd as usize, F_SETFL, O_NONBLOCK, 0, 0, 0]) };
}

fn kill(pidfd: i32) {
    // SAFETY: integers and a null pointer.
    unsafe { syscall6(nr::PIDFD_SEND_SIGNAL, [pidfd as usize, call::SIGKILL, 0, 0, 0, 0]) };
}

/// Reaps the hook; its wait status as wait(2) would give it.
fn wait(pidfd: i32) -> i32 {
    // siginfo_t: si_code at 8, si_status at 24.
    let mut info = [0_i32; 32];
    // SAFETY: siginfo_t is 128 bytes, the buffer's size.
    while unsafe {
        syscall6(nr::WAITID, [P_PIDFD, pidfd as usize, info.as_mut_ptr() as usize, WEXITED, 0, 0])
    } == -(EINTR as isize)
    {}
    const CLD_EXITED: i32 = 1;
    match (info.get(2), info.get(6)) {
        (Some(&CLD_EXITED), Some(&status)) => (status & 0xff) << 8,
        (_, Some(&signal)) => signal & 0x7f,
        _ => 0xff,
    }
}
