//! Flags are data: one table for each command, from which come the parser, the help and, in xtask, man pages and
//! completions.
//!
//! All of it is static, so that a command costs nothing before it is known.

pub mod globals;
pub mod help;
pub mod parse;
mod values;

use crate::status::ExitCode;

use crate::error::Error;
use crate::global::Global;

pub use parse::{Action, Invocation, Parsed, Usage, UsageError, parse};
pub use values::{Value, Values};

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or `=true` and `=false`. Never the next word.
    Switch,
    /// Any text.
    Text,
    /// A path. For the parser the same as text.
    Path,
    /// An integer, decimal or with a prefix.
    Int,
    /// A duration such as `1m30s`.
    Duration,
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The name, without dashes.
    pub name: &'static str,
    /// A second, short name.
    pub short: Option<&'static str>,
    /// What it takes.
    pub kind: Kind,
    /// Each use adds a value; otherwise the last one wins.
    pub repeats: bool,
    /// What holds when the flag is not given, in the flag's own syntax.
    pub default: Option<&'static str>,
    /// One line.
    pub help: &'static str,
    /// Accepted, but left out of help and man pages.
    pub hidden: bool,
}

impl Flag {
    const fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        Self { name, short: None, kind, repeats: false, default: None, help, hidden: false }
    }

    /// A flag without a value.
    pub const fn switch(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Switch, name, help)
    }

    /// A flag with a text.
    pub const fn text(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Text, name, help)
    }

    /// A flag with a path.
    pub const fn path(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Path, name, help)
    }

    /// A flag with an integer.
    pub const fn int(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Int, name, help)
    }

    /// A flag with a duration.
    pub const fn duration(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Duration, name, help)
    }

    /// Also by this name.
    #[must_use]
    pub const fn short(mut self, short: &'static str) -> Self {
        self.short = Some(short);
        self
    }

    /// With this value when it is not given.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Each use adds a value.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Accepted but not shown.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Whether `name` is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.short == Some(name)
    }
}

/// The function that carries a command out.
pub type Run = fn(&Parsed, &Global) -> Result<ExitCode, Error>;

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// One line, without a full stop.
    pub summary: &'static str,
    /// The positionals, for the usage line.
    pub operands: &'static str,
    /// More, in lines of at most 90 characters.
    pub description: &'static str,
    /// Its flags, in the order of the help.
    pub flags: &'static [Flag],
    /// The fewest positionals.
    pub min_operands: usize,
    /// The most.
    pub max_operands: usize,
    /// What follows the first positional is passed on as it is, flags included.
    pub passes_on: bool,
    /// Not in the list of commands.
    pub hidden: bool,
    /// Stands in front of its error messages.
    pub error_prefix: &'static str,
    /// The exit status of an error that is not one of usage.
    pub failure: u8,
    /// Carries it out.
    pub run: Run,
}

impl Command {
    /// A command with one positional, the container, and without flags.
    pub const fn new(name: &'static str, summary: &'static str, run: Run) -> Self {
        Self {
            name,
            summary,
            operands: "<container-id>",
            description: "",
            flags: &[],
            min_operands: 1,
            max_operands: 1,
            passes_on: false,
            hidden: false,
            error_prefix: "",
            failure: 1,
            run,
        }
    }

    /// The command of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        crate::commands::ALL.iter().copied().find(|command| command.name == name)
    }
}

#[cfg(test)]
mod tests;
