//! The Jinja environment as Transformers sets it up: what differs from minijinja's own.
//!
//! * blocks trim the line break after them and the indentation before them;
//! * no HTML escaping anywhere; `tojson` is `json.dumps`;
//! * values are written as Python's `str` writes them (`True`, `None`, `1e-05`, `['a']`);
//! * white space is Python's; the methods of Python's strings, lists and dictionaries;
//! * `raise_exception`, `strftime_now`, loop controls, the `generation` tag.
//!
//! A template is code from a stranger: it runs with a limit on work and memory (minijinja's
//! fuel, see [`Engine::render`]; the module `limit` on top) and on recursion, and it cannot reach files or the network.

use std::fmt;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

use super::prepare::prepare;
use super::{filters, limit, methods, python, time};

/// Templates may call themselves this deep (macros, recursive loops). Each level takes
/// stack, and hosts call from threads with little of it.
const RECURSION_LIMIT: usize = 100;

/// Fuel for any request: less than a tenth of a second of plain work, and at most 64 bytes
/// of memory per unit (26 MB). The published template takes about 150 units per message.
const BASE_FUEL: u64 = 400_000;
/// Fuel for each byte of the request.
const FUEL_PER_BYTE: u64 = 32;

/// Templates compiled for one environment, under their names.
pub(super) struct Engine {
    environment: Environment<'static>,
    /// Some template asks for the time.
    wants_time: bool,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    pub(super) fn new() -> Self {
        let mut env = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        // Only delimiters can be refused, and these are the default ones.
        if let Ok(syntax) = syntax.build() {
            env.set_syntax(syntax);
        }
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_recursion_limit(RECURSION_LIMIT);
        env.set_formatter(|out, state, value| {
            limit::check()?;
            match value.as_str() {
                Some(text) => Ok(out.write_str(text)?),
                None => Ok(out.write_str(&python::str(state, value)?)?),
            }
        });
        env.set_unknown_method_callback(methods::call);
        filters::add(&mut env);
        env.add_function("raise_exception", raise_exception);
        env.add_function("joiner", minijinja_contrib::globals::joiner);
        Self { environment: env, wants_time: false }
    }

    /// Compiles `source` under `name`.
    pub(super) fn add(&mut self, name: &str, source: &str) -> crate::Result<()> {
        self.wants_time |= source.contains("strftime_now");
        let source = prepare(source).map_err(crate::Error::template)?;
        self.environment
            .add_template_owned(name.to_string(), source)
            .map_err(|error| readable(&error))
    }

    /// The value of a string literal of the template language.
    pub(super) fn literal(&self, literal: &str) -> Option<String> {
        let value = self.environment.compile_expression(literal).ok()?.eval(()).ok()?;
        value.as_str().map(str::to_string)
    }

    /// Renders the template `name` with `context`, within the work that a request of
    /// `bytes` bytes may take. `strftime_now` gives `now`.
    pub(super) fn render(
        &self,
        name: &str,
        context: Value,
        bytes: usize,
        now: SystemTime,
    ) -> Result<String, Error> {
        // A clone shares everything and costs about a microsecond.
        let mut env = self.environment.clone();
        env.set_fuel(Some((bytes as u64).saturating_mul(FUEL_PER_BYTE).saturating_add(BASE_FUEL)));
        if self.wants_time {
            env.add_function("strftime_now", move |format: &str| time::strftime(now, format));
        }
        limit::within(bytes, || env.get_template(name)?.render(context))
    }
}

/// What `raise_exception` was called with: the template's own words to the caller.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(state: &State, message: &Value) -> Result<Value, Error> {
    let message = python::str(state, message)?;
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// An error of the engine for the caller: with the template's line, and in the template's
/// own words if it raised the error itself.
pub(super) fn readable(error: &Error) -> crate::Error {
    let mut line = error.line();
    let mut text = error
        .detail()
        .map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    if error.kind() == ErrorKind::OutOfFuel {
        text = "it does more work than the conversation justifies and was stopped".to_string();
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(inner) = current.downcast_ref::<Error>() {
            line = inner.line().or(line);
        }
        if let Some(Raised(message)) = current.downcast_ref() {
            let at = line.map_or(String::new(), |n| format!(" (line {n})"));
            return crate::Error::template(format!("the chat template{at} says: {message}"));
        }
        cause = current.source();
    }
    let at = line.map_or(String::new(), |n| format!(", line {n}"));
    crate::Error::template(format!("chat template{at}: {text}"))
}
