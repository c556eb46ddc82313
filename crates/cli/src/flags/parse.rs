//! From words to an [`Invocation`]. Pure: nothing is printed, opened or looked up here.
//!
//! The rules are those of the library that runc uses, since clients lean on them: one dash or two, values after `=`
//! or in the next word, no bundles of short flags, flags also after the positionals.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::globals::{FLAGS as GLOBALS, HELP, VERSION};
use super::{Command, Flag, Kind, Value, Values};
use crate::quote::quote;

/// A command line, understood.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The global flags, wherever they stood.
    pub globals: Values,
    /// What to do.
    pub action: Action,
}

/// What a command line asks for.
#[derive(Debug, Clone)]
pub enum Action {
    /// The help, of a command or of the whole.
    Help(Option<&'static Command>),
    /// The version.
    Version,
    /// A command.
    Run(Parsed),
}

/// A command with its arguments.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Which.
    pub command: &'static Command,
    /// Its own flags.
    pub flags: Values,
    /// Everything else. There are as many as the command wants.
    pub operands: Vec<OsString>,
}

impl Parsed {
    /// The positional at `index`, or the empty text.
    pub fn operand(&self, index: usize) -> &OsStr {
        self.operands.get(index).map_or(OsStr::new(""), OsString::as_os_str)
    }
}

/// A command line that was not understood.
#[derive(Debug, Clone)]
pub struct UsageError {
    /// Why.
    pub usage: Usage,
    /// The command it happened in.
    pub command: Option<&'static Command>,
    /// The global flags up to there.
    pub globals: Values,
}

/// Why a command line was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usage {
    /// No such flag.
    UnknownFlag(String),
    /// The value is missing. The flag as it was typed.
    NeedsArgument(String),
    /// The value is wrong.
    BadValue {
        /// It, quoted.
        value: String,
        /// The name that was used, without dashes.
        flag: String,
        /// Why.
        reason: String,
    },
    /// No such command.
    UnknownCommand(String),
    /// Too few or too many positionals.
    Operands {
        /// The command.
        command: &'static str,
        /// `exactly 1`, `a minimum of 1` or `a maximum of 2`.
        wanted: String,
    },
}

impl Usage {
    /// The message; `argv0` is the program as it was called.
    pub fn message(&self, argv0: &str) -> String {
        match self {
            Self::UnknownFlag(name) => format!("flag provided but not defined: -{name}"),
            Self::NeedsArgument(word) => format!("flag needs an argument: {word}"),
            Self::BadValue { value, flag, reason } => {
                format!("invalid value {value} for flag -{flag}: {reason}")
            }
            Self::UnknownCommand(name) => format!("No help topic for '{name}'"),
            Self::Operands { command, wanted } => {
                format!("{argv0}: \"{command}\" requires {wanted} argument(s)")
            }
        }
    }
}

/// Understands `words`, the command line without the program's name.
///
/// # Errors
///
/// See [`Usage`].
pub fn parse(words: &[OsString]) -> Result<Invocation, UsageError> {
    let mut parser = Parser { words, globals: Values::new(GLOBALS), command: None };
    match parser.run() {
        Ok(action) => Ok(Invocation { globals: parser.globals, action }),
        Err(usage) => Err(UsageError { usage, command: parser.command, globals: parser.globals }),
    }
}

struct Parser<'a> {
    words: &'a [OsString],
    globals: Values,
    command: Option<&'static Command>,
}

/// What a word looks like, before any table has been asked.
#[derive(Debug, PartialEq, Eq)]
enum Word<'a> {
    /// `-name`, `--name`, `--name=value`.
    Flag { name: &'a [u8], value: Option<&'a OsStr> },
    /// `--`.
    EndOfFlags,
    /// A dash and something that is no letter, as in `-9`: neither this word nor what follows is a flag.
    Dashed,
    /// Anything else, `-` and the empty word too.
    Operand,
}

impl<'a> Word<'a> {
    fn of(word: &'a OsStr) -> Self {
        let rest = match word.as_bytes() {
            b"--" => return Self::EndOfFlags,
            [b'-', b'-', rest @ ..] => rest,
            [b'-', rest @ ..] if rest.first().is_some_and(u8::is_ascii_alphabetic) => rest,
            [b'-', _, ..] => return Self::Dashed,
            _ => return Self::Operand,
        };
        match rest.iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let (name, value) = rest.split_at(at);
                Self::Flag { name, value: Some(OsStr::from_bytes(value.get(1..).unwrap_or_default())) }
            }
            None => Self::Flag { name: rest, value: None },
        }
    }
}

/// How far the flags before the command have brought us.
enum Progress {
    Done(Action),
    Command(&'static Command),
    Nothing,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a OsStr> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn run(&mut self) -> Result<Action, Usage> {
        match self.before_command()? {
            Progress::Done(action) => Ok(action),
            Progress::Nothing => Ok(Action::Help(None)),
            Progress::Command(command) => {
                self.command = Some(command);
                self.command(command)
            }
        }
    }

    fn before_command(&mut self) -> Result<Progress, Usage> {
        while let Some(word) = self.next() {
            let Word::Flag { name, value } = Word::of(word) else {
                if Word::of(word) == Word::EndOfFlags {
                    continue;
                }
                return self.command_named(word);
            };
            if called(&HELP, name) {
                if self.is_on(&HELP, name, value)? {
                    return self.help_topic();
                }
            } else if called(&VERSION, name) {
                if self.is_on(&VERSION, name, value)? {
                    return Ok(Progress::Done(Action::Version));
                }
            } else {
                let flag = find(GLOBALS, name).ok_or_else(|| unknown(name))?;
                let value = self.value_of(flag, word, name, value)?;
                self.globals.push(flag, value);
            }
        }
        Ok(Progress::Nothing)
    }

    fn command_named(&mut self, word: &OsStr) -> Result<Progress, Usage> {
        if word == "help" || word == "h" {
            return self.help_topic();
        }
        word.to_str()
            .and_then(Command::find)
            .map(Progress::Command)
            .ok_or_else(|| Usage::UnknownCommand(word.to_string_lossy().into_owned()))
    }

    /// The help for the first word that is left and no flag.
    fn help_topic(&mut self) -> Result<Progress, Usage> {
        while let Some(word) = self.next() {
            if Word::of(word) != Word::Operand {
                continue;
            }
            return match self.command_named(word)? {
                Progress::Command(command) => Ok(Progress::Done(Action::Help(Some(command)))),
                other => Ok(other),
            };
        }
        Ok(Progress::Done(Action::Help(None)))
    }

    fn command(&mut self, command: &'static Command) -> Result<Action, Usage> {
        let mut flags = Values::new(command.flags);
        let mut operands = Vec::new();
        while let Some(word) = self.next() {
            match Word::of(word) {
                Word::EndOfFlags => break,
                _ if command.passes_on && !operands.is_empty() => {
                    operands.push(word.to_owned());
                    break;
                }
                Word::Operand => operands.push(word.to_owned()),
                Word::Dashed => {
                    operands.push(word.to_owned());
                    break;
                }
                Word::Flag { name, value } => {
                    if let Some(flag) = find(command.flags, name) {
                        let value = self.value_of(flag, word, name, value)?;
                        flags.push(flag, value);
                    } else if called(&HELP, name) {
                        if self.is_on(&HELP, name, value)? {
                            return Ok(Action::Help(Some(command)));
                        }
                    } else if let Some(flag) = find(GLOBALS, name) {
                        let value = self.value_of(flag, word, name, value)?;
                        self.globals.push(flag, value);
                    } else {
                        return Err(unknown(name));
                    }
                }
            }
        }
        operands.extend(self.words.iter().cloned());
        check_operands(command, operands.len())?;
        Ok(Action::Run(Parsed { command, flags, operands }))
    }

    /// The value of a flag that was typed as `word`, out of the next word if it needs one.
    fn value_of(
        &mut self,
        flag: &Flag,
        word: &OsStr,
        name: &[u8],
        attached: Option<&OsStr>,
    ) -> Result<Value, Usage> {
        let text = match attached {
            Some(text) => text,
            None if flag.kind == Kind::Switch => OsStr::new(""),
            None => self.next().ok_or_else(|| Usage::NeedsArgument(word.to_string_lossy().into_owned()))?,
        };
        Value::read(flag.kind, text).map_err(|reason| Usage::BadValue {
            value: quote(text.as_bytes()),
            flag: String::from_utf8_lossy(name).into_owned(),
            reason,
        })
    }

    fn is_on(&mut self, flag: &Flag, name: &[u8], attached: Option<&OsStr>) -> Result<bool, Usage> {
        let value = self.value_of(flag, OsStr::from_bytes(name), name, attached)?;
        Ok(value == Value::Switch(true))
    }
}

fn check_operands(command: &Command, count: usize) -> Result<(), Usage> {
    let (min, max) = (command.min_operands, command.max_operands);
    let wanted = match count {
        _ if (min..=max).contains(&count) => return Ok(()),
        _ if min == max => format!("exactly {min}"),
        _ if count < min => format!("a minimum of {min}"),
        _ => format!("a maximum of {max}"),
    };
    Err(Usage::Operands { command: command.name, wanted })
}

fn called(flag: &Flag, name: &[u8]) -> bool {
    str::from_utf8(name).is_ok_and(|name| flag.is_called(name))
}

fn find(table: &'static [Flag], name: &[u8]) -> Option<&'static Flag> {
    table.iter().find(|flag| called(flag, name))
}

fn unknown(name: &[u8]) -> Usage {
    Usage::UnknownFlag(String::from_utf8_lossy(name).into_owned())
}
