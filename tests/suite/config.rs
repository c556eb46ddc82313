//! Configurations that cannot be: exit status 1, one line that names the place, and nothing left.

use std::fs;

use brig_tests::{Bundle, Finished, Run, Value, json, only_brig, runtime};

mod fields;
mod impossible;

/// `create` with this text as config.json.
fn create(b: &Bundle, config: &str) -> Finished {
    fs::write(b.path().join("config.json"), config).unwrap();
    let run = Run::new(runtime()).arg("--root").arg(&b.root);
    run.args(["--log", "/dev/null", "create", "--bundle"]).arg(b.path()).arg(&b.id).run()
}

/// Whether there is one line of error, with at most a hint below it.
fn is_one_line(finished: &Finished) -> bool {
    let mut lines = finished.err.lines();
    let first = lines.next().is_some_and(|line| !line.is_empty());
    first && lines.next().is_none_or(|line| line.starts_with("hint: ")) && lines.next().is_none()
}

/// Expects that it was refused in one line, and that nothing is left.
#[track_caller]
fn assert_refused(b: &Bundle, finished: &Finished, texts: &[&str]) {
    finished.exits(1);
    assert_eq!(finished.out, "", "{finished}");
    assert!(is_one_line(finished), "not one line: {finished}");
    for text in texts {
        finished.says(text);
    }
    assert!(!b.root.join(&b.id).exists(), "there is a record: {finished}");
}

#[test]
fn no_config() {
    let b = Bundle::default();
    let run = Run::new(runtime()).arg("--root").arg(&b.root);
    let finished = run.args(["--log", "/dev/null", "create", "--bundle"]).arg(b.path()).arg(&b.id).run();
    assert_refused(&b, &finished, &["config.json not found"]);
}

#[test]
fn no_bundle() {
    let b = Bundle::default();
    let run = Run::new(runtime()).arg("--root").arg(&b.root).args(["--log", "/dev/null"]);
    let finished = run.args(["create", "--bundle", "/no/such/bundle", &b.id]).run();
    assert_refused(&b, &finished, &["/no/such/bundle", "no such file or directory"]);
}

#[test]
fn a_config_that_is_a_directory() {
    let b = Bundle::default();
    fs::create_dir(b.path().join("config.json")).unwrap();
    let run = Run::new(runtime()).arg("--root").arg(&b.root);
    let finished = run.args(["--log", "/dev/null", "create", "--bundle"]).arg(b.path()).arg(&b.id).run();
    assert_refused(&b, &finished, &["config.json", "is a directory"]);
    // For the end of the test, which writes it.
    fs::remove_dir(b.path().join("config.json")).unwrap();
}

#[test]
fn a_config_that_is_cut_off() {
    only_brig("says nothing about the place", || {
        let b = Bundle::default();
        let whole = serde_json::to_string_pretty(&b.config).unwrap();
        for end in (0..whole.len()).step_by(19).filter(|&end| whole.is_char_boundary(end)) {
            assert_refused(
                &b,
                &create(&b, &whole[..end]),
                &["config.json: invalid JSON: EOF while parsing", "line "],
            );
        }
    });
}

#[test]
fn a_config_that_is_no_json() {
    only_brig("says nothing about the place", || {
        let b = Bundle::default();
        for (text, place) in [
            ("hello", "line 1 column 1"),
            ("{'ociVersion': '1.0.0'}", "line 1 column 2"),
            ("{\"ociVersion\": \"1.0.0\",}", "line 1 column 24"),
            ("{\n \"ociVersion\" \"1.0.0\"}", "line 2 column 15"),
            ("\u{0}\u{0}\u{0}\u{0}", "line 1 column 1"),
            ("\u{7f}ELF\u{2}\u{1}\u{1}", "line 1 column 1"),
            ("<config/>", "line 1 column 1"),
            ("ociVersion: 1.0.0\n", "line 1 column 1"),
            (&"[".repeat(100_000), "recursion limit exceeded"),
        ] {
            assert_refused(&b, &create(&b, text), &["config.json: invalid JSON", place]);
        }
        for (text, what) in
            [("null", "config cannot be null"), ("[]", "expected an object"), ("7", "expected an object")]
        {
            assert_refused(&b, &create(&b, text), &["config.json", what]);
        }
    });
}

/// Each field of the specification, with every type that it does not have.
#[test]
fn a_value_of_the_wrong_type() {
    only_brig("mostly names a Go type instead of the place", || {
        let b = Bundle::default();
        for (path, kind) in fields::all() {
            for (place, value) in kind.misfits(path) {
                let config = fields::document(&place, value);
                let finished = create(&b, &config.to_string());
                assert_refused(&b, &finished, &[&format!("config.json: {place}: expected ")]);
            }
        }
    });
}

/// A number that the field cannot hold is as wrong as a text.
#[test]
fn a_number_out_of_range() {
    only_brig("mostly names a Go type instead of the place", || {
        let b = Bundle::default();
        for (path, kind) in fields::all() {
            if kind != fields::Kind::Number {
                continue;
            }
            // More than any integer of the specification holds, and a fraction.
            for number in ["1e30", "0.5", "18446744073709551616"] {
                let mark = json!("the number");
                let config = fields::document(path, mark).to_string().replace("\"the number\"", number);
                assert_refused(&b, &create(&b, &config), &[&format!("config.json: {path}: expected ")]);
            }
        }
    });
}

/// The list of fields is that of the specification, and each of them is known here.
#[test]
fn the_fields_are_known() {
    for (path, kind) in fields::all() {
        let document = fields::document(path, kind.example()).to_string();
        let (_, unknown) =
            brig_spec::Spec::from_slice(document.as_bytes()).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
}

fn at<'a>(config: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(config, |value, step| match step.parse::<usize>() {
        Ok(index) => &mut value[index],
        Err(_) => &mut value[step],
    })
}
