//! Memory that is read soon behind some products, asked for while they are computed.
//!
//! Products of several tokens are limited by arithmetic, so that the memory has time left beside
//! them; what reads the recurrent states of several sequences is limited by memory. So the tasks
//! of the former ask for the states, a few lines with each group of weights, which then wait in
//! the third-level cache: two cores of the machine this was written on (Zen 4) read 8 MB from
//! there at 100 GB/s, also with 5 MB of other memory in between, and from memory at 37.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kernels::quantized::layout::LINE;

/// Runs of memory that will be read, and how much is computed before.
pub struct Ahead {
    /// Address and lines. Nobody reads through an address: it may be one of nothing.
    runs: Vec<(usize, usize)>,
    /// Bytes of the weights that are read before.
    before: usize,
    /// How many of them were read.
    read: AtomicUsize,
}

impl Ahead {
    /// `runs` will be read, in this order by the threads of a pool as they number the tasks of
    /// a region, when `before` bytes of weights were read.
    pub fn new<'r>(runs: impl Iterator<Item = &'r [f32]>, before: usize) -> Self {
        let runs = runs.map(|run| (run.as_ptr().addr(), size_of_val(run) / LINE)).collect();
        Self { runs, before: before.max(1), read: AtomicUsize::new(0) }
    }

    /// What a region that reads `bytes` of weights is to ask for: as large a part of each run.
    pub(super) fn take(&self, bytes: usize) -> Asks {
        let from = self.read.fetch_add(bytes, Ordering::Relaxed).min(self.before);
        let to = (from + bytes).min(self.before);
        let part = |&(address, lines): &(usize, usize)| {
            let at = |bytes: usize| lines * bytes / self.before;
            (address + at(from) * LINE, at(to) - at(from))
        };
        let runs: Vec<_> = self.runs.iter().map(part).collect();
        Asks { lines: runs.iter().map(|(_, lines)| lines).sum(), runs }
    }
}

/// What a region asks for.
pub(super) struct Asks {
    /// Address and lines.
    runs: Vec<(usize, usize)>,
    /// The lines of all.
    lines: usize,
}

impl Asks {
    /// What the tasks `range` of `tasks` ask for.
    #[inline]
    pub fn part(&self, range: Range<usize>, tasks: usize) -> Part<'_> {
        let all = Part { runs: &self.runs, start: 0, end: self.lines };
        all.part(range.start, range.len(), tasks)
    }
}

/// Some of the lines of [`Asks`], counted through all runs.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    runs: &'a [(usize, usize)],
    start: usize,
    end: usize,
}

impl Part<'_> {
    /// The lines for the parts `n..n + count` of `of` of the work.
    #[inline]
    pub fn part(self, n: usize, count: usize, of: usize) -> Self {
        let at = |n: usize| self.start + (self.end - self.start) * n / of;
        Self { start: at(n), end: at(n + count), ..self }
    }

    /// Where the lines begin, and how many they are; those that do not lie behind the first one
    /// are left out.
    #[inline]
    pub fn lines(self) -> (*const u8, usize) {
        let mut start = self.start;
        for &(address, lines) in self.runs {
            if start < lines {
                let count = (self.end - self.start).min(lines - start);
                return (std::ptr::without_provenance(address + start * LINE), count);
            }
            start -= lines;
        }
        (std::ptr::null(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the work is cut, each line is asked for once, but for a few at the ends of runs.
    #[test]
    fn every_line_is_asked_for() {
        let memory = vec![0.0f32; 16 * 1000];
        let (first, second) = memory.split_at(16 * 700);
        let ahead = Ahead::new([first, second].into_iter(), 900);
        let mut seen = vec![0; 1000];
        for bytes in [300, 450, 200, 77] {
            let asks = ahead.take(bytes);
            for tasks in [0..1, 1..2, 2..6, 6..7] {
                let blocks = 3 * tasks.len();
                let asks = asks.part(tasks, 7);
                for block in 0..blocks {
                    let (at, lines) = asks.part(block, 1, blocks).lines();
                    if lines > 0 {
                        let line = (at.addr() - first.as_ptr().addr()) / LINE;
                        seen[line..][..lines].iter_mut().for_each(|n| *n += 1);
                    }
                }
            }
        }
        assert!(seen.iter().all(|&n| n <= 1));
        // A block at the end of a run does not go on with the next one.
        assert!(seen.iter().sum::<usize>() > 900, "{}", seen.iter().sum::<usize>());
    }
}
