//! The safetensors header: eight bytes of length, JSON, then the data.
//!
//! The reader is as strict as the format's own: every byte of the data belongs to exactly one
//! tensor, and each tensor's length is its shape times its element size. Limits keep the memory
//! for a hostile header near the size of the header itself.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::tensor::Dtype;
use crate::error::{Error, Result};
use crate::files::excerpt;

/// The limit of the reference reader; the header of the 27B model has 150 kB.
const MAX_HEADER: u64 = 100_000_000;
/// Tensors in one file; the 27B model has 1199.
pub(super) const MAX_TENSORS: usize = 1 << 17;
/// Bytes in a tensor's name.
pub(super) const MAX_NAME: usize = 1024;
/// Dimensions of a tensor; the vision patch embedding has five.
const MAX_DIMENSIONS: usize = 8;

/// One tensor of a file: checked to lie within it, and to have as many bytes as its shape says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Bytes from the start of the file.
    pub range: Range<usize>,
}

impl Entry {
    pub(super) fn bytes(&self) -> u64 {
        (self.range.end - self.range.start) as u64
    }

    /// What the address of an element must be a multiple of.
    pub(super) fn alignment(&self) -> usize {
        (self.dtype.bits() as usize / 8).max(1)
    }

    /// Whether its elements are aligned in a file that is mapped, which begins at a page.
    pub(super) fn is_aligned(&self) -> bool {
        self.range.start.is_multiple_of(self.alignment())
    }
}

/// The bytes of header length at the start of a file.
pub(super) const LENGTH: usize = 8;
/// Bytes from the start of a file that tell what it is.
pub(super) const START: usize = 32;

/// Reads and checks the header of a whole file.
pub(super) fn read_header(file: &[u8]) -> Result<HashMap<String, Entry>> {
    let size = file.len() as u64;
    let length = header_length(&file[..file.len().min(START)], size)?;
    parse_header(&file[LENGTH..LENGTH + length], size)
}

/// The length of the header of a file of `size` bytes, of which `first` are the first
/// [`START`], or all. The header lies within the file.
pub(super) fn header_length(first: &[u8], size: u64) -> Result<usize> {
    let Some(length) = first.first_chunk::<LENGTH>() else {
        return Err(Error::format(format!(
            "{size} bytes long, too short for a safetensors file (at least 8 bytes of header \
             length); the file is empty or cut off"
        )));
    };
    let length = u64::from_le_bytes(*length);
    if length == 0 || length > MAX_HEADER {
        return Err(Error::format(format!(
            "header length {length}, expected 1 to {MAX_HEADER}: {}",
            what_else(first)
        )));
    }
    if length > size - 8 {
        return Err(Error::format(format!(
            "the header needs {} bytes, the file has {size}: it is cut off",
            length + 8
        )));
    }
    Ok(length as usize)
}

/// Checks the `header` of a file of `size` bytes.
pub(super) fn parse_header(header: &[u8], size: u64) -> Result<HashMap<String, Entry>> {
    let text = std::str::from_utf8(header).map_err(|e| {
        Error::format(format!("the header is not UTF-8 at byte {}", LENGTH + e.valid_up_to()))
    })?;
    let raw = parse(text).map_err(|e| Error::format(format!("damaged header: {e}")))?;
    let base = LENGTH + header.len();
    let data = usize::try_from(size).ok().and_then(|size| size.checked_sub(base));
    let data = data.ok_or_else(|| Error::format("larger than the address space"))?;
    check(raw, base, data)
}

/// What a file that has no header of this format may be instead.
fn what_else(file: &[u8]) -> String {
    if file.starts_with(b"version https://git-lfs") {
        return "this is a Git LFS pointer, not the file it stands for (git lfs pull)".to_owned();
    }
    let start = &file[..file.len().min(24)];
    match std::str::from_utf8(start) {
        Ok(text) if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) => {
            format!("not a safetensors file, it begins with {text:?}")
        }
        _ => "not a safetensors file, or damaged".to_owned(),
    }
}

/// Turns raw entries into checked ones. `base` and `length` place the data in the file.
fn check(
    raw: HashMap<String, RawEntry>,
    base: usize,
    length: usize,
) -> Result<HashMap<String, Entry>> {
    let mut entries = HashMap::with_capacity(raw.len());
    for (name, raw) in raw {
        let entry = check_one(&raw, base, length)
            .map_err(|e| e.within(format!("tensor {}", excerpt(&name))))?;
        entries.insert(name, entry);
    }

    // In order of place, each must begin where the one before it ended.
    let mut order: Vec<(&Range<usize>, &str)> =
        entries.iter().map(|(name, entry)| (&entry.range, name.as_str())).collect();
    order.sort_unstable_by_key(|(range, name)| (range.start, range.end, *name));
    let mut end = base;
    let mut before = "";
    for (range, name) in order {
        if range.start < end {
            return Err(Error::format(format!(
                "tensor {} begins at byte {}, inside tensor {}, which ends at byte {end}",
                excerpt(name),
                range.start,
                excerpt(before)
            )));
        }
        if range.start > end {
            return Err(Error::format(format!(
                "bytes {end} to {} before tensor {} belong to no tensor",
                range.start,
                excerpt(name)
            )));
        }
        (end, before) = (range.end, name);
    }
    if end != base + length {
        return Err(Error::format(format!(
            "the tensors end at byte {end}, but the file has {} bytes",
            base + length
        )));
    }
    Ok(entries)
}

fn check_one(raw: &RawEntry, base: usize, length: usize) -> Result<Entry> {
    let dtype = raw.dtype;
    let bits = raw.shape.iter().try_fold(dtype.bits() as u64, |n, &d| n.checked_mul(d));
    let Some(bits) = bits else {
        return Err(Error::format(format!("shape {:?} is too large", raw.shape)));
    };
    if bits % 8 != 0 {
        return Err(Error::format(format!(
            "{} elements of shape {:?} do not fill whole bytes",
            dtype, raw.shape
        )));
    }
    let [begin, end] = raw.offsets;
    let Some(found) = end.checked_sub(begin) else {
        return Err(Error::format(format!("data_offsets [{begin}, {end}] are inverted")));
    };
    if end > length as u64 {
        let file = base as u64 + length as u64;
        let needed = (base as u64).saturating_add(end);
        return Err(Error::format(format!(
            "the data end at byte {needed}, but the file has {file} bytes: it is cut off, or the \
             header is damaged"
        )));
    }
    if found != bits / 8 {
        return Err(Error::format(format!(
            "data_offsets [{begin}, {end}] span {found} bytes, but {dtype} of shape {:?} needs {}",
            raw.shape,
            bits / 8
        )));
    }
    let mut shape = Vec::with_capacity(raw.shape.len());
    for &d in &raw.shape {
        shape.push(usize::try_from(d).map_err(|_| Error::format("a dimension is too large"))?);
    }
    Ok(Entry { dtype, shape, range: base + begin as usize..base + end as usize })
}

/// An entry as written in the header.
struct RawEntry {
    dtype: Dtype,
    shape: Vec<u64>,
    offsets: [u64; 2],
}

fn parse(text: &str) -> serde_json::Result<HashMap<String, RawEntry>> {
    let mut input = serde_json::Deserializer::from_str(text);
    let entries = input.deserialize_map(HeaderVisitor)?;
    input.end()?;
    Ok(entries)
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = HashMap<String, RawEntry>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }
    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut entries = HashMap::new();
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                if std::mem::replace(&mut has_metadata, true) {
                    return Err(A::Error::custom("__metadata__ is there twice"));
                }
                map.next_value::<Metadata>()?;
                continue;
            }
            if name.len() > MAX_NAME {
                return Err(A::Error::custom(format!(
                    "the tensor name {} is longer than {MAX_NAME} bytes",
                    excerpt(&name)
                )));
            }
            if entries.len() >= MAX_TENSORS {
                return Err(A::Error::custom(format!("more than {MAX_TENSORS} tensors")));
            }
            let entry = map
                .next_value::<RawEntry>()
                .map_err(|e| A::Error::custom(format!("tensor {}: {e}", excerpt(&name))))?;
            if entries.contains_key(&name) {
                return Err(A::Error::custom(format!("tensor {} is there twice", excerpt(&name))));
            }
            entries.insert(name, entry);
        }
        Ok(entries)
    }
}

impl<'de> Deserialize<'de> for RawEntry {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        d.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = RawEntry;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<RawEntry, A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(key) = map.next_key::<Key>()? {
            let twice = match key {
                Key::Dtype => dtype.replace(map.next_value::<Dtype>()?).is_some(),
                Key::Shape => {
                    let seed =
                        Numbers { what: "a shape of at most 8 dimensions", most: MAX_DIMENSIONS };
                    shape.replace(map.next_value_seed(seed)?).is_some()
                }
                Key::Offsets => {
                    let seed = Numbers { what: "two data_offsets", most: 2 };
                    let found = map.next_value_seed(seed)?;
                    let pair = <[u64; 2]>::try_from(found.as_slice())
                        .map_err(|_| A::Error::invalid_length(found.len(), &"two data_offsets"))?;
                    offsets.replace(pair).is_some()
                }
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if twice {
                return Err(A::Error::custom("dtype, shape or data_offsets are there twice"));
            }
        }
        Ok(RawEntry {
            dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
            shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
            offsets: offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
        })
    }
}

/// The keys of an entry, so that a long unknown key is not kept.
#[derive(Deserialize)]
enum Key {
    #[serde(rename = "dtype")]
    Dtype,
    #[serde(rename = "shape")]
    Shape,
    #[serde(rename = "data_offsets")]
    Offsets,
    #[serde(other)]
    Other,
}

/// A short array of whole numbers; a long one is refused before it is read.
struct Numbers {
    what: &'static str,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Numbers {
    type Value = Vec<u64>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> std::result::Result<Vec<u64>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers {
    type Value = Vec<u64>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Vec<u64>, A::Error> {
        let mut numbers = Vec::with_capacity(self.most.min(4));
        while let Some(n) = seq.next_element::<u64>()? {
            if numbers.len() == self.most {
                return Err(A::Error::custom(format!("expected {}", self.what)));
            }
            numbers.push(n);
        }
        Ok(numbers)
    }
}

/// `__metadata__`: an object of strings, checked and dropped.
struct Metadata;

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        d.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings as __metadata__")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Metadata, A::Error> {
        while map.next_entry::<String, String>()?.is_some() {}
        Ok(Metadata)
    }
}
