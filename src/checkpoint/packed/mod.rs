#![doc = include_str!("../../../docs/packed-format.md")]

mod checksum;
mod entry;
mod open;
mod verify;
mod write;

pub use checksum::{Checksum, checksum};
pub use entry::{Element, Kind};
pub use open::PackedFile;
pub(super) use open::resembles;
pub use verify::verify;
pub use write::{Header, Writer};

/// The first bytes of every packed file.
pub const MAGIC: [u8; 8] = *b"\x89QWP35\r\n";
/// The version that is written and read. Versions 1, which had the scales of a tile in front of
/// its weights, and 2, which had the output matrix in one plane, were never released.
pub const VERSION: u32 = 3;
const HEADER: usize = 128;
const ENTRY: usize = 96;
/// Where a section may begin, and where one of [`LARGE`] bytes or more must.
const ALIGNMENT: usize = 64;
const PAGE: usize = 4096;
/// From this size on weights are not read when a file is opened.
const LARGE: usize = 1 << 16;
/// Bounds against nonsense; the 27B model has some 850 sections.
const MAX_SECTIONS: usize = 1 << 16;
const MAX_NAME: usize = 256;

/// What the position of a section must be a multiple of.
fn alignment_of(length: usize) -> usize {
    if length >= LARGE { PAGE } else { ALIGNMENT }
}
