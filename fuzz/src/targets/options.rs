//! Command lines and the words on them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use brig_cli::flags::{Action, parse};
use brig_cli::value::{Signal, UserSpec, duration, id, number, size};

/// Lines are words.
pub fn options(bytes: &[u8]) {
    let words: Vec<OsString> =
        bytes.split(|b| *b == b'\n').map(|word| OsStr::from_bytes(word).to_owned()).collect();
    match parse(&words) {
        Ok(invocation) => {
            if let Action::Run(parsed) = invocation.action {
                let command = parsed.command;
                let count = parsed.operands.len();
                assert!((command.min_operands..=command.max_operands).contains(&count), "{}", command.name);
            }
        }
        Err(error) => assert!(!error.usage.message("brig").is_empty()),
    }
    for word in &words {
        value(word);
    }
}

fn value(word: &OsStr) {
    if let Ok(id) = id::container_id(word) {
        is_file_name(id.as_str());
    }
    if let Ok(id) = id::exec_id(word) {
        is_file_name(&id);
    }
    let Some(text) = word.to_str() else { return };
    if let Ok(user) = UserSpec::parse(text) {
        let (uid, gid) = match text.split_once(':') {
            Some((uid, gid)) => (uid, Some(gid)),
            None => (text, None),
        };
        is_exactly(uid, user.uid);
        assert_eq!(gid.is_some(), user.gid.is_some());
        if let (Some(text), Some(gid)) = (gid, user.gid) {
            is_exactly(text, gid);
        }
    }
    if let Ok(signal) = Signal::parse(text) {
        let _ = format!("{signal:?}");
    }
    if let Ok(n) = number::decimal("Atoi", text) {
        assert_eq!(text.trim_start_matches('+').parse(), Ok(n));
    }
    let _ = duration::nanoseconds(text);
    let _ = size::bytes(text);
    let _ = number::any_base(text);
    let _ = number::unsigned(text);
}

/// An id is a plain name: it leads nowhere else.
fn is_file_name(id: &str) {
    assert!(!id.is_empty() && id != "." && id != ".." && !id.contains(['/', '\0', '\n']), "{id:?}");
}

/// The number that is written there, by digits.
fn is_exactly(text: &str, number: u32) {
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let expected = if number == 0 { String::new() } else { number.to_string() };
    assert_eq!(digits, expected, "{text:?}");
    assert!(number != u32::MAX && (number == 0 || !text.starts_with('-')), "{text:?}");
}

pub fn seeds() -> Vec<Vec<u8>> {
    let lines = [
        "--root\n/r\n--log=/l\n--log-format\njson\ncreate\n--bundle\n/b\n--pid-file\np\nc1",
        "exec\n-u\n1:2\n-e\nA=B\n-g\n5\n--cap\nCAP_KILL\n--cwd\n/x\nc1\nls\n-l",
        "exec\n--user=4294967295\n--additional-gids=-1\n-t\n-d\nc1\nsh",
        "exec\n--exec-id\n../x\n--timeout\n1m30.5s\n--exec-cgroup\nc1\nsh",
        "kill\n-a\nc1\nSIGRTMIN+3",
        "update\n--memory\n1.5gib\n--cpu-quota=-1\n--pids-limit\n0x10\nc1",
        "delete\n-f\n--timeout\n9223372036854775807ns\nc1",
        "list\n-q\n--format\njson",
        "ps\nc1\n-ef",
        "0\n+1\n-1\n1abc\n4294967294:4294967294\n:\n1:\n0x1\n007",
        "--version",
        "help\nrun",
        "run\n--preserve-fds\n9223372036854775808\n--no-pivot=maybe\nc1\nc2",
    ];
    lines.map(|line| line.as_bytes().to_vec()).to_vec()
}
