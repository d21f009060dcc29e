//! What formatting a text may cost, before it is done.
//!
//! The engine's `str.format` and `%` write every value as often and as wide as the format
//! asks, and count the result only when it is there: a few bytes of template could ask for
//! more memory than the machine has.

use minijinja::{Error, State, Value};

use super::python;

/// How a format marks its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `{name:>10}`, as `str.format`.
    Braces,
    /// `%(name)10s`, as the operator `%`.
    Percent,
}

/// Takes the fuel for formatting `args` by `format`: no result is longer than what it pays
/// for.
pub(super) fn pay(state: &State, style: Style, format: &str, args: &[Value]) -> Result<(), Error> {
    let (fields, width) = demand(style, format);
    if fields == 0 {
        return Ok(());
    }
    let mut longest = 0;
    for value in args {
        longest = longest.max(match value.as_str() {
            Some(text) => text.len(),
            None => python::str(state, value)?.len(),
        });
    }
    let bytes = (fields as u64).saturating_mul(longest as u64).saturating_add(width);
    state.consume_fuel(bytes / 16)
}

/// The fields of a format at most, and the sum of the widths and precisions they ask for.
fn demand(style: Style, format: &str) -> (usize, u64) {
    let bytes = format.as_bytes();
    let mark = if style == Style::Braces { b'{' } else { b'%' };
    let (mut fields, mut width, mut at) = (0, 0u64, 0);
    while let Some(found) = bytes[at..].iter().position(|&b| b == mark) {
        at += found + 1;
        if bytes.get(at) == Some(&mark) {
            at += 1; // written twice, it stands for itself
            continue;
        }
        fields += 1;
        let rest = &bytes[at..];
        let field = match style {
            Style::Braces => rest.iter().position(|&b| b == b'}'),
            Style::Percent => {
                let named = (rest.first() == Some(&b'('))
                    .then(|| rest.iter().position(|&b| b == b')').unwrap_or(0));
                let from = named.unwrap_or(0);
                rest[from..].iter().position(u8::is_ascii_alphabetic).map(|end| from + end)
            }
        };
        let field = &rest[..field.unwrap_or(rest.len())];
        for number in field.split(|b| !b.is_ascii_digit()) {
            let number = number.iter().fold(0u64, |n, &digit| {
                n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
            });
            width = width.saturating_add(number);
        }
        at += field.len();
    }
    (fields, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_widths_are_found() {
        let braces = |format| demand(Style::Braces, format);
        assert_eq!(braces("2024 {} {{9}} {name:>10} {0:.20f}"), (3, 30));
        assert_eq!(braces("{:>1000000000"), (1, 1_000_000_000));
        assert_eq!(braces("{:99999999999999999999999}"), (1, u64::MAX));
        let percent = |format| demand(Style::Percent, format);
        assert_eq!(percent("100%% 7 %5d%-.3f %(a1)9s 5"), (3, 18));
        assert_eq!(percent("%"), (1, 0));
        assert_eq!(percent("%(a 77"), (1, 0));
    }
}
