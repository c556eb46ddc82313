//! The command overview of the README: one line for each command and flag that is shown.

use std::fmt::Write as _;

use brig_cli::flags::{Flag, globals};

/// What holds it.
pub const FILE: &str = "README.md";

const BEGIN: &str = "<!-- from the flag tables: cargo xtask overview -->\n";
const END: &str = "<!-- to here -->\n";

/// The text with its overview renewed.
pub fn replace(text: &str) -> Result<String, String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{FILE} has no place for the command overview"))?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table()))
}

fn table() -> String {
    let mut table = String::from("| command | | flags |\n| --- | --- | --- |\n");
    for command in super::commands() {
        let _ = writeln!(table, "| `{}` | {} | {} |", command.name, command.summary, flags(command.flags));
    }
    let _ = writeln!(table, "| *all of them* | | {} |", flags(globals::FLAGS));
    table
}

fn flags(flags: &[Flag]) -> String {
    let names: Vec<String> =
        flags.iter().filter(|flag| !flag.hidden).map(|flag| format!("`--{}`", flag.name)).collect();
    names.join(" ")
}
