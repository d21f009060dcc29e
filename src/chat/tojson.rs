//! The `tojson` filter of Transformers: Python's `json.dumps` without ASCII escaping, and
//! unlike Jinja's own without HTML escaping.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::arguments::{Any, Arguments};
use super::json_text::write_string;
use super::python::{self, Writer};

struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort: bool,
}

/// `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn filter(state: &State, value: &Value, args: Any) -> Result<String, Error> {
    let args = Arguments::of_filter(args)?;
    let ensure_ascii = args.flag(0, "ensure_ascii")?;
    let indent = args.some(1, "indent")?;
    let separators = args.some(2, "separators")?;
    let sort = args.flag(3, "sort_keys")?;
    args.finish(4)?;
    let indent = match indent {
        None => None,
        Some(text) if text.as_str().is_some() => text.as_str().map(str::to_string),
        Some(number) => Some(" ".repeat(number.as_i64().unwrap_or(0).clamp(0, 1000) as usize)),
    };
    let (mut item, mut key) = (if indent.is_some() { "," } else { ", " }.to_string(), ": ".into());
    if let Some(pair) = separators {
        let bad = || Error::new(ErrorKind::InvalidOperation, "separators must be two strings");
        let part = |i| pair.get_item_by_index(i).ok()?.as_str().map(str::to_string);
        item = part(0).ok_or_else(bad)?;
        key = part(1).ok_or_else(bad)?;
    }
    let mut writer = Writer::new(state);
    dump(&mut writer, value, &Style { ensure_ascii, indent, item, key, sort }, 1)?;
    Ok(writer.text)
}

fn dump(w: &mut Writer, value: &Value, style: &Style, level: usize) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => w.push("null"),
        ValueKind::Bool => w.push(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => number(w, value),
        ValueKind::String => string(w, value.as_str().unwrap_or_default(), style),
        ValueKind::Seq | ValueKind::Iterable => {
            w.enter()?;
            w.push("[");
            let mut empty = true;
            for item in value.try_iter()?.checked() {
                separate(w, style, level, std::mem::take(&mut empty));
                dump(w, &item?, style, level + 1)?;
                w.pay()?;
            }
            close(w, style, level, empty, "]");
        }
        ValueKind::Map => {
            w.enter()?;
            w.push("{");
            let mut keys = value.try_iter()?.checked().collect::<Result<Vec<Value>, Error>>()?;
            if style.sort {
                keys.sort();
            }
            let mut empty = true;
            for key in keys {
                separate(w, style, level, std::mem::take(&mut empty));
                self::key(w, &key, style)?;
                w.push(&style.key);
                dump(w, &value.get_item(&key)?, style, level + 1)?;
                w.pay()?;
            }
            close(w, style, level, empty, "}");
        }
        // Integers beyond 128 bits spell themselves.
        ValueKind::Plain if value.downcast_object_ref::<super::values::BigInt>().is_some() => {
            w.push(&value.to_string());
        }
        kind => {
            let what = format!("a value of type {kind} cannot be written as JSON");
            return Err(Error::new(ErrorKind::BadSerialization, what));
        }
    }
    Ok(())
}

/// What stands before an item.
fn separate(w: &mut Writer, style: &Style, level: usize, first: bool) {
    if !first {
        w.push(&style.item);
    }
    new_line(w, style, level);
}

fn close(w: &mut Writer, style: &Style, level: usize, empty: bool, bracket: &str) {
    if !empty {
        new_line(w, style, level - 1);
    }
    w.push(bracket);
    w.leave();
}

fn new_line(w: &mut Writer, style: &Style, level: usize) {
    if let Some(indent) = &style.indent {
        w.push("\n");
        for _ in 0..level {
            w.push(indent);
        }
    }
}

fn number(w: &mut Writer, value: &Value) {
    match f64::try_from(value.clone()) {
        Ok(number) if !value.is_integer() => w.push(&match number {
            n if n.is_nan() => "NaN".to_string(),
            n if n.is_infinite() => if n > 0.0 { "Infinity" } else { "-Infinity" }.to_string(),
            n => python::float(n),
        }),
        _ => w.push(&value.to_string()),
    }
}

/// Keys become strings: numbers and constants as JSON spells them.
fn key(w: &mut Writer, key: &Value, style: &Style) -> Result<(), Error> {
    match key.kind() {
        ValueKind::String => string(w, key.as_str().unwrap_or_default(), style),
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            w.push("\"");
            dump(w, key, style, 0)?;
            w.push("\"");
        }
        kind => {
            let what = format!("keys must be strings or numbers for JSON, found {kind}");
            return Err(Error::new(ErrorKind::BadSerialization, what));
        }
    }
    Ok(())
}

fn string(w: &mut Writer, text: &str, style: &Style) {
    write_string(text, style.ensure_ascii, &mut w.text);
}
