use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ::log::{Level, Log as _, Record};

use super::format::{Entry, Layout, Place};
use super::{Output, Settings, Sink, is_stream, open, plain};
use crate::error::{Error, Kind};
use std::path::Path;

fn entry(message: &str) -> Entry<'_> {
    Entry { level: Level::Error, message, place: None, elapsed: 0, extra: Vec::new() }
}

/// The record with its time replaced by `T`, which is checked to be one.
fn without_time(record: &str) -> String {
    let digits: String = record.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let at = digits.find("0000-00-00T00:00:00Z").expect("an RFC 3339 time");
    format!("{}T{}", &record[..at], &record[at + 20..])
}

fn place() -> Place<'static> {
    Place { module: "brig::x", file: "src/x.rs", line: 7 }
}

#[test]
fn text_records() {
    let record = |entry: &Entry<'_>| without_time(&Layout::Text.record(entry));
    assert_eq!(
        record(&entry("container does not exist")),
        "time=\"T\" level=error msg=\"container does not exist\"\n"
    );
    assert_eq!(record(&entry("plain-word_1./@^+")), "time=\"T\" level=error msg=plain-word_1./@^+\n");
    assert_eq!(record(&entry("")), "time=\"T\" level=error msg=\n");
    assert_eq!(record(&entry("a=\"b\"\nc")), "time=\"T\" level=error msg=\"a=\\\"b\\\"\\nc\"\n");
    let mut full = entry("x");
    full.level = Level::Warn;
    full.place = Some(place());
    full.extra.push(("hint", "look here".to_owned()));
    assert_eq!(
        record(&full),
        "time=\"T\" level=warning msg=x func=\"brig::x\" file=\"src/x.rs:7\" hint=\"look here\"\n"
    );
}

#[test]
fn json_records_have_their_keys_in_order() {
    let record = |entry: &Entry<'_>| without_time(&Layout::Json.record(entry));
    assert_eq!(
        record(&entry("a \"b\" <c>\n")),
        "{\"level\":\"error\",\"msg\":\"a \\\"b\\\" <c>\\n\",\"time\":\"T\"}\n"
    );
    let mut full = entry("x");
    full.level = Level::Debug;
    full.place = Some(place());
    full.extra.push(("warnings", "w".to_owned()));
    full.extra.push(("hint", "h".to_owned()));
    assert_eq!(
        record(&full),
        "{\"file\":\"src/x.rs:7\",\"func\":\"brig::x\",\"hint\":\"h\",\"level\":\"debug\",\"msg\":\"x\",\
         \"time\":\"T\",\"warnings\":\"w\"}\n"
    );
}

#[test]
fn terminals_get_colours() {
    let mut entry = entry("container does not exist");
    entry.elapsed = 3;
    assert_eq!(
        Layout::Terminal.record(&entry),
        "\x1b[31mERRO\x1b[0m[0003] container does not exist                     \n"
    );
    entry.extra.push(("hint", "look here".to_owned()));
    entry.place = Some(place());
    assert_eq!(
        Layout::Terminal.record(&entry),
        "\x1b[31mERRO\x1b[0m[0003]src/x.rs:7 brig::x container does not exist                     \
         \x20\x1b[31mhint\x1b[0m=\"look here\"\n"
    );
}

fn sink(file: &Path, debug: bool, json: bool) -> Sink {
    let settings = Settings { debug, json, file: Some(file.to_owned()) };
    Sink::new(Output::File(open(file).unwrap()), &settings)
}

fn log(sink: &Sink, level: Level, message: &str) {
    sink.log(&Record::builder().level(level).args(format_args!("{message}")).build());
}

#[test]
fn a_failing_run_leaves_one_json_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.json");
    fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let sink = sink(&path, false, true);
    log(&sink, Level::Warn, "first");
    log(&sink, Level::Info, "second");
    log(&sink, Level::Debug, "not wanted");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    sink.fail(&Error::caller("it failed").with_hint("look"));
    assert_eq!(
        without_time(&fs::read_to_string(&path).unwrap()),
        "{\"hint\":\"look\",\"level\":\"error\",\"msg\":\"it failed\",\"time\":\"T\",\"warnings\":\"first; second\"}\n"
    );
}

#[test]
fn a_good_run_leaves_its_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.json");
    let sink = sink(&path, false, true);
    log(&sink, Level::Warn, "first");
    sink.release();
    log(&sink, Level::Warn, "second\n");
    let text = fs::read_to_string(&path).unwrap();
    let messages: Vec<String> = text
        .lines()
        .map(|line| {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {}", json["level"].as_str().unwrap(), json["msg"].as_str().unwrap())
        })
        .collect();
    assert_eq!(messages, ["warning first", "warning second"]);
}

#[test]
fn debug_and_text_hold_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    for (name, debug, json) in [("a", true, true), ("b", false, false)] {
        let path = dir.path().join(name);
        let sink = sink(&path, debug, json);
        log(&sink, Level::Warn, "at once");
        log(&sink, Level::Debug, "if wanted");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1 + usize::from(debug));
    }
}

#[test]
fn the_file_is_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    for message in ["one", "two"] {
        log(&sink(&path, false, false), Level::Info, message);
    }
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7133, 0, "0644 minus the umask");
    assert!(open(&dir.path().join("none/log")).is_err());
    assert!(open(Path::new("/dev/null")).is_ok());
}

#[test]
fn standard_streams_have_names() {
    assert!(is_stream(Path::new("/dev/stderr"), 2));
    assert!(is_stream(Path::new("/proc/self/fd/1"), 1));
    assert!(!is_stream(Path::new("/dev/stderr"), 1));
}

#[test]
fn hints_stand_on_their_own_line() {
    let error = Error::new(Kind::Host, "open /x: permission denied");
    assert_eq!(plain(&error), "open /x: permission denied");
    assert_eq!(plain(&error.with_hint("run as root")), "open /x: permission denied\nhint: run as root");
}
