//! Byte pair encoding of one piece: always join the pair of the lowest rank, the leftmost of
//! equals, until no pair joins.
//!
//! A rank may be lower than one that was used before it (31 tokens of Qwen3.5 are made from
//! parts with higher ranks), and a token of the vocabulary may be out of reach of the merges
//! (201 of Qwen3.5 are), so neither a sweep by ascending rank nor a whole-word lookup is exact.

use super::agenda::Agenda;
use super::merges::{MergeTable, NO_RANK};

/// Pieces of up to this many bytes are searched for the lowest rank each time: quadratic, but
/// without any bookkeeping.
const SHORT: usize = 64;

/// Reusable memory for [`encode`].
#[derive(Default)]
pub struct Workspace {
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
        encode_short(table, piece, out);
    } else if piece.len() < END as usize {
        encode_long(table, piece, space, out);
    } else {
        // Positions are 32 bits wide. No text reaches this but a single piece of 4 GiB.
        let (head, tail) = piece.split_at(piece.len() / 2);
        encode(table, head, space, out);
        encode(table, tail, space, out);
    }
}

fn encode_short(table: &MergeTable, piece: &[u8], out: &mut Vec<u32>) {
    let mut ids = [0u32; SHORT];
    // `ranks[i]` is that of joining `ids[i]` with `ids[i + 1]`.
    let mut ranks = [NO_RANK; SHORT];
    let mut len = piece.len();
    for (id, &byte) in ids.iter_mut().zip(piece) {
        *id = table.byte_id(byte);
    }
    for (rank, pair) in ranks.iter_mut().zip(piece.windows(2)) {
        *rank = table.byte_rank(pair[0], pair[1]);
    }
    loop {
        let mut best = NO_RANK;
        let mut at = 0;
        for (i, &rank) in ranks[..len].iter().enumerate() {
            if rank < best {
                (best, at) = (rank, i);
            }
        }
        if best == NO_RANK {
            break;
        }
        ids[at] = table.result(best);
        ids.copy_within(at + 2..len, at + 1);
        ranks.copy_within(at + 1..len, at);
        len -= 1;
        if at > 0 {
            ranks[at - 1] = table.rank(ids[at - 1], ids[at]);
        }
        ranks[at] = if at + 1 < len { table.rank(ids[at], ids[at + 1]) } else { NO_RANK };
    }
    out.extend_from_slice(&ids[..len]);
}

fn encode_long(table: &MergeTable, piece: &[u8], space: &mut Workspace, out: &mut Vec<u32>) {
    let Workspace { agenda, symbols } = space;
    agenda.reserve(table.len());
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
            symbol.rank = table.rank(symbol.id, next.id);
            if symbol.rank != NO_RANK {
                agenda.push(symbol.rank, position);
            }
        }
        if let Some(previous) = symbols.get_mut(symbol.previous as usize) {
            previous.rank = table.rank(previous.id, symbol.id);
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
