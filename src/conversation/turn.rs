//! One reply while it is made: tokens to pieces.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::reply::{Event, RawCall, ReplyParser, StopFilter, THINK_END};
use super::save::fields;
use super::tools::{Tools, joined};
use crate::chat::Json;
use crate::engine::Model;
use crate::session::{Session, Step};
use crate::tokenizer::{AddedTokens, Special, StreamDecoder};
use crate::{Error, ErrorKind, Result};

/// A piece of a reply. Texts are whole characters; put together they are the reply's.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Thoughts.
    Thinking(String),
    /// Text of the answer.
    Text(String),
    /// A tool call. The host carries it out and sends the result.
    ToolCall(ToolCall),
    /// There is no more.
    End(Finish),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// A name of its own in the conversation, `call_0` and so on.
    pub id: String,
    /// The function.
    pub name: String,
    /// A JSON object, typed by the tool's schema (see [`super::tools`]).
    pub arguments: String,
    /// What the model wrote.
    pub raw: String,
    /// Whether the call is whole. One that is not was cut by the end of the reply and must not be
    /// carried out.
    pub whole: bool,
    /// What is wrong with its form, or does not fit the tool's schema; empty for a proper call.
    pub problem: String,
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn.
    EndOfTurn,
    /// The model ended its turn, and has called tools.
    ToolCalls,
    /// A stop string came.
    Stop(String),
    /// The reply is as long as it may be.
    Length,
    /// The session is full.
    ContextFull,
    /// It was cancelled.
    Cancelled,
}

/// How long a reply may be, in tokens; 0 for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub(super) thinking_budget: usize,
    pub(super) max_tokens: usize,
}

/// A reply in progress, or one that has ended.
#[derive(Clone)]
pub(super) struct Turn {
    limits: Limits,
    tools: Option<Arc<Tools>>,
    decoder: StreamDecoder,
    parser: ReplyParser,
    stop: StopFilter,
    /// What has come so far.
    thoughts: String,
    text: String,
    calls: Vec<ToolCall>,
    /// The number of the first call in the conversation.
    first_call: usize,
    /// Of it, what was not asked for yet.
    pieces: VecDeque<Piece>,
    /// Bytes of text that were given before a resumption and come again.
    again: usize,
    /// Tokens since the start or the resumption, and those of the thoughts.
    made: usize,
    thought: usize,
    /// Where the session must stand, and the number of its sequence there
    /// ([`Session::sequence_number`]).
    position: usize,
    sequence: u64,
    /// What closes the thoughts, while the session computes it.
    closing: Option<&'static str>,
    /// Whether the thoughts were closed for the model, which must not do so again.
    closed: bool,
    lost: bool,
    finish: Option<Finish>,
    /// The reply before it was ended, if it can be gone on with.
    open: Option<Box<Turn>>,
}

/// What closes thoughts: at the start of a line, and elsewhere.
pub(super) const CLOSINGS: [&str; 2] = ["</think>\n\n", "\n</think>\n\n"];

impl Turn {
    /// The reply to what `session` holds, in a conversation with `first_call` calls before.
    pub(super) fn new(
        session: &Session,
        tools: Option<Arc<Tools>>,
        stop: StopFilter,
        limits: Limits,
        first_call: usize,
    ) -> Self {
        let thinking = opens_thoughts(session.model(), session.tokens());
        Self {
            limits,
            decoder: StreamDecoder::new(Special::Skip),
            parser: ReplyParser::new(thinking, tools.clone()),
            tools,
            stop,
            thoughts: String::new(),
            text: String::new(),
            calls: Vec::new(),
            first_call,
            pieces: VecDeque::new(),
            again: 0,
            made: 0,
            thought: 0,
            position: session.position(),
            sequence: session.sequence_number(),
            closing: None,
            closed: false,
            lost: false,
            finish: None,
            open: None,
        }
    }

    pub(super) fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Whether what it is a reply to could not be computed.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// The next piece; `None` when the deadline has passed before there is one.
    pub(super) fn next(
        &mut self,
        session: &mut Session,
        deadline: Option<Instant>,
    ) -> Result<Option<Piece>> {
        let mut moved = false;
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some(piece));
            }
            if let Some(finish) = &self.finish {
                return Ok(Some(Piece::End(finish.clone())));
            }
            self.check_session(session)?;
            // The shortest time gets forward, too.
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if (moved && left == Some(Duration::ZERO)) || !self.step(session, left)? {
                return Ok(None);
            }
            moved = true;
        }
    }

    /// Refuses a session whose sequence is not what the reply has left.
    fn check_session(&self, session: &Session) -> Result<()> {
        let (found, expected) = (session.position(), self.position);
        if found == expected && session.sequence_number() == self.sequence {
            return Ok(());
        }
        let how = if found == expected {
            format!("it stands at {found} as the reply does, behind other tokens")
        } else {
            format!("it stands at {found}, the reply at {expected}")
        };
        Err(Error::invalid_state(format!("the session was changed during the reply: {how}")))
    }

    /// Makes one token, or closes the thoughts, or ends the reply; false if `budget` is over
    /// before that. An error before the prompt is computed
    /// is no end of the reply: there is none.
    fn step(&mut self, session: &mut Session, budget: Option<Duration>) -> Result<bool> {
        let Limits { thinking_budget, max_tokens } = self.limits;
        if max_tokens > 0 && self.made >= max_tokens {
            self.end(Finish::Length);
            return Ok(true);
        }
        let thinking = self.parser.is_thinking();
        let is_prompt = session.has_input() && self.closing.is_none();
        let length = session.position();
        let spent = thinking_budget > 0 && self.thought >= thinking_budget;
        // A model whose thoughts were cut off goes on with them and closes them, behind which it
        // would answer once more.
        let end_of_thoughts = session.model().tokenizer().token_id(THINK_END);
        session.ban_token(end_of_thoughts.filter(|_| self.closed));
        let result = if thinking && spent {
            self.close_thoughts(session, budget)
        } else {
            let step = match budget {
                None => {
                    let computed = if is_prompt { session.compute_input() } else { Ok(()) };
                    computed.and_then(|()| session.next_token()).map(Step::from)
                }
                Some(budget) => session.step(budget),
            };
            step.map(|step| match step {
                Step::Token(token) => {
                    self.made += 1;
                    self.thought += usize::from(thinking);
                    let mut text = String::new();
                    self.decoder.push(session.model().tokenizer(), token, &mut text);
                    self.read(&text);
                    true
                }
                Step::EndOfTurn(_) => {
                    self.end(Finish::EndOfTurn);
                    true
                }
                Step::LimitReached => {
                    self.end(Finish::ContextFull);
                    true
                }
                Step::Working | Step::Ready => false,
            })
        };
        session.ban_token(None);
        self.position = session.position();
        self.sequence = session.sequence_number();
        match result {
            // What of the prompt was not computed has left the sequence.
            Err(error) if is_prompt && self.position < length => {
                self.lost = true;
                Err(error)
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                self.end(Finish::Cancelled);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ContextOverflow => {
                self.end(Finish::ContextFull);
                Ok(true)
            }
            other => other,
        }
    }

    /// Writes `</think>` in the model's place; false if `budget` is over before that is computed.
    fn close_thoughts(&mut self, session: &mut Session, budget: Option<Duration>) -> Result<bool> {
        let closing = match self.closing {
            Some(closing) => closing,
            None => {
                let closing = CLOSINGS[usize::from(!self.parser.is_at_line_start())];
                let mut ids = Vec::new();
                session.model().tokenizer().encode(closing, AddedTokens::Honour, &mut ids);
                session.enqueue_output(&ids)?;
                self.closing = Some(closing);
                closing
            }
        };
        // What an error leaves uncomputed is no part of the sequence any more.
        let step = session.step_input(budget.unwrap_or(Duration::MAX));
        if matches!(step, Ok(Step::Working)) {
            return Ok(false);
        }
        self.closing = None;
        step?;
        self.closed = true;
        let mut text = String::new();
        self.decoder.finish(&mut text);
        text.push_str(closing);
        self.read(&text);
        Ok(true)
    }

    /// Reads more of the reply.
    fn read(&mut self, text: &str) {
        let mut events = Vec::new();
        self.parser.push(text, &mut events);
        self.take(events);
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Thinking(text) => {
                    self.thoughts.push_str(&text);
                    self.give(text, Piece::Thinking);
                }
                Event::Text(text) => {
                    let mut sure = String::new();
                    let found = self.stop.push(&text, &mut sure).map(str::to_owned);
                    self.add_text(sure);
                    let Some(stop) = found else { continue };
                    // At a cut it may still be the white space or the tag of a call. It is
                    // not shown, and the rest of the reply decides.
                    if self.open.is_none() {
                        // What a cut has shown of it stays in the text.
                        self.text.push_str(stop.get(..self.again).unwrap_or_default());
                        self.finish = Some(Finish::Stop(stop));
                    }
                    return;
                }
                Event::Call(call) => {
                    self.flush_text();
                    let mut call = self.typed(call);
                    // A call that only the end has completed comes again after a resumption.
                    call.whole &= self.open.is_none();
                    // What a cut has shown of its markup is no text.
                    self.again = 0;
                    self.calls.push(call.clone());
                    self.pieces.push_back(Piece::ToolCall(call));
                }
                Event::Markup(_) => {
                    // No stop string goes on behind it, and what a cut has shown of it is no text.
                    self.flush_text();
                    self.again = 0;
                }
            }
        }
    }

    fn typed(&self, raw: RawCall) -> ToolCall {
        let none = Tools::default();
        let (json, more) = self.tools.as_deref().unwrap_or(&none).arguments(&raw);
        let problems: Vec<String> = raw.problems.into_iter().chain(more).collect();
        ToolCall {
            id: format!("call_{}", self.first_call + self.calls.len()),
            name: raw.name,
            arguments: json.to_text(),
            raw: raw.raw,
            whole: raw.whole,
            problem: joined(&problems),
        }
    }

    fn add_text(&mut self, text: String) {
        self.text.push_str(&text);
        self.give(text, Piece::Text);
    }

    /// What the stop strings have held back is text.
    fn flush_text(&mut self) {
        let mut text = String::new();
        self.stop.finish(&mut text);
        self.add_text(text);
    }

    /// Queues a text, joined with the one before it.
    fn give(&mut self, text: String, kind: fn(String) -> Piece) {
        let known = self.again.min(text.len());
        self.again -= known;
        // What was given before were whole characters.
        let text = text.get(known..).unwrap_or_default().to_owned();
        if text.is_empty() {
            return;
        }
        match (self.pieces.back_mut(), kind(text)) {
            (Some(Piece::Text(last)), Piece::Text(text))
            | (Some(Piece::Thinking(last)), Piece::Thinking(text)) => last.push_str(&text),
            (_, piece) => self.pieces.push_back(piece),
        }
    }

    /// Ends the reply.
    fn end(&mut self, finish: Finish) {
        let may_go_on = matches!(finish, Finish::Length | Finish::Cancelled);
        self.open = may_go_on.then(|| Box::new(self.clone()));
        let mut events = Vec::new();
        // Bytes of an unfinished character become U+FFFD if the model left it so; after a cut
        // they wait for the rest.
        if finish == Finish::EndOfTurn {
            let mut text = String::new();
            self.decoder.finish(&mut text);
            self.parser.push(&text, &mut events);
        }
        self.parser.finish(&mut events);
        self.take(events);
        // If not by a stop string in what was held back.
        if self.finish.is_none() {
            self.flush_text();
            let calls = finish == Finish::EndOfTurn && !self.calls.is_empty();
            self.finish = Some(if calls { Finish::ToolCalls } else { finish });
        }
    }

    /// Ends the reply because nobody wants the rest.
    pub(super) fn abandon(&mut self) {
        self.end(Finish::Cancelled);
    }

    /// Whether nothing of it has come.
    pub(super) fn is_empty(&self) -> bool {
        self.thoughts.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }

    /// Ends the possibility to resume: the session goes on elsewhere.
    pub(super) fn seal(&mut self) {
        self.open = None;
    }

    /// Undoes an end that can be undone, where `session` still stands.
    pub(super) fn resume(&mut self, session: &Session) -> Result<()> {
        if self.open.is_some() {
            self.check_session(session)?;
        }
        let Some(open) = self.open.take() else {
            return Err(Error::invalid_state(
                "there is no reply that ended by a limit of tokens or a cancel",
            ));
        };
        let given = self.text.len() + self.thoughts.len();
        let mut turn = *open;
        // What earlier cuts have given of it is part of that.
        turn.again = given.saturating_sub(turn.text.len() + turn.thoughts.len());
        turn.made = 0;
        // Pieces that nobody asked for yet come first, those of the end included.
        turn.pieces = std::mem::take(&mut self.pieces);
        turn.pieces.retain(|piece| !matches!(piece, Piece::ToolCall(call) if !call.whole));
        *self = turn;
        Ok(())
    }

    /// The reply as a message.
    pub(super) fn message(&self) -> Json {
        let text = |text: &str| Json::String(text.to_owned());
        let mut entries =
            vec![("role".to_owned(), text("assistant")), ("content".to_owned(), text(&self.text))];
        // A template that finds no thoughts of their own looks for them in the content.
        if !self.thoughts.is_empty() || self.text.contains("</think>") {
            entries.push(("reasoning_content".to_owned(), text(&self.thoughts)));
        }
        let calls = self.calls.iter().map(|call| {
            Json::Object(vec![
                ("id".to_owned(), text(&call.id)),
                ("type".to_owned(), text("function")),
                (
                    "function".to_owned(),
                    Json::Object(vec![
                        ("name".to_owned(), text(&call.name)),
                        ("arguments".to_owned(), text(&call.arguments)),
                    ]),
                ),
            ])
        });
        let calls: Vec<Json> = calls.collect();
        if !calls.is_empty() {
            entries.push(("tool_calls".to_owned(), Json::Array(calls)));
        }
        Json::Object(entries)
    }
}

/// Whether the prompt ends inside a think block: the template opened one for the answer.
fn opens_thoughts(model: &Model, prompt: &[u32]) -> bool {
    let tokenizer = model.tokenizer();
    // Only in the header of the answer: a message may hold such words, too.
    let start = match tokenizer.token_id("<|im_start|>") {
        Some(id) => prompt.iter().rposition(|&token| token == id).map_or(0, |at| at + 1),
        None => prompt.len().saturating_sub(4),
    };
    let mut bytes = Vec::new();
    if tokenizer.decode(&prompt[start..], Special::Keep, &mut bytes).is_err() {
        return false;
    }
    let header = String::from_utf8_lossy(&bytes);
    match header.rfind("<think>") {
        Some(at) => !header[at..].contains("</think>"),
        None => false,
    }
}

fields!(Limits { thinking_budget, max_tokens });
fields!(ToolCall { id, name, arguments, raw, whole, problem });
fields!(Turn {
    limits,
    tools,
    decoder,
    parser,
    stop,
    thoughts,
    text,
    calls,
    first_call,
    pieces,
    again,
    made,
    thought,
    position,
    sequence,
    closing,
    closed,
    lost,
    finish,
    open,
});
