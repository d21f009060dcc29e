//! The tools offered to the model, and the types of their arguments.
//!
//! In a call every value is text. It becomes JSON by the tool's schema, where the schema has
//! exactly the parameter (`parameters.properties.KEY`):
//!
//! * types are read from `type` (a name or a list of names), else from the alternatives of
//!   `anyOf`, `oneOf` and `allOf` and the values of `enum` and `const`; `$ref` is followed within the
//!   schema; `properties` alone means an object, `items` an array;
//! * a parameter whose only type is string keeps its text as it is;
//! * otherwise the text without white space around it is read as one of the other types: a
//!   number, an object or array in JSON, `true`/`false` and `null` (also as Python writes them,
//!   which is how templates spell them); `3.0` is an integer too;
//! * if that fails it stays text, which is a problem of the call unless string is among the
//!   types.
//!
//! Without a type, for an unknown parameter or an unknown tool, values stay text.

use std::collections::HashSet;

use super::reply::RawCall;
use super::save::fields;
use crate::chat::Json;
use crate::chat::json_get as get;

/// The tools of a conversation.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    tools: Vec<Tool>,
}

#[derive(Clone, Debug)]
struct Tool {
    name: String,
    /// The JSON schema of the arguments.
    parameters: Json,
}

fields!(Tools { tools });
fields!(Tool { name, parameters });

/// What stands around a value where a conversation is read as a chat request: the request, its
/// messages, one of them, its calls, one of those, its function, the arguments. In each of these
/// a reader sees JSON that it must not find too deep.
const LEVELS_AROUND: usize = 7;
/// A `$ref` may lead to another; a circle ends here.
const MOST_REFERENCES: usize = 16;
/// Schemas that are looked at for the types of one argument.
const MOST_SCHEMAS: usize = 1024;
/// Types of one argument; JSON schema has seven.
const MOST_TYPES: usize = 16;
/// Bytes of what is wrong with a call, about.
const MOST_PROBLEMS: usize = 1000;

/// The types of an argument.
#[derive(Default)]
struct Types<'a> {
    /// Each once.
    names: Vec<&'a str>,
    /// How often a type was named.
    named: usize,
}

impl<'a> Types<'a> {
    fn add(&mut self, name: &'a str) {
        self.named += 1;
        if self.names.len() < MOST_TYPES && !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// What is still to be done for the types of an argument.
enum Visit<'a> {
    Schema(&'a Json),
    /// Its schema looks like the type `name`, which counts if none was named since `named`.
    Look {
        named: usize,
        name: &'a str,
    },
}

/// What is wrong with a call, in one text of a length that does not depend on the call or on its
/// tool's schema.
pub(super) fn joined(problems: &[String]) -> String {
    let mut text = String::new();
    for (i, problem) in problems.iter().enumerate() {
        text.push_str(if i > 0 { "; " } else { "" });
        if text.len() >= MOST_PROBLEMS {
            text.push_str(&format!("and {} more", problems.len() - i));
            break;
        }
        match problem.char_indices().nth(MOST_PROBLEMS / 2) {
            Some((end, _)) => text.extend([&problem[..end], "..."]),
            None => text.push_str(problem),
        }
    }
    text
}

impl Tools {
    /// Reads the tools of a request, as far as they have the usual form; what a template makes
    /// of others is its own affair.
    pub(crate) fn new(tools: &Json) -> Self {
        let Json::Array(list) = tools else { return Self::default() };
        let read = |tool: &Json| {
            let entries = object(tool)?;
            let function = get(entries, "function").and_then(object).unwrap_or(entries);
            let Some(Json::String(name)) = get(function, "name") else { return None };
            let parameters = get(function, "parameters").cloned().unwrap_or(Json::Null);
            Some(Tool { name: name.clone(), parameters })
        };
        Self { tools: list.iter().filter_map(read).collect() }
    }

    /// Whether the tool has this parameter; `None` if nothing is known about it.
    pub fn knows_parameter(&self, tool: &str, key: &str) -> Option<bool> {
        let properties = self.find(tool)?.properties()?;
        Some(get(properties, key).is_some())
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The arguments of a call as a JSON object, and what does not fit the schema.
    pub(crate) fn arguments(&self, call: &RawCall) -> (Json, Vec<String>) {
        let mut problems = Vec::new();
        let mut entries: Vec<(String, Json)> = Vec::new();
        let tool = self.find(&call.name);
        if tool.is_none() {
            problems.push(format!("there is no tool named {:?}", call.name));
        }
        for (key, text) in &call.parameters {
            let schema = tool.and_then(|tool| tool.schema(key));
            let value = match (tool, schema) {
                (Some(tool), Some(schema)) => tool.typed(key, text, schema, &mut problems),
                (Some(tool), None) if tool.properties().is_some() => {
                    problems.push(format!("{} has no parameter {key:?}", tool.name));
                    Json::String(text.clone())
                }
                _ => Json::String(text.clone()),
            };
            match entries.iter_mut().find(|(known, _)| known == key) {
                Some((_, slot)) => *slot = value,
                None => entries.push((key.clone(), value)),
            }
        }
        for key in tool.map(Tool::required).unwrap_or_default() {
            if get(&entries, key).is_none() {
                problems.push(format!("the parameter {key:?} is missing"));
            }
        }
        (Json::Object(entries), problems)
    }
}

impl Tool {
    fn properties(&self) -> Option<&[(String, Json)]> {
        get(object(self.resolve(&self.parameters))?, "properties").and_then(object)
    }

    fn required(&self) -> Vec<&str> {
        let list = object(self.resolve(&self.parameters)).and_then(|p| get(p, "required"));
        let Some(Json::Array(list)) = list else { return Vec::new() };
        list.iter()
            .filter_map(|key| match key {
                Json::String(key) => Some(key.as_str()),
                _ => None,
            })
            .collect()
    }

    fn schema(&self, key: &str) -> Option<&Json> {
        get(self.properties()?, key)
    }

    /// Follows `{"$ref": "#/..."}` inside the parameters' schema.
    fn resolve<'a>(&'a self, mut schema: &'a Json) -> &'a Json {
        for _ in 0..MOST_REFERENCES {
            let Some(Json::String(path)) = object(schema).and_then(|s| get(s, "$ref")) else {
                return schema;
            };
            let Some(path) = path.strip_prefix("#/") else { return schema };
            let step = |at: &'a Json, name: &str| {
                let name = name.replace("~1", "/").replace("~0", "~");
                get(object(at)?, &name)
            };
            match path.split('/').try_fold(&self.parameters, step) {
                Some(found) => schema = found,
                None => return schema,
            }
        }
        schema
    }

    /// The types that a schema allows.
    ///
    /// Each schema is looked at once, whatever refers to it: tools come from strangers.
    fn types<'a>(&'a self, schema: &'a Json) -> Types<'a> {
        let mut types = Types::default();
        let mut seen: HashSet<*const Json> = HashSet::new();
        let mut to_do = vec![Visit::Schema(schema)];
        while let Some(next) = to_do.pop() {
            let schema = match next {
                Visit::Schema(schema) => self.resolve(schema),
                Visit::Look { named, name } => {
                    if types.named == named {
                        types.add(name);
                    }
                    continue;
                }
            };
            let Some(entries) = object(schema) else { continue };
            if seen.len() == MOST_SCHEMAS || !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            match get(entries, "type") {
                Some(Json::String(name)) => {
                    types.add(name);
                    continue;
                }
                Some(Json::Array(names)) => {
                    for name in names {
                        if let Json::String(name) = name {
                            types.add(name);
                        }
                    }
                    continue;
                }
                _ => {}
            }
            // What is put last is looked at first: what it looks like comes when all else named
            // no type.
            let looks = [("properties", "object"), ("items", "array")];
            if let Some((_, name)) = looks.iter().find(|(key, _)| get(entries, key).is_some()) {
                to_do.push(Visit::Look { named: types.named, name });
            }
            for key in ["allOf", "oneOf", "anyOf"] {
                if let Some(Json::Array(list)) = get(entries, key) {
                    to_do.extend(list.iter().rev().map(Visit::Schema));
                }
            }
            if let Some(Json::Array(values)) = get(entries, "enum") {
                values.iter().for_each(|value| types.add(kind(value)));
            }
            if let Some(value) = get(entries, "const") {
                types.add(kind(value));
            }
        }
        types
    }

    /// The value of a parameter.
    fn typed(&self, key: &str, text: &str, schema: &Json, problems: &mut Vec<String>) -> Json {
        let types = self.types(schema).names;
        let is_text = |name: &&str| *name == "string";
        if types.iter().all(is_text) {
            return Json::String(text.to_owned());
        }
        if let Some(value) = types.iter().find_map(|name| read(text.trim(), name)) {
            return value;
        }
        if !types.iter().any(is_text) {
            let mut shown: String = text.chars().take(40).collect();
            if shown.len() < text.len() {
                shown.push_str("...");
            }
            let expected = types.join(" or ");
            problems.push(format!("{key:?} must be {expected}, found {shown:?}"));
        }
        Json::String(text.to_owned())
    }
}

fn object(value: &Json) -> Option<&[(String, Json)]> {
    match value {
        Json::Object(entries) => Some(entries),
        _ => None,
    }
}

/// What JSON schema calls the type of a value.
fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Int(_) | Json::BigInt(_) => "integer",
        Json::Float(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// `text` as a value of the type, unless it is none.
fn read(text: &str, name: &str) -> Option<Json> {
    match (name, text) {
        ("boolean", "true" | "True") => return Some(Json::Bool(true)),
        ("boolean", "false" | "False") => return Some(Json::Bool(false)),
        ("null", "null" | "None") => return Some(Json::Null),
        ("string", _) => return None,
        _ => {}
    }
    match (name, Json::parse_within(LEVELS_AROUND, text).ok()?) {
        // Exact: integers beyond 2^53 are not all floats.
        ("integer", Json::Float(f)) if f.fract() == 0.0 && f.abs() < 9e15 => {
            Some(Json::Int(f as i128))
        }
        ("number", value @ (Json::Int(_) | Json::BigInt(_))) => Some(value),
        // Beyond the range of floats: as JSON it would become null.
        (_, value) if !value.is_finite() => None,
        (name, value) if kind(&value) == name => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r##"[{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "required": ["city"],
        "$defs": {"list": {"type": "array"}, "loop": {"$ref": "#/$defs/loop"},
            "many": {"anyOf": [{"$ref": "#/$defs/many"}, {"$ref": "#/$defs/many"},
                {"oneOf": [{"$ref": "#/$defs/many"}, {"$ref": "#/$defs/many"}]},
                {"type": "integer"}, {"type": "string"}]}},
        "properties": {
            "city": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"},
            "on": {"type": "boolean"}, "o": {"type": "object"}, "l": {"$ref": "#/$defs/list"},
            "circle": {"$ref": "#/$defs/loop"}, "maybe": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "one": {"enum": ["a", "b"]}, "two": {"enum": [1, "x"]}, "any": {},
            "shape": {"properties": {}},
            "many": {"$ref": "#/$defs/many"},
            "both": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {}}
        }}}}, {"name": "bare"}, {"name": 3}]"##;

    fn arguments(name: &str, parameters: &[(&str, &str)]) -> (String, Vec<String>) {
        let tools = Tools::new(&Json::parse(TOOLS).unwrap());
        let parameters = parameters.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let call = RawCall { name: name.into(), parameters, ..RawCall::default() };
        let (json, problems) = tools.arguments(&call);
        (json.to_text(), problems)
    }

    #[test]
    fn values_get_the_types_of_the_schema() {
        for (key, text, expected) in [
            ("city", " 12 ", r#"" 12 ""#),
            ("n", "12", "12"),
            ("n", "\n -3 ", "-3"),
            ("n", "3.0", "3"),
            (
                "n",
                "123456789012345678901234567890123456789012",
                "123456789012345678901234567890123456789012",
            ),
            ("x", "2.5", "2.5"),
            ("x", "2", "2"),
            ("on", "True", "true"),
            ("on", "false", "false"),
            ("o", "{\"b\": [1, {\"c\": null}]}", r#"{"b": [1, {"c": null}]}"#),
            ("l", "[\"é\", 1.5e300]", r#"["é", 1.5e+300]"#),
            ("maybe", "null", "null"),
            ("maybe", "nullish", r#""nullish""#),
            ("either", "7", "7"),
            ("either", "None", "null"),
            ("one", "a", r#""a""#),
            ("two", "1", "1"),
            ("two", "x", r#""x""#),
            ("any", "12", r#""12""#),
            ("circle", "12", r#""12""#),
            ("shape", "{}", "{}"),
            ("many", "7", "7"),
            ("many", "x", r#""x""#),
            ("both", "{\"a\": 1}", r#"{"a": 1}"#),
        ] {
            let given = [("city", "c"), (key, text)];
            let given = if key == "city" { &given[1..] } else { &given };
            let (json, problems) = arguments("f", given);
            let expected = match key {
                "city" => format!("{{\"city\": {expected}}}"),
                _ => format!("{{\"city\": \"c\", \"{key}\": {expected}}}"),
            };
            assert_eq!((json, problems), (expected, vec![]), "{key} {text:?}");
        }
    }

    #[test]
    fn what_does_not_fit_stays_text_and_is_told() {
        for (key, text) in [
            ("n", "3.5"),
            ("n", "three"),
            ("n", ""),
            ("x", "1e999"),
            ("x", "\"2\""),
            ("on", "yes"),
            ("o", "[1]"),
            ("o", "{\"a\": }"),
            ("o", "{\"a\": [-1e400]}"),
            ("l", "[1e999, 2]"),
            ("either", "x"),
        ] {
            let (json, problems) = arguments("f", &[("city", "c"), (key, text)]);
            let text = Json::String(text.into()).to_text();
            assert_eq!(json, format!("{{\"city\": \"c\", \"{key}\": {text}}}"));
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains(key), "{problems:?}");
        }
        let (json, problems) = arguments("f", &[("what", "1")]);
        assert_eq!(json, r#"{"what": "1"}"#);
        assert!(problems[0].contains("what") && problems[1].contains("city"), "{problems:?}");
        let (json, problems) = arguments("g", &[("a", "1"), ("a", "2")]);
        assert_eq!(json, r#"{"a": "2"}"#);
        assert!(problems[0].contains("\"g\""), "{problems:?}");
        assert_eq!(arguments("bare", &[("a", "1")]), (r#"{"a": "1"}"#.into(), vec![]));
    }

    #[test]
    fn problems_are_short_whatever_the_schema_and_the_call_are() {
        let types: Vec<String> = (0..5000).map(|i| format!("{{\"type\": \"é{i}\"}}")).collect();
        let required: Vec<String> = (0..5000).map(|i| format!("\"key {i}\"")).collect();
        let json = format!(
            r#"[{{"name": "f", "parameters": {{"required": [{}], "properties": {{
            "a": {{"anyOf": [{}]}}}}}}}}]"#,
            required.join(","),
            types.join(",")
        );
        let tools = Tools::new(&Json::parse(&json).unwrap());
        let long = |text: &str| text.repeat(100_000);
        let parameters = vec![("a".into(), long("x")), (long("k\u{7}"), long("y"))];
        for name in ["f", &long("é")] {
            let call =
                RawCall { name: name.into(), parameters: parameters.clone(), ..RawCall::default() };
            let (_, problems) = tools.arguments(&call);
            let text = joined(&problems);
            assert!(text.len() < 4000, "{} bytes", text.len());
            assert_eq!(text.ends_with(" more"), name == "f", "{text}");
        }
        assert_eq!(joined(&["a".into(), "b".into()]), "a; b");
        assert_eq!(joined(&[]), "");
    }
}
