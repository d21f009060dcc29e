//! The longest of many texts that another begins with.
//!
//! Added tokens are a stranger's, and so are the texts that they are looked for in. So the many
//! are a sorted list, which takes 12 bytes for each beside its own, and not a tree, which takes
//! dozens for each byte; and whatever they are, finding the one takes a few comparisons.

use std::cmp::Ordering;

/// Texts with a number each, to be found in others.
#[derive(Debug)]
pub(crate) struct Prefixes {
    /// Sorted, one behind the other. Not empty, each once.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// The numbers.
    entries: Vec<u32>,
    /// The longest other one that it begins with, or [`NONE`].
    shorter: Vec<u32>,
    /// Those that start with byte `b` are `starts[b]..starts[b + 1]`.
    starts: Box<[u32; 257]>,
}

const NONE: u32 = u32::MAX;

impl Prefixes {
    /// `(number, text)` pairs. Of equal texts the last counts; empty ones are never found.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = (u32, &'a str)>) -> Self {
        let bytes = |(entry, text): (u32, &'a str)| (text.as_bytes(), entry);
        let mut list: Vec<(&[u8], u32)> = texts.into_iter().map(bytes).collect();
        list.retain(|(text, _)| !text.is_empty());
        // Stable: equal texts stay in the order in which they came, the last in front.
        list.reverse();
        list.sort_by_key(|(text, _)| *text);
        list.dedup_by(|(a, _), (b, _)| a == b);
        let mut prefixes = Self {
            bytes: Vec::with_capacity(list.iter().map(|(text, _)| text.len()).sum()),
            ends: Vec::with_capacity(list.len()),
            entries: list.iter().map(|&(_, entry)| entry).collect(),
            shorter: Vec::with_capacity(list.len()),
            starts: Box::new([0; 257]),
        };
        // Each begins with the next, up to the one before that which is being added.
        let mut chain: Vec<u32> = Vec::new();
        for (n, (text, _)) in list.iter().enumerate() {
            while chain.last().is_some_and(|&last| !text.starts_with(list[last as usize].0)) {
                chain.pop();
            }
            prefixes.shorter.push(chain.last().copied().unwrap_or(NONE));
            chain.push(n as u32);
            prefixes.bytes.extend_from_slice(text);
            prefixes.ends.push(prefixes.bytes.len());
            prefixes.starts[usize::from(text[0]) + 1] += 1;
        }
        for byte in 0..256 {
            prefixes.starts[byte + 1] += prefixes.starts[byte];
        }
        prefixes
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The first place of `text`, from `from` on, at which one of them stands, and the longest one
    /// there: where it starts, its number and its length.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<(usize, u32, usize)> {
        let begins = |byte: u8| self.starts[usize::from(byte)] < self.starts[usize::from(byte) + 1];
        let mut at = from;
        loop {
            at += text[at..].iter().position(|&byte| begins(byte))?;
            if let Some((entry, len)) = self.longest(&text[at..]) {
                return Some((at, entry, len));
            }
            at += 1;
        }
    }

    /// The longest one that `text`, which is not empty, begins with: its number and its length.
    fn longest(&self, text: &[u8]) -> Option<(u32, usize)> {
        let first = usize::from(text[0]);
        let (mut low, mut high) = (self.starts[first] as usize, self.starts[first + 1] as usize);
        // All that lie between the one that is looked for and `text` begin with it. So the last
        // that is not above `text` does, or is the one.
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(text) {
                Ordering::Greater => high = middle,
                _ => low = middle + 1,
            }
        }
        let mut n = low.checked_sub(1).filter(|&n| n >= self.starts[first] as usize)?;
        let same = self.get(n).iter().zip(text).take_while(|(a, b)| a == b).count();
        loop {
            let len = self.get(n).len();
            if len <= same {
                return Some((self.entries[n], len));
            }
            match self.shorter[n] {
                NONE => return None,
                shorter => n = shorter as usize,
            }
        }
    }

    fn get(&self, n: usize) -> &[u8] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.bytes[start..self.ends[n]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against looking through all of them at each place.
    #[test]
    fn the_first_and_longest_is_found() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..2000 {
            let letters = ["a", "b", "<", "\u{e9}", "\u{20ac}"];
            let mut text = |most: u64| -> String {
                (0..random(most)).map(|_| letters[random(2 + round % 4) as usize]).collect()
            };
            let many: Vec<String> = (0..1 + round % 9).map(|_| text(6)).collect();
            let text = text(40);
            let prefixes = Prefixes::new((0..).zip(many.iter().map(String::as_str)));
            assert_eq!(prefixes.is_empty(), many.iter().all(String::is_empty));
            for from in 0..=text.len() {
                let expected = (from..text.len()).find_map(|at| {
                    let here = |n: &usize| {
                        !many[*n].is_empty()
                            && text.as_bytes()[at..].starts_with(many[*n].as_bytes())
                    };
                    let n = (0..many.len()).filter(here).max_by_key(|&n| (many[n].len(), n))?;
                    Some((at, n as u32, many[n].len()))
                });
                assert_eq!(prefixes.find(text.as_bytes(), from), expected, "{many:?} in {text:?}");
            }
        }
    }
}
