//! The flag tables as clap has them, whose companions write completions and man pages.
//!
//! The program itself does not use clap: it cannot parse `-bundle`, and costs half a millisecond.

use brig_cli::flags::{Flag, Kind, globals};
use clap::{Arg, ArgAction, Command, ValueHint};

/// The whole program.
pub fn program() -> Command {
    let program = Command::new(super::PROGRAM)
        .about("Open Container Initiative runtime")
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(shown(globals::FLAGS).map(|flag| arg(flag).global(true)))
        .arg(arg(&globals::VERSION))
        .subcommand(help());
    program.subcommands(super::commands().map(command))
}

/// One command, without the global flags.
pub fn command(table: &'static brig_cli::flags::Command) -> Command {
    Command::new(table.name)
        .about(table.summary)
        .disable_help_flag(true)
        .args(shown(table.flags).map(arg))
        .arg(arg(&globals::HELP))
}

fn help() -> Command {
    let names: Vec<&str> = super::commands().map(|command| command.name).collect();
    Command::new("help")
        .about("show the commands, or the help of one of them")
        .disable_help_flag(true)
        .arg(Arg::new("command").value_parser(clap::builder::PossibleValuesParser::new(names)))
}

fn shown(flags: &'static [Flag]) -> impl Iterator<Item = &'static Flag> {
    flags.iter().filter(|flag| !flag.hidden)
}

fn arg(flag: &Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    let arg = match flag.short.and_then(|short| short.chars().next()) {
        Some(short) => arg.short(short),
        None => arg,
    };
    let arg = match flag.default {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    let arg = match flag.kind {
        Kind::Switch => return arg.action(ArgAction::SetTrue),
        Kind::Text => arg.value_name("string").value_hint(ValueHint::Other),
        Kind::Path => arg.value_name("path").value_hint(ValueHint::AnyPath),
        Kind::Int => arg.value_name("int").value_hint(ValueHint::Other),
        Kind::Duration => arg.value_name("duration").value_hint(ValueHint::Other),
    };
    if flag.repeats { arg.action(ArgAction::Append) } else { arg }
}
