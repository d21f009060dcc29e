//! Which messages of a conversation belong together.

use std::ops::Range;

use super::json::{Json, get};
use super::request::ChatRequest;

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
    /// tool results belong to the turn before them.
    pub fn turn_starts(&self) -> Vec<usize> {
        self.roles().enumerate().filter(|(_, role)| *role == "user").map(|(i, _)| i).collect()
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
        let odd = ChatRequest::from_json(r#"[{"role":3},{"content":"a"}]"#);
        assert!(odd.is_err() || odd.is_ok_and(|odd| odd.turn_starts().is_empty()));
    }
}
