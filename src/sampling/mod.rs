//! Logits to a token.
