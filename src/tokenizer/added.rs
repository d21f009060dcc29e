//! Added tokens: spellings that are found in the text before anything else looks at it.

use serde::{Deserialize, Serialize};

use super::unicode;
use crate::prefixes::Prefixes;

/// One added token as the files describe it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AddedToken {
    /// The token id.
    pub id: u32,
    /// The spelling.
    pub content: String,
    /// Control tokens are special: [`Special::Skip`](super::Special) leaves them out.
    #[serde(default)]
    pub special: bool,
    /// The match also takes the white space before it.
    #[serde(default)]
    pub lstrip: bool,
    /// The match also takes the white space after it.
    #[serde(default)]
    pub rstrip: bool,
    /// Only a match that is not part of a larger word counts. Refused when true.
    #[serde(default)]
    pub single_word: bool,
    /// Looked for in the normalized text instead of the text as written.
    #[serde(default)]
    pub normalized: bool,
}

/// Bytes of a spelling at most: far above any that is published. At each place of a text, as
/// many bytes may have to be compared.
pub const MAX_SPELLING: usize = 1024;

/// Finds the leftmost, longest spelling.
#[derive(Debug)]
pub struct Matcher(Prefixes);

/// A stretch of text: either plain, or the spelling of an entry of the matcher.
#[derive(Debug, PartialEq, Eq)]
pub enum Stretch<'a> {
    Plain(&'a str),
    Token(u32),
}

impl Matcher {
    /// A matcher for `(entry, spelling)` pairs. Empty spellings match nothing.
    pub fn new<'a>(spellings: impl IntoIterator<Item = (u32, &'a str)>) -> Self {
        Self(Prefixes::new(spellings))
    }

    /// Whether no spelling can match.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `each` for the stretches of `text`, in order. Plain stretches are not empty.
    pub fn split<'a>(
        &self,
        text: &'a str,
        tokens: &[AddedToken],
        mut each: impl FnMut(Stretch<'a>),
    ) {
        let bytes = text.as_bytes();
        // Text before `done` was given out; matches are looked for from `at` on.
        let (mut done, mut at) = (0, 0);
        while let Some((start, entry, len)) = self.0.find(bytes, at) {
            at = start + len;
            let token = &tokens[entry as usize];
            let mut plain_end = start;
            // Not beyond what was given out: white space would be gone through again and again.
            if token.lstrip && done < start {
                plain_end = done + text[done..start].trim_end_matches(unicode::is_space).len();
            }
            if done < plain_end {
                each(Stretch::Plain(&text[done..plain_end]));
            }
            each(Stretch::Token(entry));
            done = at.max(done);
            if token.rstrip {
                let rest = &text[done..];
                done += rest.len() - rest.trim_start_matches(unicode::is_space).len();
            }
        }
        if done < bytes.len() {
            each(Stretch::Plain(&text[done..]));
        }
    }
}
