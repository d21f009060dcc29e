//! A session with a plain model of it beside it.

use std::time::Duration;

use qwen35::sampling::{Rng, SamplingOptions};
use qwen35::session::{Step, batch_step};
use qwen35::{ErrorKind, KvElement, Model, Next, Session, SessionOptions};

use crate::toy;

pub const LIMIT: usize = 220;

/// A random number below `bound`.
pub fn below(rng: &mut Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

pub fn some_ids(rng: &mut Rng, most: usize) -> Vec<u32> {
    let count = 1 + below(rng, most);
    // Few different tokens, so that sequences share beginnings; turns begin among them.
    (0..count)
        .map(|_| match below(rng, 12) {
            0 => toy::IM_START,
            _ => below(rng, 40) as u32,
        })
        .collect()
}

/// A session, and what it must hold.
pub struct Life {
    pub session: Session,
    pub tokens: Vec<u32>,
    /// The caller's marks: name and the sequence then.
    pub marks: Vec<(u64, usize)>,
    pub attachment: Vec<u8>,
}

impl Life {
    pub fn new(model: &Model, rng: &mut Rng) -> Self {
        let sampling = match below(rng, 3) {
            0 => SamplingOptions::greedy(),
            _ => SamplingOptions { seed: Some(rng.next_u64()), ..SamplingOptions::default() },
        };
        let options = SessionOptions {
            context_limit: LIMIT,
            sampling,
            mark_limit: below(rng, 5),
            cache_namespace: (below(rng, 2) > 0).then_some(1),
            kv: Some([KvElement::F32, KvElement::F16, KvElement::I8][below(rng, 3)]),
            ..SessionOptions::default()
        };
        let session = Session::new(model, options).unwrap();
        Self { session, tokens: Vec::new(), marks: Vec::new(), attachment: Vec::new() }
    }

    pub fn fork(&self) -> Self {
        Self {
            session: self.session.fork().unwrap(),
            tokens: self.tokens.clone(),
            marks: self.marks.clone(),
            attachment: self.attachment.clone(),
        }
    }

    /// Takes the outcome of a call after which the session should hold `wanted`, or, if it was
    /// cancelled, a beginning of it.
    pub fn settle<T>(&mut self, result: qwen35::Result<T>, wanted: Vec<u32>) {
        match result {
            Ok(_) => assert_eq!(self.session.tokens(), wanted),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                let held = self.session.position();
                assert!(held <= wanted.len().max(self.tokens.len()));
                assert!(
                    wanted.starts_with(self.session.tokens())
                        || self.tokens.starts_with(self.session.tokens())
                );
            }
        }
        self.tokens = self.session.tokens().to_vec();
        let length = self.tokens.len();
        let held: Vec<u64> = self.session.marks().map(|mark| mark.id).collect();
        self.marks.retain(|(id, _)| held.contains(id));
        assert!(self.marks.iter().all(|(_, position)| *position <= length));
    }

    /// Queues and computes in steps, perhaps not to the end.
    pub fn step(&mut self, ids: &[u32], rng: &mut Rng) {
        if self.tokens.len() + ids.len() > LIMIT {
            return;
        }
        self.session.enqueue(ids).unwrap();
        let wanted = [&self.tokens, ids].concat();
        let budget = Duration::from_micros(below(rng, 300) as u64);
        let mut result = Ok(());
        for _ in 0..1 + below(rng, 8) {
            result = self.session.step_input(budget).map(drop);
            if result.is_err() {
                break;
            }
        }
        self.settle(result, wanted);
    }

    pub fn feed(&mut self, ids: &[u32]) {
        let result = self.session.feed(ids);
        if self.tokens.len() + ids.len() > LIMIT {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::ContextOverflow);
            assert_eq!(self.session.tokens(), self.tokens);
            return;
        }
        self.settle(result, [&self.tokens, ids].concat());
    }

    pub fn generate(&mut self, count: usize) {
        for _ in 0..count {
            match self.session.next_token() {
                Ok(Next::Token(id) | Next::EndOfTurn(id)) => self.tokens.push(id),
                Ok(Next::LimitReached) => assert_eq!(self.tokens.len(), LIMIT),
                Err(error) if self.tokens.is_empty() => {
                    assert_eq!(error.kind(), ErrorKind::InvalidState);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
            }
            assert_eq!(self.session.tokens(), self.tokens);
        }
    }

    /// Compares with a plain session.
    pub fn check(&mut self, model: &Model) {
        assert_eq!(self.session.tokens(), self.tokens);
        assert_eq!(self.session.attachment(), self.attachment);
        if self.tokens.is_empty() {
            return;
        }
        let options = SessionOptions { kv: Some(self.session.kv()), ..SessionOptions::default() };
        let mut plain = Session::new(model, options).unwrap();
        plain.feed(&self.tokens).unwrap();
        let expected = plain.logits().unwrap();
        // A cancel that came too late for its call is answered by this one.
        let _ = self.session.logits();
        assert!(self.session.logits().unwrap() == expected, "after {:?}", self.tokens.len());
    }

    /// Steps of `budget` microseconds up to the next token, which a fork would have drawn at once.
    pub fn step_to_token(&mut self, budget: u64) {
        if self.tokens.is_empty() {
            return;
        }
        // A cancel that waits is answered here.
        let _ = self.session.logits();
        let mut twin = self.fork();
        let outcome = loop {
            match self.session.step(Duration::from_micros(budget)) {
                Ok(Step::Working) => {}
                outcome => break outcome,
            }
        };
        twin.generate(1);
        match outcome {
            Ok(Step::Token(id) | Step::EndOfTurn(id)) => {
                self.tokens.push(id);
                assert_eq!(self.tokens, twin.tokens);
            }
            Ok(Step::LimitReached) => assert_eq!(self.tokens.len(), LIMIT),
            // From another thread.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
            Ok(other) => panic!("{other:?}"),
        }
        assert_eq!(self.session.tokens(), self.tokens);
    }
}

/// One token for each of `lives` together: those that forks of them draw alone.
pub fn batch(lives: &mut [Life]) {
    batch_of(&mut lives.iter_mut().collect::<Vec<_>>(), true);
}

/// The same; with `compared`, nobody else cancels them meanwhile.
pub fn batch_of(lives: &mut [&mut Life], compared: bool) {
    let mut twins: Vec<Life> = Vec::new();
    if compared {
        // A cancel that waits is answered here.
        lives.iter_mut().for_each(|life| drop(life.session.logits().map(drop)));
        twins.extend(lives.iter().map(|life| life.fork()));
        twins.iter_mut().for_each(|twin| twin.generate(1));
    }
    let mut sessions: Vec<&mut Session> = lives.iter_mut().map(|life| &mut life.session).collect();
    let outcomes = batch_step(&mut sessions).unwrap();
    for (life, outcome) in lives.iter_mut().zip(outcomes) {
        match outcome {
            Ok(Next::Token(id) | Next::EndOfTurn(id)) => life.tokens.push(id),
            Ok(Next::LimitReached) => assert_eq!(life.tokens.len(), LIMIT),
            Err(error) if life.tokens.is_empty() => {
                assert_eq!(error.kind(), ErrorKind::InvalidState);
            }
            Err(error) => {
                assert_eq!((error.kind(), compared), (ErrorKind::Cancelled, false), "{error}");
            }
        }
        assert_eq!(life.session.tokens(), life.tokens);
    }
    for (life, twin) in lives.iter().zip(&twins) {
        assert_eq!(life.tokens, twin.tokens);
    }
}
