//! Memory-mapped files, and bytes seen as numbers: the only unsafe code of this module.
#![allow(unsafe_code)]

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use memmap2::{Mmap, MmapMut, MmapOptions, UncheckedAdvice};

use crate::error::{Error, Result, shown};
use crate::files::open_regular;

/// Memory that belongs to the host program, which lends it until this is dropped.
///
/// The bytes must stay as they are for as long.
pub trait HostMemory: Send + Sync {
    /// The bytes; the same at each call.
    fn bytes(&self) -> &[u8];
}

/// The bytes of a whole file: mapped, copied, or lent by the host.
pub(crate) enum Mapping {
    /// An empty file cannot be mapped.
    Empty,
    /// Pages of a file.
    File(Mmap),
    /// Pages of memory of our own.
    Own(Mmap),
    Host(Box<dyn HostMemory>),
}

impl Mapping {
    /// Maps the regular file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Mapping> {
        let (file, length) = open_regular(path)?;
        let Ok(length) = usize::try_from(length) else {
            return Err(Error::format(format!("{}: too large to map", shown(path))));
        };
        if length == 0 {
            return Ok(Mapping::Empty);
        }
        // SAFETY: the map is private and read-only. The one condition left, that nobody changes
        // the file while it is mapped, cannot be enforced; it is part of the documentation of
        // the parent module and of the C API.
        let map = unsafe { MmapOptions::new().len(length).map(&file) }.map_err(|e| {
            match e.raw_os_error() {
                Some(libc::ENOMEM) => {
                    Error::out_of_memory("the address space of a file", length).within(shown(path))
                }
                _ => Error::io(path, "map", &e),
            }
        })?;
        // Weights are streamed from one end to the other for every token. Where the file system
        // has large pages, this maps them and saves page table walks; elsewhere the kernel still
        // reads ahead in steps of 2 MiB. (1.5 GB from a cold disk, ext4 on Linux 6.18: 1.1 s
        // with the advice, 1.6 to 2.6 s without.) Advice only, so its failure does not matter.
        // No read-ahead of the whole file: that would read vision and drafting weights that the
        // text model never touches.
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Mapping::File(map))
    }

    /// `length` bytes of our own, filled by `fill`. They begin at a page.
    ///
    /// # Errors
    /// `OutOfMemory`, and what `fill` reports.
    pub(crate) fn filled(
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Mapping> {
        let refused = || Error::out_of_memory("the contents of a file", length);
        if length == 0 {
            fill(&mut [])?;
            return Ok(Mapping::Empty);
        }
        if length > isize::MAX as usize {
            return Err(refused());
        }
        let mut map = MmapMut::map_anon(length).map_err(|_| refused())?;
        let _ = map.advise(memmap2::Advice::HugePage);
        fill(&mut map)?;
        Ok(Mapping::Own(map.make_read_only().map_err(|_| refused())?))
    }

    /// As [`Mapping::filled`], for a `fill` that leaves most bytes as they are, zeros, which then
    /// take no memory, only room among the addresses.
    ///
    /// # Errors
    /// As [`Mapping::filled`].
    pub(crate) fn sparse(
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Mapping> {
        let refused = || Error::out_of_memory("the address space of a file", length);
        if length == 0 || length > isize::MAX as usize {
            return Err(refused());
        }
        let mut map =
            MmapOptions::new().len(length).no_reserve_swap().map_anon().map_err(|_| refused())?;
        fill(&mut map)?;
        Ok(Mapping::Own(map.make_read_only().map_err(|_| refused())?))
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Mapping::Empty => &[],
            Mapping::File(map) | Mapping::Own(map) => map,
            Mapping::Host(memory) => memory.bytes(),
        }
    }

    /// Asks the system to read the bytes of `range` from the disk, without waiting for them.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if let Mapping::File(map) = self
            && range.start < range.end
            && range.end <= map.len()
        {
            // Advice only: its failure does not matter.
            let _ = map.advise_range(memmap2::Advice::WillNeed, range.start, range.len());
        }
    }
}

impl Mapping {
    /// Gives the memory pages of `range` back to the system, which reads them from the file
    /// again when they are needed. Does nothing where there is no file.
    pub(super) fn release(&self, range: Range<usize>) {
        if let Mapping::File(map) = self
            && range.start < range.end
            && range.end <= map.len()
        {
            // SAFETY: the map is private, read-only and backed by the file: a page that was
            // given back holds the same bytes when it is next read, by whatever thread, so
            // that no reference to it sees a change. Writing into the file is excluded as in
            // `Mapping::open`. Advice only: its failure does not matter.
            let _ = unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
            };
        }
    }
}

/// Part of a mapping, or an aligned copy of it, at hand as long as this lives.
#[derive(Clone)]
pub(super) enum Bytes {
    Mapped {
        map: Arc<Mapping>,
        range: Range<usize>,
    },
    /// `length` bytes in words, which are aligned for every element type.
    Copied {
        words: Arc<Vec<u32>>,
        length: usize,
    },
}

impl Bytes {
    /// The bytes `range` of `map`, copied only if they are not aligned to `align` (at most 4).
    pub(super) fn new(map: &Arc<Mapping>, range: Range<usize>, align: usize) -> Result<Bytes> {
        let Some(bytes) = map.bytes().get(range.clone()) else {
            return Err(Error::internal("tensor range outside its file"));
        };
        if bytes.as_ptr().addr().is_multiple_of(align) {
            return Ok(Bytes::Mapped { map: map.clone(), range });
        }
        Bytes::copied(bytes)
    }

    /// A copy of the bytes that does not keep their file mapped.
    pub(super) fn detached(&self) -> Result<Bytes> {
        match self {
            Bytes::Mapped { map, range } => Bytes::copied(&map.bytes()[range.clone()]),
            Bytes::Copied { .. } => Ok(self.clone()),
        }
    }

    fn copied(bytes: &[u8]) -> Result<Bytes> {
        let mut words = Vec::new();
        words
            .try_reserve_exact(bytes.len().div_ceil(4))
            .map_err(|_| Error::out_of_memory("a copy of a tensor", bytes.len()))?;
        let mut chunks = bytes.chunks_exact(4);
        words.extend(chunks.by_ref().map(|c| u32::from_ne_bytes([c[0], c[1], c[2], c[3]])));
        if !chunks.remainder().is_empty() {
            let mut last = [0; 4];
            last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
            words.push(u32::from_ne_bytes(last));
        }
        Ok(Bytes::Copied { words: Arc::new(words), length: bytes.len() })
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Bytes::Mapped { map, range } => &map.bytes()[range.clone()],
            Bytes::Copied { words, length } => {
                // SAFETY: the words are initialised memory of four bytes each, any of which is a
                // valid u8, and live as long as self.
                let all = unsafe {
                    std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 4)
                };
                &all[..*length]
            }
        }
    }

    /// Whether [`Bytes::release`] does something: they are pages of a file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Bytes::Mapped { map, .. } if matches!(**map, Mapping::File(_)))
    }

    /// Gives the memory pages of the bytes `part` back to the system, which reads them from
    /// the file again when they are needed.
    pub(super) fn release(&self, part: Range<usize>) {
        if let Bytes::Mapped { map, range } = self
            && part.end <= range.len()
        {
            map.release(range.start + part.start..range.start + part.end);
        }
    }

    /// The bytes as elements.
    ///
    /// # Panics
    ///
    /// If they are not aligned for `T` or no whole number of elements: `new` was called with
    /// another alignment, a defect.
    pub(super) fn elements<T: Element>(&self) -> &[T] {
        let bytes = self.bytes();
        let size = size_of::<T>();
        assert!(bytes.as_ptr().addr().is_multiple_of(align_of::<T>()), "unaligned tensor");
        assert!(bytes.len().is_multiple_of(size), "partial element");
        // SAFETY: aligned and in bounds by the two checks above; every bit pattern is a valid T
        // (see Element); the result borrows self, which keeps the memory alive.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), bytes.len() / size) }
    }
}

/// Plain numbers that weight files hold.
///
/// # Safety
///
/// The type has no padding and every bit pattern is a valid value.
pub(super) unsafe trait Element: Copy {}

// SAFETY: a bf16 is a u16.
unsafe impl Element for bf16 {}
// SAFETY: an f16 is a u16.
unsafe impl Element for f16 {}
// SAFETY: every bit pattern is an f32, some of them NaN.
unsafe impl Element for f32 {}
