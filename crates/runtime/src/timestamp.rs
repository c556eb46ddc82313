//! Points in time as RFC 3339 writes them.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
}

impl Timestamp {
    /// That many seconds and nanoseconds after 1970.
    pub fn new(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds }
    }

    /// That many nanoseconds after 1970.
    pub fn from_nanoseconds(nanoseconds: u64) -> Self {
        const NANO: u64 = 1_000_000_000;
        Self::new(
            i64::try_from(nanoseconds / NANO).unwrap_or_default(),
            u32::try_from(nanoseconds % NANO).unwrap_or_default(),
        )
    }

    /// The system's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Reads RFC 3339, such as `2026-08-01T12:00:00.5+02:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', 't'])?;
        let zone = time.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = (time.get(..zone)?, time.get(zone..)?);
        let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [year, month, day] = numbers(date, '-')?;
        let [hour, minute, second] = numbers(seconds, ':')?;
        let offset = match zone.get(1..)? {
            "" => 0,
            offset => {
                let [hours, minutes] = numbers(offset, ':')?;
                (hours * 3600 + minutes * 60) * if zone.starts_with('-') { -1 } else { 1 }
            }
        };
        let days = days(year, month, day)?;
        let nanoseconds = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
        Some(Self::new(days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanoseconds))
    }

    /// Nanoseconds since 1970.
    pub fn nanoseconds(self) -> u64 {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        seconds.saturating_mul(1_000_000_000).saturating_add(self.nanoseconds.into())
    }

    /// `2026-08-01T10:00:00Z`: for the log.
    pub fn to_seconds(self) -> String {
        let (year, month, day) = date(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        // Clocks before 1970 or after 2^63 belong to machines that have lost theirs.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::new(i64::try_from(since.as_secs()).unwrap_or_default(), since.subsec_nanos())
    }
}

/// `2026-08-01T10:00:00.123456789Z`, zeros at the end of the fraction left out as Go does.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.to_seconds();
        if self.nanoseconds == 0 {
            return f.write_str(&seconds);
        }
        let fraction = format!("{:09}", self.nanoseconds);
        let (seconds, fraction) = (seconds.trim_end_matches('Z'), fraction.trim_end_matches('0'));
        write!(f, "{seconds}.{fraction}Z")
    }
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = text.split(separator).map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// The number of days after 1970 of a year, month and day: the opposite of [`date`].
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468)
}

/// Year, month and day of a number of days after 1970, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last; 400 of them have 146097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468; // from 0000-03-01
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn writes_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_785_578_400, "2026-08-01T10:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp::new(seconds, 999).to_seconds(), text);
        }
    }

    #[test]
    fn reads_what_it_writes() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2000-02-29T23:59:59.000000001Z",
            "2024-03-01T00:00:00.5Z",
            "2026-12-01T03:52:56.105360908Z",
        ] {
            let time = Timestamp::parse(text).unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::from_nanoseconds(time.nanoseconds()), time);
        }
        let zone = |text| Timestamp::parse(text).map(|time| time.to_string());
        assert_eq!(zone("2026-01-01T00:30:00+02:00").as_deref(), Some("2025-12-31T22:30:00Z"));
        assert_eq!(zone("2026-01-01T00:30:00-00:30").as_deref(), Some("2026-01-01T01:00:00Z"));
        for wrong in ["", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "x-01-01T00:00:00Z"] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fractions_lose_their_zeros() {
        let text = |nanoseconds| Timestamp::new(1_785_578_400, nanoseconds).to_string();
        assert_eq!(text(0), "2026-08-01T10:00:00Z");
        assert_eq!(text(1), "2026-08-01T10:00:00.000000001Z");
        assert_eq!(text(500_000_000), "2026-08-01T10:00:00.5Z");
        assert_eq!(text(123_456_780), "2026-08-01T10:00:00.12345678Z");
    }
}
