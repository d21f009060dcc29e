//! `model.safetensors.index.json`: which file holds which tensor.

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};

use super::safetensors::{MAX_NAME, MAX_TENSORS};
use crate::error::{Error, ErrorKind, Result, shown};
use crate::files::{excerpt, list, open_error, read_text};

/// Published index files have 50 to 200 kB.
pub(super) const MAX_INDEX: u64 = 64 << 20;
/// More files than any checkpoint of this family is split into.
const MAX_FILES: usize = 4096;

/// The contents of an index: every file is known to exist.
pub(super) struct Index {
    /// The files, each once, in order of first mention.
    pub files: Vec<PathBuf>,
    /// Tensor name and the position of its file in `files`, by name.
    pub tensors: Vec<(String, usize)>,
}

impl Index {
    /// Reads the index and looks for all files it names, beside itself and nowhere else.
    pub(super) fn read(path: &Path) -> Result<Index> {
        let text = read_text(path, MAX_INDEX)?;
        let (names, tensors) = parse_checked(&text).map_err(|e| e.within(shown(path)))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut files = Vec::with_capacity(names.len());
        let mut missing = Vec::new();
        for name in names {
            let file = directory.join(&name);
            if let Err(e) = std::fs::metadata(&file) {
                // A broken link is worth its own words; a plain absence is listed with the others.
                if std::fs::symlink_metadata(&file).is_ok() {
                    return Err(open_error(&file, &e));
                }
                missing.push(name);
            }
            files.push(file);
        }
        let begun = |name: &String| directory.join(format!("{name}.part")).exists();
        let unfinished = missing.iter().any(begun);
        some_missing(&missing, files.len(), unfinished).map_err(|e| e.within(shown(path)))?;
        Ok(Index { files, tensors })
    }
}

/// An error that lists the `missing` files of `all`, if there are any; `unfinished` if one of
/// them has been downloaded in part.
pub(super) fn some_missing(missing: &[String], all: usize, unfinished: bool) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Io,
        format!(
            "{} of {all} weight files are missing from the folder: {}{}",
            missing.len(),
            list(missing),
            if unfinished { "; the download is not finished" } else { "" }
        ),
    ))
}

/// The files and tensors of the text of an index. No name leads out of the folder.
pub(super) fn parse_checked(text: &str) -> Result<Parsed> {
    let (names, tensors) =
        parse(text).map_err(|e| Error::format(format!("not a valid index: {e}")))?;
    for name in &names {
        let plain = Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
        if name.is_empty() || name.contains('\0') || !plain {
            return Err(Error::format(format!(
                "file name {} is no path inside the folder",
                excerpt(name)
            )));
        }
    }
    Ok((names, tensors))
}

/// File names and tensors with the position of their file.
pub(super) type Parsed = (Vec<String>, Vec<(String, usize)>);

fn parse(text: &str) -> serde_json::Result<Parsed> {
    let mut input = serde_json::Deserializer::from_str(text);
    let parsed = Top.deserialize(&mut input)?;
    input.end()?;
    Ok(parsed)
}

/// The outer object; everything but `weight_map` is ignored.
struct Top;

impl<'de> DeserializeSeed<'de> for Top {
    type Value = Parsed;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        d: D,
    ) -> std::result::Result<Parsed, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top {
    type Value = Parsed;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a weight_map")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Parsed, A::Error> {
        let mut parsed = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "weight_map" {
                map.next_value::<IgnoredAny>()?;
            } else if parsed.replace(map.next_value_seed(WeightMap)?).is_some() {
                return Err(A::Error::duplicate_field("weight_map"));
            }
        }
        parsed.ok_or_else(|| A::Error::missing_field("weight_map"))
    }
}

struct WeightMap;

impl<'de> DeserializeSeed<'de> for WeightMap {
    type Value = Parsed;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        d: D,
    ) -> std::result::Result<Parsed, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for WeightMap {
    type Value = Parsed;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensor names and file names")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Parsed, A::Error> {
        let mut files: HashMap<String, usize> = HashMap::new();
        let mut tensors: HashMap<String, usize> = HashMap::new();
        while let Some((tensor, file)) = map.next_entry::<String, String>()? {
            if tensor.len() > MAX_NAME || file.len() > MAX_NAME {
                return Err(A::Error::custom(format!("a name is longer than {MAX_NAME} bytes")));
            }
            if tensors.len() >= MAX_TENSORS {
                return Err(A::Error::custom(format!("more than {MAX_TENSORS} tensors")));
            }
            let next = files.len();
            let file = *files.entry(file).or_insert(next);
            if file >= MAX_FILES {
                return Err(A::Error::custom(format!("more than {MAX_FILES} files")));
            }
            if let Some(other) = tensors.insert(tensor.clone(), file)
                && other != file
            {
                return Err(A::Error::custom(format!(
                    "tensor {} is mapped to two files",
                    excerpt(&tensor)
                )));
            }
        }
        if files.is_empty() {
            return Err(A::Error::custom("weight_map is empty"));
        }
        let mut names = vec![String::new(); files.len()];
        for (name, position) in files {
            names[position] = name;
        }
        let mut tensors: Vec<(String, usize)> = tensors.into_iter().collect();
        tensors.sort_unstable();
        Ok((names, tensors))
    }
}
