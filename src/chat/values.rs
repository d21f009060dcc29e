//! JSON values as the template engine holds them.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::json::Json;

/// The template's view of a JSON value.
pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Int(i) => i64::try_from(*i).map_or_else(|_| Value::from(*i), Value::from),
        Json::BigInt(digits) => match digits.parse::<u128>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from_object(BigInt(digits.clone())),
        },
        Json::Float(f) => Value::from(*f),
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => items.iter().map(value).collect(),
        Json::Object(entries) => object(entries),
    }
}

/// The template's view of a JSON object.
pub(super) fn object(entries: &[(String, Json)]) -> Value {
    Value::from_pairs(entries.iter().map(|(key, v)| (Value::from(key.as_str()), value(v))))
}

/// An integer beyond 128 bits: it can be written, not calculated with.
#[derive(Debug)]
pub(super) struct BigInt(String);

impl Object for BigInt {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
