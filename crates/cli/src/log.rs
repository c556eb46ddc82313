//! The log: where records go, and the one record of a failure.
//!
//! Clients read it. containerd takes the last error of a stream of JSON objects; podman reads the whole file as one
//! object, so that a failing command has to leave exactly one record. Hence, in a JSON file, what is logged before
//! the end is held back: it follows if the command succeeds, and becomes part of the error's record if not. With
//! `--debug` everything is written at once.

mod format;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use ::log::{Level, LevelFilter, Log, Metadata, Record};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::output::complain;
use crate::quote::visible;
use format::{Entry, Layout, Place};

/// What the global flags say about the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `--debug`.
    pub debug: bool,
    /// `--log-format json`.
    pub json: bool,
    /// `--log`; as it was given, which is relative to the directory that the program was started in.
    pub file: Option<PathBuf>,
}

static SINK: OnceLock<Sink> = OnceLock::new();

/// Opens the log and makes it the one that `log`'s macros write to. Called once, before anything is logged.
///
/// # Errors
///
/// The file cannot be opened.
pub fn start(settings: &Settings) -> Result<(), Error> {
    let output = match &settings.file {
        Some(path) => Output::File(open(path).map_err(|error| Error::path("open", path, &error))?),
        None => Output::Stderr,
    };
    let sink = SINK.get_or_init(|| Sink::new(output, settings));
    let level = if settings.debug { LevelFilter::Debug } else { LevelFilter::Info };
    // It fails only where a logger is set already, which then is this one.
    let _ = ::log::set_logger(sink);
    ::log::set_max_level(level);
    Ok(())
}

/// As much of a message is shown: enough for any path. A configuration can put megabytes into one.
const LONGEST: usize = 16 << 10;

/// A message that is not too long to be read.
fn bounded(mut error: Error) -> Error {
    let length = error.message.len();
    if length > LONGEST {
        error.message.truncate(error.message.floor_char_boundary(LONGEST));
        error.message.push_str(&format!("… ({length} bytes)"));
    }
    error
}

/// Reports the error that ends the command: one record, and where the log is a file the bare message on standard
/// error, for callers that read that. Without a log, only the latter.
pub fn fail(error: &Error) {
    let error = &bounded(error.clone());
    match SINK.get() {
        Some(sink) => {
            sink.fail(error);
            if matches!(sink.output, Output::File(_)) {
                complain(&plain(error));
            }
        }
        None => complain(&plain(error)),
    }
}

/// Writes what was held back, and holds nothing back from now on. For the end of a successful command, and for
/// commands that go on for long.
pub fn release() {
    if let Some(sink) = SINK.get() {
        sink.release();
    }
}

/// The message and, on a line of its own, the hint.
fn plain(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}\nhint: {}", visible(&error.message), visible(hint)),
        None => visible(&error.message).into_owned(),
    }
}

fn open(path: &Path) -> io::Result<File> {
    // O_SYNC: a record of why a host went down should be there when it is up again.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::SYNC | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)) {
        Ok(file) => Ok(file.into()),
        // Sockets cannot be opened through /proc, and under systemd standard error is one.
        Err(Errno::NXIO) if is_stream(path, 2) => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        Err(Errno::NXIO) if is_stream(path, 1) => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Err(error) => Err(error.into()),
    }
}

/// Whether `path` is one of the names of the process's descriptor `number`.
fn is_stream(path: &Path, number: u32) -> bool {
    let name = if number == 1 { "stdout" } else { "stderr" };
    let names = [format!("/dev/{name}"), format!("/dev/fd/{number}"), format!("/proc/self/fd/{number}")];
    names.iter().any(|name| Path::new(name) == path)
}

#[derive(Debug)]
enum Output {
    Stderr,
    File(File),
}

/// Where `log`'s macros end.
struct Sink {
    output: Output,
    layout: Layout,
    debug: bool,
    started: Instant,
    /// What is held back; `None` once nothing is any more.
    held: Mutex<Option<Vec<Held>>>,
}

#[derive(Debug)]
struct Held {
    record: String,
    message: String,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("output", &self.output).finish_non_exhaustive()
    }
}

impl Sink {
    fn new(output: Output, settings: &Settings) -> Self {
        let terminal = match &output {
            Output::Stderr => io::stderr().is_terminal(),
            Output::File(file) => file.is_terminal(),
        };
        let layout = match (settings.json, terminal) {
            (true, _) => Layout::Json,
            (false, false) => Layout::Text,
            (false, true) => Layout::Terminal,
        };
        let holds = settings.json && !settings.debug && matches!(output, Output::File(_));
        Self {
            output,
            layout,
            debug: settings.debug,
            started: Instant::now(),
            held: Mutex::new(holds.then(Vec::new)),
        }
    }

    /// One write(2) for each record: others append to the same file.
    fn write(&self, record: &str) {
        let _ = match &self.output {
            Output::Stderr => io::stderr().write_all(record.as_bytes()),
            Output::File(file) => {
                let mut file: &File = file;
                file.write_all(record.as_bytes())
            }
        };
    }

    fn entry<'a>(&self, level: Level, message: &'a str, place: Place<'a>) -> Entry<'a> {
        Entry {
            level,
            message: message.strip_suffix('\n').unwrap_or(message),
            place: self.debug.then_some(place),
            elapsed: self.started.elapsed().as_secs(),
            extra: Vec::new(),
        }
    }

    fn fail(&self, error: &Error) {
        let place = Place { module: module_path!(), file: file!(), line: line!() };
        let mut entry = self.entry(Level::Error, &error.message, place);
        if let Some(hint) = &error.hint {
            entry.extra.push(("hint", hint.clone()));
        }
        if self.debug {
            entry.extra.push(("kind", error.kind.as_str().to_owned()));
        }
        let held = self.take_held().unwrap_or_default();
        if !held.is_empty() {
            let messages: Vec<_> = held.into_iter().map(|held| held.message).collect();
            entry.extra.push(("warnings", messages.join("; ")));
        }
        self.write(&self.layout.record(&entry));
    }

    fn release(&self) {
        for held in self.take_held().unwrap_or_default() {
            self.write(&held.record);
        }
    }

    fn take_held(&self) -> Option<Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Log for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.debug || metadata.level() <= Level::Info
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        let place = Place {
            module: record.module_path().unwrap_or_default(),
            file: record.file().unwrap_or_default(),
            line: record.line().unwrap_or_default(),
        };
        let line = self.layout.record(&self.entry(record.level(), &message, place));
        match &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(held) => held.push(Held { record: line, message }),
            None => self.write(&line),
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests;
