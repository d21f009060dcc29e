//! Tokens to text, one at a time, without ever cutting a character.

use super::{Special, Tokenizer};

/// Turns ids into text as they come. The concatenation of what it gives out equals the decoding
/// of all ids at once: whole characters only, and bytes that are not UTF-8 replaced by U+FFFD.
/// At most three bytes are held back, the beginning of a character.
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    special: Special,
    held: [u8; 3],
    len: usize,
}

impl StreamDecoder {
    /// A decoder at the start of a text.
    pub fn new(special: Special) -> Self {
        Self { special, held: [0; 3], len: 0 }
    }

    /// Appends to `out` the text that `id` completes; an id without text adds nothing.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32, out: &mut String) {
        if self.special == Special::Skip && tokenizer.is_special(id) {
            return;
        }
        let Some(mut bytes) = tokenizer.token_bytes(id) else { return };
        // Give bytes to the held character until it is whole or broken.
        while self.len > 0 {
            let Some((&first, rest)) = bytes.split_first() else { return };
            let mut joined = [0; 4];
            joined[..self.len].copy_from_slice(&self.held[..self.len]);
            joined[self.len] = first;
            match std::str::from_utf8(&joined[..self.len + 1]) {
                Ok(character) => out.push_str(character),
                Err(error) if error.error_len().is_none() => {
                    self.held[self.len] = first;
                    self.len += 1;
                    bytes = rest;
                    continue;
                }
                Err(_) => {
                    // What was held can not go on with this byte, which starts anew.
                    out.push(char::REPLACEMENT_CHARACTER);
                    self.len = 0;
                    break;
                }
            }
            self.len = 0;
            bytes = rest;
        }
        let kept = append_lossy(bytes, out);
        self.held[..kept.len()].copy_from_slice(kept);
        self.len = kept.len();
    }

    /// Puts the decoder where it would be after pushing `ids` at the start of a text.
    pub fn resume(&mut self, tokenizer: &Tokenizer, ids: &[u32]) {
        let mut given = String::new();
        self.len = 0;
        for &id in ids {
            self.push(tokenizer, id, &mut given);
            given.clear();
        }
    }

    /// Ends the text: what was held back is an incomplete character and becomes U+FFFD. The
    /// decoder is at the start of a text again.
    pub fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.len) > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// The bytes that are held back.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held[..self.len]
    }

    /// A decoder that holds `bytes` back; `None` if they are no beginning of a character.
    pub(crate) fn with_held(special: Special, bytes: &[u8]) -> Option<Self> {
        let is_beginning = match std::str::from_utf8(bytes) {
            Ok(text) => text.is_empty(),
            Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
        };
        let mut held = [0; 3];
        held.get_mut(..bytes.len()).filter(|_| is_beginning)?.copy_from_slice(bytes);
        Some(Self { special, held, len: bytes.len() })
    }

    /// Whether bytes of an incomplete character are held back.
    pub fn is_holding(&self) -> bool {
        self.len > 0
    }
}

/// Appends `bytes` with one U+FFFD for each maximal broken part (as Rust, Python and the web do),
/// and returns the incomplete character at the end, if any: at most three bytes.
pub fn append_lossy<'a>(bytes: &'a [u8], out: &mut String) -> &'a [u8] {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => {
                out.push_str(text);
                return &[];
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.push_str(std::str::from_utf8(good).unwrap_or_default());
                let Some(len) = error.error_len() else { return bad };
                out.push(char::REPLACEMENT_CHARACTER);
                rest = &bad[len..];
            }
        }
    }
}
