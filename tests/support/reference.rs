//! docs/reference.md, made from include/qwen35.h.

use crate::api::{Api, What};

/// Text of a comment as Markdown: nothing in it is markup, except what is between backticks.
fn escaped(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(i, piece)| match i % 2 {
        0 => piece.replace('<', "&lt;").replace('*', "\\*"),
        _ => format!("`{piece}`"),
    });
    pieces.collect()
}

/// What kind of thing a heading is about.
fn kind(what: &What) -> &'static str {
    match what {
        What::Constant(_) | What::Initializer => "constant",
        What::Alias(_) | What::Opaque => "type",
        What::Struct(_) => "struct",
        What::Callback { .. } => "callback",
        What::Function { .. } => "function",
    }
}

pub fn reference(api: &Api) -> String {
    let mut text = format!(
        "# Reference\n\nMade from `include/qwen35.h` by `make header`. Do not edit.\n\n\
         ```text\n{}\n```\n",
        api.rules
    );
    let mut section = "";
    for item in &api.items {
        if item.section != section {
            section = &item.section;
            text += &format!("\n## {section}\n");
            // Constants are short: one table for each section.
            let constants = api.items.iter().filter(|item| item.section == section);
            let constants: Vec<_> =
                constants.filter(|item| matches!(item.what, What::Constant(_))).collect();
            if !constants.is_empty() {
                text += "\n| constant | value | |\n|---|---|---|\n";
            }
            for constant in constants {
                let value = constant.code.split_whitespace().nth(2).unwrap();
                let doc = escaped(&constant.doc).replace('\n', " ").replace('|', "\\|");
                text += &format!("| `{}` | `{value}` | {doc} |\n", constant.name);
            }
        }
        if matches!(item.what, What::Constant(_)) {
            continue;
        }
        text += &format!("\n### {} ({})\n\n", item.name, kind(&item.what));
        text += &format!("```c\n{}\n```\n", item.code);
        if !item.doc.is_empty() {
            text += &format!("\n{}\n", escaped(&item.doc));
        }
    }
    text
}
