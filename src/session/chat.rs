//! Feeding a conversation.

use super::Session;
use crate::Result;
use crate::chat::ChatRequest;
use crate::engine::ChatEncoding;
use crate::model::State;

/// What [`Session::feed_chat`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Tokens of the rendered conversation.
    pub total: usize,
    /// Of these, those computed by the call; the others were there already.
    pub computed: usize,
}

impl Session {
    /// Makes the session hold exactly the rendered conversation. Tokens that it holds
    /// already are not computed again: it goes on from the longest common beginning that its
    /// state reaches, which is all of it, or the beginning of an assistant turn, or nothing.
    ///
    /// # Errors
    /// `Template`; `ContextOverflow` (nothing was consumed); `Cancelled` and `OutOfMemory`
    /// (the session then holds a beginning of the conversation).
    pub fn feed_chat(&mut self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fed> {
        let ids = self.model.encode_chat(request, encoding)?;
        self.check_ids(&ids)?;
        self.check_room(0, ids.len())?;
        let turn_start = self.turn_start(request, encoding, &ids)?;

        let common = self.tokens.iter().zip(&ids).take_while(|(a, b)| a == b).count();
        self.go_back(common)?;
        let before = self.state.position;
        let held = self.tokens.len();
        if held < turn_start {
            self.append(&ids[held..turn_start])?;
        }
        if self.tokens.len() == turn_start && self.state.position == turn_start {
            self.marks.push(self.state.try_clone()?);
        }
        let held = self.tokens.len();
        self.append(&ids[held..])?;
        Ok(Fed { total: ids.len(), computed: self.state.position - before })
    }

    /// How much of `ids` comes before the assistant header that asks for an answer.
    fn turn_start(
        &self,
        request: &ChatRequest,
        encoding: ChatEncoding,
        ids: &[u32],
    ) -> Result<usize> {
        let history = request.clone().add_generation_prompt(false);
        let history = self.model.encode_chat(&history, encoding)?;
        Ok(if ids.starts_with(&history) { history.len() } else { ids.len() })
    }

    /// Cuts the sequence back to `position`, or where the state cannot follow, to the last
    /// mark before it.
    fn go_back(&mut self, position: usize) -> Result<()> {
        if position >= self.state.position {
            // Tokens behind the state are not computed yet and can simply be dropped.
            self.tokens.truncate(position);
            return Ok(());
        }
        self.state = match self.marks.rewind(position)? {
            Some(state) => state,
            None => State::new(self.model.network()?.config())?,
        };
        self.tokens.truncate(self.state.position);
        self.logits_position = None;
        Ok(())
    }
}
