//! The ids of a sequence.

use std::collections::TryReserveError;
use std::ops::Deref;

/// Ids, in order, and a number that sequences of other ids do not have, but for a chance of one
/// in 2^64: by it a reply in progress knows its own sequence, also when it was saved and restored.
/// Appending is as cheap as in a list; cutting goes through what is left.
#[derive(Default)]
pub(super) struct Sequence {
    ids: Vec<u32>,
    number: u64,
}

impl Sequence {
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn capacity(&self) -> usize {
        self.ids.capacity()
    }

    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.ids.try_reserve(more)
    }

    pub fn push(&mut self, id: u32) {
        self.ids.push(id);
        self.number = numbered(self.number, &[id]);
    }

    pub fn extend_from_slice(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.number = numbered(self.number, ids);
    }

    pub fn truncate(&mut self, len: usize) {
        if len < self.ids.len() {
            self.ids.truncate(len);
            self.number = numbered(0, &self.ids);
        }
    }

    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

impl From<Vec<u32>> for Sequence {
    fn from(ids: Vec<u32>) -> Self {
        let number = numbered(0, &ids);
        Self { ids, number }
    }
}

impl Deref for Sequence {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.ids
    }
}

/// The number of a sequence, of which the beginning has `number`, with `ids` behind it.
fn numbered(number: u64, ids: &[u32]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    ids.iter().fold(number, |number, id| {
        let product = u128::from(number ^ u64::from(*id) ^ FACTOR) * u128::from(FACTOR);
        (product >> 64) as u64 ^ product as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_ids() {
        let mut sequence = Sequence::default();
        sequence.extend_from_slice(&[3, 0, 0, 7]);
        sequence.push(9);
        let all = Sequence::from(vec![3, 0, 0, 7, 9]);
        assert_eq!((&sequence[..], sequence.number()), (&all[..], all.number()));
        sequence.truncate(2);
        assert_eq!(sequence.number(), Sequence::from(vec![3, 0]).number());
        let others = [vec![], vec![0], vec![0, 3], vec![3], vec![3, 0, 0], vec![4, 0]];
        for other in others {
            assert_ne!(sequence.number(), Sequence::from(other).number());
        }
        sequence.clear();
        assert!(sequence.is_empty() && sequence.number() == Sequence::default().number());
    }
}
