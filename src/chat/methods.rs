//! Methods of Python's strings, as far as templates use them; the rest is minijinja's.

use minijinja::value::{Tuple, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::arguments::Arguments;
use super::format::{self, Style};
use super::limit;
use super::python::{self, is_space};

/// Called by the engine for a method that a value itself does not have.
pub(super) fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    limit::check()?;
    if let Some(text) = value.as_str()
        && let Some(result) = string_method(state, text, method, args)?
    {
        return Ok(result);
    }
    if method == "count" {
        // It looks at every item, which the engine does not count.
        state.consume_fuel(value.len().unwrap_or(0) as u64 / 16)?;
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

fn string_method(
    state: &State,
    s: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "strip" => Value::from(strip(s, characters(args)?, true, true)),
        "lstrip" => Value::from(strip(s, characters(args)?, true, false)),
        "rstrip" => Value::from(strip(s, characters(args)?, false, true)),
        "isspace" => {
            let () = from_args(args)?;
            Value::from(!s.is_empty() && s.chars().all(is_space))
        }
        "split" | "rsplit" => {
            let args = Arguments::new(args.iter().cloned())?;
            let sep = args.some(0, "sep")?;
            let max = args.get(1, "maxsplit")?;
            args.finish(2)?;
            let max = max.map_or(Ok(-1), |v| v.as_i64().ok_or_else(not_a_number))?;
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            let parts = match &sep {
                None => split_space(s, max, method == "rsplit"),
                Some(sep) => split(s, string("split", sep)?, max, method == "rsplit")?,
            };
            state.consume_fuel(parts.len() as u64 / 2)?;
            parts.into_iter().map(Value::from).collect()
        }
        "splitlines" => {
            let args = Arguments::new(args.iter().cloned())?;
            let keep = args.flag(0, "keepends")?;
            args.finish(1)?;
            split_lines(s, keep).into_iter().map(Value::from).collect()
        }
        "partition" | "rpartition" => {
            let (sep,): (&str,) = from_args(args)?;
            let last = method == "rpartition";
            let at = if last { s.rfind(sep) } else { s.find(sep) };
            let parts = match at.filter(|_| !sep.is_empty()) {
                Some(at) => [&s[..at], sep, &s[at + sep.len()..]],
                None if sep.is_empty() => return Err(empty_separator()),
                None if last => ["", "", s],
                None => [s, "", ""],
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(s.strip_prefix(prefix).unwrap_or(s))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(s.strip_suffix(suffix).unwrap_or(s))
        }
        "find" | "rfind" | "index" | "rindex" | "count" => {
            let (what, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
            let range = slice(s, start, end);
            let part = s.get(range.clone());
            if method == "count" {
                return Ok(Some(Value::from(part.map_or(0, |part| part.matches(what).count()))));
            }
            let at = part.and_then(|part| {
                if method.starts_with('r') { part.rfind(what) } else { part.find(what) }
            });
            match at {
                Some(at) => Value::from(s[..range.start + at].chars().count()),
                None if method.ends_with("find") => Value::from(-1),
                None => {
                    return Err(Error::new(ErrorKind::InvalidOperation, "substring not found"));
                }
            }
        }
        "title" => {
            let () = from_args(args)?;
            Value::from(title(s))
        }
        "join" => {
            let (values,): (&Value,) = from_args(args)?;
            Value::from(python::join(state, values.try_iter()?.checked(), s)?)
        }
        "format" => {
            format::pay(state, Style::Braces, s, args)?;
            return Ok(None);
        }
        "ljust" | "rjust" | "center" | "zfill" => {
            let (width, fill): (usize, Option<&str>) = from_args(args)?;
            Value::from(pad(state, s, method, width, fill.unwrap_or(" "))?)
        }
        _ => return Ok(None),
    }))
}

fn string<'a>(method: &str, value: &'a Value) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| {
        let what = format!("{method} needs a string, found {}", value.kind());
        Error::new(ErrorKind::InvalidOperation, what)
    })
}

fn not_a_number() -> Error {
    Error::new(ErrorKind::InvalidOperation, "maxsplit must be an integer")
}

/// The bytes of `s[start:end]`, whose bounds count characters, from the end if negative.
/// The range is none of `s` where Python's slice would start beyond the end.
fn slice(s: &str, start: Option<i64>, end: Option<i64>) -> std::ops::Range<usize> {
    if start.is_none() && end.is_none() {
        return 0..s.len();
    }
    let count = s.chars().count() as i64;
    let offset = |bound: i64| {
        let bound = if bound < 0 { (bound + count).max(0) } else { bound };
        let byte = |n: usize| s.char_indices().nth(n).map_or(s.len(), |(at, _)| at);
        if bound > count { s.len() + 1 } else { byte(bound as usize) }
    };
    offset(start.unwrap_or(0))..offset(end.unwrap_or(count)).min(s.len())
}

/// Python's title case: a letter after a letter is small, any other is large.
fn title(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_lowercase() || c.is_uppercase();
    }
    out
}

fn empty_separator() -> Error {
    Error::new(ErrorKind::InvalidOperation, "empty separator")
}

/// The optional argument of the strip methods; `None` (missing or none) is white space.
fn characters(args: &[Value]) -> Result<Option<&str>, Error> {
    let (chars,): (Option<&Value>,) = from_args(args)?;
    chars.filter(|v| !v.is_none()).map(|v| string("strip", v)).transpose()
}

/// Removes white space, or the characters of `chars`, from the chosen ends.
pub(super) fn strip<'a>(s: &'a str, chars: Option<&str>, start: bool, end: bool) -> &'a str {
    let remove = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    let s = if start { s.trim_start_matches(remove) } else { s };
    if end { s.trim_end_matches(remove) } else { s }
}

fn split<'a>(s: &'a str, sep: &str, max: usize, right: bool) -> Result<Vec<&'a str>, Error> {
    if sep.is_empty() {
        return Err(empty_separator());
    }
    let max = max.saturating_add(1);
    if right {
        let mut parts: Vec<&str> = s.rsplitn(max, sep).collect();
        parts.reverse();
        return Ok(parts);
    }
    Ok(s.splitn(max, sep).collect())
}

/// Splits at runs of white space; none at the ends of what is left.
fn split_space(s: &str, max: usize, right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = strip(s, None, !right, right);
    while !rest.is_empty() && parts.len() < max {
        let cut = if right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(at) = cut else { break };
        let width = rest[at..].chars().next().map_or(1, char::len_utf8);
        let (before, after) = (&rest[..at], &rest[at + width..]);
        parts.push(if right { after } else { before });
        rest =
            if right { strip(before, None, false, true) } else { strip(after, None, true, false) };
    }
    if !rest.is_empty() {
        // What is left keeps its inner white space, not that at its far end... which is
        // the near end of the text and stays, as in Python.
        parts.push(if parts.len() < max { strip(rest, None, true, true) } else { rest });
    }
    if right {
        parts.reverse();
    }
    parts
}

/// Splits at the line boundaries that Python knows.
fn split_lines(s: &str, keep: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = s.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        match c {
            '\n' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
            }
            '\r' => {
                if chars.next_if(|&(_, next)| next == '\n').is_some() {
                    end += 1;
                }
            }
            _ => continue,
        }
        lines.push(&s[start..if keep { end } else { at }]);
        start = end;
    }
    if start < s.len() {
        lines.push(&s[start..]);
    }
    lines
}

fn pad(state: &State, s: &str, method: &str, width: usize, fill: &str) -> Result<String, Error> {
    let mut fills = fill.chars();
    let (Some(mut fill), None) = (fills.next(), fills.next()) else {
        let what = "the fill character must be exactly one character long";
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    };
    let missing = width.saturating_sub(s.chars().count());
    state.consume_fuel(missing as u64 / 16)?;
    let (mut sign, mut body) = ("", s);
    let left = match method {
        "ljust" => 0,
        "rjust" => missing,
        "zfill" => {
            fill = '0';
            let signed = usize::from(s.starts_with(['+', '-']));
            (sign, body) = s.split_at(signed);
            missing
        }
        // Python puts the odd one to the left exactly if the width is odd, too.
        _ => missing / 2 + (missing & width & 1),
    };
    let mut out = String::from(sign);
    out.extend(std::iter::repeat_n(fill, left));
    out.push_str(body);
    out.extend(std::iter::repeat_n(fill, missing - left));
    Ok(out)
}
