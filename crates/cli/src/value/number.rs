//! Numbers and booleans as Go's `strconv` reads them.

use std::fmt;
use std::num::IntErrorKind;

use crate::quote::quote;

/// `strconv.Atoi: parsing "x": invalid syntax`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberError {
    function: &'static str,
    input: String,
    out_of_range: bool,
}

impl NumberError {
    /// `input` is not what Go's `strconv.function` reads.
    pub fn syntax(function: &'static str, input: &str) -> Self {
        Self { function, input: input.to_owned(), out_of_range: false }
    }

    /// `input` is a number that does not fit.
    pub fn range(function: &'static str, input: &str) -> Self {
        Self { out_of_range: true, ..Self::syntax(function, input) }
    }
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = if self.out_of_range { "value out of range" } else { "invalid syntax" };
        let input = quote(self.input.as_bytes());
        write!(f, "strconv.{}: parsing {input}: {problem}", self.function)
    }
}

impl std::error::Error for NumberError {}

/// A boolean: `1`, `t`, `T`, `true`, `True`, `TRUE` and their opposites.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// A decimal number with an optional sign.
///
/// # Errors
///
/// Named after `function`, the one that runc would have called.
pub fn decimal(function: &'static str, text: &str) -> Result<i64, NumberError> {
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => NumberError::range(function, text),
        _ => NumberError::syntax(function, text),
    })
}

/// A decimal number without a sign.
///
/// # Errors
///
/// Anything else; the text names Go's `ParseUint`.
pub fn unsigned(text: &str) -> Result<u64, NumberError> {
    const FUNCTION: &str = "ParseUint";
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::syntax(FUNCTION, text));
    }
    text.parse().map_err(|_| NumberError::range(FUNCTION, text))
}

/// A number with an optional sign and an optional prefix `0x`, `0o`, `0b` or `0`, as flags take it.
///
/// # Errors
///
/// Anything else; the text names Go's `ParseInt`.
pub fn any_base(text: &str) -> Result<i64, NumberError> {
    const FUNCTION: &str = "ParseInt";
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)),
        [b'0', b'o', ..] => (8, lower.get(2..)),
        [b'0', b'b', ..] => (2, lower.get(2..)),
        [b'0', _, ..] => (8, lower.get(1..)),
        _ => (10, Some(lower.as_str())),
    };
    let digits = digits.unwrap_or_default();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(NumberError::syntax(FUNCTION, text));
    }
    // i64::MIN has no positive counterpart, so the sign has to be there while the digits are read.
    let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
    i64::from_str_radix(&signed, base).map_err(|_| NumberError::range(FUNCTION, text))
}

/// `whole`.`fraction` (digits or nothing) times `unit`, cut off at the integer; `None` if that is too big.
///
/// No floating point: limits near 2^63 have to be exact.
pub fn scaled(whole: &str, fraction: &str, unit: u64) -> Option<i64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // What comes after eighteen digits is less than one, for every unit below 10^18.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let places = u32::try_from(fraction.len()).ok()?;
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = u64::try_from(fraction * u128::from(unit) / 10u128.pow(places)).ok()?;
    i64::try_from(whole.checked_mul(unit)?.checked_add(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::{any_base, boolean, decimal, unsigned};

    #[test]
    fn booleans() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(boolean(text), Some(true));
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(boolean(text), Some(false));
        }
        for text in ["", "yes", "tRUE", "2", " true"] {
            assert_eq!(boolean(text), None);
        }
    }

    #[test]
    fn numbers_of_flags() {
        let good = [
            ("0", 0),
            ("+3", 3),
            ("-1", -1),
            ("010", 8),
            ("0o17", 15),
            ("0X1f", 31),
            ("0b101", 5),
            ("-0x10", -16),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        for (text, value) in good {
            assert_eq!(any_base(text), Ok(value), "{text}");
        }
        for text in ["", "+", "-", "--1", "z", " 3", "3 ", "08", "0x", "0x-1", "1e3", "1.0"] {
            let error = any_base(text).unwrap_err().to_string();
            assert_eq!(error, format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"));
        }
        for text in ["9223372036854775808", "-9223372036854775809", "0xffffffffffffffff"] {
            let error = any_base(text).unwrap_err().to_string();
            assert_eq!(error, format!("strconv.ParseInt: parsing \"{text}\": value out of range"));
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal("Atoi", "+7"), Ok(7));
        assert_eq!(decimal("Atoi", "007"), Ok(7));
        assert_eq!(
            decimal("Atoi", "1abc").unwrap_err().to_string(),
            r#"strconv.Atoi: parsing "1abc": invalid syntax"#
        );
        assert_eq!(
            decimal("Atoi", "99999999999999999999").unwrap_err().to_string(),
            r#"strconv.Atoi: parsing "99999999999999999999": value out of range"#
        );
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(
            unsigned("18446744073709551616").unwrap_err().to_string(),
            r#"strconv.ParseUint: parsing "18446744073709551616": value out of range"#
        );
        for text in ["", "-1", "+1", "x"] {
            assert_eq!(
                unsigned(text).unwrap_err().to_string(),
                format!("strconv.ParseUint: parsing \"{text}\": invalid syntax")
            );
        }
    }
}
