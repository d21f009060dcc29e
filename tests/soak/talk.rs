//! Random lives of conversations, whose replies are scripted from what matters to the parser.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qwen35::chat::ChatRequest;
use qwen35::conversation::{Conversation, ConversationOptions, Finish, Piece};
use qwen35::sampling::{Rng, SamplingOptions};
use qwen35::session::SaveOptions;
use qwen35::tokenizer::AddedTokens;
use qwen35::{ChatEncoding, ErrorKind, KvElement, Model, Session, SessionOptions};

use crate::life::below;
use crate::toy;

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}}]"#;

const WORDS: [&str; 22] = [
    "<think>",
    "</think>",
    "<tool_call>\n<function=f>\n",
    "<parameter=a>\n",
    "<parameter=b>\n7",
    "\n</parameter>\n",
    "</function>\n</tool_call>",
    "<tool_call>",
    "</tool_call>",
    "\n",
    "\n\n",
    " ",
    "a",
    "word ",
    "and so on ",
    "é",
    "😀",
    "EN",
    "END",
    "<",
    "x > y ",
    "</func",
];

fn text(rng: &mut Rng, most: usize) -> String {
    (0..below(rng, most)).map(|_| WORDS[below(rng, WORDS.len())]).collect()
}

/// What a model says next; its turn ends where there is nothing.
type Script = Arc<Mutex<VecDeque<u32>>>;

/// A conversation and its session.
struct Talk<'a> {
    model: &'a Model,
    options: ConversationOptions,
    kv: KvElement,
    talk: Conversation,
    session: Session,
    script: Script,
}

impl<'a> Talk<'a> {
    fn new(model: &'a Model, options: ConversationOptions, kv: KvElement) -> Self {
        let sampling = SamplingOptions::greedy();
        let session = SessionOptions { sampling, kv: Some(kv), ..SessionOptions::default() };
        let mut session = Session::new(model, session).unwrap();
        let script = Script::default();
        let next = Arc::clone(&script);
        session.set_logits_hook(Some(Box::new(move |logits, _| {
            let token = next.lock().unwrap().pop_front().unwrap_or(toy::IM_END);
            logits.fill(f32::NEG_INFINITY);
            logits[token as usize] = 0.0;
            ControlFlow::Continue(())
        })));
        let talk = Conversation::new(model, options.clone()).unwrap();
        Self { model, options, kv, talk, session, script }
    }

    fn write(&mut self, rng: &mut Rng) {
        let mut ids = Vec::new();
        self.model.tokenizer().encode(&text(rng, 30), AddedTokens::Honour, &mut ids);
        if below(rng, 4) == 0 && !ids.is_empty() {
            // Some bytes of characters alone.
            let at = below(rng, ids.len());
            ids[at] = below(rng, 256) as u32;
        }
        *self.script.lock().unwrap() = ids.into();
    }

    /// The messages as the template takes them.
    fn request(&self) -> ChatRequest {
        let tools = self.options.tools.as_deref().unwrap_or("null");
        let json = format!(r#"{{"messages": {}, "tools": {tools}}}"#, self.talk.history());
        ChatRequest::from_json(&json).unwrap().enable_thinking(self.options.thinking)
    }

    /// After the start of a reply: the session holds, or is going to hold, the messages and
    /// nothing else.
    fn started(&mut self) {
        let ids = self.model.encode_chat(&self.request(), ChatEncoding::Safe).unwrap();
        assert_eq!(self.session.tokens(), ids);
    }

    /// The next piece, by waiting or in steps; none if a cancel has come before the messages
    /// were computed, or there is no reply.
    fn next(&mut self, rng: &mut Rng) -> Option<Piece> {
        let budget = Duration::from_micros(below(rng, 400) as u64);
        loop {
            let found = match below(rng, 2) {
                0 => self.talk.next(&mut self.session).map(Some),
                _ => self.talk.step(&mut self.session, budget),
            };
            match found {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => {}
                Err(error) => {
                    let kind = error.kind();
                    let known = [ErrorKind::Cancelled, ErrorKind::InvalidState].contains(&kind);
                    assert!(known, "{error}");
                    return None;
                }
            }
        }
    }

    /// The rest of the reply, texts joined.
    fn rest(&mut self, rng: &mut Rng) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some(piece) = self.next(rng) {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(last)), Piece::Text(more))
                | (Some(Piece::Thinking(last)), Piece::Thinking(more)) => last.push_str(&more),
                (_, end @ Piece::End(_)) => {
                    pieces.push(end);
                    break;
                }
                (_, piece) => pieces.push(piece),
            }
        }
        pieces
    }

    /// Another process: a conversation and a session of their own, put where these are.
    fn twin(&self, file: &Path, rng: &mut Rng) -> Self {
        let mut twin = Self::new(self.model, ConversationOptions::default(), self.kv);
        twin.options = self.options.clone();
        *twin.script.lock().unwrap() = self.script.lock().unwrap().clone();
        let options = SaveOptions { without_marks: below(rng, 3) == 0 };
        if below(rng, 3) == 0 {
            self.talk.save_to_file(&self.session, options, file).unwrap();
            twin.talk.restore_from_file(&mut twin.session, file).unwrap();
        } else {
            let mut bytes = self.talk.save_to_memory(&self.session, options).unwrap();
            assert_eq!(bytes.len(), self.talk.saved_bytes(&self.session, options).unwrap());
            let (at, bit) = (below(rng, bytes.len()), 1 << below(rng, 8));
            bytes[at] ^= bit;
            twin.talk.restore_from_memory(&mut twin.session, &bytes).unwrap_err();
            assert!(twin.talk.is_empty() && twin.session.position() == 0);
            bytes[at] ^= bit;
            twin.talk.restore_from_memory(&mut twin.session, &bytes).unwrap();
        }
        assert_eq!(twin.talk.history(), self.talk.history());
        assert_eq!(twin.session.tokens(), self.session.tokens());
        twin
    }

    /// Starts a reply and compares with a session that has computed the messages alone.
    fn check(&mut self) {
        if self.talk.is_empty() {
            return;
        }
        self.session.clear_cancel();
        self.talk.start(&mut self.session).unwrap();
        self.started();
        let options = SessionOptions { kv: Some(self.kv), ..SessionOptions::default() };
        let mut plain = Session::new(self.model, options).unwrap();
        plain.feed(self.session.tokens()).unwrap();
        assert!(self.session.logits().unwrap() == plain.logits().unwrap());
    }
}

/// One random life of a conversation, which is saved to `file` now and then.
pub fn sequence(model: &Model, file: &Path, seed: u64) {
    let rng = &mut Rng::new(seed);
    let options = ConversationOptions {
        system: (below(rng, 2) == 0).then(|| text(rng, 12)),
        tools: (below(rng, 2) == 0).then(|| TOOLS.to_owned()),
        thinking: [None, Some(true), Some(false)][below(rng, 3)],
        thinking_budget: below(rng, 2) * below(rng, 12),
        max_tokens: below(rng, 2) * below(rng, 25),
        stop: (0..below(rng, 3)).map(|n| ["END", " so"][n].to_owned()).collect(),
        ..ConversationOptions::default()
    };
    let kv = [KvElement::F32, KvElement::F16, KvElement::I8][below(rng, 3)];
    let mut life = Talk::new(model, options, kv);
    for _ in 0..12 {
        let started = match below(rng, 14) {
            0..=2 => {
                life.write(rng);
                let question = text(rng, 12);
                match below(rng, 2) {
                    0 => life.talk.send_text(&mut life.session, &question),
                    _ => life.talk.enqueue_text(&mut life.session, &question),
                }
                .map(|_| true)
            }
            3 | 4 => {
                for _ in 0..below(rng, 8) {
                    life.next(rng);
                }
                Ok(false)
            }
            5 => {
                life.rest(rng);
                Ok(false)
            }
            6 => {
                life.session.cancel_handle().cancel();
                if let Some(piece) = life.next(rng)
                    && piece == Piece::End(Finish::Cancelled)
                    && below(rng, 2) == 0
                {
                    life.talk.resume(&life.session).unwrap();
                }
                // One that no call has answered.
                life.session.clear_cancel();
                Ok(false)
            }
            7 | 8 => {
                // Both go on alike; the life goes on as the one that was restored.
                let mut twin = life.twin(file, rng);
                if below(rng, 2) == 0 {
                    assert_eq!(twin.rest(rng), life.rest(rng));
                    assert_eq!(twin.talk.history(), life.talk.history());
                    assert_eq!(twin.session.tokens(), life.session.tokens());
                }
                life = twin;
                Ok(false)
            }
            9 => {
                life.talk.undo();
                Ok(false)
            }
            10 => {
                life.write(rng);
                life.talk.regenerate(&mut life.session).map(|_| true)
            }
            11 => life.talk.settle(&mut life.session).map(|_| false),
            12 => {
                match below(rng, 3) {
                    0 => life.talk.add_tool_result("", &text(rng, 8)),
                    1 => life.talk.add_text("user", &text(rng, 8)),
                    _ => {
                        let history = life.talk.history();
                        life.talk.set_history(&history).unwrap();
                    }
                }
                Ok(false)
            }
            _ => {
                if life.talk.resume(&life.session).is_ok() {
                    life.rest(rng);
                }
                Ok(false)
            }
        };
        match started {
            Ok(true) => life.started(),
            Ok(false) => {}
            Err(error) => {
                let known = [ErrorKind::InvalidState, ErrorKind::ContextOverflow];
                assert!(known.contains(&error.kind()), "{error}");
            }
        }
    }
    let mut twin = life.twin(file, rng);
    life.check();
    twin.check();
    assert_eq!(twin.talk.history(), life.talk.history());
}
