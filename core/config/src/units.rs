//! Durations and byte sizes as people write them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The usual range of a server's time limit.
///
/// Outside it the unit is probably a mistake, as in `"60000s"` for sixty seconds or `"30ms"` for
/// thirty.
const USUAL_LIMIT: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_hours(6);

/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;

/// The units of a byte size, with their factors. `show_size` writes only the first three.
const SIZES: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// The reason why a text is not a duration or a size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadUnit {
    /// A number without a unit.
    NoUnit,
    /// Empty, or in no known format.
    NotRead,
    /// Zero, which is never meant.
    Zero,
}

/// Reads `"30s"`, `"2m"`, `"500ms"`, `"1h 30m"`.
pub(crate) fn duration(text: &str) -> Result<Duration, BadUnit> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadUnit::NoUnit);
    }
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err(BadUnit::Zero),
        Ok(duration) => Ok(duration),
        Err(_) => Err(BadUnit::NotRead),
    }
}

/// Reads a duration that may also be zero, as in `"0s"`.
pub(crate) fn wait(text: &str) -> Result<Duration, BadUnit> {
    match duration(text) {
        Err(BadUnit::Zero) => Ok(Duration::ZERO),
        read => read,
    }
}

/// True if a time limit is outside the usual range, so that its unit may be a mistake.
pub(crate) fn looks_mistaken(limit: Duration) -> bool {
    !USUAL_LIMIT.contains(&limit)
}

/// Writes a duration in the format that `duration` reads.
pub fn show_duration(duration: Duration) -> String {
    // `humantime` would write long durations in months and years, whose length is ambiguous.
    if duration.as_secs() >= DAY && duration.as_secs().is_multiple_of(DAY) {
        return format!("{}d", duration.as_secs() / DAY);
    }
    humantime::format_duration(duration).to_string()
}

/// Reads `"10MiB"`, `"64 KB"`.
pub(crate) fn size(text: &str) -> Result<u64, BadUnit> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or(BadUnit::NotRead)?;
    let number: u64 = number.parse().map_err(|_| BadUnit::NotRead)?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(BadUnit::NoUnit);
    }
    let known = SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, factor) = known.ok_or(BadUnit::NotRead)?;
    match number.checked_mul(*factor) {
        None => Err(BadUnit::NotRead),
        Some(0) => Err(BadUnit::Zero),
        Some(bytes) => Ok(bytes),
    }
}

/// Writes a size in the format that `size` reads.
pub(crate) fn show_size(bytes: u64) -> String {
    let whole = SIZES.iter().take(3).rev().find(|(_, factor)| bytes.is_multiple_of(*factor));
    match whole {
        Some((unit, factor)) if bytes > 0 => format!("{}{unit}", bytes / factor),
        Some(_) | None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_their_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration(" 2m "), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_mins(90)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let refused = [
            ("90", BadUnit::NoUnit),
            ("", BadUnit::NotRead),
            ("soon", BadUnit::NotRead),
            ("-3s", BadUnit::NotRead),
            ("3 parsecs", BadUnit::NotRead),
            ("99999999999999999999s", BadUnit::NotRead),
            ("0s", BadUnit::Zero),
        ];
        for (text, expected) in refused {
            assert_eq!(duration(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn durations_are_written_the_way_they_are_read() {
        for text in ["30s", "2m", "1h 30m", "90d", "365d"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
    }

    #[test]
    fn a_limit_of_hours_or_of_milliseconds_looks_mistaken() {
        for text in ["60000s", "30ms", "7h"] {
            assert!(looks_mistaken(duration(text).unwrap()), "{text}");
        }
        for text in ["1s", "500ms", "10m", "2h"] {
            assert!(!looks_mistaken(duration(text).unwrap()), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("10MiB", 10 << 20), ("64 kb", 64_000), ("1GiB", 1 << 30), ("7B", 7)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(show_size(10 << 20), "10MiB");
        assert_eq!(show_size(64_000), "64000B");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "10", "10 apples", "-1B", "99999999999GiB", "0MiB", "1.5MiB", "١B"]
        {
            assert!(size(text).is_err(), "{text} was accepted");
        }
    }
}
