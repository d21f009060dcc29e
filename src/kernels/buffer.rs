//! Zeroed, cache-line aligned memory whose allocation can fail.
//!
//! Large buffers are mappings of their own, which the system fills with zeros page by page when
//! they are first touched.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::LocalKey;

use half::f16;

use crate::{Error, Result};

/// A vector register of the widest instruction set, and a cache line.
const ALIGNMENT: usize = 64;
/// A page of the system.
const PAGE: usize = 4 << 10;
/// A large page of the system; buffers of this size and more begin with one.
const LARGE: usize = 2 << 20;

/// `bytes` zeros from the system, in large pages where it has any. It makes a page when it is first
/// touched: a recurrent state takes its memory layer by layer, in the time of the pass that
/// writes it, and not all at once before.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = bytes.checked_next_multiple_of(PAGE)?;
    let reserved = bytes.checked_add(LARGE)?;
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the system likes.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), reserved, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = NonNull::new(start.cast::<u8>())?;
    // What is in front of the first large page, and behind the bytes, goes back.
    let front = start.as_ptr().align_offset(LARGE);
    // SAFETY: all of it lies within the mapping, in whole pages. The advice does not change
    // contents: without large pages all works as well, only slower.
    unsafe {
        let data = start.add(front);
        for (part, bytes) in [(start, front), (data.add(bytes), LARGE - front)] {
            if bytes > 0 {
                unmap(part, bytes);
            }
        }
        libc::madvise(data.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        Some(data)
    }
}

/// Gives `bytes` from `data` on back to the system.
///
/// # Safety
/// They are (the first part of the last page of) a mapping of [`map`], or a part of one, and
/// nobody uses them.
unsafe fn unmap(data: NonNull<u8>, bytes: usize) {
    // SAFETY: by the contract. A mapping that cannot be given back stays.
    unsafe { libc::munmap(data.as_ptr().cast(), bytes) };
}

/// Elements for which all bits zero is a value and which need no drop.
///
/// # Safety
/// Implemented only for plain numbers.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: a plain number.
unsafe impl Plain for f32 {}
// SAFETY: a plain number.
unsafe impl Plain for f16 {}
// SAFETY: a plain number.
unsafe impl Plain for u8 {}
// SAFETY: a plain number.
unsafe impl Plain for i8 {}
// SAFETY: a plain number.
unsafe impl Plain for i32 {}
// SAFETY: a plain number.
unsafe impl Plain for u32 {}

/// The bytes of plain numbers, in the order of this machine.
pub fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: the same memory; plain numbers have no padding, and any alignment suits bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// As [`as_bytes`], to be written to.
pub fn as_bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `as_bytes`; and all bits of a plain number are a value.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// A boxed slice, 64-byte aligned, of a length fixed when it was made.
pub struct Buffer<T: Plain> {
    data: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its memory, and `T` is `Send` and `Sync`.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    /// No elements, no memory.
    pub const fn empty() -> Self {
        Self { data: NonNull::dangling(), len: 0 }
    }

    /// `len` zeros; `what` names the purpose in the error.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn zeroed(len: usize, what: &str) -> Result<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        let refused = || Error::out_of_memory(what, len.saturating_mul(size_of::<T>()));
        let layout = Self::layout(len).ok_or_else(refused)?;
        if layout.size() >= LARGE {
            let data = map(layout.size()).ok_or_else(refused)?.cast();
            return Ok(Self { data, len });
        }
        // SAFETY: the layout has a size other than zero.
        let data: NonNull<T> = NonNull::new(unsafe { alloc(layout) }.cast()).ok_or_else(refused)?;
        // SAFETY: `data` points to room for `len` elements.
        unsafe { data.as_ptr().write_bytes(0, len) };
        Ok(Self { data, len })
    }

    /// A copy; `what` names the purpose in the error.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn try_clone(&self, what: &str) -> Result<Self> {
        let mut copy = Self::zeroed(self.len, what)?;
        copy.copy_from_slice(self);
        Ok(copy)
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::array::<T>(len).ok()?.align_to(ALIGNMENT).ok()
    }
}

impl<T: Plain> Default for Buffer<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.len > 0
            && let Some(layout) = Self::layout(self.len)
        {
            // SAFETY: made by `zeroed` with this very layout, by the same choice.
            unsafe {
                match layout.size() >= LARGE {
                    true => unmap(self.data.cast(), layout.size()),
                    false => dealloc(self.data.as_ptr().cast(), layout),
                }
            }
        }
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `data` points to `len` initialised elements owned by this buffer (or is
        // dangling with `len` zero, which is a valid empty slice).
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

/// The same part of each of some buffers.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    buffers: &'a [Arc<Buffer<f32>>],
    start: usize,
    len: usize,
}

impl<'a> Parts<'a> {
    /// The elements `start..start + len` of each of `buffers`.
    ///
    /// # Panics
    /// If a buffer does not have them.
    pub fn new(buffers: &'a [Arc<Buffer<f32>>], start: usize, len: usize) -> Self {
        let fits = |buffer: &Arc<Buffer<f32>>| start <= buffer.len() && len <= buffer.len() - start;
        assert!(buffers.iter().all(fits), "parts outside of their buffers");
        Self { buffers, start, len }
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }

    /// Elements of a part.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The part of buffer `n`.
    ///
    /// # Panics
    /// If there is no such buffer.
    #[inline(always)]
    pub fn get(&self, n: usize) -> &'a [f32] {
        &self.buffers[n][self.start..self.start + self.len]
    }
}

/// Working memory that a thread keeps between calls: it grows to the largest size asked for
/// and is never freed before the thread ends, so that a token costs no allocation.
pub type Scratch = RefCell<Buffer<f32>>;

/// Runs `f` on `len` floats (of any value) of the thread's `scratch`.
///
/// # Errors
/// `OutOfMemory`, and `Internal` if `scratch` is in use further up the stack.
pub fn with_scratch<R>(
    scratch: &'static LocalKey<Scratch>,
    len: usize,
    f: impl FnOnce(&mut [f32]) -> R,
) -> Result<R> {
    scratch.with(|cell| {
        let mut buffer =
            cell.try_borrow_mut().map_err(|_| Error::internal("kernel scratch entered twice"))?;
        if buffer.len() < len {
            // Free first: the old contents are of no use to anyone.
            *buffer = Buffer::empty();
            *buffer = Buffer::zeroed(len, "kernel scratch")?;
        }
        Ok(f(&mut buffer[..len]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local!(static TEST: Scratch = const { RefCell::new(Buffer::empty()) });

    #[test]
    fn buffers_are_zeroed_and_aligned() {
        for len in [0, 1, 15, 1000, (LARGE / 4) - 1, LARGE / 4, LARGE + 1] {
            let mut buffer = Buffer::<f32>::zeroed(len, "test").unwrap();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&x| x == 0.0));
            buffer.fill(1.0);
            assert_eq!(buffer.as_ptr() as usize % if len == 0 { 4 } else { ALIGNMENT }, 0);
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for len in [usize::MAX, usize::MAX / 4, 1 << 60] {
            let error = Buffer::<f32>::zeroed(len, "test").err().unwrap();
            assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
        }
    }

    #[test]
    fn scratch_grows_and_refuses_to_be_entered_twice() {
        with_scratch(&TEST, 10, |x| x.fill(2.0)).unwrap();
        with_scratch(&TEST, 5, |x| assert_eq!(x, [2.0; 5])).unwrap();
        with_scratch(&TEST, 100, |x| {
            assert_eq!(x.len(), 100);
            assert!(with_scratch(&TEST, 1, |_| ()).is_err());
        })
        .unwrap();
    }
}
