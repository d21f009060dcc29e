//! Filters, tests and functions of Jinja where minijinja's own differ from Python's.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::arguments::{Any, Arguments};
use super::format::{self, Style};
use super::{limit, methods, prepare, python, tojson, values};

pub(super) fn add(env: &mut Environment<'_>) {
    env.add_filter("tojson", tojson::filter);
    env.add_filter("string", |state: &State, value: &Value| python::str(state, value));
    env.add_filter("trim", trim);
    env.add_filter("join", join);
    env.add_filter("format", format);
    env.add_filter("default", default);
    env.add_filter("d", default);
    env.add_filter("int", int);
    env.add_filter("float", float);
    env.add_filter(prepare::BOUNDED, bounded);
    env.add_filter(limit::PACED, limit::paced);
    env.add_test("sequence", is_sequence);
    env.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    env.add_test("callable", is_callable);
    env.add_function("dict", dict);
}

/// The text of a value without white space, or the given characters, at its ends.
fn trim(state: &State, value: &Value, chars: Option<&str>) -> Result<Value, Error> {
    Ok(match value.as_str() {
        Some(text) => Value::from(methods::strip(text, chars, true, true)),
        None => Value::from(methods::strip(&python::str(state, value)?, chars, true, true)),
    })
}

/// `values | join(d='', attribute=none)`, with values written as Python writes them.
fn join(state: &State, value: &Value, args: Any) -> Result<String, Error> {
    let args = Arguments::of_filter(args)?;
    let separator = args.get(0, "d")?;
    let attribute = args.some(1, "attribute")?;
    args.finish(2)?;
    let separator = separator.map_or(Ok(String::new()), |v| python::str(state, &v))?;
    let items = value.try_iter()?.checked().map(|item| {
        let mut item = item?;
        if let Some(attribute) = &attribute {
            for part in attribute.to_string().split('.') {
                item = match part.parse::<usize>() {
                    Ok(index) => item.get_item_by_index(index)?,
                    Err(_) => item.get_attr(part)?,
                };
            }
        }
        Ok(item)
    });
    python::join(state, items, &separator)
}

/// `text | format(values..)`: the engine's own, once it is paid for.
fn format(state: &mut State, value: &Value, args: Any) -> Result<Value, Error> {
    let values: Vec<Value> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    format::pay(state, Style::Percent, value.as_str().unwrap_or_default(), &values)?;
    minijinja::filters::format(state, value, Rest(values.into_iter().map(Into::into).collect()))
}

/// `value | default(default_value='', boolean=false)`.
fn default(value: &Value, args: Any) -> Result<Value, Error> {
    let args = Arguments::of_filter(args)?;
    let other = args.get(0, "default_value")?;
    let boolean = args.flag(1, "boolean")?;
    args.finish(2)?;
    let missing = value.is_undefined() || (boolean && !value.is_true());
    Ok(if missing { other.unwrap_or_else(|| Value::from("")) } else { value.clone() })
}

/// `value | int(default=0)`: also of texts, floats cut off.
fn int(value: &Value, args: Any) -> Result<Value, Error> {
    let args = Arguments::of_filter(args)?;
    let other = args.get(0, "default")?.unwrap_or_else(|| Value::from(0));
    let base = args.get(1, "base")?.and_then(|v| v.as_i64()).unwrap_or(10);
    args.finish(2)?;
    let cut = |number: f64| (number.is_finite()).then(|| Value::from(number.trunc() as i128));
    let number = match value.kind() {
        ValueKind::Bool => Some(Value::from(i64::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => Some(value.clone()),
        ValueKind::Number => f64::try_from(value.clone()).ok().and_then(cut),
        ValueKind::String => {
            let text = number_text(value);
            let base = u32::try_from(base).ok().filter(|b| (2..=36).contains(b)).unwrap_or(10);
            let whole = i128::from_str_radix(&text, base).ok();
            whole
                .map(|n| i64::try_from(n).map_or_else(|_| Value::from(n), Value::from))
                .or_else(|| text.parse().ok().and_then(cut))
        }
        _ => None,
    };
    Ok(number.unwrap_or(other))
}

/// `value | float(default=0.0)`: also of texts.
fn float(value: &Value, args: Any) -> Result<Value, Error> {
    let args = Arguments::of_filter(args)?;
    let other = args.get(0, "default")?.unwrap_or_else(|| Value::from(0.0));
    args.finish(1)?;
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => number_text(value).parse().ok(),
        _ => None,
    };
    Ok(number.map_or(other, Value::from))
}

/// A text as Python reads numbers: white space around, underscores between digits.
fn number_text(value: &Value) -> String {
    let text = methods::strip(value.as_str().unwrap_or_default(), None, true, true);
    let chars: Vec<char> = text.chars().collect();
    let digit =
        |i: Option<usize>| i.and_then(|i| chars.get(i)).is_some_and(char::is_ascii_alphanumeric);
    let separator = |i: usize| chars[i] == '_' && digit(i.checked_sub(1)) && digit(Some(i + 1));
    (0..chars.len()).filter(|&i| !separator(i)).map(|i| chars[i]).collect()
}

/// Anything with a length and items: texts and mappings, too.
fn is_sequence(value: &Value) -> bool {
    value.is_undefined()
        || matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map)
        || (value.kind() == ValueKind::Iterable && value.len().is_some())
}

/// Functions and macros.
fn is_callable(value: &Value) -> bool {
    value.kind() == ValueKind::Plain && value.downcast_object_ref::<values::BigInt>().is_none()
}

/// `dict(pairs, name=value, ..)`.
fn dict(args: Any) -> Result<Value, Error> {
    let args = Arguments::of_filter(args)?;
    let mut pairs = Vec::new();
    if let Some(source) = args.get(0, "")? {
        let is_map = source.kind() == ValueKind::Map;
        for item in source.try_iter()?.checked() {
            let item = item?;
            pairs.push(if is_map {
                let value = source.get_item(&item)?;
                (item, value)
            } else if item.len() == Some(2) {
                (item.get_item_by_index(0)?, item.get_item_by_index(1)?)
            } else {
                let what = "dict needs a mapping or pairs";
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            });
        }
    }
    pairs.extend(args.named()?);
    args.finish(1)?;
    Ok(Value::from_pairs(pairs))
}

/// Passes a value on unless it is too deep or, with all that it holds, too large (see
/// `prepare`). What it looks at is paid for, so that no check is free either.
fn bounded(state: &State, value: Value) -> Result<Value, Error> {
    /// The template may build on what the request holds (128 levels, as JSON).
    const MAX_DEPTH: usize = 160;
    const ITEMS: u64 = 100_000;

    fn count(value: &Value, depth: usize, left: &mut u64) -> Result<(), Error> {
        let is_map = value.kind() == ValueKind::Map;
        if !is_map && value.kind() != ValueKind::Seq {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            let what = format!("a value nests deeper than {MAX_DEPTH} levels");
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
        for item in value.try_iter()?.checked() {
            let item = item?;
            *left = left.checked_sub(1).ok_or_else(too_many)?;
            if is_map {
                count(&value.get_item(&item)?, depth + 1, left)?;
            } else {
                count(&item, depth + 1, left)?;
            }
        }
        Ok(())
    }

    limit::check()?;
    // A sum of lists is a view of both, which grows with every sum: make it a list.
    let is_sum = value.kind() == ValueKind::Iterable && value.len().is_some();
    if !is_sum && !matches!(value.kind(), ValueKind::Map | ValueKind::Seq) {
        return Ok(value);
    }
    // What a template may do grows with the request, and so may its values.
    let (used, rest) = state.fuel_levels().unwrap_or_default();
    let most = ITEMS + (used + rest) / 16;
    if value.len().is_some_and(|len| len as u64 > most) {
        return Err(too_many());
    }
    let value = if is_sum {
        Value::from(value.try_iter()?.checked().collect::<Result<Vec<Value>, Error>>()?)
    } else {
        value
    };
    let mut left = most;
    count(&value, 0, &mut left)?;
    state.consume_fuel((most - left) / 16)?;
    Ok(value)
}

fn too_many() -> Error {
    Error::new(ErrorKind::InvalidOperation, "a value holds too many items, counted as written")
}
