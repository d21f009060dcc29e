//! Reads what the tokenizer needs from `tokenizer_config.json`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::added::AddedToken;
use crate::files::excerpt;
use crate::{Error, Result};

/// The added tokens that the file lists, and the spelling of its end-of-text token.
#[derive(Default)]
pub struct TokenizerConfig {
    pub added_tokens: Vec<AddedToken>,
    pub eos_token: Option<String>,
}

#[derive(Deserialize)]
struct Root {
    added_tokens_decoder: Option<Decoder>,
    eos_token: Option<Spelled>,
}

/// Added tokens by id.
struct Decoder(BTreeMap<u32, Described>);

/// An added token without its id.
#[derive(Deserialize)]
#[serde(expecting = "an object that describes a token")]
struct Described {
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    normalized: bool,
}

impl<'de> Deserialize<'de> for Decoder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Tokens;
        impl<'de> Visitor<'de> for Tokens {
            type Value = Decoder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("added_tokens_decoder, an object from ids to tokens")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Decoder, A::Error> {
                let mut tokens = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let bad = |why: &dyn fmt::Display| {
                        let key = excerpt(&key);
                        A::Error::custom(format_args!("added_tokens_decoder[{key}]: {why}"))
                    };
                    let id = key.parse().map_err(|_| bad(&"the key is not a token id"))?;
                    // As in Python, the last of a name counts.
                    tokens.insert(id, map.next_value().map_err(|e: A::Error| bad(&e))?);
                }
                Ok(Decoder(tokens))
            }
        }
        deserializer.deserialize_map(Tokens)
    }
}

/// A token that is named by its spelling, or by an object that holds it.
struct Spelled(String);

impl<'de> Deserialize<'de> for Spelled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Spelling;
        impl<'de> Visitor<'de> for Spelling {
            type Value = Spelled;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token: a text, or an object with the text content")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Spelled, E> {
                Ok(Spelled(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Spelled, A::Error> {
                let mut content = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "content" => content = Some(map.next_value()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                content.map(Spelled).ok_or_else(|| A::Error::missing_field("content"))
            }
        }
        deserializer.deserialize_any(Spelling)
    }
}

impl TokenizerConfig {
    /// Reads the text of a `tokenizer_config.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
        let root: Root = serde_json::from_slice(json).map_err(|e| Error::format(e.to_string()))?;
        let decoder = root.added_tokens_decoder.map_or_else(BTreeMap::new, |decoder| decoder.0);
        let added_tokens = decoder.into_iter().map(|(id, described)| {
            let Described { content, special, lstrip, rstrip, single_word, normalized } = described;
            AddedToken { id, content, special, lstrip, rstrip, single_word, normalized }
        });
        Ok(Self {
            added_tokens: added_tokens.collect(),
            eos_token: root.eos_token.map(|eos| eos.0),
        })
    }
}
