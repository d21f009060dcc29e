//! Stop strings in a text that comes in pieces.

use crate::conversation::save::fields;
use crate::{Error, Result};

/// Finds the first stop string of a text and holds back what may still become one: nothing of
/// a stop string is ever given out.
///
/// The stop string that is complete first counts; of several that end together, the longest.
#[derive(Clone, Debug, Default)]
pub struct StopFilter {
    stops: Vec<String>,
    /// Not given out yet: ends with a beginning of a stop string, or is empty.
    held: String,
}

fields!(StopFilter { stops, held });

impl StopFilter {
    /// A filter for `stops`.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty one, which would stop before the first character.
    pub fn new(stops: Vec<String>) -> Result<Self> {
        if let Some(index) = stops.iter().position(String::is_empty) {
            return Err(Error::invalid_argument(format!("stop string {index} is empty")));
        }
        Ok(Self { stops, held: String::new() })
    }

    /// Reads `text` and appends to `out` what is certainly not part of a stop string. Returns
    /// the stop string that was found: the text ends before it.
    pub fn push(&mut self, text: &str, out: &mut String) -> Option<&str> {
        if self.stops.is_empty() {
            out.push_str(text);
            return None;
        }
        let mut start = self.held.len();
        self.held.push_str(text);
        // The ends of characters that are new.
        while start < self.held.len() {
            start += self.held[start..].chars().next().map_or(1, char::len_utf8);
            let read = &self.held[..start];
            let longest = self.stops.iter().filter(|stop| read.ends_with(stop.as_str()));
            if let Some(found) = longest.max_by_key(|stop| stop.len()) {
                out.push_str(&read[..start - found.len()]);
                self.held.clear();
                return Some(found);
            }
        }
        let keep = self.longest_beginning();
        out.push_str(&self.held[..self.held.len() - keep]);
        self.held.drain(..self.held.len() - keep);
        None
    }

    /// The text ends: gives out what was held back.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }

    /// The length of the longest end of `held` that begins a stop string.
    fn longest_beginning(&self) -> usize {
        let most = self.stops.iter().map(|stop| stop.len() - 1).max().unwrap_or(0);
        let text = self.held.as_bytes();
        // A suffix that equals a beginning of a stop string in bytes starts with a character.
        (1..=most.min(text.len()))
            .rev()
            .find(|&length| {
                let end = &text[text.len() - length..];
                self.stops.iter().any(|s| s.len() > length && s.as_bytes().starts_with(end))
            })
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text given out and the stop string found, in pieces of `size` characters.
    fn run(stops: &[&str], text: &str, size: usize) -> (String, Option<String>) {
        let mut filter = StopFilter::new(stops.iter().map(|s| (*s).to_owned()).collect()).unwrap();
        let mut out = String::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            let piece: String = piece.iter().collect();
            if let Some(found) = filter.push(&piece, &mut out) {
                return (out, Some(found.to_owned()));
            }
        }
        filter.finish(&mut out);
        (out, None)
    }

    #[test]
    fn nothing_of_a_stop_string_is_given_out() {
        let many: Vec<String> = (0..64).map(|i| format!("stop{i:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for size in 1..20 {
            for (stops, text, expected, found) in [
                (&["a ga", "ta del"][..], "alpha beta gamma delta", "alpha bet", Some("a ga")),
                (&["ta del"], "alpha beta gamma delta", "alpha beta gamma delta", None),
                (&["😀b"], "x😀a😀b", "x😀a", Some("😀b")),
                (&["ab", "abc"], "xabc", "x", Some("ab")),
                (&["bc", "abcd"], "abcd", "a", Some("bc")),
                (&["b", "ab"], "xab", "x", Some("ab")),
                (&["aab"], "aaab", "a", Some("aab")),
                (&["é"], "eé", "e", Some("é")),
                (&["a very long stop string"], "a very", "a very", None),
                (&[], "anything", "anything", None),
                (&many, "go on stop6 stop63.", "go on stop6 ", Some("stop63")),
            ] {
                let got = run(stops, text, size);
                assert_eq!((got.0.as_str(), got.1.as_deref()), (expected, found), "{size}");
            }
        }
    }

    #[test]
    fn what_cannot_become_a_stop_string_comes_at_once() {
        let mut filter = StopFilter::new(vec!["END".into()]).unwrap();
        let mut out = String::new();
        filter.push("ab E", &mut out);
        assert_eq!(out, "ab ");
        filter.push("x", &mut out);
        assert_eq!(out, "ab Ex");
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        let error = StopFilter::new(vec!["a".into(), String::new()]).unwrap_err();
        assert!(error.message().contains("stop string 1"), "{error}");
    }
}
