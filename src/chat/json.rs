//! JSON as Python reads it: key order kept, the last of two equal keys counts (in the
//! place of the first), integers of any size exact.
//!
//! An own reader, because the numbers of a conversation end up as text in the prompt:
//! `serde_json` turns integers beyond 64 bits into floats.

use std::fmt;

use crate::{Error, Result};

/// Arrays and objects may nest this deep: far beyond any conversation, and little stack.
const MAX_DEPTH: usize = 128;
/// Python's own limit for reading a decimal integer.
const MAX_DIGITS: usize = 4300;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i128),
    /// An integer beyond 128 bits: its digits, with a sign if negative, no leading zeros.
    BigInt(String),
    Float(f64),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one JSON value, with nothing but white space around it.
    ///
    /// # Errors
    /// `InvalidArgument` with line and column of what could not be read.
    pub(crate) fn parse(text: &str) -> Result<Json> {
        Self::parse_within(0, text)
    }

    /// As [`Json::parse`], for a value that will be written and read `levels` deep in another:
    /// so much less deep it may be itself.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub(crate) fn parse_within(levels: usize, text: &str) -> Result<Json> {
        let mut parser = Parser { text, at: 0, most: MAX_DEPTH - levels };
        parser.space();
        let value = parser.value()?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.error("the end of the text"));
        }
        Ok(value)
    }

    /// What JSON calls this kind of value, with an article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Int(_) | Json::BigInt(_) | Json::Float(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// About how many bytes the value is when written.
    pub(crate) fn size(&self) -> usize {
        const EACH: usize = 8;
        match self {
            Json::String(s) | Json::BigInt(s) => s.len() + EACH,
            Json::Array(items) => items.iter().map(Json::size).sum::<usize>() + EACH,
            Json::Object(entries) => {
                entries.iter().map(|(key, value)| key.len() + value.size()).sum::<usize>() + EACH
            }
            _ => EACH,
        }
    }

    /// Whether all numbers in this value are finite: a literal beyond the range of floats is read
    /// as infinity, which JSON cannot write.
    pub(crate) fn is_finite(&self) -> bool {
        match self {
            Json::Float(number) => number.is_finite(),
            Json::Array(items) => items.iter().all(Json::is_finite),
            Json::Object(entries) => entries.iter().all(|(_, value)| value.is_finite()),
            _ => true,
        }
    }

    /// Calls `f` with every string in this value, keys included.
    pub(crate) fn for_each_string<'a>(&'a self, f: &mut impl FnMut(&'a str)) {
        match self {
            Json::String(s) => f(s),
            Json::Array(items) => items.iter().for_each(|item| item.for_each_string(f)),
            Json::Object(entries) => {
                for (key, value) in entries {
                    f(key);
                    value.for_each_string(f);
                }
            }
            _ => {}
        }
    }
}

/// The value of `key`, if there is one.
pub(crate) fn get<'a>(object: &'a [(String, Json)], key: &str) -> Option<&'a Json> {
    object.iter().find(|(k, _)| k == key).map(|(_, v)| v)
}

/// An array or an object that is being read, the latter with the key of its next value.
enum Open {
    Array(Vec<Json>),
    Object(Entries, String),
}

impl Open {
    fn add(&mut self, value: Json) {
        match self {
            Open::Array(items) => items.push(value),
            Open::Object(entries, key) => entries.insert(std::mem::take(key), value),
        }
    }

    fn closed(self) -> Json {
        match self {
            Open::Array(items) => Json::Array(items),
            Open::Object(entries, _) => Json::Object(entries.list),
        }
    }

    /// What may follow a value.
    fn expects(&self) -> &'static str {
        match self {
            Open::Array(_) => "',' or ']'",
            Open::Object(..) => "',' or '}'",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Levels that values may have.
    most: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// An error at the current position.
    fn error(&self, expected: impl fmt::Display) -> Error {
        let before = &self.text[..self.at];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let found = match self.text[self.at..].chars().next() {
            None => "the end of the text".to_string(),
            Some(c) => format!("{c:?}"),
        };
        Error::invalid_argument(format!(
            "not valid JSON at line {line}, column {column}: expected {expected}, found {found}"
        ))
    }

    /// A value. Not by recursion: hosts call from threads with little stack.
    fn value(&mut self) -> Result<Json> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.peek() {
                Some(bracket @ (b'[' | b'{')) => {
                    if open.len() == self.most {
                        return Err(self.error(format_args!("at most {} levels", self.most)));
                    }
                    self.at += 1;
                    self.space();
                    let mut new = match bracket {
                        b'[' => Open::Array(Vec::new()),
                        _ => Open::Object(Entries::default(), String::new()),
                    };
                    if !self.close(&new) {
                        self.begin_item(&mut new)?;
                        open.push(new);
                        continue;
                    }
                    new.closed()
                }
                _ => self.scalar()?,
            };
            // It goes into what is open, which may be complete with it, and so on.
            loop {
                let Some(mut container) = open.pop() else { return Ok(value) };
                container.add(value);
                self.space();
                if self.close(&container) {
                    value = container.closed();
                    continue;
                }
                if self.peek() != Some(b',') {
                    return Err(self.error(container.expects()));
                }
                self.at += 1;
                self.space();
                self.begin_item(&mut container)?;
                open.push(container);
                break;
            }
        }
    }

    /// Goes over the bracket that ends `container`, if it is here.
    fn close(&mut self, container: &Open) -> bool {
        let end = if matches!(container, Open::Array(_)) { b']' } else { b'}' };
        let is_here = self.peek() == Some(end);
        self.at += usize::from(is_here);
        is_here
    }

    /// Goes to the next value of `container`: behind its key, if it has one.
    fn begin_item(&mut self, container: &mut Open) -> Result<()> {
        let Open::Object(_, key) = container else { return Ok(()) };
        if self.peek() != Some(b'"') {
            return Err(self.error("a key in double quotes"));
        }
        *key = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.error("':'"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// A value that holds no others.
    fn scalar(&mut self) -> Result<Json> {
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in
                    [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
                {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.error("a value"))
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .bytes()
                .position(|b| b == b'"' || b == b'\\' || b < 0x20)
                .unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.error("the rest of a string (control characters escaped)")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.at;
        let short = match self.text.as_bytes().get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                if let Some(c) = char::from_u32(first) {
                    return Ok(c);
                }
                // A surrogate: only the first of a pair, with the second after it, is text.
                if first < 0xDC00 && self.text[self.at..].starts_with("\\u") {
                    let second = self.unit()?;
                    if (0xDC00..0xE000).contains(&second) {
                        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                        return char::from_u32(code).ok_or_else(|| self.error("a character"));
                    }
                }
                self.at = start;
                return Err(self.error(format_args!(
                    "a character (\\u{first:04x} is half of a surrogate pair without the other)"
                )));
            }
            _ => return Err(self.error("an escape of JSON")),
        };
        self.at += 2;
        Ok(short)
    }

    /// Reads `\uXXXX`.
    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at + 2..self.at + 6);
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let unit = unit.ok_or_else(|| self.error("four hexadecimal digits after \\u"))?;
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Json> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.at;
        self.digits()?;
        if self.at - digits > 1 && self.text.as_bytes()[digits] == b'0' {
            self.at = digits + 1;
            return Err(self.error("no digit after a leading zero"));
        }
        let mut float = false;
        if self.peek() == Some(b'.') {
            float = true;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if float {
            return text.parse().map(Json::Float).map_err(|_| self.error("a number"));
        }
        if let Ok(int) = text.parse() {
            return Ok(Json::Int(int));
        }
        if self.at - digits > MAX_DIGITS {
            return Err(self.error(format_args!("an integer of at most {MAX_DIGITS} digits")));
        }
        Ok(Json::BigInt(text.to_string()))
    }

    fn digits(&mut self) -> Result<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }
}

/// The entries of an object, with an index once there are many (a linear search alone
/// would be quadratic on a hostile text).
#[derive(Default)]
struct Entries {
    list: Vec<(String, Json)>,
    index: std::collections::HashMap<String, usize>,
}

impl Entries {
    fn insert(&mut self, key: String, value: Json) {
        const FEW: usize = 16;
        let known = if self.list.len() <= FEW {
            self.list.iter().position(|(k, _)| *k == key)
        } else {
            if self.index.is_empty() {
                self.index = self.list.iter().map(|(k, _)| k.clone()).zip(0..).collect();
            }
            self.index.get(&key).copied()
        };
        match known {
            Some(at) => self.list[at].1 = value,
            None => {
                if !self.index.is_empty() {
                    self.index.insert(key.clone(), self.list.len());
                }
                self.list.push((key, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Json::parse(text).unwrap_err().message().to_string()
    }

    #[test]
    fn values() {
        let parsed = Json::parse(" {\"a\" : [1, -2.5e3,true,false,null] , \"b\":{}, \"\":[]}\n");
        let expected = Json::Object(vec![
            (
                "a".into(),
                Json::Array(vec![
                    Json::Int(1),
                    Json::Float(-2500.0),
                    Json::Bool(true),
                    Json::Bool(false),
                    Json::Null,
                ]),
            ),
            ("b".into(), Json::Object(vec![])),
            (String::new(), Json::Array(vec![])),
        ]);
        assert_eq!(parsed.unwrap(), expected);
    }

    #[test]
    fn strings_and_escapes() {
        let string = |text: &str| match Json::parse(text) {
            Ok(Json::String(s)) => s,
            other => panic!("{other:?}"),
        };
        assert_eq!(string(r#""a\"\\\/\b\f\n\r\t\u00e9\u0000é""#), "a\"\\/\u{8}\u{c}\n\r\té\0é");
        assert_eq!(string(r#""\ud83d\uDE00 x""#), "😀 x");
        assert!(error(r#""\ud83d""#).contains("surrogate"));
        assert!(error(r#""\ude00\ud83d""#).contains("surrogate"));
        assert!(error(r#""\ud83d\u0041""#).contains("surrogate"));
        assert!(error(r#""\u12g4""#).contains("hexadecimal"));
        assert!(error("\"\\u00é\"").contains("hexadecimal"));
        assert!(error(r#""\x41""#).contains("escape"));
        assert!(error("\"a\nb\"").contains("line 1, column 3"));
        assert!(error("\"abc").contains("the end of the text"));
    }

    #[test]
    fn numbers() {
        assert_eq!(Json::parse("-0").unwrap(), Json::Int(0));
        let big = "170141183460469231731687303715884105728";
        assert_eq!(Json::parse(big).unwrap(), Json::BigInt(big.into()));
        assert_eq!(Json::parse("1e400").unwrap(), Json::Float(f64::INFINITY));
        assert!(!Json::parse(r#"{"a": [1, -1e400]}"#).unwrap().is_finite());
        assert!(Json::parse(r#"{"a": [1, -1e300, null]}"#).unwrap().is_finite());
        for bad in ["01", "-", "1.", ".5", "1e", "+1", "NaN", "Infinity", "0x10", "1_0"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
        assert!(error(&"9".repeat(5000)).contains("4300 digits"));
    }

    #[test]
    fn structure() {
        for bad in
            ["", " ", "[1,]", "{\"a\":1,}", "[1 2]", "{1:2}", "{\"a\" 1}", "nul", "[", "{", "1 2"]
        {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
        assert!(error("{\n \"a\": tru}").contains("line 2, column 7"));
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Json::parse(&deep(128)).is_ok());
        assert!(error(&deep(129)).contains("128 levels"));
        assert!(Json::parse_within(3, &deep(125)).is_ok());
        let error_within = Json::parse_within(3, &deep(126)).unwrap_err();
        assert!(error_within.message().contains("125 levels"), "{error_within}");
        assert!(error(&"[".repeat(1_000_000)).contains("128 levels"));
    }

    #[test]
    fn the_deepest_value_needs_little_stack() {
        let work = || {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let text = format!("{}1{}", open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
                let value = Json::parse(&text).unwrap();
                assert!(value.clone() == value && value.size() > MAX_DEPTH);
                assert_eq!(value.to_text().replace(": ", ":"), text);
            }
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn last_of_equal_keys_counts_in_the_first_place() {
        let mut text = String::from("{");
        for i in 0..100 {
            text.push_str(&format!("\"k{}\": {i}, ", i % 40));
        }
        text.push_str("\"k0\": 7}");
        let Json::Object(entries) = Json::parse(&text).unwrap() else { panic!() };
        assert_eq!(entries.len(), 40);
        for (i, (key, _)) in entries.iter().enumerate() {
            assert_eq!(*key, format!("k{i}"));
        }
        assert_eq!(get(&entries, "k0"), Some(&Json::Int(7)));
        assert_eq!(get(&entries, "k1"), Some(&Json::Int(81)));
        assert_eq!(get(&entries, "k39"), Some(&Json::Int(79)));
    }
}
