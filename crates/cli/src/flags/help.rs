//! Help texts, made from the tables.

use std::fmt::Write as _;

use super::globals::{FLAGS as GLOBALS, HELP, VERSION};
use super::{Command, Flag, Kind};
use crate::version;

const INDENT: &str = "   ";

/// The help of `command`, or of the whole program. `program` is the name it was called by.
pub fn text(program: &str, command: Option<&Command>) -> String {
    match command {
        Some(command) => of_command(program, command),
        None => of_program(program),
    }
}

fn of_program(program: &str) -> String {
    let mut out = format!(
        "NAME:\n   {program} - Open Container Initiative runtime\n\n\
         \x20  Creates and runs containers from bundles: directories with a config.json and a root\n\
         \x20  file system. Takes the command line of runc.\n\n\
         USAGE:\n   {program} [global options] [command [command options]]\n\n\
         VERSION:\n   {}\n\nCOMMANDS:\n",
        version::COMPATIBLE
    );
    let help = ("help, h", "show the commands, or the help of one of them");
    let commands: Vec<_> = crate::commands::ALL
        .iter()
        .filter(|command| !command.hidden)
        .map(|command| (command.name, command.summary))
        .chain([help])
        .collect();
    columns(&mut out, &commands);
    out.push_str("\nGLOBAL OPTIONS:\n");
    options(&mut out, GLOBALS.iter().chain([&HELP, &VERSION]));
    out
}

fn of_command(program: &str, command: &Command) -> String {
    let Command { name, summary, operands, .. } = command;
    let mut out = format!("NAME:\n   {program} {name} - {summary}\n\nUSAGE:\n   {program} {name} [options]");
    if !operands.is_empty() {
        let _ = write!(out, " {operands}");
    }
    out.push('\n');
    if !command.description.is_empty() {
        out.push_str("\nDESCRIPTION:\n");
        for line in command.description.lines() {
            let indent = if line.is_empty() { "" } else { INDENT };
            let _ = writeln!(out, "{indent}{line}");
        }
    }
    out.push_str("\nOPTIONS:\n");
    options(&mut out, command.flags.iter().chain([&HELP]));
    out.push_str("\nGLOBAL OPTIONS:\n");
    options(&mut out, GLOBALS.iter());
    out
}

fn options<'a>(out: &mut String, flags: impl Iterator<Item = &'a Flag>) {
    let rows: Vec<_> =
        flags.filter(|flag| !flag.hidden).map(|flag| (names(flag), explanation(flag))).collect();
    columns(out, &rows);
}

/// `--bundle path, -b path`.
fn names(flag: &Flag) -> String {
    let placeholder = placeholder(flag.kind);
    let mut names = format!("--{}{placeholder}", flag.name);
    if let Some(short) = flag.short {
        let _ = write!(names, ", -{short}{placeholder}");
    }
    names
}

fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "",
        Kind::Text => " string",
        Kind::Path => " path",
        Kind::Int => " int",
        Kind::Duration => " duration",
    }
}

fn explanation(flag: &Flag) -> String {
    let mut text = flag.help.to_owned();
    if flag.repeats {
        text.push_str(" (can be repeated)");
    }
    if let Some(default) = flag.default {
        let _ = write!(text, " (default: {default})");
    }
    text
}

fn columns<A: AsRef<str>, B: AsRef<str>>(out: &mut String, rows: &[(A, B)]) {
    let width = rows.iter().map(|(left, _)| left.as_ref().len()).max().unwrap_or(0);
    for (left, right) in rows {
        let _ = writeln!(out, "{INDENT}{:width$}  {}", left.as_ref(), right.as_ref());
    }
}
