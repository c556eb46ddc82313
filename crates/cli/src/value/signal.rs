//! Signals by name and number.

use crate::error::Error;
use crate::quote::quote;

/// A signal number as kill(2) takes it: not checked, 0 only asks whether the process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(pub i32);

/// signal(7), for all architectures but MIPS, SPARC, Alpha and PA-RISC.
const NAMES: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

impl Signal {
    /// SIGTERM.
    pub const TERM: Self = Self(15);

    /// A name with or without `SIG`, in any case, or a number. The empty text is SIGTERM.
    ///
    /// A number that no signal has is left to the kernel to refuse.
    ///
    /// # Errors
    ///
    /// `unknown signal "X"`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Ok(Self::TERM);
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Self(i32::try_from(number).unwrap_or(i32::MAX)));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, number)| Self(number))
            .ok_or_else(|| Error::caller(format!("unknown signal {}", quote(text.as_bytes()))))
    }
}

#[cfg(test)]
mod tests {
    use super::Signal;

    #[test]
    fn names_and_numbers() {
        for text in ["KILL", "SIGKILL", "kill", "sigkill", "SigKill", "9", "+9"] {
            assert_eq!(Signal::parse(text), Ok(Signal(9)), "{text}");
        }
        assert_eq!(Signal::parse(""), Ok(Signal::TERM));
        assert_eq!(Signal::parse("0"), Ok(Signal(0)));
        assert_eq!(Signal::parse("-5"), Ok(Signal(-5)));
        assert_eq!(Signal::parse("64"), Ok(Signal(64)));
        assert_eq!(Signal::parse("4294967305"), Ok(Signal(i32::MAX)));
    }

    #[test]
    fn unknown_names() {
        for text in ["FOO", "SIG", "SIGSIGKILL", "RTMIN", "SIGRTMIN+1", "9x", " 9"] {
            assert_eq!(Signal::parse(text).unwrap_err().message, format!("unknown signal \"{text}\""));
        }
    }
}
