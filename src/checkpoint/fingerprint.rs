//! Telling checkpoints apart, cheaply.

use super::packed::Checksum;
use super::{Checkpoint, Config, LayerKind, names};

/// Bytes of each tensor that are looked at, at its start, middle and end.
const SAMPLE: usize = 1024;

impl Checkpoint {
    /// A number that tells this model from others: what saved sessions are bound to. It costs
    /// a few pages of each tensor, so that it can be taken whenever a model is opened. (The
    /// fingerprint in the header of a packed file is another one, over every byte.)
    ///
    /// It is the XXH64 of, in this order:
    /// * the numbers of the configuration that the arithmetic depends on (see
    ///   [`Config`]; not: end ids, the longest sequence, the drafting head);
    /// * for each tensor of the text model, in ascending order of names without prefix: the
    ///   name, the element type and shape in the file, and the first 1024 bytes, 1024 from
    ///   the middle and the last 1024 (all, where there are not more than 3072).
    ///
    /// So other sizes, another training run and a conversion to another element type change
    /// it; splitting into other files, packing the weights as they are, other prefixes of
    /// names, tokenizer and template do not.
    /// It finds mix-ups, not an edit that touches none of the bytes looked at, and not malice.
    pub fn fingerprint(&self) -> u64 {
        let mut sum = Checksum::new();
        add_config(&mut sum, &self.config);
        let mut tensors = names::text_tensors(&self.config, self.has(names::HEAD));
        tensors.sort_unstable();
        for (name, _) in &tensors {
            let Some(place) = self.tensors.get(name) else { continue };
            let bytes = &self.files[place.file].map.bytes()[place.entry.range.clone()];
            add_tensor(&mut sum, name, &place.entry.dtype.to_string(), &place.entry.shape, bytes);
        }
        sum.finish()
    }
}

fn add_number(sum: &mut Checksum, number: u64) {
    sum.update(&number.to_le_bytes());
}

fn add_text(sum: &mut Checksum, text: &str) {
    add_number(sum, text.len() as u64);
    sum.update(text.as_bytes());
}

fn add_config(sum: &mut Checksum, config: &Config) {
    let numbers = [
        config.vocab_size,
        config.hidden_size,
        config.intermediate_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
        config.rotary_dim,
        config.linear_num_key_heads,
        config.linear_num_value_heads,
        config.linear_key_head_dim,
        config.linear_value_head_dim,
        config.linear_conv_kernel_dim,
    ];
    for number in numbers.into_iter().chain(config.mrope_section) {
        add_number(sum, number as u64);
    }
    add_number(sum, config.rope_theta.to_bits());
    add_number(sum, u64::from(config.rms_norm_eps.to_bits()));
    for kind in &config.layer_kinds {
        add_number(sum, u64::from(*kind == LayerKind::Full));
    }
}

fn add_tensor(sum: &mut Checksum, name: &str, dtype: &str, shape: &[usize], bytes: &[u8]) {
    add_text(sum, name);
    add_text(sum, dtype);
    add_number(sum, shape.len() as u64);
    shape.iter().for_each(|&dimension| add_number(sum, dimension as u64));
    if bytes.len() <= 3 * SAMPLE {
        sum.update(bytes);
        return;
    }
    for start in [0, (bytes.len() - SAMPLE) / 2, bytes.len() - SAMPLE] {
        sum.update(&bytes[start..start + SAMPLE]);
    }
}
