//! A tensor as a typed view of a mapped file.

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use serde::{Deserialize, Deserializer};

use super::mmap::{Bytes, Mapping};
use super::safetensors::Entry;
use crate::error::Result;
use crate::files::excerpt;

/// The element types of the safetensors format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, non_camel_case_types)]
pub enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    F8_E4M3,
    F8_E5M2,
    F8_E8M0,
    F6_E2M3,
    F6_E3M2,
    F4,
}

/// Spelling in the file and bits of an element.
const DTYPES: [(Dtype, &str, u32); 20] = [
    (Dtype::Bool, "BOOL", 8),
    (Dtype::U8, "U8", 8),
    (Dtype::I8, "I8", 8),
    (Dtype::U16, "U16", 16),
    (Dtype::I16, "I16", 16),
    (Dtype::U32, "U32", 32),
    (Dtype::I32, "I32", 32),
    (Dtype::U64, "U64", 64),
    (Dtype::I64, "I64", 64),
    (Dtype::F16, "F16", 16),
    (Dtype::BF16, "BF16", 16),
    (Dtype::F32, "F32", 32),
    (Dtype::F64, "F64", 64),
    (Dtype::C64, "C64", 64),
    (Dtype::F8_E4M3, "F8_E4M3", 8),
    (Dtype::F8_E5M2, "F8_E5M2", 8),
    (Dtype::F8_E8M0, "F8_E8M0", 8),
    (Dtype::F6_E2M3, "F6_E2M3", 6),
    (Dtype::F6_E3M2, "F6_E3M2", 6),
    (Dtype::F4, "F4", 4),
];

impl Dtype {
    /// Bits of one element.
    pub fn bits(self) -> u32 {
        DTYPES[self as usize].2
    }

    /// Whether weights of this type are read: BF16, F16 and F32.
    pub fn is_readable(self) -> bool {
        matches!(self, Dtype::BF16 | Dtype::F16 | Dtype::F32)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DTYPES[*self as usize].1)
    }
}

impl<'de> Deserialize<'de> for Dtype {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        struct Spelling;
        impl serde::de::Visitor<'_> for Spelling {
            type Value = Dtype;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a dtype")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Dtype, E> {
                let known = DTYPES.iter().find(|(_, spelling, _)| *spelling == text);
                known
                    .map(|(dtype, ..)| *dtype)
                    .ok_or_else(|| E::custom(format!("unknown dtype {}", excerpt(text))))
            }
        }
        d.deserialize_str(Spelling)
    }
}

/// A tensor of BF16, F16 or F32 elements, row-major, as stored; or bytes of quantized ones.
///
/// Cheap to clone. It keeps its file mapped for as long as it lives.
#[derive(Clone)]
pub struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Bytes,
}

impl Tensor {
    /// A view of `entry`, which must be readable and lie within `map`; `shape` is the shape to
    /// report.
    pub(super) fn new(map: &Arc<Mapping>, entry: &Entry, shape: &[usize]) -> Result<Tensor> {
        let data = Bytes::new(map, entry.range.clone(), entry.alignment())?;
        Ok(Tensor { dtype: entry.dtype, shape: shape.to_vec(), data })
    }

    /// `length` bytes of our own, filled by `fill`, as U8 elements. They begin at a page.
    ///
    /// # Errors
    /// `OutOfMemory`, and what `fill` reports.
    pub(crate) fn filled(
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor> {
        let map = Arc::new(Mapping::filled(length, fill)?);
        let data = Bytes::new(&map, 0..length, 1)?;
        Ok(Tensor { dtype: Dtype::U8, shape: vec![length], data })
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements as bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.elements() as u64 * u64::from(self.dtype.bits() / 8)
    }

    /// The elements if they are U8.
    pub fn u8(&self) -> Option<&[u8]> {
        (self.dtype == Dtype::U8).then(|| self.data.bytes())
    }

    /// The elements if they are BF16.
    pub fn bf16(&self) -> Option<&[bf16]> {
        (self.dtype == Dtype::BF16).then(|| self.data.elements())
    }

    /// The elements if they are F16.
    pub fn f16(&self) -> Option<&[f16]> {
        (self.dtype == Dtype::F16).then(|| self.data.elements())
    }

    /// The elements if they are F32.
    pub fn f32(&self) -> Option<&[f32]> {
        (self.dtype == Dtype::F32).then(|| self.data.elements())
    }

    /// The same elements in memory of their own, so that their file need not stay mapped.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn detached(&self) -> Result<Tensor> {
        Ok(Tensor { data: self.data.detached()?, ..self.clone() })
    }

    /// Whether [`Tensor::release`] does something: the elements lie in a mapped file.
    pub(crate) fn is_file(&self) -> bool {
        self.data.is_file()
    }

    /// Gives the memory pages of the elements `range` back to the system, which reads them
    /// from the file again when they are needed. Advice only.
    pub(crate) fn release(&self, range: std::ops::Range<usize>) {
        let size = self.dtype.bits() as usize / 8;
        self.data.release(range.start * size..range.end * size);
    }

    /// A copy of the elements as F32, which holds all three types exactly.
    pub fn to_f32(&self) -> Vec<f32> {
        if let Some(x) = self.bf16() {
            x.iter().map(|v| v.to_f32()).collect()
        } else if let Some(x) = self.f16() {
            x.iter().map(|v| v.to_f32()).collect()
        } else {
            self.data.elements::<f32>().to_vec()
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, (dtype, spelling, _)) in DTYPES.iter().enumerate() {
            assert_eq!(*dtype as usize, i, "{spelling}");
        }
    }
}
