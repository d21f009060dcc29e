//! Telling checkpoints apart, cheaply.

use std::ops::Range;

use super::packed::Checksum;
use super::{Checkpoint, Config, Data, LayerKind, names};
use crate::error::{Result, shown};

/// Bytes of each tensor that are looked at, at its start, middle and end.
const SAMPLE: usize = 1024;

impl Checkpoint {
    /// A number that tells this model from others: what saved sessions are bound to. It costs
    /// a few pages of each tensor, so that it can be taken whenever a model is opened. A packed
    /// file has that of the folder it was made from in its header, whatever its weights were
    /// made into: there it costs nothing.
    ///
    /// It is the XXH64 of, in this order:
    /// * the numbers of the configuration that the arithmetic depends on (see
    ///   [`Config`]; not: end ids, the longest sequence, the drafting head);
    /// * for each tensor of the text model, in ascending order of names without prefix: the
    ///   name, the element type and shape in the file, and the first 1024 bytes, 1024 from
    ///   the middle and the last 1024 (all, where there are not more than 3072).
    ///
    /// So other sizes, another training run and a conversion to another element type change
    /// it; splitting into other files, packing, other prefixes of names, tokenizer and template
    /// do not.
    /// It finds mix-ups, not an edit that touches none of the bytes looked at, and not malice.
    ///
    /// # Errors
    /// `Io` from a host that reads the files.
    pub fn fingerprint(&self) -> Result<u64> {
        if let Some(file) = self.packed() {
            return Ok(file.fingerprint());
        }
        let mut sum = Checksum::new();
        add_config(&mut sum, &self.config);
        let mut tensors = names::text_tensors(&self.config, self.has(names::HEAD));
        tensors.sort_unstable();
        for (name, _) in &tensors {
            let Some(place) = self.tensors.get(name) else { continue };
            add_text(&mut sum, name);
            add_text(&mut sum, &place.entry.dtype.to_string());
            add_number(&mut sum, place.entry.shape.len() as u64);
            place.entry.shape.iter().for_each(|&size| add_number(&mut sum, size as u64));
            let file = &self.files[place.file];
            for range in samples(place.entry.range.clone()) {
                match &file.data {
                    Data::Map(map) => sum.update(&map.bytes()[range]),
                    Data::Host(host) => {
                        let mut bytes = [0; 3 * SAMPLE];
                        let bytes = &mut bytes[..range.len()];
                        host.read(range.start as u64, bytes)
                            .map_err(|e| e.within(shown(&file.path)))?;
                        sum.update(bytes);
                    }
                }
            }
        }
        Ok(sum.finish())
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

/// The parts of the bytes `range` of a tensor that are looked at.
fn samples(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let (start, length) = (range.start, range.len());
    let all = length <= 3 * SAMPLE;
    let parts = match all {
        true => [(0, length), (0, 0), (0, 0)],
        false => [0, (length - SAMPLE) / 2, length - SAMPLE].map(|at| (at, SAMPLE)),
    };
    let count = if all { 1 } else { 3 };
    parts.into_iter().take(count).map(move |(at, size)| start + at..start + at + size)
}
