//! Opaque handles: what a pointer that crosses the boundary is checked for.
//!
//! A handle points to a [`Slot`]. Slots are never given back to the allocator: a freed one
//! waits in a queue and is used again much later. So a stale handle always points to
//! readable memory of its own kind, and its use is an error, not undefined behaviour.
//!
//! One atomic word holds who is inside: readers (calls that take a const handle), one
//! writer (a call that takes a non-const one), and visitors (calls such as cancel, which
//! may come at any time and see only the `Side` part). Nobody ever waits: a call that
//! cannot enter fails with QWEN_ERROR_BUSY. Freeing a handle that is in use is legal:
//! the last one out destroys the object.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::status::{
    Failure, QWEN_ERROR_BUSY, QWEN_ERROR_INTERNAL, QWEN_ERROR_INVALID_HANDLE, Result,
};

/// A kind of object that handles point to.
pub(super) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type of the header.
    type Public;
    /// What calls that may come at any time see.
    type Side: Send + Sync;
    /// Tells kinds apart.
    const MAGIC: u64;
    /// The header's name of the type, for messages.
    const NAME: &'static str;
    /// Freed slots.
    fn freed() -> &'static Freed<Self>;
    /// Called when the handle is freed while calls are inside.
    fn interrupt(_side: &Self::Side) {}
}

/// Freed slots of one kind, oldest first.
pub(super) struct Freed<T: Object>(Mutex<VecDeque<&'static Slot<T>>>);

impl<T: Object> Freed<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

/// So many slots rest before one is used again: a handle used after it was freed is then
/// told from its successor.
const REST: usize = 64;

#[repr(C)]
pub(super) struct Slot<T: Object> {
    /// First field of every kind of slot, and never changed.
    magic: u64,
    state: AtomicU64,
    poisoned: AtomicBool,
    contents: UnsafeCell<Option<(UnsafeCell<T>, T::Side)>>,
}

// SAFETY: `contents` is reached only through `state`: `T` by one writer or many readers,
// `Side` by anyone inside, and both are Send + Sync.
unsafe impl<T: Object> Sync for Slot<T> {}

const READER: u64 = 1;
const READERS: u64 = (1 << 24) - 1;
const VISITOR: u64 = 1 << 24;
const WRITER: u64 = 1 << 62;
const CLOSED: u64 = 1 << 63;

/// Makes a handle for `object`.
pub(super) fn create<T: Object>(object: T, side: T::Side) -> *mut T::Public {
    // try_lock: after a fork the lock may be held for ever by a thread that is gone.
    let rested = T::freed()
        .0
        .try_lock()
        .ok()
        .and_then(|mut freed| if freed.len() > REST { freed.pop_front() } else { None });
    let slot = rested.unwrap_or_else(|| {
        Box::leak(Box::new(Slot {
            magic: T::MAGIC,
            state: AtomicU64::new(CLOSED),
            poisoned: AtomicBool::new(false),
            contents: UnsafeCell::new(None),
        }))
    });
    // SAFETY: the slot is closed and empty, and only this thread has taken it.
    unsafe { *slot.contents.get() = Some((UnsafeCell::new(object), side)) };
    slot.poisoned.store(false, Ordering::Relaxed);
    slot.state.store(0, Ordering::Release);
    std::ptr::from_ref(slot).cast_mut().cast()
}

/// Frees a handle. NULL, a stale handle and one of another kind are left alone.
///
/// # Safety
/// `handle` is NULL or was made by this library.
pub(super) unsafe fn free<T: Object>(handle: *mut T::Public) {
    // SAFETY: the caller's promise.
    let Ok(slot) = (unsafe { find::<T>(handle) }) else { return };
    // A visit keeps the contents alive while the calls inside are told to stop.
    let Ok(visit) = Visit::enter(slot) else { return };
    let before = slot.state.fetch_or(CLOSED, Ordering::AcqRel);
    if before & CLOSED == 0 && before & (WRITER | READERS) != 0 {
        T::interrupt(&visit);
    }
}

/// For calls that take a const handle: shared with other readers.
///
/// # Safety
/// `handle` is NULL or was made by this library.
pub(super) unsafe fn read<T: Object>(handle: *const T::Public) -> Result<Reader<T>> {
    // SAFETY: the caller's promise.
    let slot = unsafe { find::<T>(handle) }?;
    read_slot(slot, CLOSED)
}

fn read_slot<T: Object>(slot: &'static Slot<T>, closed: u64) -> Result<Reader<T>> {
    enter(slot, READER, closed | WRITER)?;
    let reader = Reader { inside: Inside { slot, unit: READER } };
    slot.check_health()?;
    Ok(reader)
}

/// For calls that take a non-const handle: alone.
///
/// # Safety
/// `handle` is NULL or was made by this library.
pub(super) unsafe fn write<T: Object>(handle: *mut T::Public) -> Result<Writer<T>> {
    // SAFETY: the caller's promise.
    let slot = unsafe { find::<T>(handle) }?;
    write_slot(slot, CLOSED)
}

fn write_slot<T: Object>(slot: &'static Slot<T>, closed: u64) -> Result<Writer<T>> {
    enter(slot, WRITER, closed | WRITER | READERS)?;
    let writer = Writer { inside: Inside { slot, unit: WRITER } };
    slot.check_health()?;
    Ok(writer)
}

/// Keeps an object for another one that works on it.
///
/// # Safety
/// `handle` is NULL or was made by this library.
pub(super) unsafe fn hold<T: Object>(handle: *const T::Public) -> Result<Hold<T>> {
    // SAFETY: the caller's promise.
    Ok(Hold(unsafe { visit(handle) }?))
}

/// For calls that may come at any time, also to a poisoned object.
///
/// # Safety
/// `handle` is NULL or was made by this library.
pub(super) unsafe fn visit<T: Object>(handle: *const T::Public) -> Result<Visit<T>> {
    // SAFETY: the caller's promise.
    Visit::enter(unsafe { find::<T>(handle) }?)
}

/// # Safety
/// `handle` is NULL or was made by this library.
unsafe fn find<T: Object>(handle: *const T::Public) -> Result<&'static Slot<T>> {
    let slot: *const Slot<T> = handle.cast();
    let wrong = |what| {
        Err(Failure::new(QWEN_ERROR_INVALID_HANDLE, format!("the {} handle {what}", T::NAME)))
    };
    if slot.is_null() {
        return wrong("is NULL");
    }
    // SAFETY: every handle of this library points to a slot, slots live for ever, and
    // each begins with its magic.
    if !slot.is_aligned() || unsafe { slot.cast::<u64>().read() } != T::MAGIC {
        return wrong("is of another kind, or not a handle of this library");
    }
    // SAFETY: the magic says that it is a slot of T.
    Ok(unsafe { &*slot })
}

/// Adds `unit` to the state unless a bit of `excluded` is set.
fn enter<T: Object>(slot: &Slot<T>, unit: u64, excluded: u64) -> Result<()> {
    let mut state = slot.state.load(Ordering::Relaxed);
    loop {
        if state & excluded & CLOSED != 0 {
            return Err(Failure::new(
                QWEN_ERROR_INVALID_HANDLE,
                format!("the {} handle was freed", T::NAME),
            ));
        }
        if state & excluded != 0 {
            return Err(Failure::new(
                QWEN_ERROR_BUSY,
                format!("the {} is in use by another call", T::NAME),
            ));
        }
        match slot.state.compare_exchange_weak(
            state,
            state + unit,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Ok(()),
            Err(now) => state = now,
        }
    }
}

impl<T: Object> Slot<T> {
    fn check_health(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            let name = T::NAME;
            let text = format!("an earlier call on this {name} failed inside the library; free it");
            return Err(Failure::new(QWEN_ERROR_INTERNAL, text));
        }
        Ok(())
    }

    fn contents(&self) -> &(UnsafeCell<T>, T::Side) {
        // SAFETY: called by those inside only; while anyone is, nobody replaces the
        // contents, and they were there when the slot was opened.
        unsafe { (*self.contents.get()).as_ref().unwrap_unchecked() }
    }
}

/// The right to be inside; leaves when dropped, and poisons the object if that happens
/// because of a panic.
struct Inside<T: Object> {
    slot: &'static Slot<T>,
    unit: u64,
}

impl<T: Object> Drop for Inside<T> {
    fn drop(&mut self) {
        let slot = self.slot;
        if std::thread::panicking() {
            slot.poisoned.store(true, Ordering::Release);
        }
        let before = slot.state.fetch_sub(self.unit, Ordering::AcqRel);
        if before - self.unit == CLOSED {
            // SAFETY: closed and nobody inside: this thread alone saw that happen, and
            // nobody can enter any more.
            let contents = unsafe { (*slot.contents.get()).take() };
            drop(contents);
            // When the lock cannot be had (see `create`) the slot is given up.
            if let Ok(mut freed) = T::freed().0.try_lock() {
                freed.push_back(slot);
            }
        }
    }
}

pub(super) struct Reader<T: Object> {
    inside: Inside<T>,
}

impl<T: Object> Deref for Reader<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a reader is inside, so no writer is.
        unsafe { &*self.inside.slot.contents().0.get() }
    }
}

pub(super) struct Writer<T: Object> {
    inside: Inside<T>,
}

impl<T: Object> Writer<T> {
    /// Passes `result` on; a defect of the library poisons the object.
    pub(super) fn judge<R>(&self, result: crate::Result<R>) -> Result<R> {
        result.map_err(|error| {
            if error.kind() == crate::ErrorKind::Internal {
                self.inside.slot.poisoned.store(true, Ordering::Release);
            }
            Failure::from(error)
        })
    }
}

impl<T: Object> Deref for Writer<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the one writer is inside, alone.
        unsafe { &*self.inside.slot.contents().0.get() }
    }
}

impl<T: Object> DerefMut for Writer<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the one writer is inside, alone.
        unsafe { &mut *self.inside.slot.contents().0.get() }
    }
}

pub(super) struct Visit<T: Object> {
    inside: Inside<T>,
}

impl<T: Object> Visit<T> {
    fn enter(slot: &'static Slot<T>) -> Result<Self> {
        enter(slot, VISITOR, CLOSED)?;
        Ok(Self { inside: Inside { slot, unit: VISITOR } })
    }
}

/// The right to enter an object for as long as this lives, whether its handle is freed or
/// not.
pub(super) struct Hold<T: Object>(Visit<T>);

impl<T: Object> Hold<T> {
    /// As [`read`].
    pub(super) fn read(&self) -> Result<Reader<T>> {
        read_slot(self.0.inside.slot, 0)
    }

    /// As [`write`].
    pub(super) fn write(&self) -> Result<Writer<T>> {
        write_slot(self.0.inside.slot, 0)
    }
}

impl<T: Object> Deref for Hold<T> {
    type Target = T::Side;
    fn deref(&self) -> &T::Side {
        &self.0
    }
}

impl<T: Object> Deref for Visit<T> {
    type Target = T::Side;
    fn deref(&self) -> &T::Side {
        &self.inside.slot.contents().1
    }
}

#[cfg(test)]
mod tests;
