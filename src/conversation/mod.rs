//! Conversations: turns over a session, replies in typed pieces, tool calls, history.
//!
//! A [`Conversation`] holds the messages; the [`Session`], which each call takes, holds what is
//! computed. Sending renders all messages by the checkpoint's template and feeds them, which
//! costs the new tokens only ([`Session::feed_chat`]). So a conversation can go on over a fork of
//! its session, a restored one or an empty one; only a reply in progress belongs to the session it
//! was started on (and is saved and restored with it, see [`Conversation::save`]).
//!
//! | file | what it holds |
//! |---|---|
//! | [`reply`] | the text of a reply to thoughts, text and calls: a parser without a model |
//! | [`tools`] | arguments by the tools' schemas |
//! | `turn` | one reply while it is made |
//! | `save` | all of it as bytes, and back |

pub mod reply;
mod save;
pub mod tools;
mod turn;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use save::MAGIC as SAVED_MAGIC;
pub use turn::{Finish, Piece, ToolCall};

use crate::chat::{ChatRequest, Json, json_get};
use crate::engine::{ChatEncoding, Model};
use crate::session::{Extent, Fed, Session};
use crate::{Error, Result};
use reply::StopFilter;
use save::numbered;
use tools::Tools;
use turn::{Limits, Turn};

/// How a conversation is held.
#[derive(Clone, Debug, Default)]
pub struct ConversationOptions {
    /// The system message in front of all.
    pub system: Option<String>,
    /// The tools on offer, as a JSON array in the form of the OpenAI API. Without any, tool calls
    /// in a reply are text.
    pub tools: Option<String>,
    /// Whether the model thinks first; `None` leaves it to the template.
    pub thinking: Option<bool>,
    /// Most tokens of thoughts in a reply, 0 for no limit. When they are spent, the think block is
    /// closed for the model, which then answers; it cannot close it once more in that reply: the
    /// token `</think>` is not chosen any more.
    pub thinking_budget: usize,
    /// Most tokens of a reply, thoughts included; 0 for no limit but the session's.
    pub max_tokens: usize,
    /// Texts at which an answer ends, before them. They are looked for in the text of the answer,
    /// not in thoughts or calls.
    pub stop: Vec<String>,
    /// What spellings of added tokens in messages become.
    pub encoding: ChatEncoding,
}

/// A conversation. See the module's documentation.
pub struct Conversation {
    model: Model,
    thinking: Option<bool>,
    encoding: ChatEncoding,
    limits: Limits,
    stop: StopFilter,
    tools_json: Json,
    tools: Option<Arc<Tools>>,
    messages: Vec<Json>,
    turn: Option<Turn>,
}

impl Conversation {
    /// A conversation without messages but the system's.
    ///
    /// # Errors
    /// `InvalidArgument` for tools that are not a JSON array of objects, or an empty stop string.
    pub fn new(model: &Model, options: ConversationOptions) -> Result<Self> {
        let mut new = Self {
            model: model.clone(),
            thinking: None,
            encoding: ChatEncoding::default(),
            limits: Limits::default(),
            stop: StopFilter::default(),
            tools_json: Json::Null,
            tools: None,
            messages: Vec::new(),
            turn: None,
        };
        new.configure(options)?;
        Ok(new)
    }

    /// Goes on by other options from the next reply on. Without a system message in them, that of
    /// the conversation stays.
    ///
    /// # Errors
    /// As [`Conversation::new`]; nothing is changed then.
    pub fn configure(&mut self, options: ConversationOptions) -> Result<()> {
        let tools_json = match &options.tools {
            None => Json::Null,
            Some(text) => Json::parse_within(1, text).map_err(|e| e.within("tools"))?,
        };
        check_numbers(&tools_json, "tools")?;
        // Reads the tools as a request's, for the checks.
        ChatRequest::from_parts(Vec::new(), tools_json.clone())?;
        self.stop = StopFilter::new(options.stop)?;
        let offered = matches!(&tools_json, Json::Array(list) if !list.is_empty());
        self.tools = offered.then(|| Arc::new(Tools::new(&tools_json)));
        self.tools_json = tools_json;
        self.thinking = options.thinking;
        self.encoding = options.encoding;
        self.limits =
            Limits { thinking_budget: options.thinking_budget, max_tokens: options.max_tokens };
        if let Some(system) = options.system {
            if self.messages.first().is_some_and(|first| role(first) == Some("system")) {
                self.messages.remove(0);
            }
            self.messages.insert(0, message("system", &system));
        }
        Ok(())
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The messages so far as a JSON array, the system's included. A reply is among them once it
    /// has ended.
    pub fn history(&self) -> String {
        let mut out = String::from("[");
        for (i, message) in self.messages.iter().enumerate() {
            out.push_str(if i > 0 { ",\n " } else { "" });
            message.write(&mut out);
        }
        out.push(']');
        out
    }

    /// Replaces all messages, the system's included, by a JSON array. A reply in progress is
    /// dropped.
    ///
    /// # Errors
    /// `InvalidArgument`; nothing is changed then.
    pub fn set_history(&mut self, json: &str) -> Result<()> {
        self.messages = read(json)?;
        self.turn = None;
        Ok(())
    }

    /// Number of messages, the system's included.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no messages at all.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds messages, a JSON array or one object in the form of the OpenAI API, without answering
    /// yet. A reply in progress ends where it is.
    ///
    /// # Errors
    /// `InvalidArgument`; nothing is changed then.
    pub fn add(&mut self, json: &str) -> Result<()> {
        let messages = read(json)?;
        self.end_turn();
        self.messages.extend(messages);
        Ok(())
    }

    /// Adds one message of plain text without answering yet, see [`Conversation::add`].
    pub fn add_text(&mut self, role: &str, text: &str) {
        self.end_turn();
        self.messages.push(message(role, text));
    }

    /// Adds the result of a tool call. `id`: the call's, empty if it does not matter (templates
    /// go by the order of calls and results).
    pub fn add_tool_result(&mut self, id: &str, result: &str) {
        self.end_turn();
        let mut message = message("tool", result);
        if let (Json::Object(entries), false) = (&mut message, id.is_empty()) {
            entries.insert(1, ("tool_call_id".into(), Json::String(id.into())));
        }
        self.messages.push(message);
    }

    /// Starts a reply to the messages so far: feeds to `session` what of them it does not hold yet.
    /// The reply then comes from [`Conversation::next`] or [`Conversation::step`].
    ///
    /// # Errors
    /// `Template`, `ContextOverflow` (nothing was consumed), `Cancelled` and `OutOfMemory` (the
    /// session then holds a beginning; the same call goes on from there). The messages stay.
    pub fn start(&mut self, session: &mut Session) -> Result<Fed> {
        self.start_by(session, Session::feed_chat)
    }

    /// As [`Conversation::start`], but computes nothing: [`Conversation::step`] does (as does
    /// [`Conversation::next`]). `computed` of the result counts what is still to be computed.
    ///
    /// # Errors
    /// As [`Conversation::start`], but for `Cancelled`.
    pub fn enqueue(&mut self, session: &mut Session) -> Result<Fed> {
        self.start_by(session, Session::enqueue_chat)
    }

    fn start_by(&mut self, session: &mut Session, feed: Feed) -> Result<Fed> {
        self.end_turn();
        let fed = feed(session, &self.request()?, self.encoding)?;
        let (tools, stop) = (self.tools.clone(), self.stop.clone());
        let first = first_call(&self.messages);
        self.turn = Some(Turn::new(session, tools, stop, self.limits, first));
        Ok(fed)
    }

    /// Adds messages and starts a reply, see [`Conversation::add`] and [`Conversation::start`]. A
    /// reply in progress ends, also where starting the new one fails.
    ///
    /// # Errors
    /// Those of both; the messages are then not added.
    pub fn send(&mut self, session: &mut Session, json: &str) -> Result<Fed> {
        let messages = read(json)?;
        self.send_messages(session, messages, Session::feed_chat)
    }

    /// Adds a user's message of plain text and starts a reply, see [`Conversation::send`].
    ///
    /// # Errors
    /// As [`Conversation::start`]; the message is then not added.
    pub fn send_text(&mut self, session: &mut Session, text: &str) -> Result<Fed> {
        self.send_messages(session, vec![message("user", text)], Session::feed_chat)
    }

    /// Adds messages and starts a reply, see [`Conversation::add`] and [`Conversation::enqueue`].
    ///
    /// # Errors
    /// Those of both; the messages are then not added.
    pub fn enqueue_messages(&mut self, session: &mut Session, json: &str) -> Result<Fed> {
        let messages = read(json)?;
        self.send_messages(session, messages, Session::enqueue_chat)
    }

    /// Adds a user's message of plain text and starts a reply, see [`Conversation::enqueue`].
    ///
    /// # Errors
    /// As [`Conversation::enqueue`]; the message is then not added.
    pub fn enqueue_text(&mut self, session: &mut Session, text: &str) -> Result<Fed> {
        self.send_messages(session, vec![message("user", text)], Session::enqueue_chat)
    }

    fn send_messages(
        &mut self,
        session: &mut Session,
        messages: Vec<Json>,
        feed: Feed,
    ) -> Result<Fed> {
        self.end_turn();
        let before = self.messages.len();
        self.messages.extend(messages);
        let result = self.start_by(session, feed);
        if result.is_err() {
            self.messages.truncate(before);
        }
        result
    }

    /// Computes now what the next message of the user would wait for: the last reply as the
    /// template writes it into history, without thoughts and empty think block. So a turn
    /// costs its own tokens alone, and the reply's (which cost a fraction of what making them
    /// has cost) are computed while the user reads and types. The messages are not changed; a
    /// reply that was cut can no longer be resumed.
    ///
    /// Nothing is done, and the result is all zeros, where the last message is no reply, or
    /// one that has called tools (results to come go on from what is there), or where there is
    /// a system message only.
    ///
    /// # Errors
    /// `InvalidState` while a reply is in progress; those of [`Conversation::start`]: the next
    /// message then costs what it would have.
    pub fn settle(&mut self, session: &mut Session) -> Result<Fed> {
        if let Some(turn) = &mut self.turn {
            if turn.finish().is_none() {
                return Err(Error::invalid_state("a reply is in progress"));
            }
            turn.seal();
        }
        let is_reply = |last: &Json| role(last) == Some("assistant") && count_calls([last]) == 0;
        if !self.messages.last().is_some_and(is_reply) {
            return Ok(Fed::default());
        }
        session.feed_extent(&self.request()?, self.encoding, Extent::History)
    }

    /// All messages, as the template takes them.
    fn request(&self) -> Result<ChatRequest> {
        let request = ChatRequest::from_parts(self.messages.clone(), self.tools_json.clone())?;
        Ok(request.enable_thinking(self.thinking))
    }

    /// The next piece of the reply; [`Piece::End`] when there is none, again and again. Once it
    /// has ended, the reply is the last message of the history.
    ///
    /// # Errors
    /// `InvalidState` if no reply was started, or if `session` was changed by other calls in
    /// between; errors of [`Session::next_token`], after which the call can be repeated. A cancel
    /// is no error but an end, unless it comes before the messages are computed, see
    /// [`Conversation::step`].
    pub fn next(&mut self, session: &mut Session) -> Result<Piece> {
        let none = || Error::internal("a reply without a deadline came to no piece");
        self.advance(session, None)?.ok_or_else(none)
    }

    /// As [`Conversation::next`], for about as long as `budget` says (see [`Session::step`]);
    /// `None` when that is over and there is no piece yet: call again. Returns sooner with a
    /// piece. What was queued by [`Conversation::enqueue`] is computed first.
    ///
    /// # Errors
    /// As [`Conversation::next`]. An error before the messages are computed (`Cancelled`, too)
    /// ends the reply without a trace: they stay, and [`Conversation::enqueue`] or
    /// [`Conversation::start`] goes on from what was computed.
    pub fn step(&mut self, session: &mut Session, budget: Duration) -> Result<Option<Piece>> {
        // A budget beyond what the clock can express has no end.
        self.advance(session, Instant::now().checked_add(budget))
    }

    fn advance(
        &mut self,
        session: &mut Session,
        deadline: Option<Instant>,
    ) -> Result<Option<Piece>> {
        let Some(turn) = &mut self.turn else {
            return Err(Error::invalid_state("no reply was started: send a message first"));
        };
        let ended = turn.finish().is_some();
        let piece = turn.next(session, deadline);
        if turn.is_lost() {
            self.turn = None;
        } else if !ended && turn.finish().is_some() {
            self.messages.push(turn.message());
        }
        piece
    }

    /// Why the last reply ended, if it has.
    pub fn finish(&self) -> Option<&Finish> {
        self.turn.as_ref().and_then(Turn::finish)
    }

    /// Goes on with a reply that ended by a limit of tokens or a cancel, as if it had not. Its
    /// message leaves the history until it ends again; a call that was cut comes again, whole.
    ///
    /// # Errors
    /// `InvalidState` if the last reply did not end so, messages were added since, or `session`
    /// has gone on elsewhere. Nothing is changed then.
    pub fn resume(&mut self, session: &Session) -> Result<()> {
        let Some(turn) = &mut self.turn else {
            return Err(Error::invalid_state("there is no reply to go on with"));
        };
        turn.resume(session)?;
        self.messages.pop();
        Ok(())
    }

    /// Drops the last reply (in progress or ended) and starts another to the same messages.
    ///
    /// # Errors
    /// `InvalidState` if there is no reply to replace; those of [`Conversation::start`], which
    /// leave the history as it was.
    pub fn regenerate(&mut self, session: &mut Session) -> Result<Fed> {
        let open = self.turn.as_ref().is_some_and(|turn| turn.finish().is_none());
        let last = self.messages.last().is_some_and(|last| role(last) == Some("assistant"));
        if !open && !last {
            return Err(Error::invalid_state("the last message is no reply"));
        }
        let dropped = if open { None } else { self.messages.pop() };
        let turn = self.turn.take();
        let result = self.start(session);
        if result.is_err() {
            self.messages.extend(dropped);
            // A reply in progress is lost: the session has gone back.
            self.turn = turn.filter(|_| !open);
        }
        result
    }

    /// Takes the last turn back: the last user's message and all behind it, and a reply in
    /// progress. Returns how many messages that were; 0 if there is no user's message. The session
    /// is brought back by the next [`Conversation::send`].
    pub fn undo(&mut self) -> usize {
        let before = self.messages.len();
        let Some(at) = self.messages.iter().rposition(|m| role(m) == Some("user")) else {
            return 0;
        };
        self.turn = None;
        self.messages.truncate(at);
        before - at
    }

    /// A reply in progress ends where it is and becomes a message, if anything of it has come; an
    /// ended one can no longer be resumed.
    fn end_turn(&mut self) {
        if let Some(mut turn) = self.turn.take()
            && turn.finish().is_none()
        {
            turn.abandon();
            if !turn.is_empty() {
                self.messages.push(turn.message());
            }
        }
    }
}

numbered!(ChatEncoding { Safe, AsTransformers });

/// How a session gets a conversation: at once, or to be computed in steps.
type Feed = fn(&mut Session, &ChatRequest, ChatEncoding) -> Result<Fed>;

/// Messages in JSON: an array, or one alone. They must not be too deep for the array that the
/// history is, nor for the request that it can be part of.
fn read(json: &str) -> Result<Vec<Json>> {
    let levels = if json.trim_start().starts_with('[') { 1 } else { 2 };
    let messages = match Json::parse_within(levels, json).map_err(|e| e.within("messages"))? {
        Json::Array(list) => list,
        one @ Json::Object(_) => vec![one],
        other => {
            return Err(Error::invalid_argument(format!(
                "messages: expected an array or an object, found {}",
                other.kind()
            )));
        }
    };
    messages.iter().try_for_each(|message| check_numbers(message, "messages"))?;
    // Reads them as a request's, for the checks.
    ChatRequest::from_parts(messages.clone(), Json::Null)?;
    Ok(messages)
}

/// Refuses numbers that would not be the same in the history.
fn check_numbers(value: &Json, place: &str) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{place}: a number is beyond the range of floats (1.8e308), JSON cannot keep it"
    )))
}

fn message(role: &str, content: &str) -> Json {
    Json::Object(vec![
        ("role".into(), Json::String(role.into())),
        ("content".into(), Json::String(content.into())),
    ])
}

fn role(message: &Json) -> Option<&str> {
    match message {
        Json::Object(entries) => match json_get(entries, "role") {
            Some(Json::String(role)) => Some(role),
            _ => None,
        },
        _ => None,
    }
}

/// Where the numbers of new calls start: behind those of all calls and results, of which the
/// caller may have left out some or brought others.
fn first_call(messages: &[Json]) -> usize {
    let mut first = count_calls(messages);
    let mut see = |id: Option<&Json>| {
        let Some(Json::String(id)) = id else { return };
        // What does not fit is none of ours, and no new one comes to be equal to it.
        let number = id.strip_prefix("call_").and_then(|id| id.parse::<u32>().ok());
        if let Some(number) = number.filter(|number| *number < u32::MAX) {
            first = first.max(number as usize + 1);
        }
    };
    for message in messages {
        let Json::Object(entries) = message else { continue };
        see(json_get(entries, "tool_call_id"));
        let Some(Json::Array(calls)) = json_get(entries, "tool_calls") else { continue };
        for call in calls {
            if let Json::Object(call) = call {
                see(json_get(call, "id"));
            }
        }
    }
    first
}

/// Calls in the messages.
fn count_calls<'a>(messages: impl IntoIterator<Item = &'a Json>) -> usize {
    let calls = |message: &Json| match message {
        Json::Object(entries) => match json_get(entries, "tool_calls") {
            Some(Json::Array(calls)) => calls.len(),
            _ => 0,
        },
        _ => 0,
    };
    messages.into_iter().map(calls).sum()
}
