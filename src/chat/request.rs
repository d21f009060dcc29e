//! The conversation to be rendered, in the form of the OpenAI API.

use super::json::{Json, get};
use crate::{Error, Result};

/// Where Transformers looks for a message's reasoning, in this order.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A conversation with its tools and template variables: what a [`super::ChatTemplate`]
/// renders.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// Each an object, as the template will see it.
    pub(super) messages: Vec<Vec<(String, Json)>>,
    /// An array of objects, or null.
    pub(super) tools: Json,
    pub(super) documents: Json,
    pub(super) add_generation_prompt: bool,
    /// The field of the last message to be continued.
    pub(super) continue_field: Option<String>,
    /// `enable_thinking` and whatever `chat_template_kwargs` holds.
    pub(super) variables: Vec<(String, Json)>,
}

impl ChatRequest {
    /// Reads a request: an object, or a bare array of messages.
    ///
    /// | key | value |
    /// |---|---|
    /// | `messages` | array of messages (required) |
    /// | `tools` | array of tool descriptions; missing, null and `[]` offer none |
    /// | `documents` | array of objects, for templates that know them |
    /// | `enable_thinking` | boolean; missing or null leaves it to the template |
    /// | `add_generation_prompt` | boolean: end with the header of the answer. **Default true** (Transformers: false), since a host wants an answer; with `continue_final_message` the default is false, and true is an error |
    /// | `continue_final_message` | true, or the name of a field of the last message: the rendered text ends inside that message, after the given text, so that the model goes on with it |
    /// | `chat_template_kwargs` | object of further template variables |
    ///
    /// Any other key is an error, so that a misspelled one is not silently without effect.
    ///
    /// A message is an object; `role`, `content` (a string, an array of parts, null or
    /// missing), `reasoning_content`, `tool_calls` and any other key reach the template as
    /// with Transformers: keys whose value is null are left out, and `thinking` or
    /// `reasoning` also count as `reasoning_content`. The `arguments` of tool calls may be
    /// an object or a string of JSON, which is parsed first (an empty string, `"null"` and
    /// null are an object without entries).
    ///
    /// # Errors
    /// `InvalidArgument` for text that is not JSON or not of this form: the message names
    /// the place. What only the template can judge (roles, content types) is an error of
    /// rendering.
    pub fn from_json(text: &str) -> Result<Self> {
        match Json::parse(text).map_err(|e| e.within("chat request"))? {
            messages @ Json::Array(_) => Self::from_entries(vec![("messages".into(), messages)]),
            Json::Object(entries) => Self::from_entries(entries),
            other => Err(bad("", "an object with messages, or an array of messages", &other)),
        }
    }

    /// A conversation of plain texts: `(role, content)` each.
    pub fn from_turns<'a>(turns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let messages = turns.into_iter().map(|(role, content)| {
            vec![
                ("role".to_string(), Json::String(role.to_string())),
                ("content".to_string(), Json::String(content.to_string())),
            ]
        });
        Self {
            messages: messages.collect(),
            tools: Json::Null,
            documents: Json::Null,
            add_generation_prompt: true,
            continue_field: None,
            variables: Vec::new(),
        }
    }

    /// A request of parts, which are read as those of [`ChatRequest::from_json`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn from_parts(messages: Vec<Json>, tools: Json) -> Result<Self> {
        let mut entries = vec![("messages".to_owned(), Json::Array(messages))];
        entries.push(("tools".to_owned(), tools));
        Self::from_entries(entries)
    }

    /// Sets `enable_thinking`; `None` leaves it to the template.
    #[must_use]
    pub fn enable_thinking(mut self, on: Option<bool>) -> Self {
        self.variables.retain(|(key, _)| key != "enable_thinking");
        if let Some(on) = on {
            self.variables.push(("enable_thinking".into(), Json::Bool(on)));
        }
        self
    }

    /// Sets `add_generation_prompt` (see [`ChatRequest::from_json`]).
    #[must_use]
    pub fn add_generation_prompt(mut self, on: bool) -> Self {
        self.add_generation_prompt = on;
        self
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn from_entries(entries: Vec<(String, Json)>) -> Result<Self> {
        let mut request = Self::from_turns([]);
        let mut messages = None;
        let mut generation = None;
        let mut thinking = None;
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("messages", value) => messages = Some(read_messages(value)?),
                // null stands for a missing key.
                (
                    "tools"
                    | "documents"
                    | "enable_thinking"
                    | "add_generation_prompt"
                    | "continue_final_message"
                    | "chat_template_kwargs",
                    Json::Null,
                ) => {}
                ("tools", value) => request.tools = list_of_objects("tools", value)?,
                ("documents", value) => request.documents = list_of_objects("documents", value)?,
                ("enable_thinking", value @ Json::Bool(_)) => thinking = Some(value),
                ("add_generation_prompt", Json::Bool(on)) => generation = Some(on),
                ("enable_thinking" | "add_generation_prompt", other) => {
                    return Err(bad(&key, "true, false or null", &other));
                }
                ("continue_final_message", Json::Bool(false)) => {}
                ("continue_final_message", Json::Bool(true)) => {
                    request.continue_field = Some("content".into());
                }
                ("continue_final_message", Json::String(field)) if !field.is_empty() => {
                    request.continue_field = Some(field);
                }
                ("continue_final_message", other) => {
                    return Err(bad(&key, "true, false or the name of a field", &other));
                }
                ("chat_template_kwargs", Json::Object(variables)) => request.variables = variables,
                ("chat_template_kwargs", other) => return Err(bad(&key, "an object", &other)),
                (unknown, _) => {
                    return Err(Error::invalid_argument(format!(
                        "chat request: unknown key {unknown:?}; known are messages, tools, \
                         documents, enable_thinking, add_generation_prompt, \
                         continue_final_message and chat_template_kwargs"
                    )));
                }
            }
        }
        request.messages = messages.ok_or_else(|| {
            Error::invalid_argument("chat request: the key \"messages\" is missing")
        })?;
        for (key, _) in &request.variables {
            let reserved = ["messages", "tools", "documents", "add_generation_prompt"];
            if reserved.contains(&key.as_str()) || (key == "enable_thinking" && thinking.is_some())
            {
                return Err(Error::invalid_argument(format!(
                    "chat request: chat_template_kwargs must not hold {key:?}, which has its own key"
                )));
            }
        }
        if let Some(value) = thinking {
            request.variables.push(("enable_thinking".into(), value));
        }
        if request.continue_field.is_some() && generation == Some(true) {
            return Err(Error::invalid_argument(
                "chat request: continue_final_message goes on with the last message, \
                 add_generation_prompt starts a new one; only one of them can be true",
            ));
        }
        request.add_generation_prompt = generation.unwrap_or(request.continue_field.is_none());
        Ok(request)
    }

    /// About how many bytes the request is: the measure of the work it justifies.
    pub(super) fn size(&self) -> usize {
        let entries = self.messages.iter().flatten().chain(&self.variables);
        let entries: usize = entries.map(|(key, value)| key.len() + value.size()).sum();
        entries + self.tools.size() + self.documents.size()
    }

    /// Calls `f` with every string that the caller supplied.
    pub(super) fn for_each_string<'a>(&'a self, f: &mut impl FnMut(&'a str)) {
        let messages = self.messages.iter().flatten();
        for (key, value) in messages.chain(&self.variables) {
            f(key);
            value.for_each_string(f);
        }
        self.tools.for_each_string(f);
        self.documents.for_each_string(f);
    }
}

fn bad(place: &str, expected: &str, found: &Json) -> Error {
    let at = if place.is_empty() { String::new() } else { format!(": {place}") };
    Error::invalid_argument(format!(
        "chat request{at}: expected {expected}, found {}",
        found.kind()
    ))
}

fn list_of_objects(place: &str, value: Json) -> Result<Json> {
    let Json::Array(items) = &value else {
        return Err(bad(place, "an array of objects", &value));
    };
    for (i, item) in items.iter().enumerate() {
        if !matches!(item, Json::Object(_)) {
            return Err(bad(&format!("{place}[{i}]"), "an object", item));
        }
    }
    Ok(value)
}

fn read_messages(value: Json) -> Result<Vec<Vec<(String, Json)>>> {
    let Json::Array(items) = value else {
        return Err(bad("messages", "an array", &value));
    };
    let read = |(i, item)| match item {
        Json::Object(entries) => read_message(i, entries),
        other => Err(bad(&format!("messages[{i}]"), "an object", &other)),
    };
    items.into_iter().enumerate().map(read).collect()
}

/// A message as Transformers hands it to the template.
fn read_message(index: usize, mut entries: Vec<(String, Json)>) -> Result<Vec<(String, Json)>> {
    entries.retain(|(_, value)| *value != Json::Null);
    if let Some(reasoning) = REASONING_FIELDS.iter().find_map(|field| get(&entries, field)).cloned()
    {
        if get(&entries, "thinking").is_none() {
            entries.insert(0, ("thinking".into(), reasoning.clone()));
        }
        match entries.iter_mut().find(|(key, _)| key == "reasoning_content") {
            Some((_, value)) => *value = reasoning,
            None => entries.push(("reasoning_content".into(), reasoning)),
        }
    }
    for (key, value) in &mut entries {
        let (true, Json::Array(calls)) = (key == "tool_calls", value) else { continue };
        for (j, call) in calls.iter_mut().enumerate() {
            let Json::Object(call) = call else { continue };
            let place = format!("messages[{index}].tool_calls[{j}]");
            read_arguments(&place, call)?;
            for (key, value) in call {
                if let (true, Json::Object(function)) = (key == "function", value) {
                    read_arguments(&format!("{place}.function"), function)?;
                }
            }
        }
    }
    Ok(entries)
}

/// Turns the `arguments` of a call into an object.
fn read_arguments(place: &str, call: &mut [(String, Json)]) -> Result<()> {
    let Some((_, arguments)) = call.iter_mut().find(|(key, _)| key == "arguments") else {
        return Ok(());
    };
    let place = format!("{place}.arguments");
    let parsed = match arguments {
        Json::Object(_) => return Ok(()),
        Json::Null => Json::Null,
        Json::String(text) if text.trim_ascii().is_empty() => Json::Null,
        Json::String(text) => {
            Json::parse(text).map_err(|e| e.within(format_args!("chat request: {place}")))?
        }
        other => return Err(bad(&place, "an object or a string of JSON", other)),
    };
    *arguments = match parsed {
        Json::Null => Json::Object(Vec::new()),
        object @ Json::Object(_) => object,
        other => return Err(bad(&place, "a string that holds a JSON object", &other)),
    };
    Ok(())
}
