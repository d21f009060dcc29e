//! Conversations on the demo model, whose replies are written by a hook that forces each token.
#![allow(dead_code)] // not every test uses all of it

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use qwen35::conversation::{Conversation, ConversationOptions, Finish, Piece, ToolCall};
use qwen35::sampling::SamplingOptions;
use qwen35::tokenizer::AddedTokens;
use qwen35::{Model, ModelOptions, Session, SessionOptions};
use serde_json::Value;

pub const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "required": ["city"], "properties": {"city": {"type": "string"},
    "days": {"type": "integer"}, "exact": {"type": "boolean"}}}}}]"#;

pub fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    Model::open(&path, &ModelOptions { threads: 1, ..ModelOptions::default() }).unwrap()
}

/// The tokens that the hook writes next; at their end the turn ends.
pub type Script = Arc<Mutex<VecDeque<u32>>>;

/// A session whose replies are scripted.
pub fn scripted(model: &Model, context_limit: usize) -> (Session, Script) {
    let options = SessionOptions {
        context_limit,
        sampling: SamplingOptions::greedy(),
        ..SessionOptions::default()
    };
    let mut session = Session::new(model, options).unwrap();
    let script = Script::default();
    let (next, end) = (script.clone(), model.tokenizer().token_id("<|im_end|>").unwrap());
    session.set_logits_hook(Some(Box::new(move |logits, _| {
        let token = next.lock().unwrap().pop_front().unwrap_or(end);
        logits.fill(f32::NEG_INFINITY);
        logits[token as usize] = 0.0;
        ControlFlow::Continue(())
    })));
    (session, script)
}

/// Sets the next reply.
pub fn write(model: &Model, script: &Script, reply: &str) -> usize {
    let mut ids = Vec::new();
    model.tokenizer().encode(reply, AddedTokens::Honour, &mut ids);
    *script.lock().unwrap() = ids.iter().copied().collect();
    ids.len()
}

/// What came: thoughts, text, calls and why it ended.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    pub thoughts: String,
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub finish: Option<Finish>,
}

pub fn read(conversation: &mut Conversation, session: &mut Session) -> Reply {
    let mut reply = Reply::default();
    loop {
        match conversation.next(session).unwrap() {
            Piece::Thinking(text) => reply.thoughts += &text,
            Piece::Text(text) => reply.text += &text,
            Piece::ToolCall(call) => reply.calls.push(call),
            Piece::End(finish) => {
                // It stays ended.
                assert_eq!(conversation.next(session).unwrap(), Piece::End(finish.clone()));
                reply.finish = Some(finish);
                return reply;
            }
        }
    }
}

pub fn text(text: &str) -> Reply {
    Reply { text: text.into(), finish: Some(Finish::EndOfTurn), ..Reply::default() }
}

pub fn history(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.history()).unwrap()
}

pub fn options() -> ConversationOptions {
    ConversationOptions { thinking: Some(false), ..ConversationOptions::default() }
}
