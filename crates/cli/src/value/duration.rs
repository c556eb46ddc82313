//! Durations as Go writes them: `5s`, `1m30s`, `.5h`, `-100ms`.

use std::fmt;

use super::number::scaled;
use crate::quote::quote;

/// Why a text is no duration; Go's wording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurationError {
    /// Not of the form, or more than 292 years.
    Invalid(String),
    /// A number without a unit.
    MissingUnit(String),
    /// A unit that is not there.
    UnknownUnit {
        /// It.
        unit: String,
        /// The whole text.
        text: String,
    },
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) => write!(f, "time: invalid duration {}", quote(text.as_bytes())),
            Self::MissingUnit(text) => {
                write!(f, "time: missing unit in duration {}", quote(text.as_bytes()))
            }
            Self::UnknownUnit { unit, text } => write!(
                f,
                "time: unknown unit {} in duration {}",
                quote(unit.as_bytes()),
                quote(text.as_bytes())
            ),
        }
    }
}

impl std::error::Error for DurationError {}

/// Reads `text` into nanoseconds.
///
/// # Errors
///
/// See [`DurationError`].
pub fn nanoseconds(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let unit = unit_length(unit)
            .ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
        total = scaled(whole, fraction, unit).and_then(|part| total.checked_add(part)).ok_or_else(invalid)?;
        rest = after;
    }
    Ok(if negative { -total } else { total })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn unit_length(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // U+00B5, the micro sign, and U+03BC, the Greek letter.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn reads_go_durations() {
        let good = [
            ("0", 0),
            ("-0", 0),
            ("5s", 5_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h1m1s", 3_661_000_000_000),
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("-1s", -1_000_000_000),
            ("+5us", 5_000),
            ("5µs", 5_000),
            ("5μs", 5_000),
            ("7ns", 7),
            ("0.1ns", 0),
            ("0.0000000000000000000000001h", 0),
            ("9223372036854775807ns", i64::MAX),
        ];
        for (text, value) in good {
            assert_eq!(nanoseconds(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn refuses_with_gos_words() {
        let bad = [
            ("", r#"time: invalid duration """#),
            ("+", r#"time: invalid duration "+""#),
            ("abc", r#"time: invalid duration "abc""#),
            ("s", r#"time: invalid duration "s""#),
            (".s", r#"time: invalid duration ".s""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("1s500", r#"time: missing unit in duration "1s500""#),
            ("5x", r#"time: unknown unit "x" in duration "5x""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("5 s", r#"time: unknown unit " s" in duration "5 s""#),
            ("99999999999h", r#"time: invalid duration "99999999999h""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
        ];
        for (text, message) in bad {
            assert_eq!(nanoseconds(text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
