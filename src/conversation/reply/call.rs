//! One tool call, from `<function=` on.

use super::{
    FUNCTION, FUNCTION_END, Look, PARAMETER, PARAMETER_END, TOOL_CALL, TOOL_CALL_END, Tools, look,
};
use crate::conversation::save::{fields, numbered};

/// A tool call as the model wrote it: all values are text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    /// The function's name, without white space around it.
    pub name: String,
    /// Keys and values, in order; of equal keys the last one counts.
    pub parameters: Vec<(String, String)>,
    /// Every byte of the call, tags included.
    pub raw: String,
    /// Whether the function was closed; if the reply ended before, the last value may be cut.
    pub whole: bool,
    /// What is wrong with the form of the call, in words.
    pub problems: Vec<String>,
}

/// A name or key longer than this is none.
const LONGEST_NAME: usize = 256;

/// What a step came to.
pub(super) enum Step {
    /// More text is needed.
    Wait,
    /// Something was read.
    On,
    /// The call is complete; `another` begins right here.
    Done { another: bool },
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Name,
    /// Between parameters.
    Body,
    Key,
    Value,
    /// Behind `</function>`.
    Closing,
}

/// Reads one call.
#[derive(Clone, Debug)]
pub(super) struct CallReader {
    part: Part,
    call: RawCall,
    /// The value being read, with the line breaks of the markup.
    value: String,
}

fields!(RawCall { name, parameters, raw, whole, problems });
numbered!(Part { Name, Body, Key, Value, Closing });
fields!(CallReader { part, call, value });

impl CallReader {
    /// A call whose `opening`, up to `<function=`, was read.
    pub(super) fn new(opening: String) -> Self {
        let call = RawCall { raw: opening, whole: true, ..RawCall::default() };
        Self { part: Part::Name, call, value: String::new() }
    }

    pub(super) fn into_call(self) -> RawCall {
        self.call
    }

    /// Takes a beginning off `held`.
    pub(super) fn advance(&mut self, held: &mut String, end: bool, tools: Option<&Tools>) -> Step {
        match self.part {
            Part::Name => {
                let Some(name) = self.name(held, end) else { return Step::Wait };
                self.call.name = name;
                self.part = Part::Body;
                Step::On
            }
            Part::Key => {
                let Some(key) = self.name(held, end) else { return Step::Wait };
                self.call.parameters.push((key, String::new()));
                self.part = Part::Value;
                Step::On
            }
            Part::Body => self.body(held, end),
            Part::Value => self.value(held, end, tools),
            Part::Closing => self.closing(held, end),
        }
    }

    /// Reads up to `>`, or to the end of the line if that comes first.
    fn name(&mut self, held: &mut String, end: bool) -> Option<String> {
        let name = match held.find(['>', '\n']) {
            Some(at) => {
                let name = held[..at].trim().to_owned();
                let closed = held[at..].starts_with('>');
                self.eat(held, at + usize::from(closed));
                if !closed {
                    self.problem("a tag is not closed");
                }
                name
            }
            None if end => {
                let name = held.trim().to_owned();
                self.eat(held, held.len());
                name
            }
            None => return None,
        };
        Some(name)
    }

    fn body(&mut self, held: &mut String, end: bool) -> Step {
        self.eat(held, held.len() - held.trim_start().len());
        match look(held, &[PARAMETER, FUNCTION_END, TOOL_CALL_END, TOOL_CALL], end) {
            Look::Wait => Step::Wait,
            Look::At(0) => {
                self.eat(held, PARAMETER.len());
                self.part = Part::Key;
                Step::On
            }
            Look::At(1) => {
                self.eat(held, FUNCTION_END.len());
                self.part = Part::Closing;
                Step::On
            }
            Look::At(2) => {
                self.problem("</function> is missing");
                self.eat(held, TOOL_CALL_END.len());
                Step::Done { another: false }
            }
            Look::At(_) => {
                self.problem("</function> is missing");
                Step::Done { another: false }
            }
            Look::No if held.is_empty() => self.cut(),
            Look::No => {
                // At the end of the reply this may be the start of a tag.
                let known = [PARAMETER, FUNCTION_END, TOOL_CALL_END];
                if !(end && known.iter().any(|tag| tag.starts_with(held.as_str()))) {
                    self.problem("there is text outside the parameters");
                }
                let next = held.char_indices().skip(1).find(|(_, c)| *c == '<');
                self.eat(held, next.map_or(held.len(), |(at, _)| at));
                Step::On
            }
        }
    }

    fn value(&mut self, held: &mut String, end: bool, tools: Option<&Tools>) -> Step {
        let plain = held.find('<').unwrap_or(held.len());
        if plain > 0 {
            self.value.push_str(&held[..plain]);
            self.eat(held, plain);
            return Step::On;
        }
        if held.is_empty() {
            if !end {
                return Step::Wait;
            }
            self.end_value();
            return self.cut();
        }
        let tags = [PARAMETER_END, PARAMETER, FUNCTION_END, TOOL_CALL_END];
        let line_start = self.value.is_empty() || self.value.ends_with('\n');
        let ends = match look(held, &tags, end) {
            Look::Wait => return Step::Wait,
            Look::No if end && tags.iter().any(|tag| tag.starts_with(held.as_str())) => {
                // Cut in the middle of a tag.
                self.end_value();
                self.eat(held, held.len());
                return self.cut();
            }
            Look::No => Look::No,
            Look::At(0) => {
                let next = [PARAMETER, FUNCTION_END, TOOL_CALL_END, TOOL_CALL];
                followed(&held[PARAMETER_END.len()..], &next, end)
            }
            Look::At(1) if line_start => {
                let rest = &held[PARAMETER.len()..];
                match rest.find(['>', '\n']) {
                    None if !end && rest.len() <= LONGEST_NAME => return Step::Wait,
                    Some(at) if at <= LONGEST_NAME => {
                        let key = rest[..at].trim();
                        let given = self.call.parameters.iter().any(|(k, _)| k == key);
                        let known = tools.and_then(|t| t.knows_parameter(&self.call.name, key));
                        if known.unwrap_or(true) && !given { Look::At(1) } else { Look::No }
                    }
                    _ => Look::No,
                }
            }
            Look::At(1) => Look::No,
            Look::At(2) => {
                let next = [TOOL_CALL_END, TOOL_CALL, FUNCTION];
                followed(&held[FUNCTION_END.len()..], &next, end)
            }
            Look::At(_) if line_start => Look::At(3),
            Look::At(_) => followed(&held[TOOL_CALL_END.len()..], &[TOOL_CALL], end),
        };
        match ends {
            Look::Wait => Step::Wait,
            Look::No => {
                self.value.push('<');
                self.eat(held, 1);
                Step::On
            }
            Look::At(_) => {
                self.end_value();
                if held.starts_with(PARAMETER_END) {
                    self.eat(held, PARAMETER_END.len());
                } else {
                    self.problem("</parameter> is missing");
                }
                self.part = Part::Body;
                Step::On
            }
        }
    }

    fn closing(&mut self, held: &mut String, end: bool) -> Step {
        let rest = held.trim_start();
        let space = held.len() - rest.len();
        match look(rest, &[TOOL_CALL_END, FUNCTION], end) {
            Look::Wait => Step::Wait,
            Look::At(0) => {
                self.eat(held, space + TOOL_CALL_END.len());
                Step::Done { another: false }
            }
            Look::At(_) => {
                self.eat(held, space);
                Step::Done { another: true }
            }
            Look::No => {
                self.problem("</tool_call> is missing");
                // At the end of the reply the start of the tag is no text.
                if end && TOOL_CALL_END.starts_with(rest) {
                    self.eat(held, held.len());
                }
                Step::Done { another: false }
            }
        }
    }

    fn end_value(&mut self) {
        let value = std::mem::take(&mut self.value);
        let inner = value.strip_prefix('\n').unwrap_or(&value);
        let inner = inner.strip_suffix('\n').unwrap_or(inner);
        if let Some((_, slot)) = self.call.parameters.last_mut() {
            *slot = inner.to_owned();
        }
    }

    /// The reply ends inside the call.
    fn cut(&mut self) -> Step {
        self.call.whole = false;
        self.problem("the reply ends inside the call");
        Step::Done { another: false }
    }

    fn problem(&mut self, what: &str) {
        if !self.call.problems.iter().any(|known| known == what) {
            self.call.problems.push(what.to_owned());
        }
    }

    /// Moves the first `length` bytes to the raw text.
    fn eat(&mut self, held: &mut String, length: usize) {
        self.call.raw.push_str(&held[..length]);
        held.drain(..length);
    }
}

/// Whether one of `tags`, or the end of the reply, comes after white space.
fn followed(text: &str, tags: &[&str], end: bool) -> Look {
    let rest = text.trim_start();
    let cut_tag = || tags.iter().any(|tag| tag.starts_with(rest));
    match look(rest, tags, end) {
        // Includes the empty rest.
        Look::No if end && cut_tag() => Look::At(0),
        found => found,
    }
}
