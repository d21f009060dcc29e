//! Synthetic checkpoints: real names, shapes, types and file layout, seeded random weights.
//!
//! Every weight is a function of the tensor's published name, its index and a seed, so that any
//! program in any language can make the same checkpoint, or one tensor of it, without sharing
//! data. tests/reference/synthetic.py writes the same bytes:
//!
//! ```text
//! h     = fnv1a64(name) ^ seed
//! bits  = splitmix64(h + (i + 1) * 0x9E3779B97F4A7C15)      the finalizer alone, wrapping
//! u     = (bits >> 40) * 2^-24                              in [0, 1), exact in f32
//! value = offset + scale * (2 * u - 1)                      f32, in this order, no FMA
//! ```
//!
//! `value` is rounded to the tensor's type (to nearest, ties to even). Scale and offset depend on
//! the kind of tensor, see [`scale_and_offset`].
#![allow(dead_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use qwen35::checkpoint::Dtype;
use serde_json::{Value, json};

/// The published prefix of the text model; names with it are what the weights depend on.
pub const PREFIX: &str = "model.language_model.";

/// Which element types the weights get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// BF16, but F32 for `A_log` and `linear_attn.norm.weight`.
    Published,
    /// One type for all.
    All(Dtype),
    /// BF16, F16 and F32 taking turns over the names in order.
    Mixed,
}

/// A checkpoint to make.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Written as `config.json`; the sizes are read from it. Nested or flat.
    pub config: Value,
    pub seed: u64,
    pub types: Types,
    /// Whether the drafting head's tensors (`mtp.`) are written.
    pub mtp: bool,
}

impl Spec {
    /// The configuration tests/data/configs/NAME.json. Small ones: `small-equal` (as many value
    /// heads as key heads, tied, like 0.8B and 2B), `small-grouped` (more value heads, like 4B to
    /// 27B), `small-odd` (own output matrix, sizes that are multiples of nothing), `small-flat`
    /// (no `text_config`). Published ones: `qwen3.5-0.8b` to `qwen3.5-27b`.
    pub fn named(name: &str) -> Spec {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/configs");
        let path = folder.join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        Spec {
            config: serde_json::from_str(&text).unwrap(),
            seed: 0,
            types: Types::Published,
            mtp: false,
        }
    }

    /// The object with the sizes.
    pub fn text(&self) -> &Value {
        self.config.get("text_config").unwrap_or(&self.config)
    }

    /// The same, to change.
    pub fn text_mut(&mut self) -> &mut Value {
        match self.config.get("text_config").is_some() {
            true => &mut self.config["text_config"],
            false => &mut self.config,
        }
    }

    /// A whole number of the configuration.
    pub fn size(&self, key: &str) -> usize {
        self.text()[key].as_u64().unwrap_or_else(|| panic!("{key} in config")) as usize
    }

    pub fn is_full(&self, layer: usize) -> bool {
        match self.text().get("layer_types") {
            Some(types) => types[layer] == "full_attention",
            None => (layer + 1).is_multiple_of(self.size("full_attention_interval")),
        }
    }

    pub fn is_tied(&self) -> bool {
        let key = "tie_word_embeddings";
        let flag = self.config.get(key).or_else(|| self.text().get(key));
        flag.and_then(Value::as_bool).unwrap_or(false)
    }

    /// All tensors in the order of the published file: F32 first, then the others, each by name.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let mut list = Shapes(Vec::new());
        let (vocab, hidden) = (self.size("vocab_size"), self.size("hidden_size"));
        list.add(PREFIX, "embed_tokens.weight", &[vocab, hidden]);
        list.add(PREFIX, "norm.weight", &[hidden]);
        if !self.is_tied() {
            list.add("", "lm_head.weight", &[vocab, hidden]);
        }
        for layer in 0..self.size("num_hidden_layers") {
            let prefix = format!("{PREFIX}layers.{layer}.");
            match self.is_full(layer) {
                true => self.full_layer(&mut list, &prefix),
                false => self.linear_layer(&mut list, &prefix),
            }
        }
        if self.mtp {
            list.add("mtp.", "fc.weight", &[hidden, 2 * hidden]);
            list.add("mtp.", "pre_fc_norm_embedding.weight", &[hidden]);
            list.add("mtp.", "pre_fc_norm_hidden.weight", &[hidden]);
            list.add("mtp.", "norm.weight", &[hidden]);
            self.full_layer(&mut list, "mtp.layers.0.");
        }

        let mut shapes = list.0;
        shapes.sort();
        let make = |(i, (name, shape)): (usize, (String, Vec<usize>))| {
            let wide = name.ends_with(".A_log") || name.ends_with(".linear_attn.norm.weight");
            let dtype = match self.types {
                Types::Published if wide => Dtype::F32,
                Types::Published => Dtype::BF16,
                Types::All(dtype) => dtype,
                Types::Mixed => [Dtype::BF16, Dtype::F16, Dtype::F32][i % 3],
            };
            let (scale, offset) = scale_and_offset(&name, &shape);
            TensorSpec { stored: name.clone(), name, dtype, shape, scale, offset }
        };
        let mut out: Vec<TensorSpec> = shapes.into_iter().enumerate().map(make).collect();
        out.sort_by_key(|tensor| tensor.dtype != Dtype::F32);
        out
    }

    fn linear_layer(&self, list: &mut Shapes, prefix: &str) {
        let (hidden, heads) = (self.size("hidden_size"), self.size("linear_num_value_heads"));
        let key = self.size("linear_num_key_heads") * self.size("linear_key_head_dim");
        let value = heads * self.size("linear_value_head_dim");
        let channels = 2 * key + value;
        list.add(prefix, "linear_attn.in_proj_qkv.weight", &[channels, hidden]);
        list.add(prefix, "linear_attn.in_proj_z.weight", &[value, hidden]);
        list.add(prefix, "linear_attn.in_proj_a.weight", &[heads, hidden]);
        list.add(prefix, "linear_attn.in_proj_b.weight", &[heads, hidden]);
        let taps = self.size("linear_conv_kernel_dim");
        list.add(prefix, "linear_attn.conv1d.weight", &[channels, 1, taps]);
        list.add(prefix, "linear_attn.A_log", &[heads]);
        list.add(prefix, "linear_attn.dt_bias", &[heads]);
        list.add(prefix, "linear_attn.norm.weight", &[self.size("linear_value_head_dim")]);
        list.add(prefix, "linear_attn.out_proj.weight", &[hidden, value]);
        self.mlp(list, prefix);
    }

    fn full_layer(&self, list: &mut Shapes, prefix: &str) {
        let (hidden, head) = (self.size("hidden_size"), self.size("head_dim"));
        let query = self.size("num_attention_heads") * head;
        let kv = self.size("num_key_value_heads") * head;
        list.add(prefix, "self_attn.q_proj.weight", &[2 * query, hidden]);
        list.add(prefix, "self_attn.k_proj.weight", &[kv, hidden]);
        list.add(prefix, "self_attn.v_proj.weight", &[kv, hidden]);
        list.add(prefix, "self_attn.o_proj.weight", &[hidden, query]);
        list.add(prefix, "self_attn.q_norm.weight", &[head]);
        list.add(prefix, "self_attn.k_norm.weight", &[head]);
        self.mlp(list, prefix);
    }

    fn mlp(&self, list: &mut Shapes, prefix: &str) {
        let (hidden, inner) = (self.size("hidden_size"), self.size("intermediate_size"));
        list.add(prefix, "input_layernorm.weight", &[hidden]);
        list.add(prefix, "post_attention_layernorm.weight", &[hidden]);
        list.add(prefix, "mlp.gate_proj.weight", &[inner, hidden]);
        list.add(prefix, "mlp.up_proj.weight", &[inner, hidden]);
        list.add(prefix, "mlp.down_proj.weight", &[hidden, inner]);
    }

    /// Writes `config.json` and one `model.safetensors` into the existing folder `directory`.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        self.write_config(directory)?;
        write_file(&directory.join("model.safetensors"), &self.tensors(), self.seed)
    }

    /// Writes `config.json`, an index and `shards` weight files.
    pub fn write_sharded(&self, directory: &Path, shards: usize) -> io::Result<()> {
        self.write_config(directory)?;
        write_shards(directory, &self.tensors(), self.seed, shards)
    }

    pub fn write_config(&self, directory: &Path) -> io::Result<()> {
        std::fs::write(directory.join("config.json"), pretty(&self.config))
    }
}

/// Names and shapes as they are collected.
struct Shapes(Vec<(String, Vec<usize>)>);

impl Shapes {
    fn add(&mut self, prefix: &str, name: &str, shape: &[usize]) {
        self.0.push((format!("{prefix}{name}"), shape.to_vec()));
    }
}

/// Scale and offset of a tensor's values, by what it is. They keep the residual stream of a
/// 24-layer network near one and give the recurrent layers decays from almost none to almost full.
fn scale_and_offset(name: &str, shape: &[usize]) -> (f32, f32) {
    if name.ends_with("embed_tokens.weight") {
        (0.25, 0.0)
    } else if name.ends_with("linear_attn.norm.weight") {
        (0.3, 1.0)
    } else if name.ends_with("A_log") {
        (3.0, -1.0)
    } else if name.ends_with("dt_bias") {
        (1.0, 0.0)
    } else if name.ends_with("conv1d.weight") {
        (0.8, 0.0)
    } else if shape.len() == 1 {
        (0.3, 0.0) // a norm that is used as 1 + w
    } else {
        (1.7 / (shape[shape.len() - 1] as f32).sqrt(), 0.0)
    }
}

/// The synthetic checkpoint of the full 0.8B shapes, written once per build folder (some seconds,
/// 1.5 GB) and shared by tests and benchmarks.
pub fn full_0_8b() -> io::Result<PathBuf> {
    let spec = Spec::named("qwen3.5-0.8b");
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = base.join(format!("synthetic-0.8b-seed{}", spec.seed));
    if path.exists() {
        return Ok(path);
    }
    // Written aside and renamed, so that it is whole under its name or not there; of two
    // processes that write at once the second keeps the work of the first.
    let partial = base.join(format!("synthetic-0.8b-partial-{}", std::process::id()));
    std::fs::create_dir_all(&partial)?;
    spec.write(&partial)?;
    if std::fs::rename(&partial, &path).is_err() {
        std::fs::remove_dir_all(&partial)?;
    }
    Ok(path)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// One tensor to write.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// The published name, on which the values depend.
    pub name: String,
    /// The name in the file; the same unless a test renames it.
    pub stored: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub scale: f32,
    pub offset: f32,
}

impl TensorSpec {
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn byte_len(&self) -> usize {
        self.elements() * self.dtype.bits() as usize / 8
    }

    /// All values as the file holds them, as F32.
    pub fn values(&self, seed: u64) -> Vec<f32> {
        (0..self.elements())
            .map(|i| self.value(self.hash(seed), i))
            .map(|v| match self.dtype {
                Dtype::BF16 => bf16::from_f32(v).to_f32(),
                Dtype::F16 => f16::from_f32(v).to_f32(),
                _ => v,
            })
            .collect()
    }

    /// The bytes of the elements from `start` on, as many as fit into `out`. Types that are no
    /// weights get zeros.
    pub fn fill(&self, seed: u64, start: usize, out: &mut [u8]) {
        let hash = self.hash(seed);
        match self.dtype {
            Dtype::F32 => {
                for (i, slot) in out.chunks_exact_mut(4).enumerate() {
                    slot.copy_from_slice(&self.value(hash, start + i).to_le_bytes());
                }
            }
            Dtype::F16 => {
                for (i, slot) in out.chunks_exact_mut(2).enumerate() {
                    let value = f16::from_f32(self.value(hash, start + i));
                    slot.copy_from_slice(&value.to_le_bytes());
                }
            }
            Dtype::BF16 => {
                for (i, slot) in out.chunks_exact_mut(2).enumerate() {
                    // bf16::from_f32 for finite values, in a form that the compiler vectorizes.
                    let bits = self.value(hash, start + i).to_bits();
                    let rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
                    slot.copy_from_slice(&(rounded as u16).to_le_bytes());
                }
            }
            _ => out.fill(0),
        }
    }

    fn hash(&self, seed: u64) -> u64 {
        let start = 0xCBF2_9CE4_8422_2325u64;
        let step = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3);
        self.name.bytes().fold(start, step) ^ seed
    }

    #[inline(always)]
    fn value(&self, hash: u64, index: usize) -> f32 {
        let step = (index as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = splitmix64(hash.wrapping_add(step));
        let unit = (bits >> 40) as u32 as f32 * (1.0 / 16_777_216.0);
        self.offset + self.scale * (2.0 * unit - 1.0)
    }
}

/// The finalizer of splitmix64.
#[inline(always)]
pub fn splitmix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The header of a file that holds `tensors` one after the other, with its length in front.
pub fn header(tensors: &[TensorSpec]) -> Vec<u8> {
    let mut text = String::from("{");
    let mut offset = 0;
    for (i, tensor) in tensors.iter().enumerate() {
        let end = offset + tensor.byte_len();
        let comma = if i == 0 { "" } else { "," };
        let name = serde_json::to_string(&tensor.stored).unwrap();
        let shape = serde_json::to_string(&tensor.shape).unwrap();
        text.push_str(&format!(
            "{comma}{name}:{{\"dtype\":\"{}\",\"shape\":{shape},\"data_offsets\":[{offset},{end}]}}",
            tensor.dtype
        ));
        offset = end;
    }
    text.push('}');
    // Padded with spaces, so that the data begin on a multiple of eight bytes.
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}

/// Elements made and written at a time.
const BLOCK: usize = 1 << 20;

/// Writes a safetensors file in the order given, on all CPUs, holding a few megabytes.
pub fn write_file(path: &Path, tensors: &[TensorSpec], seed: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let head = header(tensors);
    file.write_all(&head)?;
    let mut blocks = Vec::new();
    let mut offset = head.len();
    for tensor in tensors {
        let size = tensor.dtype.bits() as usize / 8;
        for start in (0..tensor.elements()).step_by(BLOCK) {
            blocks.push((tensor, start, offset + start * size));
        }
        offset += tensor.byte_len();
    }

    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let work = || {
        let mut buffer = Vec::new();
        while let Some(&(tensor, start, offset)) = blocks.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let count = BLOCK.min(tensor.elements() - start);
            buffer.resize(count * tensor.dtype.bits() as usize / 8, 0);
            tensor.fill(seed, start, &mut buffer);
            if let Err(e) = file.write_all_at(&buffer, offset as u64) {
                *failure.lock().unwrap() = Some(e);
                return;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(blocks.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    failure.into_inner().unwrap().map_or(Ok(()), Err)
}

/// Name of shard `i` of `count`.
pub fn shard_name(i: usize, count: usize) -> String {
    format!("model.safetensors-{:05}-of-{count:05}.safetensors", i + 1)
}

/// Writes the tensors in turn to `count` files, and the index that names them.
pub fn write_shards(
    directory: &Path,
    tensors: &[TensorSpec],
    seed: u64,
    count: usize,
) -> io::Result<()> {
    let mut map = serde_json::Map::new();
    for shard in 0..count {
        let name = shard_name(shard, count);
        let part: Vec<TensorSpec> = tensors.iter().skip(shard).step_by(count).cloned().collect();
        for tensor in &part {
            map.insert(tensor.stored.clone(), Value::from(name.as_str()));
        }
        write_file(&directory.join(&name), &part, seed)?;
    }
    let total: usize = tensors.iter().map(TensorSpec::byte_len).sum();
    let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
    std::fs::write(directory.join("model.safetensors.index.json"), pretty(&index))
}
