//! The template's source as it is compiled: Transformers' own tag made plain, and limits
//! put around the values that a template builds.
//!
//! The engine counts the work of a template (fuel), but it frees, prints and compares
//! values by recursion and does not count that: a list that holds itself twice, sixty
//! times over, is tiny in memory and endless when written; a list in a list in a list ..
//! overflows the stack when freed. So every list, tuple and mapping that the template
//! writes down, and every value that it assigns, passes through the filter [`BOUNDED`],
//! which refuses values that are too deep or, written out, too large. Nor does the engine
//! count looking at large values; so the expressions of tags that write nothing pass through
//! the filter [`PACED`], which keeps an eye on the time. Lines stay where they are, and what
//! is rendered does not change.

use std::ops::Range;

use super::lexer::{Kind, Token, is_keyword, lex};
use super::limit::PACED;

/// The name of the filter that checks a value.
pub(super) const BOUNDED: &str = "__bounded";

/// No template is near these sizes, published ones have some ten thousand bytes. The compiler takes
/// a hundred times the first in memory and a microsecond for each byte, and stack for the second.
const MAX_SOURCE: usize = 1 << 18;
const MAX_TAG_TOKENS: usize = 2000;

/// The source to be compiled, or why it is not.
pub(super) fn prepare(source: &str) -> Result<String, String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("the template is longer than {MAX_SOURCE} bytes"));
    }
    let tokens = lex(source);
    let mut pieces: Vec<String> =
        tokens.iter().map(|token| source[token.range.clone()].to_string()).collect();
    let mut start = 0;
    while start < tokens.len() {
        let mut end = start + 1;
        if tokens[start].kind == Kind::TagStart {
            while end < tokens.len() && tokens[end].kind != Kind::TagEnd {
                end += 1;
            }
            if end - start > MAX_TAG_TOKENS {
                let line = source[..tokens[start].range.start].matches('\n').count() + 1;
                return Err(format!(
                    "the tag in line {line} is longer than {MAX_TAG_TOKENS} tokens"
                ));
            }
            tag(source, &tokens[start..end], &mut pieces[start..end]);
        }
        start = end;
    }
    Ok(pieces.concat())
}

/// Rewrites one tag: `tokens` begin with its start and end before its end.
fn tag(source: &str, tokens: &[Token], pieces: &mut [String]) {
    let seen: Vec<usize> = (1..tokens.len()).filter(|&i| tokens[i].kind != Kind::Other).collect();
    let words: Vec<(Kind, &str)> =
        seen.iter().map(|&i| (tokens[i].kind, &source[tokens[i].range.clone()])).collect();
    let is_block = source[tokens[0].range.clone()].starts_with("{%");
    let statement = match words.first() {
        Some((Kind::Name, name)) if is_block => *name,
        _ => "",
    };
    // Where the values start: targets of assignments and parameters are none.
    let start = match statement {
        "generation" | "endgeneration" => {
            pieces[seen[0]] = if statement == "generation" { "with" } else { "endwith" }.into();
            return;
        }
        "for" => words.iter().position(|word| *word == (Kind::Name, "in")),
        "set" => assignment(&words),
        "macro" => words.iter().position(|word| *word == (Kind::Operator, "(")),
        "call" if words.get(1) == Some(&(Kind::Operator, "(")) => {
            words.iter().position(|word| *word == (Kind::Operator, ")"))
        }
        _ => Some(0),
    };
    let Some(start) = start else { return };
    if statement == "set" {
        pieces[seen[start]].push('(');
        // The last piece may be white space before the end of the tag.
        if let Some(last) = pieces.last_mut() {
            last.push_str(&format!(")|{BOUNDED}"));
        }
    }
    let mut open: Vec<Bracket> = Vec::new();
    for n in start..words.len() {
        let (Kind::Operator, operator) = words[n] else { continue };
        let after_value = n > start
            && match words[n - 1] {
                (Kind::Name, name) => !is_keyword(name, is_block && n == 1),
                (Kind::Operator, before) => matches!(before, ")" | "]" | "}"),
                (kind, _) => matches!(kind, Kind::Literal | Kind::Number),
            };
        match operator {
            "[" if !after_value => open.push(Bracket::Container(seen[n])),
            "{" => open.push(Bracket::Container(seen[n])),
            // Only a comma makes a group a tuple.
            "(" if !after_value && n > start => open.push(Bracket::Group(seen[n])),
            "(" | "[" => open.push(Bracket::Other),
            "," => {
                if let Some(bracket) = open.last_mut()
                    && let Bracket::Group(piece) = *bracket
                {
                    *bracket = Bracket::Container(piece);
                }
            }
            ")" | "]" | "}" => {
                if let Some(Bracket::Container(piece)) = open.pop() {
                    pieces[piece].insert(0, '(');
                    pieces[seen[n]].push_str(&format!("|{BOUNDED})"));
                }
            }
            _ => {}
        }
    }
    for range in paced(statement, &words) {
        pieces[seen[range.start]].insert(0, '(');
        pieces[seen[range.end - 1]].push_str(&format!(")|{PACED}"));
    }
    if statement == "do" {
        // What is assigned is checked; the statement itself takes nothing but calls.
        pieces[seen[0]] = format!("set {PACED} = ");
    }
}

/// The expressions of a statement that writes nothing.
fn paced(statement: &str, words: &[(Kind, &str)]) -> Vec<Range<usize>> {
    let name = |word: &str| position(words, |w| w == (Kind::Name, word));
    let end = words.len();
    let mut ranges = Vec::new();
    match statement {
        "if" | "elif" | "do" => ranges.push(1..end),
        "for" => {
            let Some(iterated) = name("in") else { return ranges };
            let end = if words[end - 1] == (Kind::Name, "recursive") { end - 1 } else { end };
            let condition = name("if").unwrap_or(end);
            ranges.push(iterated + 1..condition);
            ranges.push(condition + 1..end);
        }
        "with" => {
            let mut from = 1;
            while let Some(equals) = assignment(&words[from..]) {
                let start = from + equals + 1;
                let comma = position(&words[start..], |w| w == (Kind::Operator, ","));
                let stop = comma.map_or(end, |comma| start + comma);
                ranges.push(start..stop);
                from = (stop + 1).min(end);
            }
        }
        _ => {}
    }
    ranges.retain(|range| range.start < range.end && !is_cheap(&words[range.clone()]));
    ranges
}

/// Whether an expression only looks up attributes and compares values with literals, which
/// most conditions do: no value is too large for that.
fn is_cheap(words: &[(Kind, &str)]) -> bool {
    let plain = |at: Option<usize>| {
        let kind = at.and_then(|at| words.get(at)).map(|(kind, _)| *kind);
        matches!(kind, Some(Kind::Literal | Kind::Number))
    };
    words.iter().enumerate().all(|(i, &word)| match word {
        (Kind::Operator, "==" | "!=") => plain(i.checked_sub(1)) || plain(Some(i + 1)),
        (Kind::Operator, operator) => operator == ".",
        (_, name) => name != "in",
    })
}

enum Bracket {
    /// A list, a mapping or a tuple, opened in this piece.
    Container(usize),
    /// Parentheses around an expression, opened in this piece.
    Group(usize),
    /// Arguments or a subscript.
    Other,
}

/// The `=` of `set target = value`.
fn assignment(words: &[(Kind, &str)]) -> Option<usize> {
    position(words, |word| word == (Kind::Operator, "="))
}

/// The first word outside of brackets that is wanted.
fn position(words: &[(Kind, &str)], wanted: impl Fn((Kind, &str)) -> bool) -> Option<usize> {
    let mut depth = 0;
    words.iter().position(|&(kind, word)| {
        if kind == Kind::Operator {
            depth += i32::from(matches!(word, "(" | "[" | "{"));
            depth -= i32::from(matches!(word, ")" | "]" | "}"));
        }
        depth == 0 && wanted((kind, word))
    })
}
