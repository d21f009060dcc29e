//! Telling the template's own control tokens from their spellings in a message.
//!
//! A rendered conversation is one text, and `<|im_end|>` in it looks the same whether the
//! template wrote it to end a turn or a user typed it to escape from one. The usual
//! remedy, marking or escaping the messages, changes what the template sees: one that
//! asks whether a message starts with `<tool_response>` no longer gets a true answer.
//!
//! So the *template* is sealed instead. A second copy of it is made in which every
//! spelling of an added token, in its text and in the string literals that it writes, is
//! replaced by a private-use character (the *seal* of that token) that occurs neither in
//! the template nor in the request. Literals that only serve a decision, such as the left
//! side of `'</think>' in content` or the argument of `content.startswith(..)`, stay as
//! they are, because they are compared with the caller's text. Rendering the sealed copy
//! gives the same text with seals exactly where the template itself wrote a token.
//!
//! Which literals decide and which are written is judged from the tokens around them, and
//! that judgement need not be trusted: the caller renders the original as well and
//! compares. If breaking the seals does not give the same text, the separation failed, and
//! that is an error, never a prompt with a wrong token in it. A spelling in a literal that
//! was wrongly taken for a decision would come out as text; templates that do so (or that
//! build tokens from pieces) are found by rendering harmless conversations once
//! (`ChatTemplate::audit`).

use std::ops::Range;

use super::lexer::{Kind, Token, is_keyword, lex};
use crate::prefixes::Prefixes;

/// The added tokens of one checkpoint, to be found in texts.
#[derive(Debug)]
pub(super) struct Spellings {
    /// Not empty, no duplicates, the longest first. At one place the longest one counts.
    list: Vec<String>,
    /// They, by their places in the list.
    prefixes: Prefixes,
}

impl Spellings {
    pub(super) fn new(spellings: impl IntoIterator<Item = String>) -> Self {
        let mut list: Vec<String> = spellings.into_iter().filter(|s| !s.is_empty()).collect();
        list.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        list.dedup();
        let prefixes = Prefixes::new((0..).zip(list.iter().map(String::as_str)));
        Self { list, prefixes }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, index: usize) -> &str {
        &self.list[index]
    }

    /// The first spelling in `text`: where it starts and which one it is.
    pub(super) fn find(&self, text: &str) -> Option<(usize, usize)> {
        let (at, index, _) = self.prefixes.find(text.as_bytes(), 0)?;
        Some((at, index as usize))
    }

    /// `text` with every spelling replaced by its seal.
    pub(super) fn seal(&self, text: &str, base: Base) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, index)) = self.find(rest) {
            out.push_str(&rest[..at]);
            out.push(base.seal(index));
            rest = &rest[at + self.list[index].len()..];
        }
        out.push_str(rest);
        out
    }

    /// A sealed text with every seal replaced by its spelling.
    pub(super) fn unseal(&self, sealed: &str, base: Base) -> String {
        let mut out = String::with_capacity(sealed.len());
        for c in sealed.chars() {
            match base.index(c, self.len()) {
                Some(index) => out.push_str(&self.list[index]),
                None => out.push(c),
            }
        }
        out
    }
}

/// The code point of the first token's seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base(u32);

impl Base {
    /// The first run of `count` private-use code points of which none is `used`.
    pub(super) fn free(count: usize, used: &std::collections::HashSet<char>) -> Option<Base> {
        let count = u32::try_from(count).ok()?.max(1);
        for (start, end) in [(0xE000, 0xF900), (0xF_0000, 0xF_FFFE), (0x10_0000, 0x10_FFFE)] {
            let mut base = start;
            // From a used code point the next run to try starts after it.
            while base + count <= end {
                let is_used = |&code: &u32| char::from_u32(code).is_some_and(|c| used.contains(&c));
                match (base..base + count).rev().find(is_used) {
                    None => return Some(Base(base)),
                    Some(code) => base = code + 1,
                }
            }
        }
        None
    }

    fn seal(self, index: usize) -> char {
        // `free` only gives runs that lie within the private-use areas.
        char::from_u32(self.0 + index as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Which of `count` seals `c` is.
    pub(super) fn index(self, c: char, count: usize) -> Option<usize> {
        let index = u32::from(c).checked_sub(self.0)? as usize;
        (index < count).then_some(index)
    }
}

/// Whether a character could be a seal.
pub(super) fn is_private_use(c: char) -> bool {
    matches!(u32::from(c), 0xE000..=0xF8FF | 0xF_0000..=0xF_FFFD | 0x10_0000..=0x10_FFFD)
}

/// The sealed copy of a template's source.
///
/// `literal` gives the value of a string literal (with its quotes) of the template
/// language, or `None` if it is none.
pub(super) fn seal_source(
    source: &str,
    spellings: &Spellings,
    base: Base,
    literal: impl Fn(&str) -> Option<String>,
) -> String {
    let tokens = lex(source);
    let decides = deciding_literals(source, &tokens);
    let mut out = String::with_capacity(source.len());
    for (i, token) in tokens.iter().enumerate() {
        let text = &source[token.range.clone()];
        match token.kind {
            Kind::Data => out.push_str(&spellings.seal(text, base)),
            Kind::Literal if !decides[i] => {
                match literal(text).filter(|value| spellings.find(value).is_some()) {
                    Some(value) => quote(&spellings.seal(&value, base), &mut out),
                    None => out.push_str(text),
                }
            }
            _ => out.push_str(text),
        }
    }
    out
}

/// Writes a string literal.
fn quote(value: &str, out: &mut String) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// An open bracket within a tag.
struct Bracket<'a> {
    /// Its contents are compared or looked up rather than written.
    decides: bool,
    /// The filter, method, test or function whose arguments it holds.
    call: Option<(Called, &'a str)>,
    /// `{`: a literal before a colon is a key.
    dict: bool,
    /// Commas so far: the number of the argument.
    argument: usize,
}

impl Bracket<'_> {
    /// Whether what stands in it now is compared or looked up.
    fn holds_decisions(&self) -> bool {
        let argument = |(called, name)| argument_decides(called, name, self.argument);
        self.decides || self.call.is_some_and(argument)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Called {
    Function,
    Method,
    Filter,
    Test,
}

/// For every token: whether it is a literal that serves a decision.
fn deciding_literals(source: &str, tokens: &[Token]) -> Vec<bool> {
    let mut decides = vec![false; tokens.len()];
    let mut start = 0;
    while start < tokens.len() {
        let from = start;
        start += 1;
        if tokens[from].kind == Kind::TagStart {
            while start < tokens.len() && tokens[start].kind != Kind::TagEnd {
                start += 1;
            }
            judge_tag(source, tokens, from + 1..start, &mut decides);
        }
    }
    decides
}

/// Judges the literals of one tag, whose tokens are `range`.
fn judge_tag(source: &str, tokens: &[Token], range: Range<usize>, decides: &mut [bool]) {
    let is_block = source[tokens[range.start - 1].range.clone()].starts_with("{%");
    let tag: Vec<usize> = range.filter(|&i| tokens[i].kind != Kind::Other).collect();
    let text = |n: usize| tag.get(n).map_or("", |&i| &source[tokens[i].range.clone()]);
    let kind = |n: usize| tag.get(n).map_or(Kind::Other, |&i| tokens[i].kind);
    let name = |n: usize, word: &str| kind(n) == Kind::Name && text(n) == word;
    let operator = |n: usize, word: &str| kind(n) == Kind::Operator && text(n) == word;
    let before = |n: usize, back: usize| n.checked_sub(back).unwrap_or(usize::MAX);
    let equality = |n: usize| operator(n, "==") || operator(n, "!=");
    // `{% for x in [..] %}`: the first `in` there is no test of membership.
    let loop_in = if name(0, "for") { (0..tag.len()).find(|&n| name(n, "in")) } else { None };
    let membership = |n: usize| name(n, "in") && Some(n) != loop_in;
    // The operand that starts after token n is compared.
    let compared_after = |n: usize| equality(n) || membership(n);
    let compared_before =
        |n: usize| equality(n) || membership(n) || (name(n, "not") && membership(n + 1));
    // Token n is the name of a test: `is name`, `is not name`.
    let is_test = |n: usize| {
        kind(n) == Kind::Name
            && (name(before(n, 1), "is") || (name(before(n, 1), "not") && name(before(n, 2), "is")))
    };
    let mut brackets: Vec<Bracket<'_>> = Vec::new();
    for n in 0..tag.len() {
        let previous = before(n, 1);
        let inherited = brackets.last().is_some_and(Bracket::holds_decisions);
        match (kind(n), text(n)) {
            (Kind::Operator, "(") => {
                let word = kind(previous) == Kind::Name
                    && !is_keyword(text(previous), is_block && previous == 0);
                let called = if operator(before(n, 2), ".") {
                    Called::Method
                } else if operator(before(n, 2), "|") || (n == 2 && name(0, "filter")) {
                    Called::Filter
                } else if is_test(previous) {
                    Called::Test
                } else {
                    Called::Function
                };
                brackets.push(Bracket {
                    decides: !word && (inherited || compared_after(previous)),
                    call: word.then(|| (called, text(previous))),
                    dict: false,
                    argument: 0,
                });
            }
            (Kind::Operator, "[") => {
                let word = kind(previous) == Kind::Name
                    && !is_keyword(text(previous), is_block && previous == 0);
                let value = word
                    || kind(previous) == Kind::Literal
                    || [")", "]", "}"].iter().any(|b| operator(previous, b));
                let decides = value || inherited || compared_after(previous);
                brackets.push(Bracket { decides, call: None, dict: false, argument: 0 });
            }
            (Kind::Operator, "{") => {
                let decides = inherited || compared_after(previous);
                brackets.push(Bracket { decides, call: None, dict: true, argument: 0 });
            }
            (Kind::Operator, ")" | "]" | "}") => {
                brackets.pop();
            }
            (Kind::Operator, ",") => {
                if let Some(bracket) = brackets.last_mut() {
                    bracket.argument += 1;
                }
            }
            (Kind::Literal, _) => {
                let key = brackets.last().is_some_and(|b| b.dict) && operator(n + 1, ":");
                decides[tag[n]] = inherited
                    || key
                    || compared_after(previous)
                    || compared_before(n + 1)
                    || is_test(previous);
            }
            _ => {}
        }
    }
}

/// Whether an argument is looked for in a value rather than becoming part of one.
fn argument_decides(called: Called, name: &str, argument: usize) -> bool {
    match called {
        Called::Function => false,
        Called::Test => true,
        Called::Method => match name {
            "replace" | "get" => argument == 0,
            "split" | "rsplit" | "partition" | "rpartition" | "splitlines" | "startswith"
            | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" | "strip" | "lstrip"
            | "rstrip" | "removeprefix" | "removesuffix" => true,
            _ => false,
        },
        Called::Filter => match name {
            "replace" => argument == 0,
            "default" | "d" | "join" | "indent" | "format" => false,
            _ => true,
        },
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
