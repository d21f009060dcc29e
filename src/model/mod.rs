//! The network: weights, state and the forward pass.
