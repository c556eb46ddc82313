//! The log and standard error: what clients read when something went wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use brig_tests::{Bundle, Finished, Run, Value, better_than_runc, only_brig, runtime, since_runc};

/// A bundle that cannot be created: its program is missing.
fn broken() -> Bundle {
    Bundle::new(&["/nowhere"])
}

fn file(b: &Bundle) -> PathBuf {
    b.path().join("log")
}

/// `create` with a log in this format.
fn create(b: &Bundle, format: &str) -> Finished {
    let run = b.runtime().arg("--log").arg(file(b)).args(["--log-format", format]);
    run.arg("create").arg("--bundle").arg(b.path()).arg(&b.id).detached().run()
}

fn records(b: &Bundle) -> Vec<Value> {
    let text = fs::read_to_string(file(b)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_rfc3339(time: &str) -> bool {
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let rest = shape.strip_prefix("0000-00-00T00:00:00");
    matches!(rest, Some("Z" | "+00:00" | "-00:00"))
}

#[test]
fn a_failure_is_one_record_and_a_bare_line() {
    let b = broken();
    let finished = create(&b, "json");
    finished.exits(1);
    let records = records(&b);
    let errors: Vec<&Value> = records.iter().filter(|r| r["level"] == "error").collect();
    assert_eq!(errors.len(), 1, "{records:?}");
    let message = errors[0]["msg"].as_str().unwrap();
    assert!(message.contains("stat /nowhere: no such file or directory"), "{message}");
    assert!(is_rfc3339(errors[0]["time"].as_str().unwrap()), "{records:?}");
    // conmon and CRI-O read this.
    assert!(finished.err.starts_with(message), "{finished}");
    assert!(!finished.err.contains("level="), "{finished}");
}

#[test]
fn the_log_of_a_failure_is_a_single_object() {
    // podman decodes the file as one.
    let mut b = broken();
    b.config["process"]["capabilities"]["bounding"] = serde_json::json!(["CAP_UNHEARD_OF"]);
    better_than_runc("warnings are records of their own", move || {
        create(&b, "json").exits(1);
        let text = fs::read_to_string(file(&b)).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["level"], "error");
        assert!(record["msg"].as_str().unwrap().contains("/nowhere"), "{record}");
    });
}

#[test]
fn warnings_are_shown_when_asked_for() {
    // Not unasked: clients take whatever a failing command says for its error.
    let mut b = Bundle::default();
    b.config["process"]["capabilities"]["bounding"] = serde_json::json!(["CAP_UNHEARD_OF"]);
    let run = b.runtime().args(["--debug", "--log-format=json", "--log"]).arg(file(&b));
    let finished = run.args(["run", "--bundle"]).arg(b.path()).arg(&b.id).ok();
    assert_eq!(finished.err, "");
    let of_it = |r: &&Value| r["msg"].as_str().unwrap().contains("CAP_UNHEARD_OF");
    let records = records(&b);
    let warning = records.iter().find(of_it).unwrap_or_else(|| panic!("{records:?}"));
    since_runc((1, 2), "places in warnings", || {
        assert!(warning["func"].is_string(), "{warning}");
        let place = warning["file"].as_str().unwrap();
        assert!(place.contains(':'), "{place}");
    });
}

#[test]
fn text_is_the_default_format() {
    for format in ["text", ""] {
        let b = broken();
        let finished = create(&b, format);
        finished.exits(1);
        let text = fs::read_to_string(file(&b)).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("time=\"20"), "{text}");
        assert!(last.contains(" level=error msg=\""), "{text}");
    }
}

#[test]
fn without_a_log_the_record_goes_to_standard_error() {
    let b = broken();
    let finished = b.brig("create").arg(&b.id).run();
    finished.exits(1);
    assert!(finished.err.starts_with("time=\"20"), "{finished}");
    assert!(finished.err.contains(" level=error msg=\""), "{finished}");
    assert_eq!(finished.err.lines().count(), 1, "{finished}");
    let finished = b.runtime().args(["--log-format", "json", "state", "nobody"]).run();
    let record: Value = serde_json::from_str(&finished.err).unwrap();
    assert_eq!(record["msg"], "container does not exist");
}

#[test]
fn the_log_is_appended_to() {
    let b = broken();
    fs::write(file(&b), "{\"level\":\"info\",\"msg\":\"before\",\"time\":\"2026-01-01T00:00:00Z\"}\n")
        .unwrap();
    create(&b, "json").exits(1);
    create(&b, "json").exits(1);
    let records = records(&b);
    assert_eq!(records[0]["msg"], "before");
    assert_eq!(records.iter().filter(|r| r["level"] == "error").count(), 2);
}

#[test]
fn a_new_log_can_be_read_by_all() {
    let b = broken();
    create(&b, "json").exits(1);
    let mode = file(&b).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn success_says_nothing() {
    let mut b = Bundle::sleeping();
    b.config["process"]["terminal"] = false.into();
    for args in [
        &["create", "--bundle", "."][..],
        &["start"],
        &["state"],
        &["pause"],
        &["resume"],
        &["ps", "-f", "json"],
        &["kill"],
        &["delete", "--force"],
    ] {
        let run = b.runtime().arg("--log").arg(file(&b)).args(args).arg(&b.id);
        let finished = run.dir(b.path()).detached().ok();
        assert_eq!(finished.err, "", "{args:?}");
    }
    assert_eq!(fs::read_to_string(file(&b)).unwrap(), "");
}

#[test]
fn the_log_may_be_a_device_a_descriptor_or_a_pipe() {
    let b = Bundle::default();
    let state = |log: &str| b.runtime().args(["--log", log, "state", "nobody"]).run();
    for log in ["/dev/null", "/dev/stderr", "/proc/self/fd/2", "/proc/self/fd/1"] {
        state(log).exits(1).says("container does not exist");
    }
    let fifo = b.path().join("fifo");
    Run::new("mkfifo").arg(&fifo).ok();
    let mut reader = Run::new("cat").arg(&fifo).spawn();
    state(fifo.to_str().unwrap()).exits(1);
    assert!(reader.child().try_wait().is_ok());
    let read = reader.finish();
    assert!(read.out.contains("container does not exist"), "{read}");
}

#[test]
fn a_log_that_cannot_be_opened() {
    let b = Bundle::default();
    let finished = b.runtime().args(["--log", "/nowhere/log", "list"]).run();
    finished.exits(1).says("/nowhere/log: no such file or directory");
    assert_eq!(finished.out, "");
}

#[test]
fn a_format_that_does_not_exist() {
    let b = Bundle::default();
    let finished = b.runtime().args(["--log-format", "xml", "list"]).run();
    finished.exits(1).says("invalid log-format: xml");
}

#[test]
fn the_log_is_relative_to_where_the_command_was_started() {
    let b = broken();
    let here = tempfile::tempdir().unwrap();
    let run = b.runtime().args(["--log", "my.log", "create", "--bundle"]).arg(b.path());
    run.arg(&b.id).dir(here.path()).run().exits(1);
    assert!(here.path().join("my.log").exists());
    assert!(!b.path().join("my.log").exists());
}

#[test]
fn a_message_stays_on_one_line() {
    let mut b = Bundle::default();
    b.args(&["/no\nwhere"]);
    create(&b, "json").exits(1);
    assert_eq!(fs::read_to_string(file(&b)).unwrap().lines().count(), 1);
    fs::remove_file(file(&b)).unwrap();
    create(&b, "text").exits(1);
    let text = fs::read_to_string(file(&b)).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("/no\\nwhere"), "{text}");
}

#[test]
fn an_error_of_usage_is_a_record_too() {
    let b = Bundle::default();
    let run = Run::new(runtime()).args(["--log-format=json", "--log"]).arg(file(&b));
    run.args(["state", "a", "b"]).run().exits(1);
    let records = records(&b);
    assert_eq!(records.len(), 1, "{records:?}");
    assert!(records[0]["msg"].as_str().unwrap().contains("requires exactly 1 argument"), "{records:?}");
}

#[test]
fn errors_have_go_style_texts() {
    let b = Bundle::default();
    let text = b.runtime().args(["create", "--bundle", "/etc/passwd", "x"]).run().both();
    assert!(text.contains("not a directory"), "{text}");
    assert!(!text.contains("os error"), "{text}");
}

#[test]
fn the_log_outlives_a_blocked_reader() {
    only_brig("the bare line is written at once, by one write", || {
        // conmon reads standard error once, after the runtime has ended.
        let b = broken();
        let finished = b.brig("create").arg(&b.id).run();
        assert_eq!(finished.err.lines().count(), 1, "{finished}");
    });
}

#[test]
fn messages_of_the_containers_side_reach_the_log() {
    since_runc((1, 1), "errors of init in the log", || {
        let mut b = Bundle::default();
        b.mount(serde_json::json!({ "destination": "/x", "type": "no-such-fs", "source": "x" }));
        create(&b, "json").exits(1);
        let records = records(&b);
        let message = records.last().unwrap()["msg"].as_str().unwrap();
        assert!(message.contains("no such device") || message.contains("no-such-fs"), "{message}");
        assert!(message.contains("/x"), "{message}");
    });
}
