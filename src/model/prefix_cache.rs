//! Computed beginnings of sequences, shared by the sessions of a model.
//!
//! An entry is the state after some tokens, under a namespace. States share their pages of
//! keys and values (see [`crate::kernels::KvPages`]), so that entries of one conversation,
//! and the sessions that took them over, hold each page once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use super::state::State;
use crate::{Error, Result};

/// Shorter beginnings are computed faster than they are worth.
const FEWEST_TOKENS: usize = 16;

/// What a cache holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCacheStats {
    /// Bytes in use: each page and piece of recurrent state once, also those that sessions use too.
    pub bytes: usize,
    /// The bound on them.
    pub limit: usize,
    /// Beginnings held.
    pub entries: usize,
    /// Look-ups that found one.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Beginnings that had to go.
    pub evictions: u64,
}

/// The cache. Least recently used entries go first.
pub struct PrefixCache {
    limit: usize,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// Least recently used first.
    entries: Vec<Entry>,
    bytes: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
}

struct Entry {
    namespace: u64,
    tokens: Vec<u32>,
    /// At position `tokens.len()`.
    state: State,
}

impl PrefixCache {
    /// An empty cache of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, contents: Mutex::default() }
    }

    /// A panic elsewhere leaves the contents whole: they are changed entry by entry.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// The state of the longest beginning of `wanted` in `namespace` that is longer than
    /// `own` tokens and stores keys and values as `like` does.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn find(
        &self,
        namespace: u64,
        wanted: &[u32],
        own: usize,
        like: &State,
    ) -> Result<Option<State>> {
        let mut contents = self.lock();
        let fits = |entry: &Entry| {
            entry.namespace == namespace
                && entry.tokens.len() > own
                && same_format(&entry.state, like)
                && wanted.starts_with(&entry.tokens)
        };
        let found = contents.entries.iter().enumerate().filter(|(_, entry)| fits(entry));
        let best = found.max_by_key(|(_, entry)| entry.tokens.len()).map(|(index, _)| index);
        let Some(index) = best else {
            contents.misses += 1;
            return Ok(None);
        };
        contents.hits += 1;
        // Used now: to the end of the queue.
        contents.entries[index..].rotate_left(1);
        contents.entries.last().map(|entry| entry.state.try_clone()).transpose()
    }

    /// Keeps `state`, which is at the end of `tokens`, for others in `namespace`. Does nothing
    /// where it is held already, is too short to be worth it, or does not fit into the bound.
    ///
    /// # Errors
    /// `OutOfMemory`; the cache is as before.
    pub fn insert(&self, namespace: u64, tokens: &[u32], state: &State) -> Result<()> {
        if tokens.len() < FEWEST_TOKENS || tokens.len() != state.position {
            return Ok(());
        }
        let mut contents = self.lock();
        let same = |entry: &Entry| {
            entry.namespace == namespace
                && entry.tokens == tokens
                && same_format(&entry.state, state)
        };
        if let Some(index) = contents.entries.iter().position(same) {
            contents.entries[index..].rotate_left(1);
            return Ok(());
        }
        let mut own = Vec::new();
        let refused = |_| Error::out_of_memory("the prefix cache", size_of_val(tokens));
        own.try_reserve_exact(tokens.len()).map_err(refused)?;
        own.extend_from_slice(tokens);
        let mut state = state.try_clone()?;
        state.release_beyond();
        let entry = Entry { namespace, tokens: own, state };
        if bytes_of([&entry]) > self.limit {
            return Ok(());
        }
        contents.entries.push(entry);
        contents.bytes = bytes_of(&contents.entries);
        while contents.bytes > self.limit {
            contents.entries.remove(0);
            contents.evictions += 1;
            contents.bytes = bytes_of(&contents.entries);
        }
        Ok(())
    }

    /// Forgets the entries of `namespace`, or all for `None`.
    pub fn clear(&self, namespace: Option<u64>) {
        let mut contents = self.lock();
        contents.entries.retain(|entry| namespace.is_some_and(|name| entry.namespace != name));
        contents.bytes = bytes_of(&contents.entries);
    }

    /// What it holds and has done.
    pub fn stats(&self) -> PrefixCacheStats {
        let contents = self.lock();
        PrefixCacheStats {
            bytes: contents.bytes,
            limit: self.limit,
            entries: contents.entries.len(),
            hits: contents.hits,
            misses: contents.misses,
            evictions: contents.evictions,
        }
    }
}

fn same_format(a: &State, b: &State) -> bool {
    a.kv.len() == b.kv.len() && a.kv.iter().zip(&b.kv).all(|(a, b)| a.shape() == b.shape())
}

/// Bytes of all that `entries` hold, each shared part once.
fn bytes_of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> usize {
    let mut seen = HashSet::new();
    let mut bytes = 0;
    for Entry { tokens, state, .. } in entries {
        bytes += size_of_val(&tokens[..]) + size_of_val(&state.last_hidden[..]);
        let pages = state.kv.iter().flat_map(|kv| kv.page_identities());
        for (piece, size) in state.recurrent.pieces().chain(pages) {
            bytes += if seen.insert(piece) { size } else { 0 };
        }
    }
    bytes
}
