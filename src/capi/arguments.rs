//! Arguments as they come from C: checked once, here, before anything is done with them.

use std::ffi::c_char;

use super::status::{
    Failure, QWEN_ERROR_BUFFER_TOO_SMALL, QWEN_ERROR_UNSUPPORTED, QWEN_OK, Result, qwen_status,
};
use crate::Error;

/// As the length of a string: it ends with a NUL, which is not part of it.
const QWEN_NUL: usize = usize::MAX;

/// A place for a result.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// `pointer` is NULL or points to writable memory for a `T` for the whole call.
    pub(super) unsafe fn new(name: &str, pointer: *mut T) -> Result<Self> {
        if pointer.is_null() {
            return Err(Failure::argument(format!("`{name}` is NULL")));
        }
        if !pointer.is_aligned() {
            return Err(Failure::argument(format!("`{name}` is not aligned")));
        }
        Ok(Self(pointer))
    }

    /// As [`Out::new`] for a result that the caller may not want.
    ///
    /// # Safety
    /// As [`Out::new`].
    pub(super) unsafe fn optional(name: &str, pointer: *mut T) -> Result<Option<Self>> {
        // SAFETY: the caller's promise.
        if pointer.is_null() { Ok(None) } else { unsafe { Self::new(name, pointer) }.map(Some) }
    }

    pub(super) fn set(&self, value: T) {
        // SAFETY: checked by `new`, whose caller promised the rest.
        unsafe { self.0.write(value) }
    }
}

/// An array of the caller.
///
/// # Safety
/// `pointer` is NULL or points to `count` readable values, unchanged for `'a`.
pub(super) unsafe fn array<'a, T>(name: &str, pointer: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("`{name}` is NULL, but its length is {count}")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("`{name}` is not aligned")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("`{name}`: a length of {count} cannot be")));
    }
    // SAFETY: not null, aligned, of a possible length; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Bytes of the caller, with a length or up to a NUL.
///
/// # Safety
/// `pointer` is NULL, or points to `length` readable bytes (to a NUL-terminated string if
/// `length` is QWEN_NUL), unchanged for `'a`.
pub(super) unsafe fn bytes<'a>(
    name: &str,
    pointer: *const c_char,
    length: usize,
) -> Result<&'a [u8]> {
    if length != QWEN_NUL {
        // SAFETY: the caller's promise.
        return unsafe { array(name, pointer.cast(), length) };
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("`{name}` is NULL")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::ffi::CStr::from_ptr(pointer) }.to_bytes())
}

/// Below this, inputs are small beside what any call takes.
const LARGE_INPUT: usize = 256 << 10;
/// What working with an input takes at most, in times of its bytes: of a text its normal form,
/// tokens (four bytes for each byte, twice while a list grows), and of a chat request its parts
/// and what is rendered of it.
const WORK: usize = 16;

/// Whether there is memory to work with an input of `bytes` bytes. What works with text asks for
/// memory in many places, also of the template engine, that end the process when they get none;
/// asking for all of it ahead makes that an error.
///
/// # Errors
/// `OutOfMemory`.
fn room_for(name: &str, bytes: usize) -> Result<()> {
    let work = bytes.saturating_mul(WORK);
    if bytes >= LARGE_INPUT && Vec::<u8>::new().try_reserve_exact(work).is_err() {
        return Err(Error::out_of_memory(&format!("working with `{name}`"), work).into());
    }
    Ok(())
}

/// UTF-8 of the caller; says where it is not.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn text<'a>(
    name: &str,
    pointer: *const c_char,
    length: usize,
) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(name, pointer, length) }?;
    room_for(name, bytes.len())?;
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let what = if error.error_len().is_some() { "invalid" } else { "cut off" };
        Failure::argument(format!(
            "`{name}` is not UTF-8: {what} at byte {at} (0x{:02X}) of {}",
            bytes[at],
            bytes.len()
        ))
    })
}

/// A copy of token ids of the caller, who may give those that qwen_session_tokens() lent: none is
/// negative. That they are below the vocabulary's size is checked where they are used.
///
/// # Safety
/// As [`array`].
pub(super) unsafe fn tokens(name: &str, pointer: *const i32, count: usize) -> Result<Vec<u32>> {
    // SAFETY: the caller's promise.
    let ids = unsafe { array(name, pointer, count) }?;
    if let Some(i) = ids.iter().position(|&id| id < 0) {
        let text = format!("`{name}`[{i}] is {}: token ids are not negative", ids[i]);
        return Err(Failure::argument(text));
    }
    room_for(name, size_of_val(ids))?;
    let mut copy = Vec::new();
    let refused = |_| Error::out_of_memory(name, size_of_val(ids));
    copy.try_reserve_exact(ids.len()).map_err(refused)?;
    copy.extend(ids.iter().map(|id| id.cast_unsigned()));
    Ok(copy)
}

/// Ids in the type of the header. Ids are row numbers of a matrix, far below 2^31.
pub(super) fn as_i32(ids: &[u32]) -> &[i32] {
    // SAFETY: the same memory; i32 has the layout of u32.
    unsafe { std::slice::from_raw_parts(ids.as_ptr().cast(), ids.len()) }
}

/// Only bits of `known` may be set.
pub(super) fn flags(value: u32, known: u32) -> Result<u32> {
    let unknown = value & !known;
    if unknown != 0 {
        return Err(Failure::argument(format!("`flags` has unknown bits 0x{unknown:X}")));
    }
    Ok(value)
}

/// Gives an array to the caller by the two-call rule: `needed` is always set; without a
/// buffer that is all; a buffer that is too small is left as it is.
///
/// # Safety
/// `buffer` is NULL or points to `capacity` writable values.
pub(super) unsafe fn give<T: Copy>(
    values: &[T],
    name: &str,
    buffer: *mut T,
    capacity: usize,
    needed: &Out<usize>,
) -> Result<qwen_status> {
    needed.set(values.len());
    if buffer.is_null() {
        if capacity != 0 {
            let text = format!("`{name}` is NULL, but its capacity is {capacity}");
            return Err(Failure::argument(text));
        }
        return Ok(QWEN_OK);
    }
    if !buffer.is_aligned() {
        return Err(Failure::argument(format!("`{name}` is not aligned")));
    }
    if capacity < values.len() {
        let text = format!("`{name}` has room for {capacity}, but {} are needed", values.len());
        return Err(Failure::new(QWEN_ERROR_BUFFER_TOO_SMALL, text));
    }
    // SAFETY: not null, aligned, room enough by the caller's promise; `values` belongs to
    // the library, so it does not overlap.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), buffer, values.len()) };
    Ok(QWEN_OK)
}

/// As [`give`] for bytes that are only made when there is room: `make` writes all `size`.
///
/// # Safety
/// `buffer` is NULL or points to `capacity` writable bytes, which nobody else uses.
pub(super) unsafe fn give_with(
    size: usize,
    name: &str,
    buffer: *mut u8,
    capacity: usize,
    needed: &Out<usize>,
    make: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<qwen_status> {
    needed.set(size);
    if buffer.is_null() {
        if capacity != 0 {
            let text = format!("`{name}` is NULL, but its capacity is {capacity}");
            return Err(Failure::argument(text));
        }
        return Ok(QWEN_OK);
    }
    if capacity < size {
        let text = format!("`{name}` has room for {capacity}, but {size} are needed");
        return Err(Failure::new(QWEN_ERROR_BUFFER_TOO_SMALL, text));
    }
    // SAFETY: not null, room enough by the caller's promise, and bytes have no alignment.
    // They are set first, so that what `make` sees is initialised memory.
    let buffer = unsafe {
        buffer.write_bytes(0, size);
        std::slice::from_raw_parts_mut(buffer, size)
    };
    make(buffer)?;
    Ok(QWEN_OK)
}

/// A struct that crosses the boundary with its size in front.
///
/// # Safety
/// `#[repr(C)]`, begins with `struct_size: u32`, and every bit pattern is a value (a
/// struct of integers, floats and raw pointers).
pub(super) unsafe trait Sized32: Copy {
    /// The C name, for messages.
    const NAME: &'static str;
    /// The size in the first published version.
    const FIRST_SIZE: usize;
}

/// Larger than any options struct will ever be: such a size is memory nobody set.
const ABSURD_SIZE: usize = 4096;

fn struct_size<T: Sized32>(size: u32) -> Result<usize> {
    let size = size as usize;
    if size < T::FIRST_SIZE || size > ABSURD_SIZE {
        let name = T::NAME;
        return Err(Failure::argument(format!(
            "`struct_size` of {name} is {size}: set it to sizeof({name}), at least {}",
            T::FIRST_SIZE
        )));
    }
    Ok(size)
}

/// Options of the caller; what is beyond the caller's version of the struct is zero, and
/// zero means default. NULL is all zero.
///
/// # Safety
/// `pointer` is NULL or points to a struct of which `struct_size` bytes can be read.
pub(super) unsafe fn options<T: Sized32>(pointer: *const T) -> Result<T> {
    // SAFETY: Sized32 promises that zeros are a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    if pointer.is_null() {
        return Ok(value);
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("the pointer to {} is not aligned", T::NAME)));
    }
    // SAFETY: Sized32 begins with a u32; the caller promises that it can be read.
    let size = struct_size::<T>(unsafe { pointer.cast::<u32>().read() })?;
    let known = size.min(size_of::<T>());
    // SAFETY: `size` bytes can be read, by the caller's promise; `value` holds `known`.
    let beyond = unsafe {
        let value = (&raw mut value).cast::<u8>();
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), value, known);
        std::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known)
    };
    if beyond.iter().any(|&byte| byte != 0) {
        let text = format!("{} has a field set that this version does not know", T::NAME);
        return Err(Failure::new(QWEN_ERROR_UNSUPPORTED, text));
    }
    Ok(value)
}

/// Fills the caller's struct as far as its `struct_size` reaches; the rest of it is left.
///
/// # Safety
/// `pointer` is NULL or points to a struct of which `struct_size` bytes can be written.
pub(super) unsafe fn fill<T: Sized32>(name: &str, pointer: *mut T, value: &T) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { Out::new(name, pointer) }?;
    // SAFETY: Sized32 begins with a u32; the caller promises that it can be read.
    let size = struct_size::<T>(unsafe { pointer.cast::<u32>().read() })?;
    let (start, end) = (size_of::<u32>(), size.min(size_of::<T>()));
    // SAFETY: both hold `end` bytes. Padding is copied as it is, never looked at.
    unsafe {
        let (from, to) = ((&raw const *value).cast::<u8>(), pointer.cast::<u8>());
        std::ptr::copy_nonoverlapping(from.add(start), to.add(start), end - start);
    }
    Ok(())
}

/// Sets a struct of the caller to its defaults: zeros, and the size in front.
///
/// # Safety
/// `pointer` is NULL or points to `size` writable bytes.
pub(super) unsafe fn init<T: Sized32>(pointer: *mut T, size: usize) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    unsafe { Out::new("options", pointer) }?;
    let checked = u32::try_from(size).unwrap_or(u32::MAX);
    struct_size::<T>(checked)?;
    // SAFETY: `size` bytes can be written by the caller's promise.
    unsafe {
        pointer.cast::<u8>().write_bytes(0, size);
        pointer.cast::<u32>().write(checked);
    }
    Ok(QWEN_OK)
}

#[cfg(test)]
mod tests {
    use super::super::status::QWEN_ERROR_INVALID_ARGUMENT;
    use super::*;
    use std::ptr::null;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Options {
        struct_size: u32,
        a: u32,
        b: u64,
    }
    // SAFETY: integers only, struct_size first.
    unsafe impl Sized32 for Options {
        const NAME: &'static str = "options";
        const FIRST_SIZE: usize = 8;
    }

    #[test]
    fn text_is_checked() {
        // SAFETY: the pointers are NULL or to literals of at least the given length.
        unsafe {
            let get = |p: &[u8], n| text("t", p.as_ptr().cast(), n).map_err(|f| f.message);
            assert_eq!(get(b"a\0b\0", QWEN_NUL), Ok("a"));
            assert_eq!(get(b"a\0b\0", 3), Ok("a\0b"));
            assert_eq!(text("t", null(), 0).unwrap(), "");
            assert!(text("t", null(), 1).is_err());
            assert!(text("t", null(), QWEN_NUL).is_err());
            for (bytes, at) in [
                (&b"\xE2\x80"[..], 0),
                (b"\xED\xA0\x80", 0),
                (b"\xF4\x90\x80\x80", 0),
                (b"\xC0\xAF", 0),
                (b"\xFF", 0),
                (b"a\x80b", 1),
                (b"ab\xF0\x9F\x98", 2),
            ] {
                let message = get(bytes, bytes.len()).unwrap_err();
                assert!(message.contains(&format!("at byte {at} ")), "{message}");
            }
        }
    }

    #[test]
    fn ids_are_checked() {
        for (ids, ok) in [(&[0, i32::MAX][..], true), (&[3, -1], false), (&[i32::MIN], false)] {
            // SAFETY: a slice's own pointer and length.
            assert_eq!(unsafe { tokens("ids", ids.as_ptr(), ids.len()) }.is_ok(), ok);
        }
        // SAFETY: NULL is checked; the absurd length is refused before it is used.
        unsafe {
            assert!(tokens("ids", null(), 0).is_ok());
            assert!(tokens("ids", null(), 1).is_err());
            assert!(tokens("ids", [1].as_ptr(), usize::MAX / 2).is_err());
        }
    }

    #[test]
    fn results_follow_the_two_call_rule() {
        let (mut needed, mut room) = (99, [7u8; 4]);
        // SAFETY: pointers to locals; `room` has the capacity that is passed.
        unsafe {
            let out = Out::new("needed", &mut needed).unwrap();
            assert!(give(b"abc", "b", std::ptr::null_mut(), 0, &out).is_ok());
            assert_eq!(needed, 3);
            let small = give(b"abc", "b", room.as_mut_ptr(), 2, &out).unwrap_err();
            assert_eq!((small.status, room), (QWEN_ERROR_BUFFER_TOO_SMALL, [7; 4]));
            assert!(give(b"abc", "b", std::ptr::null_mut(), 2, &out).is_err());
            assert!(give(b"abc", "b", room.as_mut_ptr(), 4, &out).is_ok());
        }
        assert_eq!(&room, b"abc\x07");
    }

    #[test]
    fn option_structs_of_other_versions() {
        // SAFETY: each buffer holds the struct_size that it claims, or is refused.
        unsafe {
            let read = |words: &[u64]| options::<Options>(words.as_ptr().cast());
            assert_eq!(options::<Options>(null()).unwrap(), Options { struct_size: 0, a: 0, b: 0 });
            let old = read(&[5 << 32 | 8]).unwrap();
            assert_eq!((old.a, old.b), (5, 0));
            let new = read(&[5 << 32 | 24, 6, 0]).unwrap();
            assert_eq!((new.a, new.b), (5, 6));
            assert_eq!(read(&[24, 6, 1]).unwrap_err().status, QWEN_ERROR_UNSUPPORTED);
            for size in [0, 4, 7, 5000, u64::from(u32::MAX)] {
                assert_eq!(read(&[size]).unwrap_err().status, QWEN_ERROR_INVALID_ARGUMENT);
            }

            let value = Options { struct_size: 16, a: 1, b: 2 };
            let mut small = [8u64, 77];
            fill("o", small.as_mut_ptr().cast(), &value).unwrap();
            assert_eq!(small, [1 << 32 | 8, 77]);

            let mut fresh = [u64::MAX; 3];
            init::<Options>(fresh.as_mut_ptr().cast(), 16).unwrap();
            assert_eq!(fresh, [16, 0, u64::MAX]);
            assert!(init::<Options>(fresh.as_mut_ptr().cast(), 4).is_err());
        }
    }
}
