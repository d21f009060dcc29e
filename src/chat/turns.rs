//! What the messages of a conversation are: turns, instructions, pictures.

use std::ops::Range;

use super::json::{Json, get};
use super::request::ChatRequest;
use crate::checkpoint::packed::checksum;

impl ChatRequest {
    /// The role of each message, where it is a text.
    fn roles(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| match get(message, "role") {
            Some(Json::String(role)) => role.as_str(),
            _ => "",
        })
    }

    /// Messages at the start that are instructions: of the roles system and developer.
    pub fn leading_system_messages(&self) -> usize {
        self.roles().take_while(|role| matches!(*role, "system" | "developer")).count()
    }

    /// The indices of the messages that begin a turn: the user's. Answers, tool calls and
    /// tool results belong to the turn before them, also results that are written out as a user's
    /// message, which templates take for no question either.
    pub fn turn_starts(&self) -> Vec<usize> {
        let begins = |i: usize, role: &str| role == "user" && !is_tool_result(&self.messages[i]);
        (0..).zip(self.roles()).filter(|(i, role)| begins(*i, role)).map(|(i, _)| i).collect()
    }

    /// Where the first image or video among the parts of messages stands. Templates write
    /// placeholders for them, which the network must not take for text. The published ones look
    /// for the word in a part, so a part that is a string is an image where it holds that word.
    pub fn first_media(&self) -> Option<String> {
        const KEYS: [&str; 4] = ["image", "image_url", "video", "video_url"];
        let is_media = |part: &Json| {
            let part = match part {
                Json::Object(part) => part,
                Json::String(text) => return KEYS.iter().any(|key| text.contains(key)),
                _ => return false,
            };
            let kind = match get(part, "type") {
                Some(Json::String(kind)) => kind.as_str(),
                _ => "",
            };
            KEYS.iter().any(|key| kind == *key || get(part, key).is_some())
        };
        self.messages.iter().enumerate().find_map(|(i, message)| {
            let Some(Json::Array(parts)) = get(message, "content") else { return None };
            let j = parts.iter().position(is_media)?;
            let how = match parts[j] {
                Json::String(_) => " (as templates see a string with that word in it)",
                _ => "",
            };
            Some(format!("messages[{i}].content[{j}]{how}"))
        })
    }

    /// The same request without some of its messages.
    ///
    /// # Panics
    /// If the range reaches beyond the messages.
    #[must_use]
    pub fn without_messages(&self, range: Range<usize>) -> Self {
        let mut request = self.clone();
        request.messages.drain(range);
        request
    }

    /// What tells some of the messages from others: a hash of their JSON.
    ///
    /// # Panics
    /// If the range reaches beyond the messages.
    pub(crate) fn fingerprint(&self, messages: Range<usize>) -> u64 {
        let messages = self.messages[messages].iter().cloned().map(Json::Object).collect();
        checksum(Json::Array(messages).to_text().as_bytes())
    }

    /// The request with a user's message behind the others, which is to be answered.
    #[must_use]
    pub fn with_question(&self, text: &str) -> Self {
        let mut request = self.clone();
        request.messages.extend(Self::from_turns([("user", text)]).messages);
        request.continue_field = None;
        request
    }
}

/// Whether the text of a message is that of a tool's result.
fn is_tool_result(message: &[(String, Json)]) -> bool {
    let text = |part: &Json| match part {
        Json::String(text) => text.clone(),
        Json::Object(part) => match get(part, "text") {
            Some(Json::String(text)) => text.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let content = match get(message, "content") {
        Some(Json::Array(parts)) => parts.iter().map(text).collect(),
        Some(other) => text(other),
        None => String::new(),
    };
    let content = content.trim();
    content.starts_with("<tool_response>") && content.ends_with("</tool_response>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_found_and_left_out() {
        let roles = ["system", "developer", "user", "assistant", "tool", "assistant", "user"];
        let request = ChatRequest::from_turns(roles.map(|role| (role, role)));
        assert_eq!(request.leading_system_messages(), 2);
        assert_eq!(request.turn_starts(), [2, 6]);
        let shorter = request.without_messages(2..6);
        assert_eq!(shorter.roles().collect::<Vec<_>>(), ["system", "developer", "user"]);
        assert_eq!(shorter.first_media(), None);
        for part in [
            r#"{"type":"image"}"#,
            r#"{"type":"image_url","image_url":{"url":"x"}}"#,
            r#"{"video":"x"}"#,
            r#""an image of a cat""#,
            r#""a video""#,
        ] {
            let text = r#"{"type":"text","text":"image"}"#;
            let json = format!(r#"[{{"content":"image"}},{{"content":[{text},{part}]}}]"#);
            let request = ChatRequest::from_json(&json).unwrap();
            let place = request.first_media().unwrap();
            assert!(place.starts_with("messages[1].content[1]"), "{place}");
            assert_eq!(place.contains("string"), part.starts_with('"'), "{place}");
        }
        for (content, starts) in [
            (r#""<tool_response>\n42\n</tool_response>""#, &[0][..]),
            (r#""\n <tool_response></tool_response> ""#, &[0]),
            (
                r#"[{"type": "text", "text": "<tool_response>"}, {"text": "4</tool_response>"}]"#,
                &[0],
            ),
            (r#""<tool_response>\n42\n</tool_response> So?""#, &[0, 1]),
            (r#"null"#, &[0, 1]),
        ] {
            let json = format!(
                r#"[{{"role":"user","content":"q"}},{{"role":"user","content":{content}}}]"#
            );
            assert_eq!(ChatRequest::from_json(&json).unwrap().turn_starts(), starts, "{content}");
        }
        let odd = ChatRequest::from_json(r#"[{"role":3},{"content":"a"}]"#);
        assert!(odd.is_err() || odd.is_ok_and(|odd| odd.turn_starts().is_empty()));
    }
}
