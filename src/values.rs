//! JSON of a stranger as values: as many as have a place in a configuration.
//!
//! A value in memory takes dozens of times the bytes of a short one in a file. So they are
//! counted while they are read, and a file that holds nothing but brackets is refused before it
//! takes all memory. And they nest a few levels only: the reader recurses, and hosts call from
//! threads with little stack.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Far above what a configuration has (some hundreds), with lists of labels and layers.
const MOST: usize = 1 << 16;
/// Arrays and objects may nest this deep.
const LEVELS: usize = 32;

/// A value of at most [`MOST`] values, itself included, that nest at most [`LEVELS`] deep.
#[derive(Debug, Default)]
pub(crate) struct Values(pub(crate) Value);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Counted { left: &Cell::new(MOST), levels: LEVELS }.deserialize(deserializer).map(Self)
    }
}

/// Reads a value.
#[derive(Clone, Copy)]
struct Counted<'a> {
    /// How many there may still be.
    left: &'a Cell<usize>,
    /// How deep it may nest.
    levels: usize,
}

impl Counted<'_> {
    /// For the values in this one, which is an array or an object.
    fn below<E: Error>(self) -> Result<Self, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Self { levels, ..self }),
            None => Err(E::custom(format_args!("it nests deeper than {LEVELS} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(format_args!("more than {MOST} values"))),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let (mut items, below) = (Vec::new(), self.below()?);
        while let Some(item) = seq.next_element_seed(below)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (mut object, below) = (Map::new(), self.below()?);
        while let Some(key) = map.next_key::<String>()? {
            // As in Python, the last of a name counts.
            object.insert(key, map.next_value_seed(below)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_and_counted() {
        let text =
            r#"{"a":[1,-2,0.5,1e400,18446744073709551615,true,null,{}],"b":"c","a":["\u00e9"]}"#;
        let read: Values = serde_json::from_str(&text.replace("1e400", "1e30")).unwrap();
        let expected: Value = serde_json::from_str(&text.replace("1e400", "1e30")).unwrap();
        assert_eq!(read.0, expected);
        assert!(serde_json::from_str::<Values>(text).is_err());
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(serde_json::from_str::<Values>(&nested(LEVELS)).is_ok());
        assert!(serde_json::from_str::<Values>(&nested(LEVELS + 1)).is_err());
        let list = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert!(serde_json::from_str::<Values>(&list(MOST - 1)).is_ok());
        let error = serde_json::from_str::<Values>(&list(MOST)).unwrap_err();
        assert!(error.to_string().contains("more than 65536 values"), "{error}");
    }
}
