//! What include/qwen35.h declares, read from its text: for the bindings in other languages, the
//! reference in docs/, and the tests that compare them with what a C compiler sees.
#![allow(dead_code)]

use std::path::Path;

/// A parameter or a field: `kind` is its C type, such as `const char **`.
#[derive(Clone, Debug)]
pub struct Named {
    pub kind: String,
    pub name: String,
    /// Text of its comment, for fields.
    pub doc: String,
}

#[derive(Debug)]
pub enum What {
    /// `#define NAME VALUE`.
    Constant(Value),
    /// `#define NAME { ... }` with the initializer of a struct.
    Initializer,
    /// `typedef KIND NAME;`
    Alias(String),
    /// `typedef struct NAME NAME;`
    Opaque,
    Struct(Vec<Named>),
    /// `typedef RESULT (*NAME)(PARAMETERS);`
    Callback {
        result: String,
        parameters: Vec<Named>,
    },
    Function {
        result: String,
        parameters: Vec<Named>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// SIZE_MAX.
    SizeMax,
}

#[derive(Debug)]
pub struct Item {
    /// The title of the section it is in.
    pub section: String,
    pub name: String,
    /// Text of its comment, without the stars.
    pub doc: String,
    /// As it is written in the header.
    pub code: String,
    pub what: What,
}

pub struct Api {
    /// The comment at the top.
    pub rules: String,
    pub items: Vec<Item>,
}

impl Api {
    /// Reads the committed header.
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/qwen35.h");
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    pub fn constants(&self) -> impl Iterator<Item = (&Item, Value)> {
        self.items.iter().filter_map(|item| match item.what {
            What::Constant(value) => Some((item, value)),
            _ => None,
        })
    }

    pub fn structs(&self) -> impl Iterator<Item = (&Item, &[Named])> {
        self.items.iter().filter_map(|item| match &item.what {
            What::Struct(fields) => Some((item, &**fields)),
            _ => None,
        })
    }

    /// What a type name stands for: the target of an alias, else itself.
    pub fn resolve<'a>(&'a self, kind: &'a str) -> &'a str {
        let alias = self.items.iter().find(|item| item.name == kind);
        match alias.map(|item| &item.what) {
            Some(What::Alias(target)) => target,
            _ => kind,
        }
    }

    pub fn is_opaque(&self, kind: &str) -> bool {
        self.items.iter().any(|item| item.name == kind && matches!(item.what, What::Opaque))
    }

    pub fn is_struct(&self, kind: &str) -> bool {
        self.items.iter().any(|item| item.name == kind && matches!(item.what, What::Struct(_)))
    }

    pub fn is_callback(&self, kind: &str) -> bool {
        (self.items.iter())
            .any(|item| item.name == kind && matches!(item.what, What::Callback { .. }))
    }

    pub fn parse(header: &str) -> Self {
        let (rules, rest) = header.strip_prefix("/*").unwrap().split_once("*/").unwrap();
        let rules = plain(rules);
        let (_, rest) = rest.split_once("extern \"C\" {\n#endif\n").unwrap();
        let (body, _) = rest.split_once("#ifdef __cplusplus").unwrap();
        let mut items = Vec::new();
        let (mut section, mut doc) = (String::new(), String::new());
        let mut lines = body.lines().peekable();
        while let Some(line) = lines.next() {
            if line.starts_with("/* ===") {
                section = lines.next().unwrap().trim_start_matches(" * ").to_owned();
                lines.next();
            } else if line.starts_with("/**") {
                let mut comment = line.to_owned();
                while !comment.contains("*/") {
                    comment += &format!("\n{}", lines.next().unwrap());
                }
                doc = plain(comment.trim_start_matches("/**").split("*/").next().unwrap());
            } else if !line.trim().is_empty() {
                let mut code = line.to_owned();
                while !complete(&code) {
                    code += &format!("\n{}", lines.next().expect("a declaration that ends"));
                }
                let (name, what) = item(&code);
                let doc = std::mem::take(&mut doc);
                items.push(Item { section: section.clone(), name, doc, code, what });
            }
        }
        assert!(items.len() > 80, "only {} declarations were found in the header", items.len());
        Self { rules, items }
    }
}

/// The text of a comment without its stars.
fn plain(comment: &str) -> String {
    let line = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("* ").or(line.strip_prefix('*')).unwrap_or(line).trim_end().to_owned()
    };
    comment.lines().map(line).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn complete(code: &str) -> bool {
    if code.starts_with('#') {
        return !code.ends_with('\\');
    }
    code.ends_with(';') && code.matches('{').count() == code.matches('}').count()
}

/// `KIND name`; the stars belong to the kind.
fn named(text: &str) -> Named {
    let at = text.rfind([' ', '*']).unwrap_or_else(|| panic!("{text:?} has no type")) + 1;
    let kind = text[..at].trim().to_owned();
    Named { kind, name: text[at..].to_owned(), doc: String::new() }
}

fn list(parameters: &str) -> Vec<Named> {
    let parts = parameters.split(',').map(str::trim);
    parts.filter(|part| !part.is_empty() && *part != "void").map(named).collect()
}

fn fields(body: &str) -> Vec<Named> {
    let (mut found, mut rest): (Vec<Named>, _) = (Vec::new(), body.trim());
    while !rest.is_empty() {
        let mut doc = String::new();
        while let Some(comment) = rest.strip_prefix("/**") {
            let (text, after) = comment.split_once("*/").unwrap();
            (doc, rest) = (plain(text), after.trim_start());
        }
        let (field, after) = rest.split_once(';').unwrap();
        assert!(!field.contains(['[', ':', '(']), "teach this file about {field:?}");
        found.push(Named { doc, ..named(&field.split_whitespace().collect::<Vec<_>>().join(" ")) });
        rest = after.trim_start();
    }
    found
}

fn value(text: &str) -> Value {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')').trim_end_matches('u');
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match number {
        _ if text == "SIZE_MAX" => Value::SizeMax,
        Some(number) => Value::Number(number),
        None => panic!("teach this file about the value {text:?}"),
    }
}

fn item(code: &str) -> (String, What) {
    if let Some(define) = code.strip_prefix("#define ") {
        let (name, text) = define.split_once(' ').unwrap();
        let braces = text.trim_start_matches(['\\', '\n', ' ']).starts_with('{');
        let what = if braces { What::Initializer } else { What::Constant(value(text)) };
        return (name.to_owned(), what);
    }
    let statement = code.trim_end_matches(';');
    if let Some(body) = statement.strip_prefix("typedef struct {") {
        let (body, name) = body.rsplit_once('}').unwrap();
        return (name.trim().to_owned(), What::Struct(fields(body)));
    }
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(rest) = line.strip_prefix("typedef struct ") {
        let (a, b) = rest.split_once(' ').unwrap();
        assert_eq!(a, b);
        return (a.to_owned(), What::Opaque);
    }
    if let Some(rest) = line.strip_prefix("typedef ") {
        let Some((result, rest)) = rest.split_once("(*") else {
            let Named { kind, name, .. } = named(rest);
            return (name, What::Alias(kind));
        };
        let (name, rest) = rest.split_once(")(").unwrap();
        let parameters = list(rest.trim_end_matches(')'));
        return (name.to_owned(), What::Callback { result: result.trim().to_owned(), parameters });
    }
    let (head, rest) = line.split_once('(').unwrap_or_else(|| panic!("what is {code:?}?"));
    let Named { kind, name, .. } = named(head);
    (name, What::Function { result: kind, parameters: list(rest.trim_end_matches(')')) })
}
