use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use proptest::prelude::*;

use super::globals::{FLAGS as GLOBALS, HELP, VERSION};
use super::{Action, Command, Flag, Invocation, Kind, Parsed, Usage, UsageError, Value, Values, help, parse};
use crate::commands::ALL;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn run(line: &[&str]) -> (Values, Parsed) {
    let invocation = parse(&words(line)).unwrap_or_else(|error| panic!("{line:?}: {error:?}"));
    match invocation.action {
        Action::Run(parsed) => (invocation.globals, parsed),
        other => panic!("{line:?}: {other:?}"),
    }
}

fn flags(line: &[&str]) -> Values {
    run(line).1.flags
}

fn operands(line: &[&str]) -> Vec<OsString> {
    run(line).1.operands
}

fn fails(line: &[&str]) -> UsageError {
    match parse(&words(line)) {
        Err(error) => error,
        Ok(invocation) => panic!("{line:?}: {invocation:?}"),
    }
}

fn message(line: &[&str]) -> String {
    fails(line).usage.message("bin/runc")
}

/// The command whose help is asked for, or the empty text for the whole.
fn help_of(line: &[&str]) -> &'static str {
    match parse(&words(line)).unwrap().action {
        Action::Help(command) => command.map_or("", |command| command.name),
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn one_dash_or_two() {
    for line in [
        ["create", "--bundle", "/b", "c1"],
        ["create", "-bundle", "/b", "c1"],
        ["create", "--b", "/b", "c1"],
        ["create", "-b", "/b", "c1"],
    ] {
        let (_, parsed) = run(&line);
        assert_eq!(parsed.flags.path("bundle"), Some(OsString::from("/b")));
        assert_eq!(parsed.operands, ["c1"]);
    }
    assert!(flags(&["run", "-no-subreaper", "c1"]).switch("no-subreaper"));
}

#[test]
fn values_after_an_equals_sign() {
    let bundle = |word| flags(&["create", word, "c1"]).raw("bundle");
    assert_eq!(bundle("--bundle=/b"), Some(OsString::from("/b")));
    assert_eq!(bundle("-b=/b"), Some(OsString::from("/b")));
    assert_eq!(bundle("--bundle=a=b"), Some(OsString::from("a=b")));
    assert_eq!(bundle("--bundle="), Some(OsString::new()));
    assert_eq!(flags(&["create", "--bundle=", "c1"]).path("bundle"), None);
}

#[test]
fn the_next_word_is_the_value_whatever_it_is() {
    let user = |value| flags(&["exec", "-u", value, "c1"]).raw("user");
    for value in ["-1", "--", "-u", "--tty", ""] {
        assert_eq!(user(value), Some(OsString::from(value)));
    }
}

#[test]
fn switches_never_take_the_next_word() {
    let (_, parsed) = run(&["delete", "--force", "true"]);
    assert!(parsed.flags.switch("force"));
    assert_eq!(parsed.operands, ["true"]);
    for on in ["--force", "-f", "-f=1", "--force=true", "--force=T", "--force=TRUE", "--force="] {
        assert!(flags(&["delete", on, "c1"]).switch("force"), "{on}");
    }
    for off in ["--force=false", "-f=0", "-f=F", "-f=FALSE"] {
        let flags = flags(&["delete", off, "c1"]);
        assert!(!flags.switch("force") && flags.is_set("force"), "{off}");
    }
}

#[test]
fn no_bundles_and_no_glued_values() {
    for (line, name) in [
        (&["exec", "-tu", "1", "c1"][..], "-tu"),
        (&["list", "-fjson"], "-fjson"),
        (&["list", "-qq"], "-qq"),
        (&["delete", "--for", "c1"], "-for"),
        (&["delete", "---force", "c1"], "--force"),
        (&["create", "--=x"], "-"),
    ] {
        assert_eq!(message(line), format!("flag provided but not defined: {name}"));
    }
    assert!(matches!(fails(&["create", "--=x"]).usage, Usage::UnknownFlag(name) if name.is_empty()));
}

#[test]
fn the_last_one_wins_unless_they_add_up() {
    let (globals, parsed) = run(&[
        "--root",
        "/a",
        "--systemd-cgroup",
        "--root=/b",
        "--systemd-cgroup",
        "exec",
        "-e",
        "A=1,2",
        "--env",
        "B",
        "--user",
        "1",
        "--user=2",
        "-t",
        "-t=false",
        "c1",
        "true",
    ]);
    assert_eq!(globals.path("root"), Some(OsString::from("/b")));
    assert_eq!(parsed.flags.texts("env").unwrap(), ["A=1,2", "B"]);
    assert_eq!(parsed.flags.raw("user"), Some(OsString::from("2")));
    assert!(!parsed.flags.switch("tty"));
}

#[test]
fn flags_after_positionals() {
    let (globals, parsed) = run(&["create", "c1", "--bundle", "/b", "--debug"]);
    assert_eq!(parsed.flags.path("bundle"), Some(OsString::from("/b")));
    assert!(globals.switch("debug"));
    assert_eq!(parsed.operands, ["c1"]);
}

#[test]
fn three_commands_pass_on_what_follows() {
    assert_eq!(operands(&["exec", "c1", "ls", "-l", "--help"]), ["c1", "ls", "-l", "--help"]);
    assert_eq!(operands(&["exec", "c1", "-t", "x"]), ["c1", "-t", "x"]);
    assert_eq!(operands(&["kill", "c1", "-9"]), ["c1", "-9"]);
    assert_eq!(operands(&["ps", "c1", "-ef", "--format"]), ["c1", "-ef", "--format"]);
    let (globals, parsed) = run(&["exec", "--debug", "-t", "c1", "--debug=x"]);
    assert!(globals.switch("debug") && parsed.flags.switch("tty"));
}

#[test]
fn two_dashes_end_the_flags() {
    assert_eq!(operands(&["exec", "c1", "--", "ls", "-l"]), ["c1", "ls", "-l"]);
    assert_eq!(operands(&["exec", "--", "c1", "ls"]), ["c1", "ls"]);
    assert_eq!(operands(&["exec", "c1", "ls", "--", "x"]), ["c1", "ls", "--", "x"]);
    assert_eq!(operands(&["state", "--", "-x"]), ["-x"]);
    assert_eq!(operands(&["list", "--"]), [""; 0]);
    assert_eq!(run(&["--debug", "--", "list"]).1.command.name, "list");
    assert_eq!(message(&["state", "--"]), "bin/runc: \"state\" requires exactly 1 argument(s)");
}

#[test]
fn dashes_without_a_name_are_no_flags() {
    assert_eq!(operands(&["state", "-"]), ["-"]);
    assert_eq!(operands(&["state", "-9"]), ["-9"]);
    assert_eq!(operands(&["create", "-=x"]), ["-=x"]);
    assert_eq!(operands(&["state", ""]), [""]);
    // After such a word there are none at all.
    assert_eq!(operands(&["kill", "-9", "--all"]), ["-9", "--all"]);
}

#[test]
fn a_commands_own_flag_hides_the_global_one() {
    let (globals, parsed) = run(&["--rootless", "true", "spec", "--rootless"]);
    assert_eq!(globals.text("rootless").unwrap().as_deref(), Some("true"));
    assert!(parsed.flags.switch("rootless"));
}

#[test]
fn helps() {
    for line in
        [&[][..], &["help"], &["h"], &["-h"], &["--help"], &["-help"], &["--debug"], &["help", "help"]]
    {
        assert_eq!(help_of(line), "", "{line:?}");
    }
    for line in [
        &["help", "create"][..],
        &["h", "create", "x"],
        &["create", "--help"],
        &["create", "-h"],
        &["create", "-h", "--nonsense"],
        &["create", "c1", "--help=true"],
        &["--help", "create"],
        &["--log", "x", "help", "-h", "create"],
    ] {
        assert_eq!(help_of(line), "create", "{line:?}");
    }
    assert_eq!(help_of(&["checkpoint", "--help"]), "checkpoint");
    assert_eq!(operands(&["state", "--help=false", "c1"]), ["c1"]);
    // Names of containers like any other.
    assert_eq!(operands(&["delete", "help"]), ["help"]);
    assert_eq!(operands(&["delete", "h"]), ["h"]);
}

#[test]
fn versions() {
    for line in [&["--version"][..], &["-v"], &["-version", "create"], &["--debug", "--version=true"]] {
        assert!(matches!(parse(&words(line)).unwrap().action, Action::Version), "{line:?}");
    }
    assert_eq!(help_of(&["--version=false"]), "");
    assert_eq!(message(&["create", "-v"]), "flag provided but not defined: -v");
    assert_eq!(message(&["list", "--version"]), "flag provided but not defined: -version");
    assert_eq!(message(&["version"]), "No help topic for 'version'");
}

#[test]
fn unknown_commands() {
    for line in [&["foo"][..], &["foo", "-h"], &["help", "foo"], &["-h", "foo"], &["foo", "--bar"]] {
        assert_eq!(message(line), "No help topic for 'foo'", "{line:?}");
        assert!(fails(line).command.is_none());
    }
    assert_eq!(message(&["init"]), "No help topic for 'init'");
    assert_eq!(message(&["-9"]), "No help topic for '-9'");
    assert_eq!(message(&[""]), "No help topic for ''");
}

#[test]
fn unknown_flags() {
    assert_eq!(message(&["--foo", "list"]), "flag provided but not defined: -foo");
    assert!(fails(&["--foo", "list"]).command.is_none());
    let error = fails(&["--log", "/l", "create", "--foo=1", "c1"]);
    assert_eq!(error.usage.message(""), "flag provided but not defined: -foo");
    assert_eq!(error.command.unwrap().name, "create");
    assert_eq!(error.globals.path("log"), Some(OsString::from("/l")));
}

#[test]
fn missing_values() {
    for (line, flag) in [
        (&["create", "--bundle"][..], "--bundle"),
        (&["create", "-bundle=/x", "-b"], "-b"),
        (&["update", "c1", "--memory"], "--memory"),
        (&["restore", "--lsm-mount-context"], "--lsm-mount-context"),
        (&["--root"], "--root"),
        (&["list", "-log"], "-log"),
    ] {
        assert_eq!(message(line), format!("flag needs an argument: {flag}"));
    }
}

#[test]
fn bad_values() {
    for (line, text) in [
        (
            &["events", "--interval", "abc", "c1"][..],
            r#"invalid value "abc" for flag -interval: time: invalid duration "abc""#,
        ),
        (
            &["exec", "-g", "abc", "c1", "ls"],
            r#"invalid value "abc" for flag -g: strconv.ParseInt: parsing "abc": invalid syntax"#,
        ),
        (
            &["exec", "--preserve-fds=99999999999999999999", "c1"],
            r#"invalid value "99999999999999999999" for flag -preserve-fds: strconv.ParseInt: parsing "99999999999999999999": value out of range"#,
        ),
        (
            &["create", "--preserve-fds=", "c1"],
            r#"invalid value "" for flag -preserve-fds: strconv.ParseInt: parsing "": invalid syntax"#,
        ),
        (&["create", "--no-pivot=maybe", "c1"], r#"invalid value "maybe" for flag -no-pivot: parse error"#),
        (&["delete", "-f=x\n", "c1"], r#"invalid value "x\n" for flag -f: parse error"#),
        (&["--debug=2", "list"], r#"invalid value "2" for flag -debug: parse error"#),
        (&["list", "--help=x"], r#"invalid value "x" for flag -help: parse error"#),
    ] {
        assert_eq!(message(line), text);
    }
}

#[test]
fn numbers_of_positionals() {
    for (line, wanted) in [
        (&["create"][..], "exactly 1"),
        (&["create", "a", "b"], "exactly 1"),
        (&["create", "c1", "--", "--foo"], "exactly 1"),
        (&["list", "x"], "exactly 0"),
        (&["features", "x"], "exactly 0"),
        (&["spec", "x"], "exactly 0"),
        (&["exec"], "a minimum of 1"),
        (&["exec", "--env", "--"], "a minimum of 1"),
        (&["ps"], "a minimum of 1"),
        (&["kill"], "a minimum of 1"),
        (&["kill", "a", "b", "c"], "a maximum of 2"),
    ] {
        let text = format!("bin/runc: \"{}\" requires {wanted} argument(s)", line[0]);
        assert_eq!(message(line), text);
        assert_eq!(fails(line).command.unwrap().name, line[0]);
    }
}

#[test]
fn words_that_are_not_utf_8() {
    let raw = OsString::from_vec(b"/b\xff".to_vec());
    let line = [OsString::from("create"), "--bundle".into(), raw.clone(), "c1".into()];
    let Action::Run(parsed) = parse(&line).unwrap().action else {
        panic!("no command");
    };
    assert_eq!(parsed.flags.path("bundle"), Some(raw.clone()));
    assert!(parsed.flags.text("bundle").is_err());
    let mut flag = OsString::from("--foo");
    flag.push(OsStr::from_bytes(b"\xff"));
    assert!(matches!(parse(&[OsString::from("list"), flag]).unwrap_err().usage, Usage::UnknownFlag(_)));
    assert!(matches!(parse(&[raw]).unwrap_err().usage, Usage::UnknownCommand(_)));
}

#[test]
fn the_callers_of_the_contract() {
    for line in [
        "--root R --log F --log-format json create --bundle B --pid-file P --console-socket S --pidfd-socket S --no-pivot --no-new-keyring --detach --preserve-fds 1 c1",
        "--root R --debug --log F --log-format json --systemd-cgroup --rootless=true run --bundle B -no-subreaper --keep c1",
        "--root R exec --process F --console-socket S --detach --pid-file P c1",
        "kill --all c1 9",
        "update --resources=- c1",
        "events --stats c1",
        "events --interval=5s c1",
        "list --format=json",
        "ps --format json c1",
        "restore --image-path I --work-path W --file-locks --empty-ns network --manage-cgroups-mode soft --tcp-close --detach c1",
        "checkpoint --image-path I --leave-running --page-server A:1 --empty-ns network c1",
        "--cgroup-manager systemd --criu /x state c1",
        "--root R --root R --systemd-cgroup create -b B c1",
        "exec -d --console-socket=S --tty --pid-file=P c1 cmd -x",
        "delete --force c1",
    ] {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(parse(&words).is_ok(), "{line}");
    }
}

#[test]
fn tables_are_sound() {
    let mut names = BTreeSet::new();
    for command in ALL {
        assert!(names.insert(command.name), "{} is there twice", command.name);
        assert!(command.min_operands <= command.max_operands);
        assert!(!command.summary.is_empty() && !command.summary.ends_with('.'));
        assert!(command.description.lines().all(|line| line.chars().count() <= 96), "{}", command.name);
        check_table(command.name, command.flags);
        let called_help = |flag: &Flag| flag.is_called(HELP.name) || flag.is_called("h");
        assert!(!command.flags.iter().any(called_help));
    }
    assert!(!names.contains("help") && !names.contains("h") && !names.contains("init"));
    check_table("", GLOBALS);
    assert!(!GLOBALS.iter().any(|flag| flag.is_called(VERSION.name) || flag.is_called("v")));
}

fn check_table(command: &str, table: &[Flag]) {
    let mut names = BTreeSet::new();
    for flag in table {
        for name in [Some(flag.name), flag.short].into_iter().flatten() {
            assert!(names.insert(name), "{command} has two flags {name}");
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        }
        assert!(!flag.help.is_empty());
        if let Some(default) = flag.default {
            assert!(Value::read(flag.kind, OsStr::new(default)).is_ok(), "{command} {}", flag.name);
            assert!(!flag.repeats && flag.kind != Kind::Switch);
        }
    }
}

#[test]
fn help_has_the_lines_that_are_looked_for() {
    let text = help::text("runc", None);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[..2], ["NAME:", "   runc - Open Container Initiative runtime"]);
    assert!(lines.contains(&"GLOBAL OPTIONS:"));
    assert!(text.contains("\n   --version, -v "));
    for command in ALL {
        assert_eq!(
            lines.iter().any(|line| line.starts_with(&format!("   {} ", command.name))),
            !command.hidden,
            "{}",
            command.name
        );
        let text = help::text("runc", Some(command));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NAME:");
        assert_eq!(lines[1], format!("   runc {} - {}", command.name, command.summary));
        assert!(text.contains(&format!("USAGE:\n   runc {} [options]", command.name)));
        assert!(lines.iter().all(|line| line.trim_end() == *line), "{}", command.name);
        for flag in command.flags {
            assert_eq!(text.contains(&format!("\n   --{}", flag.name)), !flag.hidden);
        }
    }
}

#[test]
fn help_names_defaults_and_values() {
    let line = |command, start: &str| {
        let text = help::text("brig", Command::find(command));
        let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        line("exec", "--env"),
        "--env string, -e string add NAME=VALUE to the environment (can be repeated)"
    );
    assert_eq!(line("events", "--interval"), "--interval duration time between statistics (default: 5s)");
}

proptest! {
    /// Whatever is typed, it is understood or refused; nothing panics, and no positional is lost or made up.
    #[test]
    fn any_words_are_handled(line in prop::collection::vec(word(), 0..8)) {
        let line: Vec<OsString> = line.into_iter().map(OsString::from_vec).collect();
        if let Ok(Invocation { action: Action::Run(parsed), .. }) = parse(&line) {
            let (min, max) = (parsed.command.min_operands, parsed.command.max_operands);
            prop_assert!((min..=max).contains(&parsed.operands.len()));
            prop_assert!(parsed.operands.iter().all(|operand| line.contains(operand)));
        }
    }
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    let known = ALL.iter().flat_map(|command| {
        let flags = command.flags.iter().map(|flag| format!("--{}", flag.name));
        [command.name.to_owned()].into_iter().chain(flags)
    });
    let known: Vec<Vec<u8>> = known.map(String::into_bytes).collect();
    prop_oneof![
        4 => prop::sample::select(known),
        1 => "-{0,3}[a-z]{0,3}=?[a-z0-9]{0,3}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}
