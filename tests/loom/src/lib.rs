//! The library's own sources of what threads do with each other, over loom's atomics.
//!
//! | of the library | here |
//! |---|---|
//! | `pool::region`, `kernels::cancel`, `session::cancel`, `error` | the same files |
//! | `pool::sync` | loom's atomics; loom's cell, which finds every race on the region |
//! | `pool::futex` | a lock and conditions, as the kernel's queue of sleepers |
//! | `pool::spin` | no time at all: whoever would spin sleeps |
#![cfg(test)]
#![allow(dead_code)]

#[path = "../../../src/error.rs"]
mod error;
use error::{Error, ErrorKind, Result};

mod pool {
    mod futex;
    #[path = "../../../../src/pool/region.rs"]
    pub(crate) mod region;
    mod spin;
    pub(crate) mod sync;
}

mod kernels {
    pub use crate::flag::Cancel;
}
#[path = "../../../src/kernels/cancel.rs"]
mod flag;

#[path = "../../../src/session/cancel.rs"]
mod cancel;
mod models;
