//! Where the numbers of a quantized matrix lie. The same bytes serve every instruction set,
//! in memory and in a packed file.
//!
//! A matrix `[rows, cols]` is cut into tiles of 16 rows, and a row into groups of 32
//! columns. Each row of each group has one scale, an IEEE half; a weight is
//! `(stored - offset) * scale`:
//!
//! | format | stored | offset | bits per weight |
//! |---|---|---|---|
//! | [`TileFormat::Int8`] | 0..=255 | 128 | 8.5 |
//! | [`TileFormat::Int4`] | 0..=15 | 8 | 4.5 |
//!
//! Tiles follow one another without gaps. Within a tile of `G = ceil(cols / 32)` groups, two
//! groups follow their scales, so that who reads a tile reads from front to back, which the
//! memory needs for its full speed (with all scales in front it gave a third less):
//!
//! ```text
//! for each two groups, or the last one alone:
//!     scales   2 groups x 16 rows x 2 bytes, little-endian; zeros where there is one group
//!     weights  1 or 2 groups x 512 bytes (INT8) or 256 bytes (INT4)
//! ```
//!
//! The weights of a group are lines of 64 bytes: 16 rows by 4 neighbouring columns, row
//! after row. With [`TileFormat::Int8`], line `j` of 8 holds the columns `4j..4j + 4` of the
//! group. With [`TileFormat::Int4`], line `j` of 4 holds the columns `4j..4j + 4` in its low
//! nibbles and the columns `16 + 4j..16 + 4j + 4` in its high ones. So one instruction
//! multiplies four inputs, the same for all rows, with a line and adds to 16 sums.
//!
//! Rows beyond `rows` have scale 0; columns beyond `cols` hold the offset, so that they are
//! worth 0. Sizes are multiples of 64 bytes: a matrix that begins at a cache line has each
//! of its lines in one cache line. (Kernels need no alignment; it is for speed.)

use half::f16;

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;
/// Columns that share a scale.
pub const GROUP: usize = 32;
/// Bytes of a line: [`TILE_ROWS`] rows by 4 columns.
pub const LINE: usize = 64;

/// How the weights of a quantized matrix are stored; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileFormat {
    /// One byte per weight, 8.5 bits with the scales.
    Int8,
    /// Half a byte per weight, 4.5 bits with the scales.
    Int4,
}

impl TileFormat {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Int8, Self::Int4];

    /// The stored number that stands for 0.
    pub const fn offset(self) -> i32 {
        match self {
            Self::Int8 => 128,
            Self::Int4 => 8,
        }
    }

    /// Bytes of the weights of one group of a tile.
    pub const fn group_bytes(self) -> usize {
        match self {
            Self::Int8 => TILE_ROWS * GROUP,
            Self::Int4 => TILE_ROWS * GROUP / 2,
        }
    }

    /// Where in a tile the scales of group `group` begin: an IEEE half for each row.
    pub const fn scales_at(self, group: usize) -> usize {
        group / 2 * (LINE + 2 * self.group_bytes()) + group % 2 * (LINE / 2)
    }

    /// Where in a tile the weights of group `group` begin.
    pub const fn weights_at(self, group: usize) -> usize {
        group / 2 * (LINE + 2 * self.group_bytes()) + LINE + group % 2 * self.group_bytes()
    }

    /// Bytes of a tile.
    pub const fn tile_bytes(self, cols: usize) -> usize {
        let groups = cols.div_ceil(GROUP);
        groups.div_ceil(2) * LINE + groups * self.group_bytes()
    }

    /// Bytes of a matrix, a multiple of 64; `None` if that is more than a `usize` can say.
    pub fn bytes(self, rows: usize, cols: usize) -> Option<usize> {
        // A tile has more bytes than columns, but not eighteen times as many.
        cols.checked_mul(18)?.checked_add(2 * LINE)?;
        rows.div_ceil(TILE_ROWS).checked_mul(self.tile_bytes(cols))
    }

    /// Writes row `row` of a matrix of `cols` columns as `f32`, which is what its bytes
    /// mean. `out` has `cols` elements.
    ///
    /// # Panics
    /// If `tiles` has no such row or `out` has another length.
    #[inline(always)]
    pub fn widen_row(self, tiles: &[u8], cols: usize, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), cols, "widen_row: {cols} columns");
        let tile = &tiles[row / TILE_ROWS * self.tile_bytes(cols)..][..self.tile_bytes(cols)];
        let row = row % TILE_ROWS;
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let at = self.scales_at(group) + 2 * row;
            let scale = f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32_const();
            let weights = &tile[self.weights_at(group)..][..self.group_bytes()];
            let mut stored = [0; GROUP];
            for (j, line) in weights.chunks_exact(LINE).enumerate() {
                let quad = &line[4 * row..4 * row + 4];
                for i in 0..4 {
                    match self {
                        Self::Int8 => stored[4 * j + i] = quad[i],
                        Self::Int4 => {
                            stored[4 * j + i] = quad[i] & 15;
                            stored[16 + 4 * j + i] = quad[i] >> 4;
                        }
                    }
                }
            }
            for (out, stored) in out.iter_mut().zip(stored) {
                *out = (i32::from(stored) - self.offset()) as f32 * scale;
            }
        }
    }

    /// The stored number in row `row` and column `col` of a group: the definition that tests
    /// hold everything else against.
    pub fn stored(self, weights: &[u8], row: usize, col: usize) -> u8 {
        let place = row * 4 + col % 4;
        match self {
            Self::Int8 => weights[col / 4 * LINE + place],
            Self::Int4 => {
                let byte = weights[col % 16 / 4 * LINE + place];
                if col < 16 { byte & 15 } else { byte >> 4 }
            }
        }
    }
}
