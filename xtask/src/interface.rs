//! What is made from the flag tables: man pages, completions for shells, and the command overview of the README.

#![allow(clippy::disallowed_methods, reason = "it writes files of the source tree and of the build")]

mod clap;
mod man;
mod overview;

use std::error::Error;
use std::fs;
use std::path::Path;

use brig_cli::commands::ALL;
use brig_cli::flags::Command;
use clap_complete::aot::{Shell, generate};

/// The program's name.
const PROGRAM: &str = "brig";

/// A shell, and where its completions are below the prefix of an installation.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/brig"),
    (Shell::Zsh, "zsh/site-functions/_brig"),
    (Shell::Fish, "fish/vendor_completions.d/brig.fish"),
];

/// Writes man pages and completions into a folder that is laid out like `/usr/share`.
pub fn write(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [folder] = arguments else {
        return Err("name the folder to write to".into());
    };
    let folder = Path::new(folder);
    for (name, text) in man::pages() {
        put(&folder.join("man/man8").join(name), text.as_bytes())?;
    }
    for (shell, path) in COMPLETIONS {
        let mut script = Vec::new();
        generate(shell, &mut clap::program(), PROGRAM, &mut script);
        put(&folder.join(path), &script)?;
    }
    Ok(())
}

/// Brings the command overview of `README.md` up to date.
pub fn overview(_: &[String]) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(overview::FILE)?;
    fs::write(overview::FILE, overview::replace(&text)?)?;
    Ok(())
}

/// Whether the command overview of `README.md` is up to date.
pub fn check() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(overview::FILE)?;
    if overview::replace(&text)? == text {
        return Ok(());
    }
    Err(format!("{} is not what the flag tables say: cargo xtask overview", overview::FILE).into())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let writing = |error| format!("writing {}: {error}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(writing)?;
    Ok(fs::write(path, bytes).map_err(writing)?)
}

/// The commands that are shown, in the order of the help.
fn commands() -> impl Iterator<Item = &'static Command> {
    ALL.iter().copied().filter(|command| !command.hidden)
}

#[cfg(test)]
mod tests;
