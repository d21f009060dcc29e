//! The text of a reply, taken apart while it is made: thoughts, answer, tool calls.
//!
//! The published form of a reply is
//!
//! ```text
//! thoughts            (the prompt has opened the block with "<think>\n")
//! </think>
//!
//! text
//!
//! <tool_call>
//! <function=NAME>
//! <parameter=KEY>
//! value
//! </parameter>
//! </function>
//! </tool_call>
//! ```
//!
//! Models break it in every way there is, so the parser never fails: what is not markup is
//! text, a call that is not whole is given with what is wrong with it, and every byte of the
//! reply is in exactly one event. The events of a reply do not depend on how it was cut into
//! pieces, except for where pieces of text end.
//!
//! # Rules
//!
//! * **Thoughts** end at the first `</think>`; line breaks around the tags belong to them. If
//!   the prompt did not open a block, one is only opened by `<think>` at the very beginning;
//!   anywhere else the tags are text. `<tool_call>` inside thoughts is a thought: what a model
//!   merely considers must not be carried out.
//! * **Calls** are looked for where tools were offered, and begin with `<tool_call>`, white
//!   space, `<function=`. White space before a call, between calls and at the end behind one is
//!   no text.
//! * **Values**: one line break after `<parameter=KEY>` and one before `</parameter>` belong to
//!   the markup, all other white space to the value. `</parameter>` ends a value only if
//!   `<parameter=`, `</function>`, `</tool_call>` or the end of the reply follows, so a value may
//!   hold that tag. Where it is missing, a value ends at `<parameter=KEY>` at the start of a line
//!   (if the tool has a parameter of that name that was not given yet), at `</function>` with
//!   `</tool_call>` behind it, or at `</tool_call>` at the start of a line.
//! * Missing `</function>` and `</tool_call>` are made up for; text after a call is text.

mod call;
mod stop;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use call::RawCall;
pub use stop::StopFilter;

use super::save::{Field, Input, fields, odd};
use super::tools::Tools;
use crate::Result;
use call::{CallReader, Step};

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Thoughts. Several in a row belong together.
    Thinking(String),
    /// Text of the answer. Several in a row belong together.
    Text(String),
    /// A tool call, complete.
    Call(RawCall),
    /// Tags and the white space that goes with them: nothing to show.
    Markup(String),
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing was read yet; whether the prompt has opened a think block.
    Opening {
        inside: bool,
    },
    /// Line breaks before the first thought.
    BeforeThoughts,
    Thoughts,
    /// Line breaks between `</think>` and the answer.
    BeforeText,
    Text,
    Call(CallReader),
    /// Behind a call, where only white space has come.
    AfterCall,
}

/// Takes a reply apart. See the module's documentation for the rules.
#[derive(Clone, Debug)]
pub struct ReplyParser {
    state: State,
    /// Read, but not decided on.
    held: String,
    /// `None`: no tools were offered, so there are no calls.
    tools: Option<Arc<Tools>>,
}

const THINK: &str = "<think>";
pub(super) const THINK_END: &str = "</think>";
const TOOL_CALL: &str = "<tool_call>";
const TOOL_CALL_END: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

fields!(ReplyParser { state, held, tools });

impl Field for State {
    fn store(&self, out: &mut Vec<u8>) {
        let number: u64 = match self {
            Self::Opening { inside: false } => 0,
            Self::Opening { inside: true } => 1,
            Self::BeforeThoughts => 2,
            Self::Thoughts => 3,
            Self::BeforeText => 4,
            Self::Text => 5,
            Self::Call(_) => 6,
            Self::AfterCall => 7,
        };
        number.store(out);
        if let Self::Call(reader) = self {
            reader.store(out);
        }
    }

    fn load(input: &mut Input) -> Result<Self> {
        Ok(match u64::load(input)? {
            0 => Self::Opening { inside: false },
            1 => Self::Opening { inside: true },
            2 => Self::BeforeThoughts,
            3 => Self::Thoughts,
            4 => Self::BeforeText,
            5 => Self::Text,
            6 => Self::Call(CallReader::load(input)?),
            7 => Self::AfterCall,
            _ => return Err(odd("no such part of a reply")),
        })
    }
}

impl ReplyParser {
    /// A parser at the start of a reply. `thinking`: the prompt ends inside a think block.
    pub fn new(thinking: bool, tools: Option<Arc<Tools>>) -> Self {
        Self { state: State::Opening { inside: thinking }, held: String::new(), tools }
    }

    /// Whether what comes next belongs to the thoughts, as far as is known.
    pub fn is_thinking(&self) -> bool {
        matches!(
            self.state,
            State::Opening { inside: true } | State::BeforeThoughts | State::Thoughts
        )
    }

    /// Whether the last thing read is a line break, or nothing.
    pub fn is_at_line_start(&self) -> bool {
        match self.state {
            State::Opening { .. } | State::BeforeThoughts | State::BeforeText => true,
            _ => self.held.ends_with('\n'),
        }
    }

    /// Reads on.
    pub fn push(&mut self, text: &str, events: &mut Vec<Event>) {
        self.held.push_str(text);
        while self.advance(false, events) {}
    }

    /// The reply ends here: decides on what is held back.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        while self.advance(true, events) {}
    }

    /// Decides on a beginning of what is held; `false` if that takes more text. With `end` no
    /// more text comes.
    fn advance(&mut self, end: bool, events: &mut Vec<Event>) -> bool {
        match &mut self.state {
            State::Opening { inside } => {
                let inside = *inside;
                let rest = self.held.trim_start();
                let space = self.held.len() - rest.len();
                match look(rest, &[THINK], end) {
                    Look::Wait => return false,
                    Look::At(_) => {
                        self.take(space + THINK.len(), events, Event::Markup);
                        self.state = State::BeforeThoughts;
                    }
                    Look::No if inside => self.state = State::BeforeThoughts,
                    Look::No => self.state = State::Text,
                }
                true
            }
            State::BeforeThoughts => self.skip(|c| c == '\n', events, State::Thoughts),
            State::BeforeText => self.skip(|c| c == '\n', events, State::Text),
            State::AfterCall => {
                // Before more text it is text, before another call the text decides.
                if self.held.trim_start().is_empty() {
                    return end && self.take(self.held.len(), events, Event::Markup);
                }
                self.state = State::Text;
                true
            }
            State::Thoughts => self.thoughts(end, events),
            State::Text => self.text(end, events),
            State::Call(reader) => {
                let step = reader.advance(&mut self.held, end, self.tools.as_deref());
                match step {
                    Step::Wait => false,
                    Step::On => true,
                    Step::Done { another } => {
                        let next = if another {
                            let opening = self.held.drain(..FUNCTION.len()).collect();
                            State::Call(CallReader::new(opening))
                        } else {
                            State::AfterCall
                        };
                        if let State::Call(reader) = std::mem::replace(&mut self.state, next) {
                            events.push(Event::Call(reader.into_call()));
                        }
                        true
                    }
                }
            }
        }
    }

    fn thoughts(&mut self, end: bool, events: &mut Vec<Event>) -> bool {
        if let Some(at) = self.held.find(THINK_END) {
            let thought = self.held[..at].trim_end_matches('\n').len();
            self.take(thought, events, Event::Thinking);
            self.take(at - thought + THINK_END.len(), events, Event::Markup);
            self.state = State::BeforeText;
            return true;
        }
        let sure =
            if end { self.held.len() } else { undecided(&self.held, THINK_END, |c| c == '\n') };
        self.take(sure, events, Event::Thinking)
    }

    fn text(&mut self, end: bool, events: &mut Vec<Event>) -> bool {
        if self.tools.is_none() {
            return self.take(self.held.len(), events, Event::Text);
        }
        let Some(at) = self.held.find(TOOL_CALL) else {
            let sure = if end {
                self.held.len()
            } else {
                undecided(&self.held, TOOL_CALL, char::is_whitespace)
            };
            return self.take(sure, events, Event::Text);
        };
        let inside = &self.held[at + TOOL_CALL.len()..];
        let rest = inside.trim_start();
        let space = inside.len() - rest.len();
        let text = self.held[..at].trim_end().len();
        match look(rest, &[FUNCTION], end) {
            Look::Wait => self.take(text, events, Event::Text),
            Look::No => self.take(at + TOOL_CALL.len(), events, Event::Text),
            Look::At(_) => {
                self.take(text, events, Event::Text);
                self.take(at - text, events, Event::Markup);
                let opening = TOOL_CALL.len() + space + FUNCTION.len();
                self.state = State::Call(CallReader::new(self.held.drain(..opening).collect()));
                true
            }
        }
    }

    /// Moves the characters at the start that satisfy `is` to the markup; at the first other
    /// character the state is `next`.
    fn skip(&mut self, is: impl Fn(char) -> bool, events: &mut Vec<Event>, next: State) -> bool {
        let rest = self.held.trim_start_matches(is).len();
        self.take(self.held.len() - rest, events, Event::Markup);
        if rest > 0 {
            self.state = next;
        }
        rest > 0
    }

    /// Gives the first `length` bytes away as an event; `false` if there are none.
    fn take(&mut self, length: usize, events: &mut Vec<Event>, kind: fn(String) -> Event) -> bool {
        if length > 0 {
            events.push(kind(self.held.drain(..length).collect()));
        }
        length > 0
    }
}

/// What a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The tag of this index.
    At(usize),
    /// More text decides.
    Wait,
    No,
}

/// Looks for one of `tags` at the start of `text`.
fn look(text: &str, tags: &[&str], end: bool) -> Look {
    if let Some(index) = tags.iter().position(|tag| text.starts_with(tag)) {
        return Look::At(index);
    }
    if !end && tags.iter().any(|tag| tag.starts_with(text)) { Look::Wait } else { Look::No }
}

/// How much of `text`, which does not hold `tag`, is certainly not part of it or of the
/// `space` before it.
fn undecided(text: &str, tag: &str, space: impl Fn(char) -> bool) -> usize {
    // The tags hold no second '<', so only the last one can be the start of a whole tag.
    let open = text.rfind('<').filter(|&at| tag.starts_with(&text[at..]));
    text[..open.unwrap_or(text.len())].trim_end_matches(space).len()
}
