//! Reads what the tokenizer needs from `tokenizer_config.json`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::added::AddedToken;
use crate::{Error, Result};

/// The added tokens that the file lists, and the spelling of its end-of-text token.
#[derive(Default)]
pub struct TokenizerConfig {
    pub added_tokens: Vec<AddedToken>,
    pub eos_token: Option<String>,
}

#[derive(Deserialize)]
struct Root {
    added_tokens_decoder: Option<Map<String, Value>>,
    eos_token: Option<Spelled>,
}

/// A token is named by its spelling, or by an object that holds it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelled {
    Plain(String),
    Object { content: String },
}

impl TokenizerConfig {
    /// Reads the text of a `tokenizer_config.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
        let root: Root = serde_json::from_slice(json).map_err(|e| Error::format(e.to_string()))?;
        let mut added_tokens = Vec::new();
        for (key, mut entry) in root.added_tokens_decoder.unwrap_or_default() {
            let bad = |why: &dyn std::fmt::Display| {
                Error::format(format!("added_tokens_decoder[{key:?}]: {why}"))
            };
            let id: u32 = key.parse().map_err(|_| bad(&"the key is not a token id"))?;
            let Some(fields) = entry.as_object_mut() else {
                return Err(bad(&"expected an object"));
            };
            fields.insert("id".into(), id.into());
            added_tokens.push(AddedToken::deserialize(entry).map_err(|e| bad(&e))?);
        }
        let eos_token = root.eos_token.map(|eos| match eos {
            Spelled::Plain(content) | Spelled::Object { content } => content,
        });
        Ok(Self { added_tokens, eos_token })
    }
}
