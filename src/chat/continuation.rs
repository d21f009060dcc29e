//! `continue_final_message` as Transformers does it: a tag is appended to the last message,
//! and the rendered text is cut where the tag comes out.

use minijinja::Value;

use super::json::{self, Json};
use super::request::{ChatRequest, REASONING_FIELDS};
use super::{methods, values};
use crate::{Error, Result};

/// The last message of a request, to be continued.
pub(super) struct Continuation<'a> {
    /// The fields that hold the text to be continued (reasoning has several names).
    fields: Vec<&'a str>,
    /// That text.
    text: &'a str,
}

const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

impl<'a> Continuation<'a> {
    /// `None` if the request does not ask for it. `source` is the template's, which must
    /// mention the field (an empty one is not asked).
    pub(super) fn new(request: &'a ChatRequest, source: &str) -> Result<Option<Self>> {
        let (Some(field), Some(last)) = (&request.continue_field, request.messages.last()) else {
            return Ok(None);
        };
        let bad =
            |what: &str| Err(Error::invalid_argument(format!("continue_final_message: {what}")));
        let Some(value) = json::get(last, field) else {
            return bad(&format!("the last message has no {field:?} to continue"));
        };
        let mut fields = vec![field.as_str()];
        if REASONING_FIELDS.contains(&field.as_str()) {
            let same = |f: &&&str| json::get(last, f) == Some(value);
            fields = REASONING_FIELDS.iter().filter(same).copied().collect();
        }
        if !source.is_empty() && !fields.iter().any(|field| source.contains(field)) {
            return bad(&format!("the chat template does not use {field:?}"));
        }
        let text = match value {
            Json::String(text) => text,
            Json::Array(parts) => match parts.iter().rev().find_map(text_of) {
                Some(text) => text,
                None => return bad("the last message has no text to continue"),
            },
            other => return bad(&format!("{field:?} of the last message is {}", other.kind())),
        };
        Ok(Some(Self { fields, text }))
    }

    /// The last message with the tag.
    pub(super) fn tag(&self, message: &[(String, Json)]) -> Value {
        let mut message = message.to_vec();
        for (key, value) in &mut message {
            if !self.fields.contains(&key.as_str()) {
                continue;
            }
            match value {
                Json::String(text) => text.push_str(TAG),
                Json::Array(parts) => {
                    let part = parts.iter_mut().rev().find(|part| text_of(part).is_some());
                    if let Some(Json::Object(entries)) = part {
                        let text = entries.iter_mut().find(|(key, _)| key == "text");
                        if let Some((_, Json::String(text))) = text {
                            text.push_str(TAG);
                        }
                    }
                }
                _ => {}
            }
        }
        values::object(&message)
    }

    /// Whether the text of the message appears in what was rendered.
    pub(super) fn check(&self, rendered: &str) -> Result<()> {
        if rendered.contains(methods::strip(self.text, None, true, true)) {
            return Ok(());
        }
        Err(Error::template(
            "continue_final_message: the chat template does not write the text of the last \
             message as it is",
        ))
    }

    /// The rendered text up to where the message is to go on.
    pub(super) fn cut(&self, mut rendered: String) -> Result<String> {
        let at = rendered.rfind(methods::strip(TAG, None, true, true)).ok_or_else(|| {
            Error::template(
                "continue_final_message: the chat template does not write the last message",
            )
        })?;
        let whole = rendered[at..].starts_with(TAG);
        rendered.truncate(at);
        if !whole {
            // The template trimmed the message: its white space at the end goes, too.
            rendered.truncate(methods::strip(&rendered, None, false, true).len());
        }
        Ok(rendered)
    }
}

fn text_of(part: &Json) -> Option<&str> {
    match part {
        Json::Object(entries) => match json::get(entries, "text") {
            Some(Json::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
