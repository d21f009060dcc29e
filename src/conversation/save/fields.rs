//! Values as bytes, field by field.
//!
//! Whole numbers are eight bytes, little-endian; texts and lists have their length in front.
//! Whoever reads has compared a checksum, so that odd bytes are made with intent: they are
//! refused all the same, and no length is believed before the bytes are there.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chat::Json;
use crate::{Error, Result};

/// What can be saved.
pub(in crate::conversation) trait Field: Sized {
    /// Appends the value to `out`.
    fn store(&self, out: &mut Vec<u8>);
    /// Reads what [`Field::store`] wrote.
    fn load(input: &mut Input) -> Result<Self>;
}

/// The bytes that are not read yet.
pub(in crate::conversation) struct Input<'a> {
    rest: &'a [u8],
    /// How deep the value being read is.
    depth: usize,
}

/// No value is deeper in others.
const MOST_DEPTH: usize = 24;

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(odd("a value is cut off"));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Whether all was read.
    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(odd("there is something behind its end")) }
    }
}

/// What was read cannot be.
pub(in crate::conversation) fn odd(what: &str) -> Error {
    Error::format(format!("the saved conversation is damaged: {what}"))
}

/// Saves a struct field by field, in the order given, which is all of them.
macro_rules! fields {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::conversation::save::Field for $name {
            fn store(&self, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($crate::conversation::save::Field::store($field, out);)+
            }
            fn load(input: &mut $crate::conversation::save::Input) -> $crate::Result<Self> {
                $(let $field = $crate::conversation::save::Field::load(input)?;)+
                Ok(Self { $($field),+ })
            }
        }
    };
}

/// Saves an enum whose variants hold nothing, as their numbers in the order given.
macro_rules! numbered {
    ($name:ident { $($variant:ident),+ $(,)? }) => {
        impl $crate::conversation::save::Field for $name {
            fn store(&self, out: &mut Vec<u8>) {
                $crate::conversation::save::Field::store(&(*self as u64), out);
            }
            fn load(input: &mut $crate::conversation::save::Input) -> $crate::Result<Self> {
                let number: u64 = $crate::conversation::save::Field::load(input)?;
                $(if number == Self::$variant as u64 { return Ok(Self::$variant); })+
                Err($crate::conversation::save::odd(concat!("no such ", stringify!($name))))
            }
        }
    };
}

pub(in crate::conversation) use {fields, numbered};

impl Field for u64 {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
    fn load(input: &mut Input) -> Result<Self> {
        let bytes = input.take(8)?;
        Ok(Self::from_le_bytes(std::array::from_fn(|i| bytes[i])))
    }
}

impl Field for usize {
    fn store(&self, out: &mut Vec<u8>) {
        (*self as u64).store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        Self::try_from(u64::load(input)?).map_err(|_| odd("a number is too large"))
    }
}

impl Field for u32 {
    fn store(&self, out: &mut Vec<u8>) {
        u64::from(*self).store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        Self::try_from(u64::load(input)?).map_err(|_| odd("a number is too large"))
    }
}

impl Field for bool {
    fn store(&self, out: &mut Vec<u8>) {
        u64::from(*self).store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        match u64::load(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(odd("a number is neither yes nor no")),
        }
    }
}

impl Field for String {
    fn store(&self, out: &mut Vec<u8>) {
        self.len().store(out);
        out.extend(self.as_bytes());
    }
    fn load(input: &mut Input) -> Result<Self> {
        let length = usize::load(input)?;
        let text = std::str::from_utf8(input.take(length)?);
        text.map(str::to_owned).map_err(|_| odd("a text is not UTF-8"))
    }
}

impl Field for Json {
    fn store(&self, out: &mut Vec<u8>) {
        self.to_text().store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        Self::parse(&String::load(input)?).map_err(|error| odd(error.message()))
    }
}

impl<T: Field> Field for Option<T> {
    fn store(&self, out: &mut Vec<u8>) {
        self.is_some().store(out);
        self.iter().for_each(|value| value.store(out));
    }
    fn load(input: &mut Input) -> Result<Self> {
        bool::load(input)?.then(|| T::load(input)).transpose()
    }
}

impl<T: Field> Field for Vec<T> {
    fn store(&self, out: &mut Vec<u8>) {
        self.len().store(out);
        self.iter().for_each(|value| value.store(out));
    }
    fn load(input: &mut Input) -> Result<Self> {
        // Each value has bytes of its own, so that a wrong count ends with them.
        (0..usize::load(input)?).map(|_| T::load(input)).collect()
    }
}

impl<T: Field> Field for VecDeque<T> {
    fn store(&self, out: &mut Vec<u8>) {
        self.len().store(out);
        self.iter().for_each(|value| value.store(out));
    }
    fn load(input: &mut Input) -> Result<Self> {
        Vec::load(input).map(Self::from)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn store(&self, out: &mut Vec<u8>) {
        self.0.store(out);
        self.1.store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        Ok((A::load(input)?, B::load(input)?))
    }
}

impl<T: Field> Field for Box<T> {
    fn store(&self, out: &mut Vec<u8>) {
        (**self).store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        input.depth += 1;
        if input.depth > MOST_DEPTH {
            return Err(odd("values are too deep in others"));
        }
        let value = T::load(input).map(Self::new);
        input.depth -= 1;
        value
    }
}

impl<T: Field> Field for Arc<T> {
    fn store(&self, out: &mut Vec<u8>) {
        (**self).store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        T::load(input).map(Self::new)
    }
}
