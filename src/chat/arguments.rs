//! Arguments of filters and methods that come by position or by name, as in Python.

use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, Value};

/// What a filter takes after its value when it takes named arguments, too.
pub(super) type Any = Rest<ValueOrKwargs>;

/// The arguments of one call.
pub(super) struct Arguments {
    positional: Vec<Value>,
    named: Option<Kwargs>,
}

impl Arguments {
    /// The engine passes named arguments as one last value.
    pub(super) fn new(values: impl IntoIterator<Item = Value>) -> Result<Self, Error> {
        let mut positional: Vec<Value> = values.into_iter().collect();
        let named = positional.pop_if(|last| last.is_kwargs()).map(Kwargs::try_from).transpose()?;
        Ok(Self { positional, named })
    }

    /// The arguments of a filter.
    pub(super) fn of_filter(args: Any) -> Result<Self, Error> {
        Self::new(args.0.into_iter().map(ValueOrKwargs::into_value))
    }

    /// The argument at `position` or of that name.
    pub(super) fn get(&self, position: usize, name: &str) -> Result<Option<Value>, Error> {
        match (self.positional.get(position), &self.named) {
            (Some(value), _) => Ok(Some(value.clone())),
            (None, Some(named)) if named.has(name) => Ok(Some(named.get(name)?)),
            _ => Ok(None),
        }
    }

    /// [`Arguments::get`], where none is as good as nothing.
    pub(super) fn some(&self, position: usize, name: &str) -> Result<Option<Value>, Error> {
        Ok(self.get(position, name)?.filter(|value| !value.is_none()))
    }

    /// Whether the argument is given and true.
    pub(super) fn flag(&self, position: usize, name: &str) -> Result<bool, Error> {
        Ok(self.get(position, name)?.is_some_and(|value| value.is_true()))
    }

    /// Refuses arguments that nobody asked for: beyond `count` or of another name.
    pub(super) fn finish(&self, count: usize) -> Result<(), Error> {
        if self.positional.len() > count {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        self.named.as_ref().map_or(Ok(()), Kwargs::assert_all_used)
    }

    /// The named arguments, in their order.
    pub(super) fn named(&self) -> Result<Vec<(Value, Value)>, Error> {
        let Some(named) = &self.named else { return Ok(Vec::new()) };
        named.args().map(|name| Ok((Value::from(name), named.get(name)?))).collect()
    }
}
