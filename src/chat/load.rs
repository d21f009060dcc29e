//! Where a checkpoint keeps its chat template, and the special tokens that go with it.

use std::fs;
use std::path::Path;

use super::named::{Contents, MOST_TEMPLATES, Named, few_templates, few_tokens};
use crate::error::shown;
use crate::{Error, Result, files};

const TEMPLATE: &str = "chat_template.jinja";
const CONFIG: &str = "tokenizer_config.json";
/// No chat template is near this size; what is larger is not read.
const MAX_FILE: u64 = 16 << 20;

/// What a folder says about chatting.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    /// By name ("default", "tool_use", ..); empty if the checkpoint has none.
    #[serde(deserialize_with = "few_templates")]
    pub(super) templates: Named,
    /// Template variables such as `eos_token` with the spelling of their token.
    #[serde(deserialize_with = "few_tokens")]
    pub(super) special_tokens: Named,
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
fn found(mut templates: Named, config: Option<&str>, path: &Path) -> Result<Found> {
    let Some(config) = config else {
        return Ok(Found { templates, special_tokens: Named::new() });
    };
    let config: Contents = serde_json::from_str(config).map_err(|error| {
        // Where the text ends too early, its place is that of what is missing.
        let (line, column) = (error.line(), error.column() + usize::from(error.is_eof()));
        let place = format!(" at line {line} column {}", error.column());
        let what = error.to_string();
        let what = what.strip_suffix(&place).unwrap_or(&what);
        format_error(path, &format!("line {line}, column {column}: {what}"))
    })?;
    if templates.is_empty() {
        templates = config.templates.map_err(|what| format_error(path, &what))?;
    }
    Ok(Found { templates, special_tokens: config.special_tokens })
}

fn from_folder(dir: &Path) -> Result<Named> {
    let mut templates = Named::new();
    if let Some(text) = read(&dir.join(TEMPLATE))? {
        templates.push(("default".into(), text));
    }
    let additional = dir.join("additional_chat_templates");
    if let Ok(entries) = fs::read_dir(&additional) {
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let paths = paths.filter(|path| path.extension().is_some_and(|e| e == "jinja"));
        let room = MOST_TEMPLATES - templates.len();
        let mut paths: Vec<_> = paths.take(room + 1).collect();
        if paths.len() > room {
            return Err(format_error(
                &additional,
                &format!("more than {MOST_TEMPLATES} chat templates"),
            ));
        }
        paths.sort();
        for path in &paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(text) = read(path)? {
                templates.push((name, text));
            }
        }
    }
    Ok(templates)
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
