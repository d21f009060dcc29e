//! Memory that a thread keeps between tasks, so that computing allocates nothing.

use std::cell::RefCell;

use crate::kernels::simd::LANES;

/// One cache line of sixteen values.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line(pub [f32; LANES]);

/// Grows to what the largest task needed, some 300 KiB.
#[derive(Default)]
pub(super) struct Scratch {
    panel: Vec<Line>,
    sums: Vec<f32>,
    /// Rows of quantized weights, widened.
    wide: Vec<f32>,
}

impl Scratch {
    /// `lines` lines for a panel and `sums` values for sums, with whatever they held before.
    ///
    /// The third part is for [`widen_tiles`](super::widen_tiles), which makes it as long as
    /// it needs.
    #[inline]
    pub fn parts(&mut self, lines: usize, sums: usize) -> (&mut [Line], &mut [f32], &mut Vec<f32>) {
        if self.panel.len() < lines {
            self.panel.resize(lines, Line([0.0; LANES]));
        }
        if self.sums.len() < sums {
            self.sums.resize(sums, 0.0);
        }
        (&mut self.panel[..lines], &mut self.sums[..sums], &mut self.wide)
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Calls `f` with this thread's scratch memory.
pub(super) fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(f)
}
