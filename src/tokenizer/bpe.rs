//! Byte pair encoding of one piece: always join the pair of the lowest rank, the leftmost of
//! equals, until no pair joins.
//!
//! A rank may be lower than one that was used before it (31 tokens of Qwen3.5 are made from
//! parts with higher ranks), and a token of the vocabulary may be out of reach of the merges
//! (201 of Qwen3.5 are), so neither a sweep by ascending rank nor a whole-word lookup is exact.

use super::agenda::Agenda;
use super::merges::{MergeTable, NO_RANK, PairCache, RANK_BITS};

/// Pieces of up to this many bytes are searched for the lowest rank each time: quadratic, but
/// without any bookkeeping.
const SHORT: usize = 64;

/// Ranks have 24 bits at most, so the position in a short piece fits beside them.
const POSITION_BITS: u32 = 8;
const POSITION: u32 = (1 << POSITION_BITS) - 1;
const _: () = assert!(RANK_BITS + POSITION_BITS <= u32::BITS && SHORT < 1 << POSITION_BITS);

/// Reusable memory for [`encode`].
#[derive(Default)]
pub struct Workspace {
    pairs: PairCache,
    agenda: Agenda,
    symbols: Vec<Symbol>,
}

/// A token that starts at the byte with its index; dead symbols are skipped by the links.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    /// The rank of joining it with the next symbol.
    rank: u32,
    previous: u32,
    next: u32,
}

/// Beyond either end of the list.
const END: u32 = u32::MAX;

impl Workspace {
    /// Gives memory back after an unusually long piece.
    pub fn shrink(&mut self) {
        const KEEP: usize = 1 << 20;
        if self.agenda.capacity_bytes() > KEEP || self.symbols.capacity() > KEEP / 16 {
            *self = Self::default();
        }
    }
}

/// Appends the tokens of `piece` to `out`.
pub fn encode(table: &MergeTable, piece: &[u8], space: &mut Workspace, out: &mut Vec<u32>) {
    if piece.len() <= SHORT {
        encode_short(table, piece, &mut space.pairs, out);
    } else if piece.len() < END as usize {
        encode_long(table, piece, space, out);
    } else {
        // Positions are 32 bits wide. No text reaches this but a single piece of 4 GiB.
        let (head, tail) = piece.split_at(piece.len() / 2);
        encode(table, head, space, out);
        encode(table, tail, space, out);
    }
}

fn encode_short(table: &MergeTable, piece: &[u8], pairs: &mut PairCache, out: &mut Vec<u32>) {
    // A token has the index of its first byte. `order[i]` is the rank of joining token `i` with
    // the next one and, in the low bits, `i`: the least of them is the next merge.
    let len = piece.len();
    let mut ids = [0u32; SHORT];
    let mut order = [NO_RANK; SHORT];
    let mut previous = [0u8; SHORT];
    let mut next = [0u8; SHORT];
    for (i, &byte) in piece.iter().enumerate() {
        ids[i] = table.byte_id(byte);
        (previous[i], next[i]) = ((i as u8).wrapping_sub(1), i as u8 + 1);
    }
    for (i, pair) in piece.windows(2).enumerate() {
        order[i] = place(table.byte_rank(pair[0], pair[1]), i);
    }
    let searched = len.next_multiple_of(8).min(SHORT);
    loop {
        let least = order[..searched].iter().fold(NO_RANK, |least, &o| least.min(o));
        if least == NO_RANK {
            break;
        }
        let at = (least & POSITION) as usize;
        let joined = usize::from(next[at]);
        let after = usize::from(next[joined]);
        let id = table.result(least >> POSITION_BITS);
        ids[at] = id;
        order[joined] = NO_RANK;
        next[at] = after as u8;
        order[at] = NO_RANK;
        if after < len {
            previous[after] = at as u8;
            order[at] = place(pairs.rank(table, id, ids[after]), at);
        }
        let before = usize::from(previous[at]);
        if before < len {
            order[before] = place(pairs.rank(table, ids[before], id), before);
        }
    }
    let mut at = 0;
    while at < len {
        out.push(ids[at]);
        at = usize::from(next[at]);
    }
}

/// A rank with a position in its low bits.
#[inline]
fn place(rank: u32, position: usize) -> u32 {
    if rank == NO_RANK { NO_RANK } else { rank << POSITION_BITS | position as u32 }
}

fn encode_long(table: &MergeTable, piece: &[u8], space: &mut Workspace, out: &mut Vec<u32>) {
    let Workspace { pairs, agenda, symbols } = space;
    agenda.reserve(table.rank_limit());
    symbols.clear();
    for (i, &byte) in piece.iter().enumerate() {
        let i = i as u32;
        let mut rank = NO_RANK;
        let mut next = END;
        if let Some(&following) = piece.get(i as usize + 1) {
            rank = table.byte_rank(byte, following);
            next = i + 1;
        }
        if rank != NO_RANK {
            agenda.push(rank, i);
        }
        symbols.push(Symbol { id: table.byte_id(byte), rank, previous: i.wrapping_sub(1), next });
    }
    while let Some((rank, position)) = agenda.pop() {
        let mut symbol = symbols[position as usize];
        if symbol.rank != rank {
            continue; // one of the two has changed since
        }
        let joined = &mut symbols[symbol.next as usize];
        joined.rank = NO_RANK;
        symbol.id = table.result(rank);
        symbol.next = joined.next;
        symbol.rank = NO_RANK;
        if let Some(next) = symbols.get_mut(symbol.next as usize) {
            next.previous = position;
            symbol.rank = pairs.rank(table, symbol.id, next.id);
            if symbol.rank != NO_RANK {
                agenda.push(symbol.rank, position);
            }
        }
        if let Some(previous) = symbols.get_mut(symbol.previous as usize) {
            previous.rank = pairs.rank(table, previous.id, symbol.id);
            if previous.rank != NO_RANK {
                agenda.push(previous.rank, symbol.previous);
            }
        }
        symbols[position as usize] = symbol;
    }
    let mut at = 0;
    while let Some(symbol) = symbols.get(at as usize) {
        out.push(symbol.id);
        at = symbol.next;
    }
}
