//! A manager of containers that knows processes by pidfds only: no SIGCHLD, no wait4, no subreaper, no pid.
//!
//! `manager RUNTIME ROOT` reads jobs from standard input, one a line, and does all of them at once in one epoll loop:
//!
//! ```text
//! run ID BUNDLE SIGNAL       a container, which gets the signal when the process that joined it has ended
//! exec ID NAME COMMAND…      a process that joins a container, once that runs
//! ```
//!
//! It prints `ID STATUS` or `NAME STATUS` as each of them ends, a signal as 128 and its number, and deletes the containers. It needs
//! Linux 6.15, whose pidfds tell the exit status to everybody; before, `unknown` is printed.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which uses std to start others"
)]

use std::collections::HashMap;
use std::error::Error;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use brig_sys::process::pidfd_info;
use rustix::event::epoll;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Commands that are at work at the same time.
const AT_ONCE: usize = 8;

/// A container or a process in one.
struct Job {
    /// As it was read.
    words: Vec<String>,
    /// The container.
    container: String,
    /// The pidfd, from when it has come to the end of the process.
    pidfd: Option<OwnedFd>,
}

/// What a descriptor in the epoll set is.
enum Source {
    /// The socket that the runtime sends a job's pidfd to.
    Listener(UnixListener),
    /// A command of the runtime, by its pidfd. It is a child of this process, of which nothing but its status is wanted.
    Command(OwnedFd, Step),
    /// A supervised process. The descriptor is the job's.
    Process,
}

/// What a command does for its job.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Begin,
    Delete,
}

struct Manager {
    runtime: PathBuf,
    root: PathBuf,
    sockets: PathBuf,
    epoll: OwnedFd,
    jobs: Vec<Job>,
    /// What a descriptor is, and for which job, by the number that epoll gives back.
    sources: HashMap<u64, (Source, usize)>,
    next: u64,
    /// Jobs that wait for their turn.
    waiting: Vec<usize>,
    commands: usize,
    left: usize,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, runtime, root] = &args[..] else { return Err("usage: manager RUNTIME ROOT <JOBS".into()) };
    let mut jobs = Vec::new();
    for line in std::io::read_to_string(std::io::stdin())?.lines() {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let container = words.get(1).ok_or("a job without a container")?.clone();
        jobs.push(Job { words, container, pidfd: None });
    }
    let sockets = PathBuf::from(format!("{root}-sockets"));
    std::fs::create_dir_all(&sockets)?;
    // Containers come first; what joins them waits until it is called for.
    let waiting = (0..jobs.len()).rev().filter(|&job| jobs[job].words[0] != "exec").collect();
    let mut manager = Manager {
        runtime: runtime.into(),
        root: root.into(),
        sockets,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        left: jobs.len(),
        jobs,
        sources: HashMap::new(),
        next: 0,
        waiting,
        commands: 0,
    };
    manager.work()
}

impl Manager {
    fn work(&mut self) -> Result<()> {
        while self.left > 0 || self.commands > 0 {
            while self.commands < AT_ONCE
                && let Some(job) = self.waiting.pop()
            {
                self.begin(job)?;
            }
            let mut events = Vec::with_capacity(64);
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None)?;
            for event in events {
                self.handle(event.data.u64(), event.flags)?;
            }
        }
        Ok(std::fs::remove_dir_all(&self.sockets)?)
    }

    /// Starts the command for a job, with a socket for the pidfd.
    fn begin(&mut self, job: usize) -> Result<()> {
        let path = self.sockets.join(job.to_string());
        self.watch(Source::Listener(UnixListener::bind(&path)?), job, epoll::EventFlags::IN)?;
        let words = self.jobs[job].words.clone();
        let bundle = ["--bundle", words[2].as_str()];
        let (command, flags, rest) = match words[0].as_str() {
            "exec" => ("exec", &[][..], &words[3..]),
            _ => ("run", &bundle[..], &[][..]),
        };
        let mut line = self.command(command);
        line.args(flags).arg("--detach").arg("--pidfd-socket").arg(&path).arg(&words[1]).args(rest);
        self.start(line, Step::Begin, job)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.runtime);
        command.arg("--root").arg(&self.root).arg(name);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn start(&mut self, mut line: Command, step: Step, job: usize) -> Result<()> {
        let child = line.spawn()?;
        // It cannot be anybody else: nobody but this process can wait for it, and has not.
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("no pid")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.commands += 1;
        self.watch(Source::Command(pidfd, step), job, epoll::EventFlags::IN)
    }

    fn watch(&mut self, source: Source, job: usize, flags: epoll::EventFlags) -> Result<()> {
        let fd = match &source {
            Source::Listener(listener) => listener.as_fd(),
            Source::Command(pidfd, _) => pidfd.as_fd(),
            Source::Process => self.jobs[job].pidfd.as_ref().ok_or("no pidfd")?.as_fd(),
        };
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(self.next), flags)?;
        self.sources.insert(self.next, (source, job));
        self.next += 1;
        Ok(())
    }

    fn handle(&mut self, number: u64, flags: epoll::EventFlags) -> Result<()> {
        // Dropped with what it has, unless it is put back.
        let Some((source, job)) = self.sources.remove(&number) else { return Ok(()) };
        match source {
            Source::Listener(listener) => {
                self.jobs[job].pidfd = Some(receive(&listener)?);
                // No event is asked for: a hang-up, which is told unasked, is the end of all of it.
                self.watch(Source::Process, job, epoll::EventFlags::empty())
            }
            Source::Command(pidfd, step) => self.command_ended(&pidfd, step, job),
            Source::Process if flags.contains(epoll::EventFlags::HUP) => self.process_ended(job),
            Source::Process => Err("an event that was not asked for".into()),
        }
    }

    /// A command has done its work. The container that it has made can be joined now.
    fn command_ended(&mut self, pidfd: &OwnedFd, step: Step, job: usize) -> Result<()> {
        self.commands -= 1;
        let status = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
        if status.and_then(|status| status.exit_status()) != Some(0) {
            return Err(format!("the command for {:?} failed", self.jobs[job].words).into());
        }
        if step == Step::Delete {
            return Ok(());
        }
        // The pidfd came before the command ended, but epoll may tell of it later.
        let listener = |(source, of): &(Source, usize)| matches!(source, Source::Listener(_)) && *of == job;
        let number = self.sources.iter().find(|(_, source)| listener(source)).map(|(number, _)| *number);
        number.map_or(Ok(()), |number| self.handle(number, epoll::EventFlags::IN))?;
        let Job { words, container, .. } = &self.jobs[job];
        let joins = |other: &Job| other.words[0] == "exec" && other.container == *container;
        if words[0] != "exec" {
            self.waiting.extend((0..self.jobs.len()).filter(|&other| joins(&self.jobs[other])));
        }
        Ok(())
    }

    /// The process has ended and whoever was its parent has waited for it: the kernel tells everybody how.
    fn process_ended(&mut self, job: usize) -> Result<()> {
        self.left -= 1;
        let Job { words, container, pidfd } = &mut self.jobs[job];
        let pidfd = pidfd.take().ok_or("no pidfd")?;
        let status = pidfd_info(pidfd.as_fd()).and_then(|info| info.exit);
        let status = status.map_or_else(|| "unknown".to_owned(), |status| status.code().to_string());
        if words[0] != "exec" {
            println!("{} {status}", words[1]);
            let mut delete = self.command("delete");
            delete.arg(&self.jobs[job].container);
            return self.start(delete, Step::Delete, job);
        }
        println!("{} {status}", words[2]);
        let container = container.clone();
        let joined = self.jobs.iter().find(|job| job.words[0] == "run" && job.container == container);
        let Some(Job { words, pidfd: Some(pidfd), .. }) = joined else { return Ok(()) };
        let signal = Signal::from_named_raw(words[3].parse()?).ok_or("no signal")?;
        Ok(pidfd_send_signal(pidfd, signal)?)
    }
}

/// Takes the pidfd out of the runtime's connection. It was sent before the connection was closed, and the command is not done before.
fn receive(listener: &UnixListener) -> Result<OwnedFd> {
    let (mut connection, _) = listener.accept()?;
    let mut data = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut data)];
    recvmsg(&connection, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let pidfd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    connection.read_to_end(&mut Vec::new())?;
    pidfd.ok_or_else(|| "a connection without a pidfd".into())
}
