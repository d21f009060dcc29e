//! The tokens of a template's source, for rewriting it (see `seal` and `prepare`).

use std::ops::Range;

/// What stands at a place of a template's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text that the template writes as it is.
    Data,
    /// A comment, a delimiter, white space in a tag: nothing to look at.
    Other,
    Name,
    Number,
    /// A string literal with its quotes.
    Literal,
    Operator,
    /// The start of a `{% .. %}` or `{{ .. }}` tag.
    TagStart,
    TagEnd,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// Cuts a template into tokens that cover it without gaps. It need not notice errors: a
/// template that does not compile is never sealed.
pub(super) fn lex(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new() };
    while lexer.at < source.len() {
        lexer.data();
    }
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: Kind, len: usize) {
        if len > 0 {
            self.tokens.push(Token { kind, range: self.at..self.at + len });
            self.at += len;
        }
    }

    /// Text up to a tag or comment, and that tag or comment.
    fn data(&mut self) {
        let rest = self.rest();
        let is_start = |i: &usize| matches!(rest.as_bytes().get(i + 1), Some(b'{' | b'%' | b'#'));
        let start = rest.match_indices('{').map(|(i, _)| i).find(is_start).unwrap_or(rest.len());
        self.push(Kind::Data, start);
        let rest = self.rest();
        if let Some(comment) = rest.strip_prefix("{#") {
            let len = comment.find("#}").map_or(rest.len(), |i| i + 4);
            self.push(Kind::Other, len);
        } else if let Some(len) = basic_tag(rest, "raw") {
            self.push(Kind::Other, len);
            let rest = self.rest();
            let end = |&(i, _): &(usize, &str)| basic_tag(&rest[i..], "endraw").is_some();
            let len = rest.match_indices("{%").find(end).map_or(rest.len(), |(i, _)| i);
            self.push(Kind::Data, len);
            let len = basic_tag(self.rest(), "endraw").unwrap_or(0);
            self.push(Kind::Other, len);
        } else if !rest.is_empty() {
            self.tag();
        }
    }

    /// A `{% .. %}` or `{{ .. }}` tag. Its end only counts outside brackets.
    fn tag(&mut self) {
        let end = if self.rest().starts_with("{%") { "%}" } else { "}}" };
        let sign = matches!(self.rest().as_bytes().get(2), Some(b'-' | b'+'));
        self.push(Kind::TagStart, if sign { 3 } else { 2 });
        let mut depth = 0i64;
        while self.at < self.source.len() {
            let rest = self.rest();
            if depth == 0 {
                let sign = usize::from(rest.starts_with(['-', '+']));
                if rest[sign..].starts_with(end) {
                    self.push(Kind::TagEnd, sign + end.len());
                    return;
                }
            }
            let bytes = rest.as_bytes();
            let (kind, len) = match bytes[0] {
                b if b.is_ascii_whitespace() => {
                    (Kind::Other, count(bytes, |b| b.is_ascii_whitespace()))
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    (Kind::Name, count(bytes, |b| b == b'_' || b.is_ascii_alphanumeric()))
                }
                b'0'..=b'9' => {
                    (Kind::Number, count(bytes, |b| b == b'_' || b.is_ascii_alphanumeric()))
                }
                b'"' | b'\'' => (Kind::Literal, literal_len(bytes)),
                b => {
                    depth += i64::from(matches!(b, b'(' | b'[' | b'{'));
                    depth -= i64::from(matches!(b, b')' | b']' | b'}'));
                    let two = ["==", "!=", "<=", ">=", "//", "**"];
                    let two = two.iter().any(|op| rest.starts_with(op));
                    let one = rest.chars().next().map_or(1, char::len_utf8);
                    (Kind::Operator, if two { 2 } else { one })
                }
            };
            self.push(kind, len);
        }
    }
}

fn count(bytes: &[u8], f: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&b| f(b)).count()
}

/// The length of the string literal at the start of `bytes`, quotes included.
fn literal_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == bytes[0] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of `{% name %}` at the start of `text`, with any white space control.
fn basic_tag(text: &str, name: &str) -> Option<usize> {
    let sign = |s: &'_ str| usize::from(s.starts_with(['-', '+']));
    let rest = text.strip_prefix("{%")?;
    let rest = rest[sign(rest)..].trim_ascii_start();
    let rest = rest.strip_prefix(name)?.trim_ascii_start();
    let rest = rest[sign(rest)..].strip_prefix("%}")?;
    Some(text.len() - rest.len())
}

/// Whether a name is part of the language rather than a value. A `statement` is the first
/// name of a `{% .. %}` tag.
pub(super) fn is_keyword(name: &str, statement: bool) -> bool {
    statement && ["if", "elif", "for", "set", "call", "with", "do"].contains(&name)
        || ["and", "or", "not", "in", "is", "if", "else", "recursive"].contains(&name)
}
