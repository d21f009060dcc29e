//! The order of merges in a long piece: a priority queue of (rank, position).
//!
//! Positions nearly always arrive in ascending order within a rank, because a sweep over one rank
//! goes from left to right. So each rank has a lane, a first-in first-out list, and the lowest
//! rank in use is found in a bitmap of three levels: both in constant time. What arrives out of
//! order goes to an ordinary heap, which keeps the whole exact and within O(log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of (rank, position), lowest rank first, then lowest position.
#[derive(Default)]
pub struct Agenda {
    /// By rank.
    lanes: Vec<Lane>,
    nodes: Vec<Node>,
    /// Which lanes hold something; a bit of a level says whether a word of the level below is
    /// not zero.
    levels: [Vec<u64>; 3],
    late: BinaryHeap<Reverse<(u32, u32)>>,
}

/// First and last node of a list, [`NONE`] if it is empty.
#[derive(Clone, Copy)]
struct Lane {
    first: u32,
    last: u32,
}

struct Node {
    position: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Agenda {
    /// Makes room for ranks below `ranks`.
    pub fn reserve(&mut self, ranks: usize) {
        if self.lanes.len() >= ranks {
            return;
        }
        self.lanes.resize(ranks, Lane { first: NONE, last: NONE });
        let mut len = ranks;
        for level in &mut self.levels {
            len = len.div_ceil(64);
            level.resize(len, 0);
        }
    }

    /// Adds an entry; `rank` is below what was reserved.
    #[inline]
    pub fn push(&mut self, rank: u32, position: u32) {
        let node = self.nodes.len() as u32;
        let lane = &mut self.lanes[rank as usize];
        if lane.first == NONE {
            lane.first = node;
            let mut bit = rank as usize;
            for level in &mut self.levels {
                level[bit / 64] |= 1 << (bit % 64);
                bit /= 64;
            }
        } else {
            let last = &mut self.nodes[lane.last as usize];
            if last.position > position {
                self.late.push(Reverse((rank, position)));
                return;
            }
            last.next = node;
        }
        lane.last = node;
        self.nodes.push(Node { position, next: NONE });
    }

    /// Takes the lowest entry out.
    #[inline]
    pub fn pop(&mut self) -> Option<(u32, u32)> {
        let rank = self.lowest_lane();
        if let Some(&Reverse(late)) = self.late.peek() {
            let in_order = rank.is_some_and(|rank| {
                let first = self.lanes[rank as usize].first;
                (rank, self.nodes[first as usize].position) <= late
            });
            if !in_order {
                self.late.pop();
                return Some(late);
            }
        }
        let Some(rank) = rank else {
            self.nodes.clear();
            return None;
        };
        let lane = &mut self.lanes[rank as usize];
        let node = &self.nodes[lane.first as usize];
        lane.first = node.next;
        if node.next == NONE {
            let mut bit = rank as usize;
            for level in &mut self.levels {
                level[bit / 64] &= !(1 << (bit % 64));
                if level[bit / 64] != 0 {
                    break;
                }
                bit /= 64;
            }
        }
        Some((rank, node.position))
    }

    /// The lowest rank whose lane is not empty.
    #[inline]
    fn lowest_lane(&self) -> Option<u32> {
        let [low, middle, high] = &self.levels;
        let (i, word) = high.iter().enumerate().find(|(_, word)| **word != 0)?;
        let i = i * 64 + word.trailing_zeros() as usize;
        let i = i * 64 + middle[i].trailing_zeros() as usize;
        let i = i * 64 + low[i].trailing_zeros() as usize;
        Some(i as u32)
    }

    /// Bytes held, for deciding whether to keep the queue.
    pub fn capacity_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.late.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_in_order_whatever_the_order_of_pushes() {
        let mut agenda = Agenda::default();
        agenda.reserve(70_000);
        let mut expected = BinaryHeap::new();
        let mut state = 1u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) as u32;
            if !random.is_multiple_of(3) {
                let rank = if random.is_multiple_of(2) { random % 70_000 } else { random % 7 };
                agenda.push(rank, random / 7 % 1000);
                expected.push(Reverse((rank, random / 7 % 1000)));
            } else {
                assert_eq!(agenda.pop(), expected.pop().map(|Reverse(e)| e), "round {round}");
            }
        }
        while let Some(Reverse(entry)) = expected.pop() {
            assert_eq!(agenda.pop(), Some(entry));
        }
        assert_eq!(agenda.pop(), None);
        agenda.push(5, 1);
        assert_eq!((agenda.pop(), agenda.pop()), (Some((5, 1)), None));
    }
}
