//! Character properties, from the generated tables, in one byte per code point.

use super::tables::classes::{LETTERS, MARKS, NUMBERS, SPACES};
use super::tables::nfc::{COMPOSITIONS, MARK_CLASSES, REPLACED};

/// What the pre-tokenizer pattern tells apart. The low three bits of a property byte.
pub mod class {
    /// Neither of the others: punctuation, symbols, controls, unassigned.
    pub const OTHER: u8 = 0;
    /// `\p{L}`, and `\p{M}` where marks belong to words.
    pub const WORD: u8 = 1;
    /// `\p{N}`.
    pub const NUMBER: u8 = 2;
    /// `\s` but for the next two.
    pub const SPACE: u8 = 3;
    /// `\r` and `\n`.
    pub const BREAK: u8 = 4;
    /// The bits of a property byte that hold the class.
    pub const MASK: u8 = 7;
}

/// The combining class is not 0.
pub const MARK: u8 = 0x10;
/// Normalization may replace the character or join it with the one before.
pub const UNSTABLE: u8 = 0x20;

/// One past the highest code point.
const END: usize = 0x11_0000;

/// The property byte of every code point.
pub struct Properties(Box<[u8]>);

impl Properties {
    /// Builds the table; `marks_in_words` gives `\p{M}` the class of letters.
    pub fn new(marks_in_words: bool) -> Self {
        let mut table = vec![0; END].into_boxed_slice();
        let mut set = |first: u32, last: u32, bits: u8| {
            table[first as usize..=last as usize].iter_mut().for_each(|byte| *byte |= bits);
        };
        let marks = if marks_in_words { class::WORD } else { class::OTHER };
        for (ranges, class) in [
            (LETTERS, class::WORD),
            (MARKS, marks),
            (NUMBERS, class::NUMBER),
            (SPACES, class::SPACE),
        ] {
            ranges.iter().for_each(|&(first, last)| set(first, last, class));
        }
        MARK_CLASSES.iter().for_each(|&(first, last, _)| set(first, last, MARK));
        REPLACED.iter().for_each(|&(c, _)| set(c, c, UNSTABLE));
        COMPOSITIONS.iter().for_each(|&(_, second, _)| set(second, second, UNSTABLE));
        // Hangul vowels and finals join the syllable before them.
        set(0x1161, 0x1175, UNSTABLE);
        set(0x11A8, 0x11C2, UNSTABLE);
        table['\r' as usize] = class::BREAK;
        table['\n' as usize] = class::BREAK;
        Self(table)
    }

    /// The property byte of a code point.
    #[inline]
    pub fn of(&self, code_point: u32) -> u8 {
        // The default is never reached by a character.
        self.0.get(code_point as usize).copied().unwrap_or(class::OTHER)
    }
}

/// `\s`.
pub fn is_space(c: char) -> bool {
    SPACES.iter().any(|&(first, last)| (first..=last).contains(&(c as u32)))
}
