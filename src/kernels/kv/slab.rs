//! Memory for pages of keys and values: blocks of equal size cut from large pages of the
//! system, which spare the CPU most look-ups of addresses when a long context is read.
//!
//! Blocks of all sessions lie in the same slabs, so that a short session does not hold a large
//! page of its own. A slab goes when its last block does.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use super::super::buffer::{Buffer, Plain};
use crate::{Error, Result};

/// Bytes of a slab: a large page.
const SLAB: usize = 2 << 20;
/// Smaller blocks come from elsewhere; so no slab has more blocks than a `u64` has bits.
const LEAST: usize = 32 << 10;
/// Larger ones, too: the rest of the slab would be lost.
const MOST: usize = SLAB / 4;
/// Blocks begin at a page of the system.
const UNIT: usize = 4 << 10;

const LAYOUT: Layout = match Layout::from_size_align(SLAB, SLAB) {
    Ok(layout) => layout,
    Err(_) => panic!("the size of a slab"),
};

/// Zeroed numbers, in a slab where that is of use.
pub(super) enum Block<T: Plain> {
    Own(Buffer<T>),
    Cut(Cut<T>),
}

impl<T: Plain> Block<T> {
    /// `len` zeros; `what` names the purpose in the error.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn zeroed(len: usize, what: &str) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>()).checked_next_multiple_of(UNIT);
        match bytes {
            Some(bytes @ LEAST..=MOST) => {
                let refused = || Error::out_of_memory(what, bytes);
                let data = lock().take(bytes).ok_or_else(refused)?.cast::<T>();
                // SAFETY: the block is this one's own, has room for `len` elements and is
                // aligned for any; zero is a value of plain numbers.
                unsafe { data.as_ptr().write_bytes(0, len) };
                Ok(Self::Cut(Cut { data, len }))
            }
            _ => Ok(Self::Own(Buffer::zeroed(len, what)?)),
        }
    }
}

impl<T: Plain> Deref for Block<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Own(buffer) => buffer,
            // SAFETY: `len` elements were written when the block was made, and it owns them.
            Self::Cut(cut) => unsafe { std::slice::from_raw_parts(cut.data.as_ptr(), cut.len) },
        }
    }
}

impl<T: Plain> DerefMut for Block<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Own(buffer) => buffer,
            // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
            Self::Cut(cut) => unsafe { std::slice::from_raw_parts_mut(cut.data.as_ptr(), cut.len) },
        }
    }
}

/// A block of a slab.
pub(super) struct Cut<T: Plain> {
    data: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its memory, and `T` is `Send` and `Sync`.
unsafe impl<T: Plain> Send for Cut<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Plain> Sync for Cut<T> {}

impl<T: Plain> Drop for Cut<T> {
    fn drop(&mut self) {
        lock().put(self.data.as_ptr().addr());
    }
}

/// A large page, cut into blocks.
struct Slab {
    memory: NonNull<u8>,
    /// Bytes of a block.
    block: usize,
    /// A bit for each block that nobody has.
    free: u64,
}

impl Slab {
    fn start(&self) -> usize {
        self.memory.as_ptr().addr()
    }
    /// `free` when all blocks are.
    fn all(block: usize) -> u64 {
        u64::MAX >> (u64::BITS as usize - SLAB / block)
    }
}

// SAFETY: the memory belongs to nobody's thread; whoever has a block uses that alone.
unsafe impl Send for Slab {}

/// All slabs of the process.
struct Slabs {
    /// By address.
    slabs: Vec<Slab>,
    /// Where those begin that have a free block. There is room in it for all.
    open: Vec<usize>,
}

static SLABS: Mutex<Slabs> = Mutex::new(Slabs { slabs: Vec::new(), open: Vec::new() });

fn lock() -> MutexGuard<'static, Slabs> {
    // Nothing in here panics between two changes that belong together.
    SLABS.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Slabs {
    fn at(&self, start: usize) -> Option<usize> {
        self.slabs.binary_search_by_key(&start, Slab::start).ok()
    }

    /// A block of `bytes` bytes, with whatever it held before; `None` if there is no memory.
    fn take(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let of_size =
            |start: &usize| self.at(*start).is_some_and(|at| self.slabs[at].block == bytes);
        let open = match self.open.iter().position(of_size) {
            Some(open) => open,
            None => self.add(bytes)?,
        };
        let at = self.at(self.open[open])?;
        let slab = &mut self.slabs[at];
        let n = slab.free.trailing_zeros() as usize;
        slab.free &= slab.free - 1;
        if slab.free == 0 {
            self.open.swap_remove(open);
        }
        // SAFETY: block `n` lies within the slab.
        Some(unsafe { slab.memory.add(n * bytes) })
    }

    /// A new slab for blocks of `bytes` bytes; where it is in `open`.
    fn add(&mut self, bytes: usize) -> Option<usize> {
        self.slabs.try_reserve(1).ok()?;
        self.open.try_reserve(self.slabs.len() + 1 - self.open.len()).ok()?;
        // SAFETY: the layout has a size other than zero.
        let memory = NonNull::new(unsafe { alloc(LAYOUT) })?;
        // The first one stays in small pages: what is that short is read as fast from them, and
        // a system whose memory is in pieces may take a tenth of a second to make a large page,
        // for which the first token would wait.
        if self.slabs.iter().any(|slab| slab.block == bytes) {
            // Before the first touch. Advice only: without large pages all works as well, only
            // slower.
            // SAFETY: the range is the allocation, and the advice does not change contents.
            unsafe { libc::madvise(memory.as_ptr().cast(), SLAB, libc::MADV_HUGEPAGE) };
        }
        let slab = Slab { memory, block: bytes, free: Slab::all(bytes) };
        let start = slab.start();
        let at = self.slabs.partition_point(|other| other.start() < start);
        self.slabs.insert(at, slab);
        self.open.push(start);
        Some(self.open.len() - 1)
    }

    /// Takes back the block that begins at `address`.
    fn put(&mut self, address: usize) {
        let start = address / SLAB * SLAB;
        let Some(at) = self.at(start) else { return };
        let slab = &mut self.slabs[at];
        let was_full = slab.free == 0;
        slab.free |= 1 << ((address - start) / slab.block);
        if slab.free == Slab::all(slab.block) {
            let slab = self.slabs.remove(at);
            self.open.retain(|open| *open != start);
            // SAFETY: made by `add` with this layout, and no block of it is in use.
            unsafe { dealloc(slab.memory.as_ptr(), LAYOUT) };
        } else if was_full {
            self.open.push(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeroed_apart_and_used_again() {
        // A size of this test's own: other tests run beside it.
        let len = (LEAST + 5 * UNIT) / size_of::<f32>();
        let make = || Block::<f32>::zeroed(len, "test").unwrap();
        let slabs = || lock().slabs.iter().filter(|slab| slab.block == 4 * len).count();
        let each = SLAB / (4 * len);
        let mut blocks: Vec<_> = (0..2 * each + 1).map(|_| make()).collect();
        assert_eq!(slabs(), 3);
        for (n, block) in blocks.iter_mut().enumerate() {
            assert_eq!(block.len(), len);
            assert_eq!(block.as_ptr().addr() % 64, 0);
            assert!(block.iter().all(|&x| x == 0.0));
            block.fill(n as f32);
        }
        for (n, block) in blocks.iter().enumerate() {
            assert!(block.iter().all(|&x| x == n as f32));
        }
        // Every other one goes, and as many come.
        let mut n = 0;
        blocks.retain(|_| {
            n += 1;
            n % 2 == 0
        });
        let more: Vec<_> = (0..each).map(|_| make()).collect();
        assert!(more.iter().all(|block| block.iter().all(|&x| x == 0.0)));
        assert_eq!(slabs(), 2);
        drop(more);
        drop(blocks);
        assert_eq!(slabs(), 0);
    }

    #[test]
    fn what_does_not_fit_a_slab_comes_from_elsewhere() {
        for len in [0, 1, LEAST - UNIT, MOST + 1, SLAB] {
            let block = Block::<i8>::zeroed(len, "test").unwrap();
            assert!(matches!(block, Block::Own(_)) && block.len() == len);
        }
        let error = Block::<f32>::zeroed(usize::MAX, "test").err().unwrap();
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
    }
}
