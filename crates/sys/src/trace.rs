//! What a command and the processes that it makes do when, as trace events for a timeline viewer (chrome://tracing, Perfetto).
//!
//! The file is a JSON array that is never closed, as the format allows, so that every process appends to it on its own and
//! several commands can share it. When no trace was asked for, a span is one look at a number.

use std::os::fd::{BorrowedFd, IntoRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Context, Result, SysError};

/// The trace's file; -1 when there is none. It is closed on exec like all of the command's.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// The command's pid, also in its children, whose own pid is another one in a pid namespace.
static COMMAND: AtomicU32 = AtomicU32::new(0);
/// Which process of the command this is.
static TRACK: AtomicU32 = AtomicU32::new(1);

/// Begins to write events, or to add them to those of other commands.
///
/// # Errors
///
/// The file cannot be written.
pub fn start(path: &Path, title: &str) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).on_path("open", path)?;
    if rustix::fs::fstat(&file).on_path("fstat", path)?.st_size == 0 {
        rustix::io::write(&file, b"[\n").map_err(|e| SysError::path("write", path, e))?;
    }
    FILE.store(file.into_raw_fd(), Ordering::Relaxed);
    COMMAND.store(std::process::id(), Ordering::Relaxed);
    name("process_name", title);
    name("thread_name", "command");
    Ok(())
}

/// From here on this is another process of the command: what it does has a line of its own.
pub fn child(title: &str) {
    if is_on() {
        TRACK.fetch_add(1, Ordering::Relaxed);
        name("thread_name", title);
    }
}

fn is_on() -> bool {
    FILE.load(Ordering::Relaxed) >= 0
}

/// Measures from here to the end of the value's life.
#[must_use]
pub fn span(name: &'static str) -> Span {
    Span(is_on().then(|| (name, now())))
}

/// A step that is being measured.
#[derive(Debug)]
pub struct Span(Option<(&'static str, i64)>);

impl Drop for Span {
    fn drop(&mut self) {
        let Some((name, begun)) = self.0 else { return };
        let took = now() - begun;
        let place = place();
        write(&format!(
            r#"{{"ph":"X",{place},"ts":{},"dur":{},"name":{name:?}}},"#,
            microseconds(begun),
            microseconds(took)
        ));
    }
}

fn name(what: &str, title: &str) {
    let title: String = title.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect();
    let place = place();
    write(&format!(r#"{{"ph":"M",{place},"name":"{what}","args":{{"name":"{title}"}}}},"#));
}

fn place() -> String {
    let (pid, track) = (COMMAND.load(Ordering::Relaxed), TRACK.load(Ordering::Relaxed));
    format!(r#""pid":{pid},"tid":{track}"#)
}

/// Events that cannot be written are not worth an error.
fn write(event: &str) {
    let file = FILE.load(Ordering::Relaxed);
    if file < 0 {
        return;
    }
    // SAFETY: opened by `start`, which gave it away: nobody closes it.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let _ = rustix::io::write(file, format!("{event}\n").as_bytes());
}

/// Nanoseconds of the clock that all processes share.
fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn microseconds(nanoseconds: i64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_commands_that_share_a_file() {
        let file = std::env::temp_dir().join(format!("brig-trace-{}", std::process::id()));
        drop(span("nobody asked for this one"));
        start(&file, "brig \"x\"\n").unwrap();
        drop(span("step"));
        start(&file, "brig y").unwrap();
        child("container");
        drop(span("another"));
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(text.starts_with("[\n{") && text.ends_with("},\n"), "{text}");
        let closed = format!("{}]", text.trim_end().trim_end_matches(','));
        assert_eq!(closed.matches(r#""ph":"X""#).count(), 2);
        assert_eq!(closed.matches(r#""ph":"M""#).count(), 5);
        assert!(closed.contains(r#""name":"brig x""#) && closed.contains(r#""tid":2"#), "{closed}");
    }
}
