//! A folder that opens as a model and answers in a millisecond: random weights, a vocabulary of
//! bytes and letter pairs, a chat template like the published one.
#![allow(dead_code)]

use serde_json::json;

use crate::synthetic::Spec;
use crate::temp::TempDir;
use crate::tiny_tokenizer::tokenizer_json;

/// Ids with text; the model has 512 rows, so 508 to 511 are padding.
pub const TOKENS: usize = 508;
pub const END_OF_TEXT: u32 = 503;
pub const IM_START: u32 = 504;
pub const IM_END: u32 = 505;
pub const THINK: u32 = 506;
pub const THINK_END: u32 = 507;
pub const ROWS: usize = 512;
/// The longest sequence.
pub const CONTEXT: usize = 4096;

const TEMPLATE: &str = r"
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception('Unexpected message role.') }}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is true %}
        {{- '<think>\n' }}
    {%- else %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}";

/// Writes the model.
pub fn model() -> TempDir {
    write(spec())
}

/// One that takes some milliseconds for a token on any machine, for tests that interrupt it.
pub fn slow_model() -> TempDir {
    let mut spec = spec();
    spec.text_mut()["intermediate_size"] = json!(16384);
    write(spec)
}

fn spec() -> Spec {
    let mut spec = Spec::named("small-equal");
    spec.text_mut()["eos_token_id"] = json!(END_OF_TEXT);
    assert_eq!((spec.size("vocab_size"), spec.size("max_position_embeddings")), (ROWS, CONTEXT));
    spec
}

fn write(spec: Spec) -> TempDir {
    let dir = tokenizer();
    spec.write(dir.path()).unwrap();
    dir
}

/// The same without weights and configuration.
pub fn tokenizer() -> TempDir {
    let dir = TempDir::new();
    let mut json = tokenizer_json(IM_END as usize + 1);
    let added = json["added_tokens"].as_array_mut().unwrap();
    for (id, content) in [(THINK, "<think>"), (THINK_END, "</think>")] {
        added.push(json!({"id": id, "content": content, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": false}));
    }
    let config = json!({"eos_token": "<|im_end|>", "clean_up_tokenization_spaces": true});
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    write("tokenizer.json", json.to_string());
    write("tokenizer_config.json", config.to_string());
    write("chat_template.jinja", TEMPLATE.to_owned());
    dir
}
