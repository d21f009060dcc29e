//! The names and shapes of the text model's tensors, and the prefixes that tools put in front.

use std::collections::BTreeMap;

use super::config::{Config, LayerKind};
use crate::error::{Error, Result};
use crate::files::list;

pub(super) const EMBEDDING: &str = "embed_tokens.weight";
pub(super) const HEAD: &str = "lm_head.weight";
const FINAL_NORM: &str = "norm.weight";

/// What a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Embedding, layers and final norm.
    Text,
    /// `lm_head.weight`.
    Head,
    /// `mtp.`, `visual.` and anything unknown.
    Other,
}

/// The prefix of a name, a chain of `model.` and `language_model.` such as
/// `model.language_model.`, and what the rest is.
pub(super) fn split_prefix(name: &str) -> (&str, Role) {
    let mut rest = name;
    while let Some(shorter) =
        rest.strip_prefix("model.").or_else(|| rest.strip_prefix("language_model."))
    {
        rest = shorter;
    }
    let role = if rest.starts_with("layers.") || rest == EMBEDDING || rest == FINAL_NORM {
        Role::Text
    } else if rest == HEAD {
        Role::Head
    } else {
        Role::Other
    };
    (&name[..name.len() - rest.len()], role)
}

/// The one prefix under which the text model lies.
pub(super) fn text_prefix<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<String> {
    let mut prefixes: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names.clone() {
        if let (prefix, Role::Text) = split_prefix(name) {
            *prefixes.entry(prefix).or_default() += 1;
        }
    }
    let mut found = prefixes.iter();
    match (found.next(), found.next()) {
        (Some((prefix, _)), None) => Ok((*prefix).to_owned()),
        (None, _) => {
            let mut examples: Vec<&str> = names.collect();
            examples.sort_unstable();
            Err(Error::format(format!(
                "no tensor of the text model is there under a known name (expected, for example, \
                 model.language_model.{EMBEDDING}); there is {}",
                if examples.is_empty() { "nothing".to_owned() } else { list(&examples) }
            )))
        }
        (Some(_), Some(_)) => {
            let each: Vec<String> =
                prefixes.iter().map(|(p, n)| format!("\"{p}\" ({n})")).collect();
            Err(Error::format(format!(
                "tensors of the text model lie under more than one prefix, which (how many): {}",
                list(&each)
            )))
        }
    }
}

/// The layer of `layers.N.…`, without prefix.
pub(super) fn layer_of(name: &str) -> Option<u64> {
    name.strip_prefix("layers.")?.split('.').next()?.parse().ok()
}

/// Whether `name`, without prefix and none of [`text_tensors`], would have its part in what the
/// text model computes: a bias, a scale, an adapter of one of its modules.
pub(super) fn changes_results(name: &str) -> bool {
    // Some tools write out the frequencies of RoPE, which follow from `config.json`, or with which
    // scales other engines store keys and values.
    let known = ["rotary_emb.inv_freq", ".k_scale", ".v_scale"];
    let is_known = known.iter().any(|end| name.ends_with(end));
    let modules = ["layers.", "embed_tokens.", "norm.", "lm_head."];
    !is_known && modules.iter().any(|module| name.starts_with(module))
}

/// Whether a tensor with shape `found` can be read as `expected`.
pub(super) fn same_shape(name: &str, found: &[usize], expected: &[usize]) -> bool {
    // A depthwise convolution has one input channel per group; some tools drop that dimension.
    let squeezed = |shape: &[usize]| match *shape {
        [channels, 1, taps] => Some([channels, taps]),
        [channels, taps] => Some([channels, taps]),
        _ => None,
    };
    found == expected
        || (name.ends_with("conv1d.weight")
            && squeezed(found).is_some_and(|f| squeezed(expected) == Some(f)))
}

/// Every tensor of the text model with its shape, without prefix. The head is among them unless
/// it is tied and not stored.
pub(super) fn text_tensors(c: &Config, has_head: bool) -> Vec<(String, Vec<usize>)> {
    let hidden = c.hidden_size;
    let mut out = vec![
        (EMBEDDING.to_owned(), vec![c.vocab_size, hidden]),
        (FINAL_NORM.to_owned(), vec![hidden]),
    ];
    if has_head || !c.tie_word_embeddings {
        out.push((HEAD.to_owned(), vec![c.vocab_size, hidden]));
    }
    for (i, kind) in c.layer_kinds.iter().enumerate() {
        let mut add = |name: &str, shape: &[usize]| {
            out.push((format!("layers.{i}.{name}"), shape.to_vec()));
        };
        add("input_layernorm.weight", &[hidden]);
        match kind {
            LayerKind::Linear => {
                let (channels, value) = (c.conv_channels(), c.value_width());
                let heads = c.linear_num_value_heads;
                add("linear_attn.in_proj_qkv.weight", &[channels, hidden]);
                add("linear_attn.in_proj_z.weight", &[value, hidden]);
                add("linear_attn.in_proj_a.weight", &[heads, hidden]);
                add("linear_attn.in_proj_b.weight", &[heads, hidden]);
                add("linear_attn.conv1d.weight", &[channels, 1, c.linear_conv_kernel_dim]);
                add("linear_attn.A_log", &[heads]);
                add("linear_attn.dt_bias", &[heads]);
                add("linear_attn.norm.weight", &[c.linear_value_head_dim]);
                add("linear_attn.out_proj.weight", &[hidden, value]);
            }
            LayerKind::Full => {
                let query = c.num_attention_heads * c.head_dim;
                let kv = c.num_key_value_heads * c.head_dim;
                add("self_attn.q_proj.weight", &[2 * query, hidden]);
                add("self_attn.k_proj.weight", &[kv, hidden]);
                add("self_attn.v_proj.weight", &[kv, hidden]);
                add("self_attn.o_proj.weight", &[hidden, query]);
                add("self_attn.q_norm.weight", &[c.head_dim]);
                add("self_attn.k_norm.weight", &[c.head_dim]);
            }
        }
        add("post_attention_layernorm.weight", &[hidden]);
        add("mlp.gate_proj.weight", &[c.intermediate_size, hidden]);
        add("mlp.up_proj.weight", &[c.intermediate_size, hidden]);
        add("mlp.down_proj.weight", &[hidden, c.intermediate_size]);
    }
    out
}
