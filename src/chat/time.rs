//! `strftime_now` for templates that write the date.
//!
//! The time is UTC: the local time zone would have to be asked of the environment, which
//! this library does not read. A host that wants another passes it as a template variable,
//! where the template allows for that.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment in UTC, by the proleptic Gregorian calendar.
struct Moment {
    year: i64,
    /// 1 to 12.
    month: i64,
    /// 1 to 31.
    day: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// 0 is the first of January.
    year_day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: u32,
}

impl Moment {
    fn new(time: SystemTime) -> Self {
        // A clock before 1970 counts as 1970.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(0);
        let (days, clock) = (seconds / 86_400, seconds % 86_400);
        // Years that start in March end with the leap day; eras of 400 years repeat.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        // Day 0 of the March year is day 59 or 60 of the calendar year.
        let year_day =
            if month > 2 { day_of_year + 59 + i64::from(leap) } else { day_of_year - 306 };
        Self {
            year,
            month,
            day,
            weekday: (days + 4) % 7,
            year_day,
            hour: clock / 3600,
            minute: clock / 60 % 60,
            second: clock % 60,
            micros: since.subsec_micros(),
        }
    }

    /// The week of ISO 8601 and the year it belongs to.
    fn iso_week(&self) -> (i64, i64) {
        let weekday = (self.weekday + 6) % 7;
        let week = (self.year_day - weekday + 10) / 7;
        let weeks = |year: i64| {
            let start = |y: i64| (y + y / 4 - y / 100 + y / 400) % 7;
            if start(year) == 4 || start(year - 1) == 3 { 53 } else { 52 }
        };
        match week {
            0 => (self.year - 1, weeks(self.year - 1)),
            53 if weeks(self.year) == 52 => (self.year + 1, 1),
            week => (self.year, week),
        }
    }
}

/// `time` written by a format of C's `strftime` in the C locale; a directive that does not
/// exist stays as it is.
pub(super) fn strftime(time: SystemTime, format: &str) -> String {
    let moment = Moment::new(time);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let rest = chars.as_str();
        let plain = rest.starts_with('-');
        if plain {
            chars.next();
        }
        let known = chars.next().is_some_and(|d| directive(&mut out, &moment, d, plain).is_some());
        if !known {
            out.push('%');
            let used = rest.len() - chars.as_str().len();
            out.push_str(&rest[..used]);
        }
    }
    out
}

fn directive(out: &mut String, m: &Moment, directive: char, plain: bool) -> Option<()> {
    let hour12 = (m.hour + 11) % 12 + 1;
    let mut number = |value: i64, width: usize| {
        let width = if plain { 1 } else { width };
        let _ = write!(out, "{value:0width$}");
    };
    match directive {
        'Y' => number(m.year, 1),
        'm' => number(m.month, 2),
        'd' => number(m.day, 2),
        'H' => number(m.hour, 2),
        'I' => number(hour12, 2),
        'M' => number(m.minute, 2),
        'S' => number(m.second, 2),
        'f' => number(i64::from(m.micros), 6),
        'j' => number(m.year_day + 1, 3),
        'y' => number(m.year % 100, 2),
        'C' => number(m.year / 100, 2),
        'w' => number(m.weekday, 1),
        'u' => number((m.weekday + 6) % 7 + 1, 1),
        'U' => number((m.year_day + 7 - m.weekday) / 7, 2),
        'W' => number((m.year_day + 7 - (m.weekday + 6) % 7) / 7, 2),
        'V' => number(m.iso_week().1, 2),
        'G' => number(m.iso_week().0, 1),
        'e' if plain => number(m.day, 1),
        'k' if plain => number(m.hour, 1),
        'l' if plain => number(hour12, 1),
        'e' => drop(write!(out, "{:2}", m.day)),
        'k' => drop(write!(out, "{:2}", m.hour)),
        'l' => drop(write!(out, "{hour12:2}")),
        'A' => out.push_str(DAYS[m.weekday as usize]),
        'a' => out.push_str(&DAYS[m.weekday as usize][..3]),
        'B' => out.push_str(MONTHS[(m.month - 1) as usize]),
        'b' | 'h' => out.push_str(&MONTHS[(m.month - 1) as usize][..3]),
        'p' => out.push_str(if m.hour < 12 { "AM" } else { "PM" }),
        // Python's naive local time has no zone.
        'Z' | 'z' => {}
        'n' => out.push('\n'),
        't' => out.push('\t'),
        '%' => out.push('%'),
        _ => {
            let parts = match directive {
                'D' | 'x' => "m/d/y",
                'F' => "Y-m-d",
                'T' | 'X' => "H:M:S",
                'R' => "H:M",
                'r' => "I:M:S p",
                'c' => "a b e T Y",
                _ => return None,
            };
            for c in parts.chars() {
                match c {
                    '/' | '-' | ':' | ' ' => out.push(c),
                    c => self::directive(out, m, c, false)?,
                }
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Values from Python's datetime.
    #[test]
    fn known_moments() {
        let all = "%Y-%m-%d %H:%M:%S|%A %a %B %b|%j %U %W %G-%V %u %w|%I %p %-d %-m %e|%y %C|%x %X|%c|%F %T %R %D %r|%%|%q|%f";
        for (seconds, want) in [
            (
                0,
                "1970-01-01 00:00:00|Thursday Thu January Jan|001 00 00 1970-01 4 4|12 AM 1 1  1|70 19|01/01/70 00:00:00|Thu Jan  1 00:00:00 1970|1970-01-01 00:00:00 00:00 01/01/70 12:00:00 AM|%|%q|000000",
            ),
            (
                951_782_399,
                "2000-02-28 23:59:59|Monday Mon February Feb|059 09 09 2000-09 1 1|11 PM 28 2 28|00 20|02/28/00 23:59:59|Mon Feb 28 23:59:59 2000|2000-02-28 23:59:59 23:59 02/28/00 11:59:59 PM|%|%q|000000",
            ),
            (
                1_709_208_000,
                "2024-02-29 12:00:00|Thursday Thu February Feb|060 08 09 2024-09 4 4|12 PM 29 2 29|24 20|02/29/24 12:00:00|Thu Feb 29 12:00:00 2024|2024-02-29 12:00:00 12:00 02/29/24 12:00:00 PM|%|%q|000000",
            ),
            (
                1_609_459_199,
                "2020-12-31 23:59:59|Thursday Thu December Dec|366 52 52 2020-53 4 4|11 PM 31 12 31|20 20|12/31/20 23:59:59|Thu Dec 31 23:59:59 2020|2020-12-31 23:59:59 23:59 12/31/20 11:59:59 PM|%|%q|000000",
            ),
            (
                1_609_459_200,
                "2021-01-01 00:00:00|Friday Fri January Jan|001 00 00 2020-53 5 5|12 AM 1 1  1|21 20|01/01/21 00:00:00|Fri Jan  1 00:00:00 2021|2021-01-01 00:00:00 00:00 01/01/21 12:00:00 AM|%|%q|000000",
            ),
            (
                4_102_444_799,
                "2099-12-31 23:59:59|Thursday Thu December Dec|365 52 52 2099-53 4 4|11 PM 31 12 31|99 20|12/31/99 23:59:59|Thu Dec 31 23:59:59 2099|2099-12-31 23:59:59 23:59 12/31/99 11:59:59 PM|%|%q|000000",
            ),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(strftime(time, all), want);
        }
    }

    #[test]
    fn odd_formats() {
        let time = UNIX_EPOCH + Duration::from_micros(1_000_042);
        assert_eq!(strftime(time, "%f é %-S %"), "000042 é 1 %");
        assert_eq!(strftime(time, "%-q%-"), "%-q%-");
        assert_eq!(strftime(time, "[%Z%z]"), "[]");
    }
}
