//! Running programs with a time limit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No command of a test takes this long unless it hangs. Emulated machines are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// A command to be run.
#[derive(Debug)]
pub struct Run {
    command: Command,
    /// Standard error: a file, since a pipe would be held open by every process that outlives the command.
    err: File,
    input: Option<Vec<u8>>,
    limit: Duration,
}

/// What a command left.
#[derive(Debug, Clone)]
pub struct Finished {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    what: String,
}

impl Run {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        let err = tempfile::tempfile().unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(err.try_clone().unwrap());
        // What a runtime may pass to the container must not depend on who runs the tests.
        for name in ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        Self { command, err, input: None, limit: LIMIT }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn no_env(mut self) -> Self {
        self.command.env_clear();
        self
    }

    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.command.stdin(Stdio::piped());
        self.input = Some(input.into());
        self
    }

    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.command.stdin(stdin);
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.command.stderr(stderr);
        self
    }

    /// Standard output goes nowhere: for processes that outlive the command and would hold the pipe open.
    pub fn detached(mut self) -> Self {
        self.command.stdout(Stdio::null());
        self
    }

    pub fn uid(mut self, uid: u32, gid: u32) -> Self {
        self.command.uid(uid).gid(gid);
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Gives access to the std command for what is not wrapped here.
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Starts it.
    pub fn spawn(mut self) -> Spawned {
        let what = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|e| panic!("{what}: {e}"));
        if let (Some(input), Some(mut stdin)) = (self.input.take(), child.stdin.take()) {
            // Written by a thread: the program may print before it reads.
            std::thread::spawn(move || {
                let _ = stdin.write_all(&input);
            });
        }
        Spawned { child, err: self.err, what, limit: self.limit }
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished {
        self.spawn().finish()
    }

    /// Runs it and expects success.
    #[track_caller]
    pub fn ok(self) -> Finished {
        let finished = self.run();
        assert!(finished.status.success(), "{finished}");
        finished
    }

    /// Runs it and expects an exit status and a text in either output.
    #[track_caller]
    pub fn exits_with(self, code: i32, text: &str) -> Finished {
        let finished = self.run();
        finished.exits(code).says(text);
        finished
    }

    /// Runs it and expects a failure.
    #[track_caller]
    pub fn fails(self) -> Finished {
        let finished = self.run();
        assert!(!finished.status.success(), "it should fail: {finished}");
        finished
    }
}

/// A running command. Killed when dropped.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    err: File,
    what: String,
    limit: Duration,
}

impl Spawned {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it a signal; it is a child that has not been waited for, so the pid is its own.
    pub fn signal(&self, number: i32) {
        let signal = rustix::process::Signal::from_named_raw(number).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Waits for its end, which has to come in time.
    pub fn finish(mut self) -> Finished {
        let out = collect(self.child.stdout.take());
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > self.limit {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("{} has not ended within {:?}", self.what, self.limit);
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = |reader: std::thread::JoinHandle<Vec<u8>>| {
            // A process that the command left behind may hold the pipe open; then what there is by now counts.
            let begun = Instant::now();
            while !reader.is_finished() && begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if reader.is_finished() {
                String::from_utf8_lossy(&reader.join().unwrap()).into_owned()
            } else {
                String::new()
            }
        };
        Finished { status, out: text(out), err: contents(&self.err), what: std::mem::take(&mut self.what) }
    }
}

/// All that is in a file, without moving its offset: whoever still has it goes on writing where it stands.
fn contents(file: &File) -> String {
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Spawned {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

impl Finished {
    /// The exit status; a signal counts as 128 + its number.
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Both outputs, as clients read them.
    pub fn both(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Expects a text in either output, be it plain or quoted in a record of the log.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        let both = self.both();
        let found = both.contains(text) || both.replace("\\\"", "\"").contains(text);
        assert!(found, "{text:?} is not in: {self}");
        self
    }

    /// Expects a text that is brig's own, such as the place in config.json: others fail in other words.
    #[track_caller]
    pub fn explains(&self, text: &str) -> &Self {
        if crate::is_other_runtime() { self } else { self.says(text) }
    }

    /// Expects an exit status.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "{self}");
        self
    }

    /// Standard output without the newline at the end.
    pub fn line(&self) -> &str {
        self.out.trim_end()
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} gave {}\nstdout: {}\nstderr: {}", self.what, self.status, self.out, self.err)
    }
}
