//! What replies are made of, as bytes.

use super::super::turn::{CLOSINGS, Finish, Piece};
use super::fields::{Field, Input, odd};
use crate::Result;
use crate::tokenizer::{Special, StreamDecoder};

impl Field for StreamDecoder {
    fn store(&self, out: &mut Vec<u8>) {
        self.held().iter().map(|byte| u32::from(*byte)).collect::<Vec<u32>>().store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        let held: Option<Vec<u8>> =
            Vec::<u32>::load(input)?.into_iter().map(|byte| u8::try_from(byte).ok()).collect();
        held.and_then(|held| Self::with_held(Special::Skip, &held))
            .ok_or_else(|| odd("bytes of a character are none"))
    }
}

/// One of [`CLOSINGS`].
impl Field for &'static str {
    fn store(&self, out: &mut Vec<u8>) {
        CLOSINGS.iter().position(|closing| closing == self).unwrap_or_default().store(out);
    }
    fn load(input: &mut Input) -> Result<Self> {
        let closing = CLOSINGS.get(usize::load(input)?);
        closing.copied().ok_or_else(|| odd("thoughts are closed in no known way"))
    }
}

impl Field for Piece {
    fn store(&self, out: &mut Vec<u8>) {
        match self {
            Self::Thinking(text) => (0u64, text.clone()).store(out),
            Self::Text(text) => (1u64, text.clone()).store(out),
            Self::ToolCall(call) => {
                2u64.store(out);
                call.store(out);
            }
            Self::End(finish) => {
                3u64.store(out);
                finish.store(out);
            }
        }
    }
    fn load(input: &mut Input) -> Result<Self> {
        Ok(match u64::load(input)? {
            0 => Self::Thinking(Field::load(input)?),
            1 => Self::Text(Field::load(input)?),
            2 => Self::ToolCall(Field::load(input)?),
            3 => Self::End(Field::load(input)?),
            _ => return Err(odd("no such piece")),
        })
    }
}

impl Field for Finish {
    fn store(&self, out: &mut Vec<u8>) {
        let number: u64 = match self {
            Self::EndOfTurn => 0,
            Self::ToolCalls => 1,
            Self::Stop(_) => 2,
            Self::Length => 3,
            Self::ContextFull => 4,
            Self::Cancelled => 5,
        };
        number.store(out);
        if let Self::Stop(stop) = self {
            stop.store(out);
        }
    }
    fn load(input: &mut Input) -> Result<Self> {
        Ok(match u64::load(input)? {
            0 => Self::EndOfTurn,
            1 => Self::ToolCalls,
            2 => Self::Stop(Field::load(input)?),
            3 => Self::Length,
            4 => Self::ContextFull,
            5 => Self::Cancelled,
            _ => return Err(odd("no such end of a reply")),
        })
    }
}
