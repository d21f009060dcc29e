//! Which rows of a matrix a task computes.
//!
//! Memory answers one core much faster when the core reads at several places at once: one
//! thread of the machine this was written on (Zen 4) read 15 GB/s from one place, 25 to 27 from
//! four places at least 256 KiB apart, and 30 of them in large pages. For one token, which is
//! all memory, a task therefore takes rows of four places that are a quarter of the matrix
//! apart, and the next task goes on at each of them; or of two places of each of two matrices
//! that are read together. The core's own prefetchers need a while at a new place: two that were
//! read by turns, 9 KB of each, came at 26 GB/s instead of 35.

use std::ops::Range;

/// Places that are read at once.
pub(super) const STREAMS: usize = 4;
/// Rows of a quarter are a multiple of this: of a tile of quantized weights, and of the blocks
/// of every instruction set.
const UNIT: usize = 16;
/// Of each of two matrices that are read together.
pub(super) const STREAMS_OF_TWO: usize = STREAMS / 2;
/// How far ahead of its use a weight is asked for at each of the places, in bytes.
pub(super) const AHEAD: usize = 1 << 10;

/// Rows `first + n * apart .. first + n * apart + count` for `n` in `0..many`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    pub first: usize,
    /// Rows of a run.
    pub count: usize,
    /// 1, [`STREAMS`], or [`STREAMS_OF_TWO`].
    pub many: usize,
    /// Rows from one run to the next.
    pub apart: usize,
}

impl Runs {
    /// Rows of all runs.
    pub fn len(&self) -> usize {
        self.many * self.count
    }

    /// Run `n`.
    pub fn run(&self, n: usize) -> Range<usize> {
        let first = self.first + n * self.apart;
        first..first + self.count
    }

    /// The rows where there is one run.
    pub fn as_one(&self) -> Range<usize> {
        debug_assert_eq!(self.many, 1);
        self.run(0)
    }
}

/// How the rows of a matrix are shared among tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    rows: usize,
    /// Rows of a run that tasks take from each part, of those they have.
    step: usize,
    /// Parts that are read at once.
    many: usize,
    /// Rows from one part to the next; 0 where rows are taken one after the other.
    apart: usize,
}

impl Share {
    /// Neighbouring rows, `step` for a task.
    pub fn whole(rows: usize, step: usize) -> Self {
        Self { rows, step, many: 1, apart: 0 }
    }

    /// About `step` rows for a task, from `many` places, which are [`STREAMS`] or
    /// [`STREAMS_OF_TWO`]; what those do not divide comes last.
    pub fn in_runs(rows: usize, step: usize, many: usize) -> Self {
        let apart = rows / many / UNIT * UNIT;
        if apart == 0 {
            return Self::whole(rows, step);
        }
        Self { rows, step: (step / many).next_multiple_of(UNIT), many, apart }
    }

    /// Tasks with runs, and all tasks.
    fn split(&self) -> (usize, usize) {
        let of_runs = self.apart.div_ceil(self.step);
        (of_runs, of_runs + (self.rows - self.many * self.apart).div_ceil(self.step))
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.split().1
    }

    /// The rows of the first of the tasks `tasks`, together with those of as many that follow
    /// as lie behind them; and the tasks that are left.
    pub fn runs(&self, tasks: Range<usize>) -> (Runs, Range<usize>) {
        let (of_runs, all) = self.split();
        let Self { many, apart, .. } = *self;
        if tasks.start < of_runs {
            let end = tasks.end.min(of_runs);
            let first = tasks.start * self.step;
            let count = apart.min(end * self.step) - first;
            return (Runs { first, count, many, apart }, end..tasks.end);
        }
        let end = tasks.end.min(all);
        let at = |task: usize| many * apart + (task - of_runs) * self.step;
        let first = at(tasks.start);
        let count = self.rows.min(at(end)) - first;
        (Runs { first, count, many: 1, apart: 0 }, end..tasks.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_belongs_to_one_task() {
        for rows in (0..300).chain([1023, 1024, 3584, 6144, 248_320]) {
            for step in [8, 16, 48, 256] {
                let in_runs = [STREAMS, STREAMS_OF_TWO].map(|n| Share::in_runs(rows, step, n));
                for share in [Share::whole(rows, step)].into_iter().chain(in_runs) {
                    for joined in [1, 3, 1000] {
                        let mut seen = vec![0; rows];
                        for first in (0..share.tasks()).step_by(joined) {
                            let mut left = first..share.tasks().min(first + joined);
                            while !left.is_empty() {
                                let runs;
                                (runs, left) = share.runs(left);
                                assert!(runs.count > 0);
                                assert!(runs.many == 1 || runs.many == share.many);
                                assert!(runs.many == 1 || runs.count.is_multiple_of(UNIT));
                                for run in 0..runs.many {
                                    seen[runs.run(run)].iter_mut().for_each(|n| *n += 1);
                                }
                            }
                        }
                        assert!(
                            seen.iter().all(|&n| n == 1),
                            "{rows} rows, {step} a task, {joined} in one: {share:?}"
                        );
                    }
                }
            }
        }
    }
}
