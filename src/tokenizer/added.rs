//! Added tokens: spellings that are found in the text before anything else looks at it.

use serde::{Deserialize, Serialize};

use super::unicode;

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

/// Finds the leftmost, longest spelling: a trie walked from each possible first byte.
#[derive(Debug)]
pub struct Matcher {
    nodes: Vec<Node>,
    /// Whether a spelling begins with this byte.
    first: [bool; 256],
}

#[derive(Debug, Default)]
struct Node {
    /// Children by byte, sorted.
    children: Vec<(u8, u32)>,
    /// The entry whose spelling ends here.
    entry: Option<u32>,
}

/// A stretch of text: either plain, or the spelling of an entry of the matcher.
#[derive(Debug, PartialEq, Eq)]
pub enum Stretch<'a> {
    Plain(&'a str),
    Token(u32),
}

impl Matcher {
    /// A matcher for `(entry, spelling)` pairs. Empty spellings match nothing.
    pub fn new<'a>(spellings: impl IntoIterator<Item = (u32, &'a str)>) -> Self {
        let mut matcher = Self { nodes: vec![Node::default()], first: [false; 256] };
        for (entry, spelling) in spellings {
            let mut node = 0;
            for &byte in spelling.as_bytes() {
                let children = &matcher.nodes[node].children;
                node = match children.binary_search_by_key(&byte, |&(b, _)| b) {
                    Ok(at) => children[at].1 as usize,
                    Err(at) => {
                        let new = matcher.nodes.len();
                        matcher.nodes[node].children.insert(at, (byte, new as u32));
                        matcher.nodes.push(Node::default());
                        new
                    }
                };
            }
            if let Some(&byte) = spelling.as_bytes().first() {
                matcher.first[byte as usize] = true;
                matcher.nodes[node].entry = Some(entry);
            }
        }
        matcher
    }

    /// Whether no spelling can match.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// The longest spelling that starts at the beginning of `text`, with its length.
    fn longest(&self, text: &[u8]) -> Option<(u32, usize)> {
        let mut node = 0;
        let mut found = None;
        for (i, byte) in text.iter().enumerate() {
            let children = &self.nodes[node].children;
            let Ok(at) = children.binary_search_by_key(byte, |&(b, _)| b) else { break };
            node = children[at].1 as usize;
            if let Some(entry) = self.nodes[node].entry {
                found = Some((entry, i + 1));
            }
        }
        found
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
        while at < bytes.len() {
            let Some(skip) = bytes[at..].iter().position(|&b| self.first[b as usize]) else {
                break;
            };
            let start = at + skip;
            let Some((entry, len)) = self.longest(&bytes[start..]) else {
                at = start + 1;
                continue;
            };
            at = start + len;
            let token = &tokens[entry as usize];
            let mut plain_end = start;
            if token.lstrip {
                let kept = text[..start].trim_end_matches(unicode::is_space).len();
                plain_end = kept.max(done);
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
