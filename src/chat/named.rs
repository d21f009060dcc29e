//! What `tokenizer_config.json` says about chatting, read without keeping the rest: a value in
//! memory takes dozens of times the bytes of a short one in a file.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Named texts at most. Published checkpoints have one to three templates.
pub(super) const MOST_TEMPLATES: usize = 64;
/// Published checkpoints have up to some dozens.
const MOST_TOKENS: usize = 4096;

/// Texts with names, in their order.
pub(super) type Named = Vec<(String, String)>;

/// The contents of the file.
pub(super) struct Contents {
    /// Templates, or what `chat_template` is instead.
    pub(super) templates: Result<Named, String>,
    /// `bos_token` and the like, which Transformers offers to templates as variables.
    pub(super) special_tokens: Named,
}

/// Their names; the entries of two objects come on top.
const SPECIAL: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

impl<'de> Deserialize<'de> for Contents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Root;
        impl<'de> Visitor<'de> for Root {
            type Value = Contents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Contents, A::Error> {
                let mut templates = Ok(Named::new());
                let mut special: [Option<String>; SPECIAL.len()] = Default::default();
                let (mut extra, mut specific) = (Named::new(), Named::new());
                // As in Python, the last of a name counts.
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "chat_template" => templates = map.next_value_seed(Templates)?,
                        "extra_special_tokens" => extra = map.next_value_seed(Tokens)?,
                        "model_specific_special_tokens" => {
                            specific = map.next_value_seed(Tokens)?
                        }
                        key => match SPECIAL.iter().position(|name| *name == key) {
                            Some(n) => special[n] = map.next_value_seed(Token)?,
                            None => drop(map.next_value::<IgnoredAny>()?),
                        },
                    }
                }
                let special = SPECIAL.iter().zip(special);
                let special = special.filter_map(|(name, token)| Some((name.to_string(), token?)));
                let mut known = HashSet::new();
                let mut special_tokens = Named::new();
                for (name, token) in special.chain(extra).chain(specific) {
                    if known.insert(name.clone()) {
                        special_tokens.push((name, token));
                    }
                }
                Ok(Contents { templates, special_tokens })
            }
        }
        deserializer.deserialize_map(Root)
    }
}

/// The visits of values that are none of those that are looked for.
macro_rules! other {
    ($kind:ident: $make:expr) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            let $kind = "null";
            Ok($make)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            let $kind = "a boolean";
            Ok($make)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            let $kind = "a number";
            Ok($make)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            let $kind = "a number";
            Ok($make)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            let $kind = "a number";
            Ok($make)
        }
    };
}

/// The same of texts.
macro_rules! other_text {
    ($make:expr) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($make)
        }
    };
}

/// The same of arrays.
macro_rules! other_array {
    ($make:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            rest(&mut seq)?;
            Ok($make)
        }
    };
}

/// The same of objects.
macro_rules! other_object {
    ($make:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($make)
        }
    };
}

/// Goes over what is left of an array.
fn rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

macro_rules! any {
    ($name:ident, $value:ty) => {
        impl<'de> DeserializeSeed<'de> for $name {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<$value, D::Error> {
                d.deserialize_any(self)
            }
        }
    };
}

/// A text, or none for anything else.
struct Text;

any!(Text, Option<String>);

impl<'de> Visitor<'de> for Text {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<String>, E> {
        Ok(Some(text.to_owned()))
    }

    other!(_kind: None);
    other_array!(None);
    other_object!(None);
}

/// A token: a text or an object with `content`; none for anything else.
struct Token;

any!(Token, Option<String>);

impl<'de> Visitor<'de> for Token {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<String>, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let mut content = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "content" => content = map.next_value_seed(Text)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(content)
    }

    other!(_kind: None);
    other_array!(None);
}

/// An object of tokens by name; anything else has none.
struct Tokens;

any!(Tokens, Named);

impl<'de> Visitor<'de> for Tokens {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("special tokens")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
        let mut tokens = Named::new();
        while let Some(name) = map.next_key::<String>()? {
            if let Some(token) = map.next_value_seed(Token)? {
                if tokens.len() == MOST_TOKENS {
                    return Err(A::Error::custom(format_args!(
                        "more than {MOST_TOKENS} special tokens"
                    )));
                }
                tokens.push((name, token));
            }
        }
        // The last of a name counts, in the place of the first.
        let mut places = HashMap::new();
        let mut out = Named::with_capacity(tokens.len());
        for (name, token) in tokens {
            match places.get(&name) {
                Some(&at) => out[at as usize].1 = token,
                None => {
                    places.insert(name.clone(), out.len() as u32);
                    out.push((name, token));
                }
            }
        }
        Ok(out)
    }

    other!(_kind: Named::new());
    other_text!(Named::new());
    other_array!(Named::new());
}

/// `chat_template`: a text, or a list of named texts. An error of it counts only where it is
/// asked for, so it does not end the reading.
struct Templates;

any!(Templates, Result<Named, String>);

fn no_templates(found: &str) -> Result<Named, String> {
    match found {
        "null" => Ok(Named::new()),
        _ => Err(format!("chat_template: expected a text or a list of named texts, found {found}")),
    }
}

impl<'de> Visitor<'de> for Templates {
    type Value = Result<Named, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("chat_template")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Ok(vec![("default".into(), text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut templates = Named::new();
        let mut i = 0;
        while let Some(template) = seq.next_element_seed(Template)? {
            let Some((name, text)) = template else {
                rest(&mut seq)?;
                return Ok(Err(format!(
                    "chat_template[{i}]: expected an object with the texts name and template"
                )));
            };
            if i == MOST_TEMPLATES {
                rest(&mut seq)?;
                return Ok(Err(format!("chat_template: more than {MOST_TEMPLATES} templates")));
            }
            // As in a Python dictionary, the last of a name counts.
            templates.retain(|(known, _)| *known != name);
            templates.push((name, text));
            i += 1;
        }
        Ok(Ok(templates))
    }

    other!(kind: no_templates(kind));
    other_object!(no_templates("an object"));
}

/// An object with the texts `name` and `template`; none for anything else.
struct Template;

any!(Template, Option<(String, String)>);

impl<'de> Visitor<'de> for Template {
    type Value = Option<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a named template")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut template) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => name = map.next_value_seed(Text)?,
                "template" => template = map.next_value_seed(Text)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(name.zip(template))
    }

    other!(_kind: None);
    other_text!(None);
    other_array!(None);
}

/// The templates of a packed file.
pub(super) fn few_templates<'de, D: Deserializer<'de>>(d: D) -> Result<Named, D::Error> {
    d.deserialize_seq(Few(MOST_TEMPLATES, "templates"))
}

/// The special tokens of a packed file.
pub(super) fn few_tokens<'de, D: Deserializer<'de>>(d: D) -> Result<Named, D::Error> {
    // Two objects, and those that have names of their own.
    d.deserialize_seq(Few(2 * MOST_TOKENS + SPECIAL.len(), "special tokens"))
}

/// So many pairs at most, and what they are.
struct Few(usize, &'static str);

impl<'de> Visitor<'de> for Few {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {} with their names", self.1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Named, A::Error> {
        let mut pairs = Named::new();
        while let Some(pair) = seq.next_element()? {
            if pairs.len() == self.0 {
                let Few(most, what) = self;
                return Err(A::Error::custom(format_args!("more than {most} {what}")));
            }
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
