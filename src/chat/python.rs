//! Values as Python spells them.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// Values nest at most this deep in what is written out.
const MAX_DEPTH: usize = 200;

/// Python's `str.isspace`: Unicode white space and the four separators U+001C to U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// A float as Python's `repr` gives it: the shortest digits that read back the same, with
/// an exponent below 1e-4 and from 1e16 on.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    // Rust writes the same digits, as d.ddde±x.
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// A text that is being written, paid for with the template's fuel as it grows: a value
/// can be far larger when written out than it is in memory (lists that hold the same list
/// many times).
pub(super) struct Writer<'a, 's, 'e> {
    pub(super) text: String,
    paid: usize,
    depth: usize,
    state: &'a State<'s, 'e>,
}

impl<'a, 's, 'e> Writer<'a, 's, 'e> {
    pub(super) fn new(state: &'a State<'s, 'e>) -> Self {
        Self { text: String::new(), paid: 0, depth: 0, state }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Enters a list or an object.
    pub(super) fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let what = format!("a value nests deeper than {MAX_DEPTH} levels");
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Pays for what was written since the last time; called once per element.
    pub(super) fn pay(&mut self) -> Result<(), Error> {
        const UNIT: usize = 1024;
        if self.text.len() - self.paid >= UNIT {
            self.state.consume_fuel(((self.text.len() - self.paid) / 8) as u64)?;
            self.paid = self.text.len();
        }
        Ok(())
    }
}

/// Python's `str(value)`.
pub(super) fn str(state: &State, value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    if value.is_undefined() {
        return Ok(String::new());
    }
    let mut writer = Writer::new(state);
    repr(&mut writer, value)?;
    Ok(writer.text)
}

/// The items as texts with `separator` between them, paid for while it grows.
pub(super) fn join(
    state: &State,
    items: impl Iterator<Item = Result<Value, Error>>,
    separator: &str,
) -> Result<String, Error> {
    let mut writer = Writer::new(state);
    for (i, item) in items.enumerate() {
        if i > 0 {
            writer.push(separator);
        }
        writer.push(&str(state, &item?)?);
        writer.pay()?;
    }
    Ok(writer.text)
}

/// Python's `repr(value)`.
fn repr(w: &mut Writer, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => w.push("Undefined"),
        ValueKind::Number if !value.is_integer() => match f64::try_from(value.clone()) {
            Ok(number) => w.push(&float(number)),
            Err(_) => w.push(&value.to_string()),
        },
        ValueKind::String => quote(w, value.as_str().unwrap_or_default()),
        // The sum of two lists is an iterable with a length.
        kind if kind == ValueKind::Seq
            || (kind == ValueKind::Iterable && value.len().is_some()) =>
        {
            let tuple = value.is_tuple();
            w.enter()?;
            w.push(if tuple { "(" } else { "[" });
            let mut count = 0;
            for item in value.try_iter()?.checked() {
                if count > 0 {
                    w.push(", ");
                }
                repr(w, &item?)?;
                w.pay()?;
                count += 1;
            }
            w.push(match (tuple, count) {
                (true, 1) => ",)",
                (true, _) => ")",
                _ => "]",
            });
            w.leave();
        }
        ValueKind::Map if value.is_kwargs() || value.as_object().is_some() => {
            w.enter()?;
            w.push("{");
            for (i, key) in value.try_iter()?.checked().enumerate() {
                let key = key?;
                if i > 0 {
                    w.push(", ");
                }
                repr(w, &key)?;
                w.push(": ");
                repr(w, &value.get_item(&key)?)?;
                w.pay()?;
            }
            w.push("}");
            w.leave();
        }
        ValueKind::Invalid => {
            return Err(Error::new(ErrorKind::InvalidOperation, value.to_string()));
        }
        // None, True, False, integers, and objects that spell themselves.
        _ => w.push(&value.to_string()),
    }
    Ok(())
}

/// Python's `repr` of a string.
fn quote(w: &mut Writer, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    w.text.push(quote);
    for c in text.chars() {
        match c {
            '\\' => w.push("\\\\"),
            '\n' => w.push("\\n"),
            '\r' => w.push("\\r"),
            '\t' => w.push("\\t"),
            c if c == quote => {
                w.text.push('\\');
                w.text.push(c);
            }
            ' '..='~' => w.text.push(c),
            c if is_printable(c) => w.text.push(c),
            c => {
                let code = u32::from(c);
                w.push(&match code {
                    0..=0xFF => format!("\\x{code:02x}"),
                    0x100..=0xFFFF => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    w.text.push(quote);
}

/// Python's `str.isprintable` for one character: no control, format, surrogate, private
/// or unassigned character and no separator but the space. Rust's own `escape_debug`
/// rests on the same definition; after a letter it lets combining marks stand.
fn is_printable(c: char) -> bool {
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}
