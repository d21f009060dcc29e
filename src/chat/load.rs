//! Where a checkpoint keeps its chat template, and the special tokens that go with it.

use std::fs;
use std::path::Path;

use super::json::{Json, get};
use crate::error::shown;
use crate::{Error, Result, files};

const TEMPLATE: &str = "chat_template.jinja";
const CONFIG: &str = "tokenizer_config.json";
/// No chat template is near this size; what is larger is not read.
const MAX_FILE: u64 = 16 << 20;

/// Templates by name ("default", "tool_use", ..); empty if the checkpoint has none.
pub(super) type Templates = Vec<(String, String)>;

/// What a folder says about chatting.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    pub(super) templates: Templates,
    /// Template variables such as `eos_token` with the spelling of their token.
    pub(super) special_tokens: Vec<(String, String)>,
}

/// Reads the templates of `dir`: `chat_template.jinja` first (with further named ones in
/// `additional_chat_templates/`), then `chat_template` in `tokenizer_config.json`, which
/// is a text or a list of named texts.
pub(super) fn from_dir(dir: &Path) -> Result<Found> {
    let config_path = dir.join(CONFIG);
    let config = read(&config_path)?;
    found(from_folder(dir)?, config.as_deref(), &config_path)
}

/// As [`from_dir`], from the contents of `chat_template.jinja` and of `tokenizer_config.json`.
pub(super) fn from_files(template: Option<&[u8]>, config: Option<&[u8]>) -> Result<Found> {
    let text = |bytes: Option<&[u8]>, name| bytes.map(|b| decode(b.to_vec(), name)).transpose();
    let template = text(template, Path::new(TEMPLATE))?;
    let templates = template.map(|text| ("default".into(), text)).into_iter().collect();
    let path = Path::new(CONFIG);
    found(templates, text(config, path)?.as_deref(), path)
}

/// `templates`, or those of the configuration, whose text is `config`, if there are none.
fn found(mut templates: Templates, config: Option<&str>, path: &Path) -> Result<Found> {
    let config = match config.map(Json::parse) {
        None => Vec::new(),
        Some(Ok(Json::Object(entries))) => entries,
        Some(Ok(other)) => {
            return Err(format_error(path, &format!("expected an object, found {}", other.kind())));
        }
        Some(Err(error)) => return Err(format_error(path, error.message())),
    };
    if templates.is_empty() {
        templates = from_config(path, get(&config, "chat_template"))?;
    }
    Ok(Found { templates, special_tokens: special_tokens(&config) })
}

fn from_folder(dir: &Path) -> Result<Templates> {
    let mut templates = Templates::new();
    if let Some(text) = read(&dir.join(TEMPLATE))? {
        templates.push(("default".into(), text));
    }
    if let Ok(entries) = fs::read_dir(dir.join("additional_chat_templates")) {
        let mut paths: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "jinja")) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(text) = read(path)? {
                templates.push((name, text));
            }
        }
    }
    Ok(templates)
}

fn from_config(path: &Path, template: Option<&Json>) -> Result<Templates> {
    let bad = |what: String| Err(format_error(path, &what));
    match template {
        None | Some(Json::Null) => Ok(Templates::new()),
        Some(Json::String(text)) => Ok(vec![("default".into(), text.clone())]),
        Some(Json::Array(list)) => {
            let mut templates = Templates::new();
            for (i, item) in list.iter().enumerate() {
                let field = |key| match item {
                    Json::Object(entries) => match get(entries, key) {
                        Some(Json::String(text)) => Some(text.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let (Some(name), Some(text)) = (field("name"), field("template")) else {
                    return bad(format!(
                        "chat_template[{i}]: expected an object with the texts name and template"
                    ));
                };
                // As in a Python dictionary, the last of a name counts.
                templates.retain(|(known, _)| *known != name);
                templates.push((name, text));
            }
            Ok(templates)
        }
        Some(other) => bad(format!(
            "chat_template: expected a text or a list of named texts, found {}",
            other.kind()
        )),
    }
}

/// `bos_token` and the like, which Transformers offers to templates as variables. Each is
/// a text or an object with `content`.
fn special_tokens(config: &[(String, Json)]) -> Vec<(String, String)> {
    let content = |value: &Json| match value {
        Json::String(text) => Some(text.clone()),
        Json::Object(entries) => match get(entries, "content") {
            Some(Json::String(text)) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: &Json| {
        if let (Some(text), false) = (content(value), found.iter().any(|(known, _)| known == key)) {
            found.push((key.to_string(), text));
        }
    };
    for name in ["bos", "eos", "unk", "sep", "pad", "cls", "mask"] {
        let key = format!("{name}_token");
        if let Some(value) = get(config, &key) {
            add(&key, value);
        }
    }
    for map in ["extra_special_tokens", "model_specific_special_tokens"] {
        if let Some(Json::Object(entries)) = get(config, map) {
            entries.iter().for_each(|(key, value)| add(key, value));
        }
    }
    found
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>> {
    if !files::is_listed(path) {
        return Ok(None);
    }
    decode(files::read(path, MAX_FILE)?, path).map(Some)
}

/// Not without its byte order mark: the engine of Transformers sees it, too.
fn decode(bytes: Vec<u8>, path: &Path) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format_error(path, &format!("not valid UTF-8 at byte {at}"))
    })
}

fn format_error(path: &Path, what: &str) -> Error {
    Error::format(format!("{}: {what}", shown(path)))
}
