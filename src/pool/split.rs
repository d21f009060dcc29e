//! Mutable slices shared out among the tasks of a region.

use std::marker::PhantomData;

use super::Pool;
use crate::Result;

/// A mutable slice that the tasks of one region write disjoint parts of.
#[derive(Clone, Copy)]
pub struct SharedMut<'a, T> {
    data: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a `&mut [T]` whose disjoint parts go to several threads, which is
// sound for `T: Send`; that parts are disjoint is the contract of `part`.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    /// Shares out `slice`, which stays borrowed.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { data: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// Elements in all.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first element. What is written through it must not overlap a part in use.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.data
    }

    /// The elements `start..start + len`.
    ///
    /// # Panics
    /// If they are not all inside the slice.
    ///
    /// # Safety
    /// While the result lives, no other part that overlaps it may exist, here or in
    /// another thread.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub unsafe fn part(&self, start: usize, len: usize) -> &'a mut [T] {
        assert!(start <= self.len && len <= self.len - start, "part outside of the slice");
        // SAFETY: inside the slice (just checked), valid for 'a, and not aliased by the
        // contract.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), len) }
    }
}

impl Pool {
    /// Splits `data` into runs of `chunk` elements (the last may be shorter) and calls
    /// `task(index of the run, the run)` for each as in [`Pool::run`].
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    ///
    /// # Panics
    /// If `chunk` is 0.
    pub fn run_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        task: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<()> {
        let tasks = data.len().div_ceil(chunk);
        let shared = SharedMut::new(data);
        self.run(tasks, |n| {
            let start = n * chunk;
            // SAFETY: each index is claimed once, and runs of different indices are disjoint.
            let run = unsafe { shared.part(start, chunk.min(shared.len() - start)) };
            task(n, run);
        })
    }

    /// Calls `task(index, &mut parts[index])` for every part as in [`Pool::run`].
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    pub fn run_parts<T: Send>(
        &self,
        parts: &mut [T],
        task: impl Fn(usize, &mut T) + Sync,
    ) -> Result<()> {
        self.run_chunks(parts, 1, |n, part| task(n, &mut part[0]))
    }
}
