//! `config.json`: the sizes of the text model.
//!
//! Two layouts exist: the published one with the text model in `text_config`, and the flat one of
//! text-only saves. A key that stands in both must have the same value in both. Sizes and numbers
//! have no defaults: a missing one is an error that names it. What says that a model is of this
//! kind may be missing, as some tools write files without it, and has then the value of all
//! published models: `model_type`, `hidden_act` (`silu`), `attn_output_gate` (true),
//! `attention_bias` (false), `rope_type` (`default`); any other value is refused. So may
//! `mtp_num_hidden_layers` (0), `tie_word_embeddings` (false, as in Transformers), `mrope_section`
//! (see `rope`: text does not depend on it), and one of `layer_types` and
//! `full_attention_interval`.

use std::path::Path;

use serde_json::{Map, Value};

use super::packed::{Kind, PackedFile};
use super::rope::Rope;
use crate::error::{Error, Result, shown};
use crate::files::{decode, excerpt, is_listed, read_text};
use crate::values::Values;

/// Published files have 3 to 4 kB.
pub(super) const MAX_CONFIG: u64 = 4 << 20;
/// Bounds against nonsense, far above every published size, so that products fit in 64 bits.
const MAX_SIZE: u64 = 1 << 24;
const MAX_HEADS: u64 = 1 << 14;
const MAX_LAYERS: u64 = 1 << 12;

/// How a layer mixes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Gated DeltaNet: causal convolution and a recurrent state (`linear_attention`).
    Linear,
    /// Gated softmax attention with a KV cache (`full_attention`).
    Full,
}

/// The sizes of a dense Qwen3.5 text model. Field names are those of `config.json`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Config {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    /// Width of an attention head.
    pub head_dim: usize,
    /// Leading dimensions of a head that are rotated: `head_dim * partial_rotary_factor`, even.
    pub rotary_dim: usize,
    pub rope_theta: f64,
    /// Frequencies that turn with time, height and width; they add up to `rotary_dim / 2`. For
    /// text the three positions are equal, so the split matters for images alone.
    pub mrope_section: [usize; 3],
    pub rms_norm_eps: f32,
    pub linear_num_key_heads: usize,
    /// A multiple of `linear_num_key_heads`.
    pub linear_num_value_heads: usize,
    pub linear_key_head_dim: usize,
    pub linear_value_head_dim: usize,
    pub linear_conv_kernel_dim: usize,
    /// One entry per layer.
    pub layer_kinds: Vec<LayerKind>,
    /// Whether the embedding is also the output matrix if the checkpoint stores no
    /// `lm_head.weight`; see [`Checkpoint::output_head`](super::Checkpoint::output_head).
    pub tie_word_embeddings: bool,
    pub max_position_embeddings: usize,
    /// Layers of the drafting head (`mtp.` tensors); they are not part of `layer_kinds`.
    pub mtp_num_hidden_layers: usize,
    /// The end ids of `config.json` (top level and `text_config`) and `generation_config.json`,
    /// ascending. May be empty; the tokenizer's own end token comes on top.
    pub eos_token_ids: Vec<u32>,
}

impl Config {
    /// Reads `config.json` and, if it is there, `generation_config.json` of a folder.
    pub fn from_dir(directory: &Path) -> Result<Config> {
        let path = directory.join("config.json");
        let text = read_text(&path, MAX_CONFIG)?;
        let mut config = parse(&text).map_err(|e| e.within(shown(&path)))?;
        let path = directory.join("generation_config.json");
        if is_listed(&path) {
            let text = read_text(&path, MAX_CONFIG)?;
            add_generation_ids(&mut config, &text).map_err(|e| e.within(shown(&path)))?;
        }
        Ok(config)
    }

    /// The same from a packed file.
    ///
    /// # Errors
    /// As [`Config::from_json`].
    pub fn from_packed(file: &PackedFile) -> Result<Config> {
        let config = file.need(Kind::Text, "config.json")?;
        Self::from_json(config, file.section(Kind::Text, "generation_config.json"))
            .map_err(|e| e.within(file.name()))
    }

    /// The same from the contents of the two files.
    pub fn from_json(config: &[u8], generation_config: Option<&[u8]>) -> Result<Config> {
        let mut parsed =
            text_of(config).and_then(|text| parse(&text)).map_err(|e| e.within("config.json"))?;
        if let Some(bytes) = generation_config {
            text_of(bytes)
                .and_then(|text| add_generation_ids(&mut parsed, &text))
                .map_err(|e| e.within("generation_config.json"))?;
        }
        Ok(parsed)
    }

    /// Width of all queries, and of all keys, of a linear layer.
    pub fn key_width(&self) -> usize {
        self.linear_num_key_heads * self.linear_key_head_dim
    }

    /// Width of all values of a linear layer.
    pub fn value_width(&self) -> usize {
        self.linear_num_value_heads * self.linear_value_head_dim
    }

    /// Channels of the convolution of a linear layer: queries, keys, values, in this order.
    pub fn conv_channels(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }

    pub(super) fn layers(&self) -> u64 {
        self.num_hidden_layers as u64
    }
}

/// The text of a file, which is no longer than one that is read from a folder may be.
fn text_of(bytes: &[u8]) -> Result<String> {
    if bytes.len() as u64 > MAX_CONFIG {
        let length = bytes.len();
        return Err(Error::format(format!("{length} bytes long, expected at most {MAX_CONFIG}")));
    }
    decode(bytes.to_vec())
}

fn parse(text: &str) -> Result<Config> {
    let root = object(text)?;
    let fields = Fields::new(&root)?;
    fields.refuse_other_models()?;

    let vocab_size = fields.size("vocab_size", MAX_SIZE)?;
    let num_hidden_layers = fields.size("num_hidden_layers", MAX_LAYERS)?;
    let num_attention_heads = fields.size("num_attention_heads", MAX_HEADS)?;
    let num_key_value_heads = fields.size("num_key_value_heads", MAX_HEADS)?;
    let head_dim = fields.size("head_dim", MAX_HEADS)?;
    let linear_num_key_heads = fields.size("linear_num_key_heads", MAX_HEADS)?;
    let linear_num_value_heads = fields.size("linear_num_value_heads", MAX_HEADS)?;
    fields.multiple(
        "num_attention_heads",
        num_attention_heads,
        "num_key_value_heads",
        num_key_value_heads,
    )?;
    fields.multiple(
        "linear_num_value_heads",
        linear_num_value_heads,
        "linear_num_key_heads",
        linear_num_key_heads,
    )?;
    let rope = Rope::read(&fields, head_dim)?;
    let mtp_num_hidden_layers = match fields.get("mtp_num_hidden_layers")? {
        Some(value) => whole("mtp_num_hidden_layers", value, 0, MAX_LAYERS)?,
        None => 0,
    };
    let linear_conv_kernel_dim = fields.size("linear_conv_kernel_dim", 64)?;
    if linear_conv_kernel_dim < 2 {
        return Err(Error::unsupported("linear_conv_kernel_dim is 1, expected at least 2"));
    }

    let mut eos_token_ids = Vec::new();
    for (_, section) in &fields.sections {
        collect_ids(section, vocab_size, &mut eos_token_ids)?;
    }
    eos_token_ids.sort_unstable();
    eos_token_ids.dedup();

    Ok(Config {
        vocab_size,
        hidden_size: fields.size("hidden_size", MAX_SIZE)?,
        intermediate_size: fields.size("intermediate_size", MAX_SIZE)?,
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads,
        head_dim,
        rotary_dim: rope.rotary_dim,
        rope_theta: rope.theta,
        mrope_section: rope.mrope_section,
        rms_norm_eps: epsilon(&fields)?,
        linear_num_key_heads,
        linear_num_value_heads,
        linear_key_head_dim: fields.size("linear_key_head_dim", MAX_HEADS)?,
        linear_value_head_dim: fields.size("linear_value_head_dim", MAX_HEADS)?,
        linear_conv_kernel_dim,
        layer_kinds: layer_kinds(&fields, num_hidden_layers)?,
        tie_word_embeddings: fields.tie_word_embeddings()?,
        max_position_embeddings: fields.size("max_position_embeddings", 1 << 30)?,
        mtp_num_hidden_layers,
        eos_token_ids,
    })
}

/// The layers from `layer_types`, or from `full_attention_interval`.
fn layer_kinds(fields: &Fields, layers: usize) -> Result<Vec<LayerKind>> {
    let by_interval = match fields.get("full_attention_interval")? {
        None => None,
        Some(value) => {
            let interval = whole("full_attention_interval", value, 1, MAX_LAYERS)?;
            let kind = |i: usize| match (i + 1) % interval {
                0 => LayerKind::Full,
                _ => LayerKind::Linear,
            };
            Some((interval, (0..layers).map(kind).collect::<Vec<_>>()))
        }
    };
    let Some(value) = fields.get("layer_types")? else {
        return by_interval.map(|(_, kinds)| kinds).ok_or_else(|| {
            Error::format("neither layer_types nor full_attention_interval is there")
        });
    };
    let Some(types) = value.as_array() else {
        return Err(unexpected("layer_types", "an array of strings", value));
    };
    if types.len() != layers {
        return Err(Error::format(format!(
            "layer_types has {} entries, but num_hidden_layers is {layers}",
            types.len()
        )));
    }
    let kinds = types
        .iter()
        .enumerate()
        .map(|(i, kind)| match kind.as_str() {
            Some("linear_attention") => Ok(LayerKind::Linear),
            Some("full_attention") => Ok(LayerKind::Full),
            Some(other) => Err(Error::unsupported(format!(
                "layer_types[{i}] is {}, expected linear_attention or full_attention",
                excerpt(other)
            ))),
            None => Err(unexpected(&format!("layer_types[{i}]"), "a string", kind)),
        })
        .collect::<Result<Vec<_>>>()?;
    if let Some((interval, other)) = by_interval
        && let Some(i) = (0..layers).find(|&i| kinds[i] != other[i])
    {
        return Err(Error::format(format!(
            "layer_types[{i}] and full_attention_interval {interval} contradict each other"
        )));
    }
    Ok(kinds)
}

fn epsilon(fields: &Fields) -> Result<f32> {
    let eps = fields.number("rms_norm_eps")?;
    let narrow = eps as f32;
    if narrow > 0.0 && narrow < 1.0 {
        return Ok(narrow);
    }
    Err(Error::format(format!("rms_norm_eps is {eps}, expected more than 0 and less than 1")))
}

/// The object that a file holds.
fn object(text: &str) -> Result<Map<String, Value>> {
    let bad = |what: &dyn std::fmt::Display| Error::format(format!("not a valid object: {what}"));
    match serde_json::from_str(text) {
        Ok(Values(Value::Object(object))) => Ok(object),
        Ok(Values(other)) => Err(bad(&show(&other))),
        Err(error) => Err(bad(&error)),
    }
}

fn add_generation_ids(config: &mut Config, text: &str) -> Result<()> {
    let root = object(text)?;
    collect_ids(&root, config.vocab_size, &mut config.eos_token_ids)?;
    config.eos_token_ids.sort_unstable();
    config.eos_token_ids.dedup();
    Ok(())
}

/// `eos_token_id`: absent, null, an id or a list of ids.
fn collect_ids(section: &Map<String, Value>, vocab: usize, out: &mut Vec<u32>) -> Result<()> {
    let ids = match section.get("eos_token_id") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(ids)) => ids.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    for id in ids {
        out.push(whole("eos_token_id", id, 0, vocab as u64 - 1)? as u32);
    }
    Ok(())
}

/// The object or objects in which the text model's keys stand.
pub(super) struct Fields<'a> {
    /// Name for messages and contents; `text_config` first if there is one, then the top level.
    pub sections: Vec<(&'static str, &'a Map<String, Value>)>,
}

impl<'a> Fields<'a> {
    fn new(root: &'a Map<String, Value>) -> Result<Self> {
        let mut sections = Vec::new();
        match root.get("text_config") {
            None | Some(Value::Null) => {}
            Some(Value::Object(text)) => sections.push(("text_config", text)),
            Some(other) => return Err(unexpected("text_config", "an object", other)),
        }
        sections.push(("the top level", root));
        Ok(Fields { sections })
    }

    /// The value of `key` (null counts as absent), which may not differ between the sections.
    pub(super) fn get(&self, key: &str) -> Result<Option<&'a Value>> {
        let mut found: Option<(&str, &Value)> = None;
        for (name, section) in &self.sections {
            let Some(value) = section.get(key).filter(|v| !v.is_null()) else { continue };
            match found {
                None => found = Some((name, value)),
                Some((first, other)) if other != value => {
                    return Err(Error::format(format!(
                        "{key} is {} in {first} and {} at {name}",
                        show(other),
                        show(value)
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(found.map(|(_, value)| value))
    }

    fn need(&self, key: &str) -> Result<&'a Value> {
        self.get(key)?.ok_or_else(|| Error::format(format!("{key} is missing")))
    }

    /// A size from 1 to `most`.
    fn size(&self, key: &str, most: u64) -> Result<usize> {
        whole(key, self.need(key)?, 1, most)
    }

    fn number(&self, key: &str) -> Result<f64> {
        let value = self.need(key)?;
        value.as_f64().ok_or_else(|| unexpected(key, "a number", value))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key)? {
            None => Ok(None),
            Some(value) => {
                value.as_bool().map(Some).ok_or_else(|| unexpected(key, "true or false", value))
            }
        }
    }

    fn multiple(&self, key: &str, value: usize, of: &str, unit: usize) -> Result<()> {
        if value.is_multiple_of(unit) {
            return Ok(());
        }
        Err(Error::format(format!("{key} is {value}, not a multiple of {of}, which is {unit}")))
    }

    /// As Transformers reads it: the top level counts if it has the key, else `text_config`;
    /// absent means false.
    fn tie_word_embeddings(&self) -> Result<bool> {
        let key = "tie_word_embeddings";
        for (_, section) in self.sections.iter().rev() {
            match section.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(tied)) => return Ok(*tied),
                Some(other) => return Err(unexpected(key, "true or false", other)),
            }
        }
        Ok(false)
    }

    /// Relatives of the model whose arithmetic differs.
    fn refuse_other_models(&self) -> Result<()> {
        for (name, section) in &self.sections {
            match section.get("model_type").map(|v| (v, v.as_str())) {
                None | Some((Value::Null, _)) | Some((_, Some("qwen3_5" | "qwen3_5_text"))) => {}
                Some((other, _)) => {
                    return Err(Error::unsupported(format!(
                        "model_type is {} at {name}, expected qwen3_5 or qwen3_5_text",
                        show(other)
                    )));
                }
            }
        }
        for key in ["quantization_config", "num_experts"] {
            if let Some(value) = self.get(key)?.filter(|v| v.as_u64() != Some(0)) {
                return Err(Error::unsupported(format!(
                    "{key} is {}: quantised and mixture-of-experts checkpoints are not read",
                    show(value)
                )));
            }
        }
        if self.flag("attn_output_gate")? == Some(false) {
            return Err(Error::unsupported("attn_output_gate is false, expected true"));
        }
        if self.flag("attention_bias")? == Some(true) {
            return Err(Error::unsupported("attention_bias is true, expected false"));
        }
        match self.get("hidden_act")? {
            Some(act) if act.as_str() != Some("silu") => {
                Err(Error::unsupported(format!("hidden_act is {}, expected silu", show(act))))
            }
            _ => Ok(()),
        }
    }
}

/// A whole number from `least` to `most`.
pub(super) fn whole(key: &str, value: &Value, least: u64, most: u64) -> Result<usize> {
    match value.as_u64() {
        Some(n) if (least..=most).contains(&n) => Ok(n as usize),
        _ => Err(unexpected(key, &format!("a whole number from {least} to {most}"), value)),
    }
}

pub(super) fn unexpected(key: &str, expected: &str, found: &Value) -> Error {
    Error::format(format!("{key} is {}, expected {expected}", show(found)))
}

/// A JSON value, cut to a readable length.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt(text),
        Value::Array(items) => format!("an array of {} values", items.len()),
        Value::Object(items) => format!("an object of {} values", items.len()),
        small => small.to_string(),
    }
}
