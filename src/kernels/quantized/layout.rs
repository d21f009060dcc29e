//! Where the numbers of a quantized matrix lie. The same bytes serve every instruction set,
//! in memory and in a packed file.
//!
//! A matrix `[rows, cols]` is cut into tiles of 16 rows, and a row into groups of 32
//! columns. Each row of each group has one scale, an IEEE half; a weight is
//! `(stored - offset) * scale`:
//!
//! | format | stored | offset | bits per weight |
//! |---|---|---|---|
//! | [`TileFormat::Int8`], [`TileFormat::Int8Planes`] | 0..=255 | 128 | 8.5 |
//! | [`TileFormat::Int4`], [`TileFormat::Int4Planes`] | 0..=15 | 8 | 4.5 |
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
//! # Two planes
//!
//! The output matrix is a third of all weights, and a choice needs exact products of its best
//! rows only. So it has its tiles in two planes, one behind the other, of the same size
//! together: the first has the scales and the upper half of the bits of every weight, the
//! second the lower half. Who reads the first alone knows each weight to within half a step of
//! its upper bits (see [`upper_bounds`](crate::kernels::upper_bounds)); both together are the
//! same numbers as in one plane.
//!
//! ```text
//! for each tile: scales and weights as above, of 1 or 2 groups x 256 bytes (INT8) or 128 (INT4)
//! for each tile: the lower bits, groups x 256 bytes (INT8) or 128 bytes (INT4)
//! ```
//!
//! | format | in the first plane | in the second |
//! |---|---|---|
//! | [`TileFormat::Int8Planes`] | `stored >> 4`, as INT4 | `stored & 15`, as INT4 |
//! | [`TileFormat::Int4Planes`] | `stored >> 2` | `stored & 3` |
//!
//! Numbers of two bits lie in lines of 64 bytes as well, 16 rows by 4 bytes: line `j` of 2 holds
//! the columns `8j..8j + 4` of the group in bits 0 and 1, `8j + 4..8j + 8` in bits 2 and 3, and
//! those 16 columns further on in bits 4 and 5 and in bits 6 and 7.
//!
//! # Edges
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
    /// The same numbers as [`TileFormat::Int8`], upper and lower halves apart.
    Int8Planes,
    /// The same numbers as [`TileFormat::Int4`], upper and lower halves apart.
    Int4Planes,
}

impl TileFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Int8, Self::Int4, Self::Int8Planes, Self::Int4Planes];
    /// Those of one plane.
    pub const WHOLE: [Self; 2] = [Self::Int8, Self::Int4];

    /// Whether it has two planes.
    pub const fn is_planes(self) -> bool {
        matches!(self, Self::Int8Planes | Self::Int4Planes)
    }

    /// The same numbers in one plane.
    pub const fn whole(self) -> Self {
        match self {
            Self::Int8 | Self::Int8Planes => Self::Int8,
            Self::Int4 | Self::Int4Planes => Self::Int4,
        }
    }

    /// The same numbers in two planes.
    pub const fn planes(self) -> Self {
        match self {
            Self::Int8 | Self::Int8Planes => Self::Int8Planes,
            Self::Int4 | Self::Int4Planes => Self::Int4Planes,
        }
    }

    /// Whether numbers have 8 bits.
    pub const fn is_int8(self) -> bool {
        matches!(self, Self::Int8 | Self::Int8Planes)
    }

    /// How many groups of inputs share a scale where products are made of inputs in INT8. What
    /// rounding the inputs adds is most of the error with INT8 weights, and next to nothing
    /// beside that of INT4; fewer scales are fewer multiplications.
    pub const fn input_groups(self) -> usize {
        if self.is_int8() { 1 } else { 4 }
    }

    /// The stored number that stands for 0.
    pub const fn offset(self) -> i32 {
        if self.is_int8() { 128 } else { 8 }
    }

    /// Bytes of the weights of one group of a tile, in each plane.
    pub const fn group_bytes(self) -> usize {
        match self {
            Self::Int8 => TILE_ROWS * GROUP,
            Self::Int4 | Self::Int8Planes => TILE_ROWS * GROUP / 2,
            Self::Int4Planes => TILE_ROWS * GROUP / 4,
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

    /// Bytes of a tile, in the first plane where there are two.
    pub const fn tile_bytes(self, cols: usize) -> usize {
        let groups = cols.div_ceil(GROUP);
        groups.div_ceil(2) * LINE + groups * self.group_bytes()
    }

    /// Bytes of a tile in the second plane; 0 where there is none.
    pub const fn rest_bytes(self, cols: usize) -> usize {
        if self.is_planes() { cols.div_ceil(GROUP) * self.group_bytes() } else { 0 }
    }

    /// Bytes of a matrix, a multiple of 64; `None` if that is more than a `usize` can say.
    pub fn bytes(self, rows: usize, cols: usize) -> Option<usize> {
        // A tile has more bytes than columns, but not eighteen times as many.
        cols.checked_mul(18)?.checked_add(2 * LINE)?;
        rows.div_ceil(TILE_ROWS).checked_mul(self.tile_bytes(cols) + self.rest_bytes(cols))
    }

    /// The two planes of a matrix of `cols` columns, the second empty where there is one.
    #[inline(always)]
    pub fn parts(self, tiles: &[u8], cols: usize) -> (&[u8], &[u8]) {
        let (tile, rest) = (self.tile_bytes(cols), self.rest_bytes(cols));
        tiles.split_at(tiles.len() / (tile + rest) * tile)
    }

    /// Tile `index` of a matrix of `cols` columns, in each of its planes.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub fn tile(self, tiles: &[u8], cols: usize, index: usize) -> (&[u8], &[u8]) {
        let (tile, rest) = (self.tile_bytes(cols), self.rest_bytes(cols));
        let (first, second) = self.parts(tiles, cols);
        (&first[index * tile..][..tile], &second[index * rest..][..rest])
    }

    /// Writes row `row` of a matrix of `cols` columns as `f32`, which is what its bytes
    /// mean. `out` has `cols` elements.
    ///
    /// # Panics
    /// If `tiles` has no such row or `out` has another length.
    #[inline(always)]
    pub fn widen_row(self, tiles: &[u8], cols: usize, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), cols, "widen_row: {cols} columns");
        let (tile, rest) = self.tile(tiles, cols, row / TILE_ROWS);
        let row = row % TILE_ROWS;
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let at = self.scales_at(group) + 2 * row;
            let scale = f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32_const();
            let weights = &tile[self.weights_at(group)..][..self.group_bytes()];
            let mut stored = [0; GROUP];
            for (j, line) in weights.chunks_exact(LINE).enumerate() {
                let quad = &line[4 * row..4 * row + 4];
                let low = match self.is_planes() {
                    true => &rest[group * self.group_bytes() + j * LINE + 4 * row..][..4],
                    false => quad,
                };
                for i in 0..4 {
                    match self {
                        Self::Int8 => stored[4 * j + i] = quad[i],
                        Self::Int4 => {
                            stored[4 * j + i] = quad[i] & 15;
                            stored[16 + 4 * j + i] = quad[i] >> 4;
                        }
                        Self::Int8Planes => {
                            let both = join8(quad[i], low[i]);
                            stored[4 * j + i] = both[0];
                            stored[16 + 4 * j + i] = both[1];
                        }
                        Self::Int4Planes => {
                            for (n, both) in join4(quad[i], low[i]).into_iter().enumerate() {
                                stored[8 * j + 4 * n + i] = both & 15;
                                stored[16 + 8 * j + 4 * n + i] = both >> 4;
                            }
                        }
                    }
                }
            }
            for (out, stored) in out.iter_mut().zip(stored) {
                *out = (i32::from(stored) - self.offset()) as f32 * scale;
            }
        }
    }

    /// The stored number in row `row` and column `col` of a group, whose bytes in the planes
    /// are these: the definition that tests hold everything else against.
    pub fn stored(self, weights: &[u8], rest: &[u8], row: usize, col: usize) -> u8 {
        let place = row * 4 + col % 4;
        let half = col % 16 / 4 * LINE + place;
        let nibble = |byte: u8| if col < 16 { byte & 15 } else { byte >> 4 };
        let quarter = col % 16 / 8 * LINE + place;
        let two_bits = |byte: u8| byte >> (col / 16 * 4 + col % 8 / 4 * 2) & 3;
        match self {
            Self::Int8 => weights[col / 4 * LINE + place],
            Self::Int4 => nibble(weights[half]),
            Self::Int8Planes => nibble(weights[half]) << 4 | nibble(rest[half]),
            Self::Int4Planes => two_bits(weights[quarter]) << 2 | two_bits(rest[quarter]),
        }
    }
}

/// From a byte of each plane of [`TileFormat::Int8Planes`], the two numbers of
/// [`TileFormat::Int8`]: of a line `j` and of the line `j + 4`.
#[inline(always)]
pub(crate) const fn join8(first: u8, rest: u8) -> [u8; 2] {
    [first << 4 | rest & 15, first & 0xf0 | rest >> 4]
}

/// From a byte of each plane of [`TileFormat::Int4Planes`], the two bytes of
/// [`TileFormat::Int4`]: of the lines `2 j` and `2 j + 1`.
#[inline(always)]
pub(crate) const fn join4(first: u8, rest: u8) -> [u8; 2] {
    [(first & 0x33) << 2 | rest & 0x33, first & 0xcc | rest >> 2 & 0x33]
}
