//! Sizes such as `64M`.

use std::fmt;

use super::number::{NumberError, scaled};

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeError {
    /// No number in it, a negative one, or too big.
    Size(String),
    /// Not a number.
    Number(NumberError),
    /// A unit that is not there.
    Suffix(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(text) => write!(f, "invalid size: '{text}'"),
            Self::Number(error) => error.fmt(f),
            Self::Suffix(suffix) => write!(f, "invalid suffix: '{suffix}'"),
        }
    }
}

impl std::error::Error for SizeError {}

/// Bytes: a number, perhaps with a fraction, and perhaps a unit (`b`, `k`, `m`, `g`, `t`, `p`, each also followed
/// by `b` or `ib`, in any case); always powers of 1024. `-1` is unlimited.
///
/// # Errors
///
/// See [`SizeError`].
pub fn bytes(text: &str) -> Result<i64, SizeError> {
    if text == "-1" {
        return Ok(-1);
    }
    let size_error = || SizeError::Size(text.to_owned());
    let last = text.rfind(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').ok_or_else(size_error)?;
    let (number, suffix) = text.split_at(last + 1);
    let number = number.strip_suffix(' ').unwrap_or(number);
    if number.starts_with('-') {
        return Err(size_error());
    }
    let unit = unit(suffix).ok_or_else(|| SizeError::Suffix(suffix.to_ascii_lowercase()))?;
    let number_error = || SizeError::Number(NumberError::syntax("ParseFloat", number));

    let digits = number.strip_prefix('+').unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return Err(number_error());
    }
    scaled(whole, fraction, unit).ok_or_else(size_error)
}

fn unit(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    let power = match suffix.as_str() {
        "" | "b" => 0,
        _ => {
            let letter = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
            match letter {
                "k" => 1,
                "m" => 2,
                "g" => 3,
                "t" => 4,
                "p" => 5,
                _ => return None,
            }
        }
    };
    Some(1 << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn reads_sizes() {
        let good = [
            ("-1", -1),
            ("0", 0),
            ("33554432", 33_554_432),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64Mb", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("10b", 10),
            ("1k", 1024),
            ("1KB", 1024),
            ("2G", 2 << 30),
            ("3T", 3 << 40),
            ("1P", 1 << 50),
            ("1.5k", 1536),
            (".5k", 512),
            ("1.", 1),
            ("+2", 2),
            ("9223372036854775807", i64::MAX),
        ];
        for (text, value) in good {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        let bad = [
            ("", "invalid size: ''"),
            ("abc", "invalid size: 'abc'"),
            ("-5", "invalid size: '-5'"),
            ("-1k", "invalid size: '-1k'"),
            ("9223372036854775808", "invalid size: '9223372036854775808'"),
            ("9000000P", "invalid size: '9000000P'"),
            ("5x", "invalid suffix: 'x'"),
            ("5KX", "invalid suffix: 'kx'"),
            ("5kibi", "invalid suffix: 'kibi'"),
            ("5bb", "invalid suffix: 'bb'"),
            ("5ib", "invalid suffix: 'ib'"),
            ("m5", r#"strconv.ParseFloat: parsing "m5": invalid syntax"#),
            ("1.2.3", r#"strconv.ParseFloat: parsing "1.2.3": invalid syntax"#),
            (".", r#"strconv.ParseFloat: parsing ".": invalid syntax"#),
        ];
        for (text, message) in bad {
            assert_eq!(bytes(text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
