//! The pre-tokenizer: cuts text into the pieces that byte pairs are merged within.
//!
//! A scanner by hand for one regular expression,
//!
//! ```text
//! (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ | \p{N}
//!     | ?[^\s\p{L}\p{M}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//! ```
//!
//! and for its older form, where `\p{M}` is on the side of the punctuation. The first alternative
//! that matches wins. Each character has one class, so an alternative is recognised by its first
//! one or two characters; the only backtracking is within runs of white space.

use super::unicode::{Properties, class};

/// The character that starts at `at`, which must be a character boundary within `bytes` (UTF-8),
/// and its length.
#[inline]
pub fn decode(bytes: &[u8], at: usize) -> (u32, usize) {
    let lead = u32::from(bytes[at]);
    let low = |i: usize| bytes.get(at + i).map_or(0, |&b| u32::from(b & 0x3F));
    match lead {
        0..0x80 => (lead, 1),
        0x80..0xE0 => ((lead & 0x1F) << 6 | low(1), 2),
        0xE0..0xF0 => ((lead & 0x0F) << 12 | low(1) << 6 | low(2), 3),
        _ => ((lead & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4),
    }
}

/// Finds the ends of pieces.
pub struct Splitter {
    properties: Properties,
}

impl Splitter {
    /// `properties` decides to which side marks belong.
    pub fn new(properties: Properties) -> Self {
        Self { properties }
    }

    /// The property table.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The class and the length of the character at `at`; nothing at the end of the text.
    #[inline]
    fn class(&self, text: &[u8], at: usize) -> Option<(u8, usize)> {
        if at >= text.len() {
            return None;
        }
        let (c, len) = decode(text, at);
        Some((self.properties.of(c) & class::MASK, len))
    }

    /// The end of the run of characters of class `wanted` from `at` on.
    #[inline]
    fn run(&self, text: &[u8], mut at: usize, wanted: u8) -> usize {
        while let Some((found, len)) = self.class(text, at)
            && found == wanted
        {
            at += len;
        }
        at
    }

    /// The pieces of `text`, which is UTF-8.
    pub fn pieces<'a>(&'a self, text: &'a [u8]) -> Pieces<'a> {
        Pieces { splitter: self, text, at: 0, letters: Letters::default() }
    }

    /// The end of the piece that starts at `start`, of any kind; `start` is a character boundary
    /// before the end of the text.
    fn piece_end(&self, text: &[u8], start: usize) -> usize {
        let Some((first, len)) = self.class(text, start) else { return start };
        let next = start + len;
        match first {
            class::WORD => self.run(text, next, class::WORD),
            class::NUMBER => next,
            class::OTHER => {
                if text[start] == b'\''
                    && let Some(end) = contraction(text, next)
                {
                    return end;
                }
                match self.class(text, next) {
                    Some((class::WORD, len)) => self.run(text, next + len, class::WORD),
                    _ => self.punctuation(text, next),
                }
            }
            _ => {
                if first == class::SPACE {
                    match self.class(text, next) {
                        Some((class::WORD, len)) => {
                            return self.run(text, next + len, class::WORD);
                        }
                        Some((class::OTHER, len)) if text[start] == b' ' => {
                            return self.punctuation(text, next + len);
                        }
                        _ => {}
                    }
                }
                self.white_space(text, start)
            }
        }
    }

    /// The rest of `[^\s\p{L}\p{M}\p{N}]+[\r\n]*`.
    fn punctuation(&self, text: &[u8], at: usize) -> usize {
        let end = self.run(text, at, class::OTHER);
        self.run(text, end, class::BREAK)
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line break of the run; without one, the run but
    /// for its last character if text follows it, so that a word keeps the space before it.
    fn white_space(&self, text: &[u8], start: usize) -> usize {
        let (mut at, mut last, mut after_break) = (start, start, None);
        while let Some((found @ (class::SPACE | class::BREAK), len)) = self.class(text, at) {
            last = at;
            at += len;
            if found == class::BREAK {
                after_break = Some(at);
            }
        }
        match after_break {
            Some(end) => end,
            None if at == text.len() || last == start => at,
            None => last,
        }
    }
}

/// Iterates over pieces, given as (start, end).
pub struct Pieces<'a> {
    splitter: &'a Splitter,
    text: &'a [u8],
    at: usize,
    letters: Letters,
}

impl Iterator for Pieces<'_> {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        let start = self.at;
        let &first = self.text.get(start)?;
        self.at = match self.ascii_word_end(first, start) {
            Some(end) => end,
            None if first.is_ascii_digit() => start + 1,
            None => self.splitter.piece_end(self.text, start),
        };
        Some((start, self.at))
    }
}

impl Pieces<'_> {
    /// The end of a word of ASCII letters, with or without another ASCII character before it:
    /// most pieces of most text. None if the piece is of another kind, or near the end.
    #[inline]
    fn ascii_word_end(&mut self, first: u8, start: usize) -> Option<usize> {
        let kind = KINDS[usize::from(first)];
        if kind == NO_START {
            return None;
        }
        let end = self.letters.run_end(self.text, start + 1)?;
        // There must be a letter, and none beyond ASCII may follow.
        let whole = end > start + 1 || kind == LETTER;
        (whole && self.text[end].is_ascii()).then_some(end)
    }
}

/// Which bytes of a block of 64 are ASCII letters, a bit for each. The end of a run of letters is
/// then a matter of few instructions that wait for each other; this wait is what limits a scanner.
#[derive(Default)]
struct Letters {
    /// The index of the block, plus 1.
    block: usize,
    /// A bit for each byte that is *not* a letter.
    others: u64,
}

impl Letters {
    /// Where the letters from `at` on end; none in the last, incomplete block of the text.
    #[inline]
    fn run_end(&mut self, text: &[u8], mut at: usize) -> Option<usize> {
        loop {
            if self.block != at / 64 + 1 {
                self.load(text, at / 64)?;
            }
            let others = self.others >> (at % 64);
            if others != 0 {
                return Some(at + others.trailing_zeros() as usize);
            }
            at = (at / 64 + 1) * 64;
        }
    }

    fn load(&mut self, text: &[u8], block: usize) -> Option<()> {
        let bytes = text.get(block * 64..block * 64 + 64)?;
        self.block = block + 1;
        self.others = 0;
        for (i, bytes) in bytes.chunks_exact(8).enumerate() {
            self.others |= ascii_others(bytes.try_into().ok()?) << (8 * i);
        }
        Some(())
    }
}

/// What an ASCII byte is at the start of a word.
const KINDS: [u8; 256] = {
    let mut kinds = [NO_START; 256];
    let mut byte = 0;
    while byte < 0x80 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            // An apostrophe may start a contraction.
            b'0'..=b'9' | b'\r' | b'\n' | b'\'' => NO_START,
            _ => PREFIX,
        };
        byte += 1;
    }
    kinds
};
const NO_START: u8 = 0;
const PREFIX: u8 = 1;
const LETTER: u8 = 2;

/// A bit for each of eight bytes that is not an ASCII letter, by arithmetic on all at once.
#[inline]
fn ascii_others(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let bytes = u64::from_le_bytes(bytes);
    let lower = (bytes | (0x20 * ONES)) & !HIGH;
    let from_a = lower + (0x80 - u64::from(b'a')) * ONES;
    let above_z = lower + (0x7F - u64::from(b'z')) * ONES;
    let others = !(from_a & !above_z & !bytes) & HIGH;
    // The multiplication gathers the high bits of all bytes in the highest byte.
    (others >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The end of `s|t|re|ve|m|ll|d` in any case at `at`, which follows an apostrophe. The long s
/// folds to s.
fn contraction(text: &[u8], at: usize) -> Option<usize> {
    let letter = |i: usize| text.get(at + i).map(u8::to_ascii_lowercase);
    match (letter(0)?, letter(1)) {
        (b's' | b't' | b'm' | b'd', _) => Some(at + 1),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(at + 2),
        (0xC5, Some(0xBF)) => Some(at + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, marks_in_words: bool) -> Vec<&str> {
        let splitter = Splitter::new(Properties::new(marks_in_words));
        splitter.pieces(text.as_bytes()).map(|(start, end)| &text[start..end]).collect()
    }

    #[test]
    fn white_space_gives_back_one_character() {
        assert_eq!(pieces("a  \n  x", true), ["a", "  \n", " ", " x"]);
        assert_eq!(pieces("end   ", true), ["end", "   "]);
        assert_eq!(pieces("a\t\tb 1", true), ["a", "\t", "\tb", " ", "1"]);
        assert_eq!(pieces("x\r\n\r\n    if", true), ["x", "\r\n\r\n", "   ", " if"]);
        assert_eq!(pieces("a \u{a0}b", true), ["a", " ", "\u{a0}b"]);
    }

    #[test]
    fn contractions_and_punctuation() {
        assert_eq!(pieces("I'LL we'Re", true), ["I", "'LL", " we", "'Re"]);
        assert_eq!(pieces("it'\u{17f}x!'s", true), ["it", "'\u{17f}", "x", "!'", "s"]);
        assert_eq!(pieces(" ...!!\n\n x", true), [" ...!!\n\n", " x"]);
        assert_eq!(pieces("(x):\r\n 12", true), ["(x", "):\r\n", " ", "1", "2"]);
    }

    #[test]
    fn marks_by_pattern() {
        assert_eq!(pieces("a\u{301}b \u{301}", true), ["a\u{301}b", " \u{301}"]);
        assert_eq!(pieces("a\u{301}b \u{301}", false), ["a", "\u{301}b", " \u{301}"]);
    }
}
