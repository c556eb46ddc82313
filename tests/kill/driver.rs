//! Runs a command up to its Nth system call, counted over all its tasks, and there kills it or makes the call fail.
//!
//! A process of its own: when it ends, the kernel releases all that it traces, so that what was not killed goes on by itself.

use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use brig_sys::process::signal;
use brig_sys::ptrace::{self, Call, Stop};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

/// System calls on x86_64, where the driver runs.
const CLOSE: u64 = 3;
const BRK: u64 = 12;

/// First word of the driver's command line.
pub const WORD: &str = "driver";

/// What happens at the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// The command's process is killed.
    KillCommand,
    /// The task that makes the call is killed.
    KillCaller,
    /// The call fails with this errno.
    Fail(i32),
}

/// How a driven command came out.
#[derive(Debug)]
pub struct Driven {
    /// The point was reached.
    pub reached: bool,
    /// Exit status of the command, if it ended by itself.
    pub status: Option<i32>,
    /// What was struck: number of the system call.
    pub call: u64,
    /// Standard error of the command.
    pub said: String,
}

/// Drives a command from the test program.
pub fn drive(point: usize, blow: Blow, command: &[String]) -> Driven {
    let blow = match blow {
        Blow::KillCommand => "command".to_owned(),
        Blow::KillCaller => "caller".to_owned(),
        Blow::Fail(errno) => format!("fail={errno}"),
    };
    // A file, since the container may live on and would hold a pipe open.
    let mut said = tempfile::tempfile().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([WORD, &point.to_string(), &blow, "--"])
        .args(command)
        .stdin(Stdio::null())
        .stderr(said.try_clone().unwrap())
        .output()
        .unwrap();
    let mut text = String::new();
    said.rewind().unwrap();
    said.read_to_string(&mut text).unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let field = |name: &str| {
        report
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|value| value.trim().parse::<i64>().ok())
    };
    assert!(output.status.success(), "the driver failed: {output:?} {text}");
    Driven {
        reached: field("reached").is_some(),
        status: field("status").and_then(|n| i32::try_from(n).ok()),
        call: field("call").and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        said: text,
    }
}

/// The driver's side.
pub fn main(words: &[String]) -> ! {
    let point: usize = words[0].parse().unwrap();
    let blow = match words[1].as_str() {
        "command" => Blow::KillCommand,
        "caller" => Blow::KillCaller,
        other => Blow::Fail(other.strip_prefix("fail=").unwrap().parse().unwrap()),
    };
    // The shell stops itself, so that it is traced before it becomes the command. Its output is the container's too: none.
    let child = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec \"$@\" >/dev/null", "sh"])
        .args(&words[3..])
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let command = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    waitid(WaitId::Pid(command), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
    ptrace::seize(command).unwrap();
    let pidfd = pidfd_open(command, PidfdFlags::empty()).unwrap();
    signal(pidfd.as_fd(), 18).unwrap();
    let mut tracer = Tracer { command, point, blow, counting: false, count: 0, failing: None };
    tracer.run();
    std::process::exit(0)
}

struct Tracer {
    command: Pid,
    point: usize,
    blow: Blow,
    counting: bool,
    count: usize,
    failing: Option<(Pid, i32)>,
}

impl Tracer {
    /// Until the point, or the end of the command.
    fn run(&mut self) {
        while let Some((pid, stop)) = ptrace::wait().unwrap() {
            match stop {
                Stop::Syscall => {
                    if self.at_call(pid) {
                        return;
                    }
                }
                Stop::Event => {
                    // The shell has become the command: from here on it counts.
                    self.counting |= pid == self.command && executes_the_command(pid);
                    let _ = ptrace::go_on(pid, 0);
                }
                Stop::Signal(number) => {
                    let _ = ptrace::go_on(pid, if number == 19 { 0 } else { number });
                }
                Stop::Ended(status) if pid == self.command => {
                    let code = if status & 0x7f == 0 { status >> 8 } else { 128 + (status & 0x7f) };
                    println!("status {code}");
                    println!("calls {}", self.count);
                    return;
                }
                Stop::Ended(_) => {}
            }
        }
    }

    /// A task is at the border of a system call. True when it is over for this driver.
    fn at_call(&mut self, pid: Pid) -> bool {
        match ptrace::call(pid) {
            Ok(Call::Entry(number)) if self.counting => {
                self.count += 1;
                if self.count == self.point {
                    println!("reached {}", self.count);
                    println!("call {number}");
                    return self.strike(pid, number);
                }
            }
            Ok(Call::Exit(_)) => {
                if let Some((failing, errno)) = self.failing
                    && failing == pid
                {
                    let _ = ptrace::set_result(pid, -i64::from(errno));
                    self.failing = None;
                }
            }
            _ => {}
        }
        let _ = ptrace::go_on(pid, 0);
        false
    }

    fn strike(&mut self, pid: Pid, number: u64) -> bool {
        let victim = match self.blow {
            Blow::KillCommand => self.command,
            Blow::KillCaller => pid,
            // This one gives an address, never an errno: what the C library would do with one shows nothing.
            Blow::Fail(_) if number == BRK => {
                let _ = ptrace::go_on(pid, 0);
                return false;
            }
            Blow::Fail(errno) => {
                // close(2) frees the descriptor whatever it answers.
                if number != CLOSE {
                    let _ = ptrace::skip_call(pid);
                }
                self.failing = Some((pid, errno));
                let _ = ptrace::go_on(pid, 0);
                return false;
            }
        };
        let pidfd = pidfd_open(victim, PidfdFlags::empty()).unwrap();
        let _ = signal(pidfd.as_fd(), 9);
        true
    }
}

/// The first execve of the traced process is the one that counts.
fn executes_the_command(pid: Pid) -> bool {
    let path = format!("/proc/{}/comm", pid.as_raw_nonzero());
    std::fs::read_to_string(path).is_ok_and(|comm| comm.trim() != "sh")
}
