//! One entry of the table of sections.

use std::ops::Range;

use super::{ALIGNMENT, ENTRY, MAX_NAME, alignment_of};
use crate::kernels::TileFormat;
use crate::{Error, Result};

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A JSON document.
    Text = 1,
    /// Part of the tokenizer.
    Tokenizer = 2,
    /// A tensor of the network.
    Weights = 3,
}

/// How the elements of a section are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    U8 = 1,
    U32 = 2,
    BF16 = 3,
    F16 = 4,
    F32 = 5,
    /// Tiles of [`TileFormat::Int8`].
    Int8 = 6,
    /// Tiles of [`TileFormat::Int4`].
    Int4 = 7,
    /// Tiles of [`TileFormat::Int8Planes`].
    Int8Planes = 8,
    /// Tiles of [`TileFormat::Int4Planes`].
    Int4Planes = 9,
}

impl Element {
    const ALL: [Element; 9] = [
        Element::U8,
        Element::U32,
        Element::BF16,
        Element::F16,
        Element::F32,
        Element::Int8,
        Element::Int4,
        Element::Int8Planes,
        Element::Int4Planes,
    ];

    fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|element| *element as u32 == number)
    }

    /// The layout of a quantized matrix, if it is one.
    pub fn tiles(self) -> Option<TileFormat> {
        match self {
            Element::Int8 => Some(TileFormat::Int8),
            Element::Int4 => Some(TileFormat::Int4),
            Element::Int8Planes => Some(TileFormat::Int8Planes),
            Element::Int4Planes => Some(TileFormat::Int4Planes),
            _ => None,
        }
    }

    /// Bytes that a section of this shape has; none where that is beyond counting.
    pub fn bytes(self, shape: &[usize]) -> Option<usize> {
        if let Some(format) = self.tiles() {
            return match *shape {
                [rows, cols] => format.bytes(rows, cols),
                _ => None,
            };
        }
        let size = match self {
            Element::U8 => 1,
            Element::BF16 | Element::F16 => 2,
            Element::U32 | Element::F32 => 4,
            _ => return None, // above
        };
        shape.iter().try_fold(size, |n: usize, &d| n.checked_mul(d))
    }
}

/// A section: its entry in the table, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub kind: Kind,
    pub element: Element,
    pub name: String,
    /// One to four dimensions, none of them 0.
    pub shape: Vec<usize>,
    /// Bytes of the file; as many as shape and element type need.
    pub range: Range<usize>,
    pub checksum: u64,
}

impl Section {
    /// The entry, for a name at `name_offset` of the table.
    pub(super) fn encode(&self, name_offset: usize) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(self.kind as u32).to_le_bytes());
        put(4, &(self.element as u32).to_le_bytes());
        put(8, &(name_offset as u32).to_le_bytes());
        put(12, &(self.name.len() as u32).to_le_bytes());
        put(16, &(self.shape.len() as u32).to_le_bytes());
        for (i, &dimension) in self.shape.iter().enumerate() {
            put(24 + 8 * i, &(dimension as u64).to_le_bytes());
        }
        put(56, &(self.range.start as u64).to_le_bytes());
        put(64, &(self.range.len() as u64).to_le_bytes());
        put(72, &self.checksum.to_le_bytes());
        entry
    }

    /// Checks entry `index` of `table`. `end` is where the sections before it end, `limit`
    /// where all must.
    pub(super) fn decode(table: &[u8], index: usize, end: usize, limit: usize) -> Result<Self> {
        let bad = |what: String| Error::format(format!("section {index}: {what}"));
        let entry = &table[index * ENTRY..(index + 1) * ENTRY];
        let kind = match word(entry, 0) {
            1 => Kind::Text,
            2 => Kind::Tokenizer,
            3 => Kind::Weights,
            other => return Err(bad(format!("kind {other} is not known"))),
        };
        let element = Element::of(word(entry, 4))
            .ok_or_else(|| bad(format!("element type {} is not known", word(entry, 4))))?;

        let (start, length) = (word(entry, 8) as usize, word(entry, 12) as usize);
        let name = match length {
            1..=MAX_NAME => start.checked_add(length).and_then(|end| table.get(start..end)),
            _ => None,
        };
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let name = name.filter(|name| !name.chars().any(char::is_control));
        let name = name.ok_or_else(|| bad("its name is damaged".into()))?.to_owned();
        let bad = |what: String| Error::format(format!("section {name}: {what}"));

        let dimensions = word(entry, 16) as usize;
        let sizes: [u64; 4] = std::array::from_fn(|i| long(entry, 24 + 8 * i));
        let regular = (1..=4).contains(&dimensions)
            && sizes.iter().enumerate().all(|(i, &size)| (size > 0) == (i < dimensions));
        let shape: Option<Vec<usize>> =
            sizes[..dimensions.min(4)].iter().map(|&size| usize::try_from(size).ok()).collect();
        let Some(shape) = shape.filter(|_| regular) else {
            return Err(bad(format!("{dimensions} dimensions {sizes:?} cannot be")));
        };
        let spare = [word(entry, 20) as usize, long(entry, 80) as usize, long(entry, 88) as usize];
        if spare != [0; 3] {
            return Err(bad("bytes of its entry that must be zero are not".into()));
        }

        let (offset, length) = (long(entry, 56), long(entry, 64));
        if element.bytes(&shape).map(|n| n as u64) != Some(length) {
            return Err(bad(format!(
                "{length} bytes, but {element:?} of shape {shape:?} needs {}",
                element.bytes(&shape).map_or("more than there can be".into(), |n| n.to_string())
            )));
        }
        let stop = offset.checked_add(length).filter(|stop| *stop <= limit as u64);
        let Some(stop) = stop else {
            return Err(bad(format!(
                "{length} bytes at {offset} reach beyond {limit}, where the sections end"
            )));
        };
        let range = offset as usize..stop as usize;
        let expected = end.next_multiple_of(alignment_of(range.len()));
        if range.start != expected {
            return Err(bad(format!("it begins at byte {offset}, expected {expected}")));
        }
        Ok(Self { kind, element, name, shape, range, checksum: long(entry, 72) })
    }
}

const _: () = assert!(ALIGNMENT.is_multiple_of(align_of::<u64>()));

/// Four bytes of a slice that holds them, as a number.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Eight bytes of a slice that holds them, as a number.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(long)
}
