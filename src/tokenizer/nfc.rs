//! Unicode normalization form C.
//!
//! Most text is in this form already, and one look at each character's property byte shows it.
//! Where a character may change, only the stretch around it is rewritten: from the last character
//! that neither changes nor moves to the next such one.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::split::decode;
use super::tables::nfc::{COMPOSITIONS, MARK_CLASSES, REPLACED};
use super::unicode::{MARK, Properties, UNSTABLE};

/// `text` in normalization form C; borrowed if it is in that form already.
pub fn normalize<'a>(text: &'a str, properties: &Properties) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // `text[..done]` is in `out`; `stable` is where the last unchanging character starts.
    let (mut done, mut stable, mut at) = (0, 0, 0);
    let mut class = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            at += ascii_len(&bytes[at..]);
            (stable, class) = (at - 1, 0);
            continue;
        }
        let (c, len) = decode(bytes, at);
        let flags = properties.of(c) & (MARK | UNSTABLE);
        if flags == 0 {
            (stable, class) = (at, 0);
            at += len;
            continue;
        }
        let before = std::mem::replace(&mut class, mark_class(c));
        if flags == MARK && before <= class {
            at += len;
            continue;
        }
        while at < bytes.len() {
            let (c, len) = decode(bytes, at);
            if properties.of(c) & (MARK | UNSTABLE) == 0 {
                break;
            }
            at += len;
        }
        out.push_str(&text[done..stable]);
        compose(decompose(&text[stable..at]), &mut out);
        (done, stable, class) = (at, at, 0);
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The number of ASCII bytes at the start.
fn ascii_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| block.is_ascii()).count();
    let rest = &bytes[blocks * BLOCK..];
    blocks * BLOCK + rest.iter().position(|b| !b.is_ascii()).unwrap_or(rest.len())
}

/// The canonical combining class.
fn mark_class(c: u32) -> u8 {
    let at = MARK_CLASSES.partition_point(|&(_, last, _)| last < c);
    match MARK_CLASSES.get(at) {
        Some(&(first, _, class)) if first <= c => class,
        _ => 0,
    }
}

// Hangul syllables are computed: leading consonant, vowel, optional final consonant.
const SYLLABLES: u32 = 0xAC00;
const LEADS: u32 = 0x1100;
const VOWELS: u32 = 0x1161;
/// One before the first final consonant.
const FINALS: u32 = 0x11A7;
const LEAD_COUNT: u32 = 19;
const VOWEL_COUNT: u32 = 21;
const FINAL_COUNT: u32 = 28;

/// The canonical decomposition, marks in canonical order, each with its combining class.
fn decompose(text: &str) -> Vec<(u32, u8)> {
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        decompose_one(c as u32, &mut out);
    }
    let mut rest = &mut out[..];
    while let Some(start) = rest.iter().position(|&(_, class)| class != 0) {
        rest = &mut rest[start..];
        let len = rest.iter().position(|&(_, class)| class == 0).unwrap_or(rest.len());
        rest[..len].sort_by_key(|&(_, class)| class);
        rest = &mut rest[len..];
    }
    out
}

fn decompose_one(c: u32, out: &mut Vec<(u32, u8)>) {
    let syllable = c.wrapping_sub(SYLLABLES);
    if syllable < LEAD_COUNT * VOWEL_COUNT * FINAL_COUNT {
        out.push((LEADS + syllable / (VOWEL_COUNT * FINAL_COUNT), 0));
        out.push((VOWELS + syllable % (VOWEL_COUNT * FINAL_COUNT) / FINAL_COUNT, 0));
        if !syllable.is_multiple_of(FINAL_COUNT) {
            out.push((FINALS + syllable % FINAL_COUNT, 0));
        }
    } else if let Ok(at) = REPLACED.binary_search_by_key(&c, |&(c, _)| c) {
        out.extend(REPLACED[at].1.chars().map(|c| (c as u32, mark_class(c as u32))));
    } else if let Ok(at) = composites().binary_search_by_key(&c, |&(_, _, composite)| composite) {
        let (first, second, _) = composites()[at];
        decompose_one(first, out);
        out.push((second, mark_class(second)));
    } else {
        out.push((c, mark_class(c)));
    }
}

/// The compositions by composite.
fn composites() -> &'static [(u32, u32, u32)] {
    static BY_COMPOSITE: OnceLock<Vec<(u32, u32, u32)>> = OnceLock::new();
    BY_COMPOSITE.get_or_init(|| {
        let mut table = COMPOSITIONS.to_vec();
        table.sort_unstable_by_key(|&(_, _, composite)| composite);
        table
    })
}

/// Joins what can be joined and appends the result.
fn compose(decomposed: Vec<(u32, u8)>, out: &mut String) {
    let mut composed: Vec<(u32, u8)> = Vec::with_capacity(decomposed.len());
    let mut starter = None;
    for (c, class) in decomposed {
        if let Some(starter) = starter {
            // A mark between them of the same or a higher class keeps the two apart.
            let between = composed.len() - 1 > starter;
            let blocked = between && composed.last().is_some_and(|&(_, last)| last >= class);
            let pair = if blocked { None } else { join(composed[starter].0, c) };
            if let Some(composite) = pair {
                composed[starter].0 = composite;
                continue;
            }
        }
        if class == 0 {
            starter = Some(composed.len());
        }
        composed.push((c, class));
    }
    out.extend(composed.into_iter().filter_map(|(c, _)| char::from_u32(c)));
}

/// The composite of two characters.
fn join(first: u32, second: u32) -> Option<u32> {
    let (lead, vowel) = (first.wrapping_sub(LEADS), second.wrapping_sub(VOWELS));
    if lead < LEAD_COUNT && vowel < VOWEL_COUNT {
        return Some(SYLLABLES + (lead * VOWEL_COUNT + vowel) * FINAL_COUNT);
    }
    let (syllable, last) = (first.wrapping_sub(SYLLABLES), second.wrapping_sub(FINALS));
    if syllable < LEAD_COUNT * VOWEL_COUNT * FINAL_COUNT
        && syllable.is_multiple_of(FINAL_COUNT)
        && (1..FINAL_COUNT).contains(&last)
    {
        return Some(first + last);
    }
    let at = COMPOSITIONS.binary_search_by_key(&(first, second), |&(a, b, _)| (a, b)).ok()?;
    Some(COMPOSITIONS[at].2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(COMPOSITIONS.is_sorted_by_key(|&(a, b, _)| (a, b)));
        assert!(REPLACED.is_sorted_by_key(|&(c, _)| c));
        assert!(MARK_CLASSES.windows(2).all(|w| w[0].1 < w[1].0));
    }

    #[test]
    fn known_cases() {
        let properties = Properties::new(true);
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("Cafe\u{301}!", "Caf\u{e9}!"),
            ("\u{1100}\u{1161}\u{11A8}", "\u{AC01}"),
            ("\u{AC00}\u{11A8}x", "\u{AC01}x"),
            ("\u{212B}", "\u{C5}"),
            ("q\u{307}\u{323}", "q\u{323}\u{307}"),
            ("\u{F900}", "\u{8C48}"),
            ("\u{1E9B}\u{323}", "\u{1E9B}\u{323}"),
            ("\u{958}", "\u{915}\u{93C}"),
            ("\u{301}a", "\u{301}a"),
            ("\u{344}", "\u{308}\u{301}"),
            ("e\u{301}\u{323}z", "\u{1EB9}\u{301}z"),
            ("\u{e9}\u{323}", "\u{1EB9}\u{301}"),
        ] {
            assert_eq!(normalize(text, &properties), expected, "{text:?}");
        }
    }
}
