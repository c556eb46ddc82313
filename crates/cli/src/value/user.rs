//! Users by number.

use super::number::decimal;
use crate::error::Error;

/// The highest id there is: setresuid(2) and chown(2) take `u32::MAX` for "leave it".
const MAX_ID: u32 = u32::MAX - 1;

/// `uid[:gid]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserSpec {
    /// User id in the container.
    pub uid: u32,
    /// Group id, where one is given.
    pub gid: Option<u32>,
}

impl UserSpec {
    /// Reads `uid` or `uid:gid`. Nothing but the exact numbers is taken: an id that is cut off or wrapped around
    /// is somebody else's, often root's (CVE-2026-30892).
    ///
    /// # Errors
    ///
    /// `bad uid: …` and `bad gid: …`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (uid, gid) = match text.split_once(':') {
            Some((uid, gid)) => (uid, Some(gid)),
            None => (text, None),
        };
        Ok(Self { uid: id("bad uid", uid)?, gid: gid.map(|gid| id("bad gid", gid)).transpose()? })
    }
}

fn id(context: &str, text: &str) -> Result<u32, Error> {
    let number = decimal("Atoi", text).map_err(|error| Error::caller(format!("{context}: {error}")))?;
    u32::try_from(number)
        .ok()
        .filter(|&id| id <= MAX_ID)
        .ok_or_else(|| Error::caller(format!("{context}: {text} is not in the range 0 to {MAX_ID}")))
}

/// One of `--additional-gids`.
///
/// # Errors
///
/// `additional-gids must be a positive number -1`, or it is out of range.
pub fn additional_gid(number: i64) -> Result<u32, Error> {
    if number < 0 {
        return Err(Error::caller(format!("additional-gids must be a positive number {number}")));
    }
    u32::try_from(number)
        .ok()
        .filter(|&id| id <= MAX_ID)
        .ok_or_else(|| Error::caller(format!("additional-gids: {number} is not in the range 0 to {MAX_ID}")))
}

#[cfg(test)]
mod tests {
    use super::{UserSpec, additional_gid};

    #[test]
    fn exact_ids() {
        let spec = |uid, gid| Ok(UserSpec { uid, gid });
        assert_eq!(UserSpec::parse("0"), spec(0, None));
        assert_eq!(UserSpec::parse("1:2"), spec(1, Some(2)));
        assert_eq!(UserSpec::parse("4294967294:0"), spec(4_294_967_294, Some(0)));
        assert_eq!(additional_gid(4_294_967_294), Ok(4_294_967_294));
    }

    #[test]
    fn anything_else_is_an_error() {
        let bad = [
            ("", r#"bad uid: strconv.Atoi: parsing "": invalid syntax"#),
            ("x", r#"bad uid: strconv.Atoi: parsing "x": invalid syntax"#),
            ("1abc", r#"bad uid: strconv.Atoi: parsing "1abc": invalid syntax"#),
            (" 1", r#"bad uid: strconv.Atoi: parsing " 1": invalid syntax"#),
            ("0x10", r#"bad uid: strconv.Atoi: parsing "0x10": invalid syntax"#),
            (":1", r#"bad uid: strconv.Atoi: parsing "": invalid syntax"#),
            ("1:", r#"bad gid: strconv.Atoi: parsing "": invalid syntax"#),
            ("1:2:3", r#"bad gid: strconv.Atoi: parsing "2:3": invalid syntax"#),
            ("-1", "bad uid: -1 is not in the range 0 to 4294967294"),
            ("1:-1", "bad gid: -1 is not in the range 0 to 4294967294"),
            ("4294967295", "bad uid: 4294967295 is not in the range 0 to 4294967294"),
            ("4294967296", "bad uid: 4294967296 is not in the range 0 to 4294967294"),
        ];
        for (text, message) in bad {
            assert_eq!(UserSpec::parse(text).unwrap_err().message, message, "{text}");
        }
        assert_eq!(additional_gid(-1).unwrap_err().message, "additional-gids must be a positive number -1");
        assert!(additional_gid(1 << 32).is_err());
    }
}
