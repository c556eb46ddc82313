//! Names that a terminal would obey.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use brig_tests::{Bundle, Finished, Run, json, runtime};

use crate::support::{ended_in_order, naive};

/// Sets the title, clears the screen, and goes on at the line's beginning with words of its own.
const EVIL: &str = "\x1b]0;owned\x07\x1b[2J\r\u{9b}31m\u{202e}\nhint: run evil";

#[track_caller]
fn assert_plain(finished: &Finished) {
    ended_in_order(finished);
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    let both = finished.both();
    assert!(!both.contains(control) && !both.contains('\u{202e}'), "{both:?}");
    assert!(!both.contains("\nhint: run evil"), "words of the attacker on a line of their own: {both:?}");
}

#[test]
fn the_naive_variant_obeys() {
    let said = naive().args(["say", EVIL]).run().err;
    assert!(said.contains('\x1b') && said.contains("\nhint: run evil"));
}

#[test]
fn words_of_the_command_line() {
    let b = Bundle::default();
    let command_lines: [&[&str]; 12] = [
        &[EVIL],
        &["--root", EVIL, "state", "x"],
        &["--log", EVIL, "state", "x"],
        &["--log-format", EVIL, "state", "x"],
        &["state", EVIL],
        &["create", "--bundle", EVIL, "x"],
        &["create", EVIL],
        &["kill", &b.id, EVIL],
        &["exec", "-u", EVIL, "x", "true"],
        &["update", "--memory", EVIL, "x"],
        &[&format!("--{EVIL}")],
        &["list", "--format", EVIL],
    ];
    for words in command_lines {
        // Some of them are files to be made.
        let run = Run::new(runtime()).dir(b.path()).arg("--root").arg(&b.root).args(words);
        assert_plain(&run.run());
    }
    let bytes = OsStr::from_bytes(b"\xff\x1b[2J\xfe");
    assert_plain(&Run::new(runtime()).arg("state").arg(bytes).run());
    assert_plain(&Run::new(runtime()).arg(bytes).run());
}

#[test]
fn strings_of_the_configuration() {
    let path = |text: &str| format!("/{text}");
    for log in [&["--log-format", "json"][..], &["--debug"], &["--log", "/dev/null"], &[]] {
        for which in 0..14 {
            let mut b = Bundle::default();
            let c = &mut b.config;
            match which {
                0 => c["process"]["args"] = json!([EVIL]),
                1 => c["process"]["args"] = json!([path(EVIL)]),
                2 => c["process"]["cwd"] = json!(EVIL),
                3 => c["root"]["path"] = json!(EVIL),
                4 => c["hostname"] = json!(EVIL.repeat(40)),
                5 => c["mounts"][0]["type"] = json!(EVIL),
                6 => c["mounts"][1]["options"] = json!([EVIL]),
                7 => c["mounts"].as_array_mut().unwrap().push(
                    json!({ "destination": path(EVIL), "type": "bind", "source": path(EVIL), "options": ["bind"] }),
                ),
                8 => c["linux"]["sysctl"] = json!({ format!("net.{EVIL}"): "1" }),
                9 => c["linux"]["namespaces"][0]["type"] = json!(EVIL),
                10 => c["linux"]["seccomp"] = json!({ "defaultAction": EVIL }),
                11 => c["hooks"] = json!({ "createRuntime": [{ "path": path(EVIL) }] }),
                12 => c["process"]["rlimits"] = json!([{ "type": EVIL, "hard": 1, "soft": 1 }]),
                _ => c["process"]["capabilities"]["bounding"] = json!([EVIL]),
            }
            b.write_config();
            let run = Run::new(runtime()).args(log).arg("--root").arg(&b.root).arg("run");
            assert_plain(&run.arg("--bundle").arg(b.path()).arg(&b.id).run());
        }
    }
}

/// What a hook prints comes into the message.
#[test]
fn the_words_of_a_hook() {
    let mut b = Bundle::default();
    let script = "printf '\\033]0;owned\\007\\nhint: run evil' >&2; exit 1";
    b.config["hooks"] = json!({ "createRuntime": [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] });
    b.write_config();
    for log in [&["--log", "/dev/null"][..], &[]] {
        let run = Run::new(runtime()).args(log).arg("--root").arg(&b.root).arg("run");
        assert_plain(&run.arg("--bundle").arg(b.path()).arg(&b.id).run());
    }
}

/// Command lines of the container's processes, and paths of bundles, in tables.
#[test]
fn tables() {
    let b = Bundle::new(&["sh", "-c", "sleep 1000; :", EVIL]);
    b.start();
    for words in [&["ps", &b.id][..], &["list"], &["state", &b.id], &["ps", "--format", "json", &b.id]] {
        assert_plain(&Run::new(runtime()).arg("--root").arg(&b.root).args(words).run());
    }
    // Without ps(1) on the host.
    let built_in =
        Run::new(runtime()).arg("--root").arg(&b.root).args(["ps", &b.id]).env("PATH", "/nowhere").run();
    assert_plain(&built_in);
}
