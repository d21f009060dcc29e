//! The network: weights, state and the forward pass.
//!
//! Read [`decoder`] first; it is the whole network from token ids to logits, and calls one
//! file per kind of block:
//!
//! | file | formula (after the published Transformers implementation of Qwen3.5) |
//! |---|---|
//! | [`decoder`] | x = embed(ids); per layer x += mixer(norm x), x += mlp(norm x); logits = head(norm x) |
//! | [`deltanet`] | linear attention: causal convolution, gated delta rule, gated norm |
//! | [`attention`] | softmax attention over the KV cache, with an output gate |
//! | `head` | all logits, or those that can be chosen, by part of the bits of the weights |
//! | [`mlp`] | down(silu(gate h) * up h) |
//! | [`rope`] | rotary positions |
//! | `recurrent` | what the linear layers remember |
//! | [`batch`] | one token of each of several sequences in one pass |
//! | [`pass`] | the same pass made in steps, for callers with little time |
//! | [`rows`] | all rows of a pass, for judging text |
//!
//! Three structs hold everything: [`weights::NetworkWeights`] (read only, shared),
//! [`state::State`] (one sequence), [`workspace::Workspace`] (scratch of one pass).
//! A pass is a transaction: it reads the committed state and writes pending copies in the
//! workspace, so a cancelled or failed pass changes nothing.

pub mod attention;
pub mod batch;
pub mod decoder;
pub mod deltanet;
mod head;
pub mod loader;
pub mod mlp;
pub mod pass;
pub mod prefix_cache;
mod recurrent;
pub mod rope;
pub mod rows;
pub mod sizes;
pub mod state;
pub mod weights;
pub mod workspace;

pub use decoder::Network;
pub use head::{Choice, HeadCounts};
pub use loader::{Loader, Progress, WeightFormat, loaded_bytes};
pub use state::State;
pub use workspace::Workspace;
