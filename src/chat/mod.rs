//! Messages to prompt, by the checkpoint's own chat template.
//!
//! [`ChatTemplate::render`] gives exactly the text that Transformers' `apply_chat_template`
//! gives. [`ChatTemplate::render_segments`] gives the same text in pieces that say which
//! control tokens the *template* wrote: only those are to be encoded as tokens, so that no
//! message can smuggle one in (see the module `seal` for how).
//!
//! Known differences from Transformers, none of which the published template touches:
//! `strftime_now` is UTC; the `~` operator writes floats beyond 1e16 or below 1e-4 without
//! an exponent (everything else writes them as Python does); integers beyond 128 bits can
//! be written but not calculated with; `'%s' % x`, `cycler`, `lipsum` and the filters that
//! lay out prose (`wordwrap` and the like) do not exist; looping over none gives nothing
//! and comparing a number with a text gives an order, where Python raises. Texts of errors
//! are this engine's own, except those that a template raises itself.

mod arguments;
mod continuation;
mod environment;
mod filters;
mod format;
mod json;
mod json_text;
mod lexer;
mod limit;
mod load;
mod methods;
mod named;
mod prepare;
mod python;
mod request;
mod seal;
mod time;
mod tojson;
mod turns;
mod values;

use std::collections::HashSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

use minijinja::Value;

pub use request::ChatRequest;

use crate::error::shown;
use crate::pool::with_signals_blocked;
use crate::{Error, ErrorKind, Result, files};
use continuation::Continuation;
use environment::{Engine, readable};
pub(crate) use json::{Json, get as json_get};
use seal::{Base, Spellings};

/// A piece of a rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Plain text, in which spellings of control tokens mean nothing. Never empty, never
    /// two in a row.
    Text(String),
    /// The spelling of an added token that the template itself wrote.
    Control(String),
}

impl Segment {
    /// The text of the piece.
    pub fn as_str(&self) -> &str {
        match self {
            Segment::Text(text) | Segment::Control(text) => text,
        }
    }
}

/// The chat template of a checkpoint, compiled.
///
/// Cheap to use from many threads at once; rendering takes microseconds.
#[derive(Debug)]
pub struct ChatTemplate {
    /// Those of [`USED`] that there are.
    templates: Vec<Compiled>,
    /// The names of all.
    names: Vec<String>,
    special_tokens: Vec<(String, String)>,
    spellings: Spellings,
}

/// One named template.
#[derive(Debug)]
struct Compiled {
    name: String,
    source: String,
    engine: Engine,
    /// The sealed copy, made when it is first needed, and why there is none.
    sealed: OnceLock<Result<Sealed>>,
}

/// The sealed copy of a template.
#[derive(Debug)]
struct Sealed {
    engine: Engine,
    base: Base,
}

const TEMPLATE: &str = "chat template";

/// Names of templates: the second serves requests with tools where there is one, the first all
/// others. Nobody asks for those of other names.
const USED: [&str; 2] = ["default", "tool_use"];

impl ChatTemplate {
    /// Reads and compiles the chat template of the checkpoint in `dir`:
    /// `chat_template.jinja` if there is one, else `chat_template` in
    /// `tokenizer_config.json`. `None` if there is neither, which is an error only for who
    /// wants to chat.
    ///
    /// `added_tokens` are the spellings of the tokenizer's added tokens.
    ///
    /// # Errors
    /// `Io` or `Format` if a file cannot be read or is not what it must be, `Template`
    /// (with the line) if the template does not compile. No other template is put in its
    /// place; a model with a broken template still works without chat.
    pub fn from_dir(dir: &Path, added_tokens: &[impl AsRef<str>]) -> Result<Option<ChatTemplate>> {
        let found = load::from_dir(dir)?;
        if found.templates.is_empty() {
            return Ok(None);
        }
        Self::build(found.templates, found.special_tokens, added_tokens)
            .map(Some)
            .map_err(|error| error.within(shown(dir)))
    }

    /// As [`ChatTemplate::from_dir`], from the contents of `chat_template.jinja` and of
    /// `tokenizer_config.json` where they are there.
    ///
    /// # Errors
    /// As [`ChatTemplate::from_dir`], without `Io`.
    pub fn from_files(
        template: Option<&[u8]>,
        config: Option<&[u8]>,
        added_tokens: &[impl AsRef<str>],
    ) -> Result<Option<ChatTemplate>> {
        let found = load::from_files(template, config)?;
        if found.templates.is_empty() {
            return Ok(None);
        }
        Self::build(found.templates, found.special_tokens, added_tokens).map(Some)
    }

    /// What [`ChatTemplate::from_dir`] reads, as one JSON document for a packed file. `None`
    /// if the folder has no template.
    ///
    /// # Errors
    /// `Io` or `Format` as [`ChatTemplate::from_dir`]; nothing is compiled.
    pub fn document(dir: &Path) -> Result<Option<Vec<u8>>> {
        let found = load::from_dir(dir)?;
        if found.templates.is_empty() {
            return Ok(None);
        }
        let json = serde_json::to_vec(&found);
        json.map(Some).map_err(|e| Error::internal(format!("the chat template: {e}")))
    }

    /// Compiles what [`ChatTemplate::document`] made.
    ///
    /// # Errors
    /// `Format` for another document, `Template` as [`ChatTemplate::from_dir`].
    pub fn from_document(
        document: &[u8],
        added_tokens: &[impl AsRef<str>],
    ) -> Result<ChatTemplate> {
        let found: load::Found = serde_json::from_slice(document)
            .map_err(|e| Error::format(format!("the chat template's section: {e}")))?;
        Self::build(found.templates, found.special_tokens, added_tokens)
    }

    /// Compiles a template from its text. `special_tokens` are variables for it, such as
    /// `("eos_token", "<|im_end|>")`.
    ///
    /// # Errors
    /// `Template`, with the line, if it does not compile.
    pub fn from_source(
        source: &str,
        special_tokens: &[(&str, &str)],
        added_tokens: &[impl AsRef<str>],
    ) -> Result<ChatTemplate> {
        let own = |&(name, token): &(&str, &str)| (name.to_string(), token.to_string());
        Self::build(
            vec![("default".into(), source.to_string())],
            special_tokens.iter().map(own).collect(),
            added_tokens,
        )
    }

    fn build(
        templates: Vec<(String, String)>,
        special_tokens: Vec<(String, String)>,
        added_tokens: &[impl AsRef<str>],
    ) -> Result<ChatTemplate> {
        let added = added_tokens.iter().map(|token| token.as_ref().to_string());
        let spellings = Spellings::new(added);
        let names = templates.iter().map(|(name, _)| name.clone()).collect();
        // Of equal names the first counts.
        let used = USED.iter().filter_map(|used| templates.iter().find(|(name, _)| name == used));
        let used: Vec<(String, String)> = used.cloned().collect();
        drop(templates);
        let compile = || used.into_iter().map(|(name, text)| Compiled::new(name, text)).collect();
        let templates = on_large_stack(compile)?;
        Ok(ChatTemplate { templates, names, special_tokens, spellings })
    }

    /// The conversation as one text, exactly as Transformers renders it.
    ///
    /// # Errors
    /// `Template` if the template refuses the messages (with its own words) or fails (with
    /// the line), `InvalidArgument` if the request cannot be rendered by any template.
    pub fn render(&self, request: &ChatRequest) -> Result<String> {
        let compiled = self.choose(request)?;
        on_large_stack(|| self.render_exact(compiled, request, SystemTime::now()))
    }

    /// The conversation as plain text and control tokens: the pieces together are what
    /// [`ChatTemplate::render`] gives.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`]; and `Template` if this template's own control tokens
    /// cannot be told from the caller's text.
    pub fn render_segments(&self, request: &ChatRequest) -> Result<Vec<Segment>> {
        on_large_stack(|| self.render_pieces(request))
    }

    fn render_pieces(&self, request: &ChatRequest) -> Result<Vec<Segment>> {
        let compiled = self.choose(request)?;
        let now = SystemTime::now();
        let exact = self.render_exact(compiled, request, now)?;
        let sealed = compiled.sealed.get_or_init(|| self.audited(compiled));
        let sealed = sealed.as_ref().map_err(Clone::clone)?;
        let mut used = HashSet::new();
        request.for_each_string(&mut |text| {
            used.extend(text.chars().filter(|&c| seal::is_private_use(c)))
        });
        let own;
        let sealed = if used.iter().any(|&c| sealed.base.index(c, self.spellings.len()).is_some()) {
            // The request uses the seals' code points: seal with others.
            own = self.seal(compiled, used)?;
            &own
        } else {
            sealed
        };
        self.separate(sealed, request, &exact, now)
    }

    /// The template for a request.
    fn choose(&self, request: &ChatRequest) -> Result<&Compiled> {
        let named = |name: &str| self.templates.iter().find(|t| t.name == name);
        let [default, tools] = USED;
        let for_tools = if request.tools == Json::Null { None } else { named(tools) };
        for_tools.or_else(|| named(default)).ok_or_else(|| {
            Error::template(format!(
                "the checkpoint has no default chat template, only {}",
                files::list(&self.names)
            ))
        })
    }

    fn render_exact(
        &self,
        compiled: &Compiled,
        request: &ChatRequest,
        now: SystemTime,
    ) -> Result<String> {
        if request.is_empty() {
            return Err(Error::template("the conversation holds no messages"));
        }
        let continued = Continuation::new(request, &compiled.source)?;
        let context = self.context(request, continued.as_ref(), |token| token.to_string());
        let text = compiled.engine.render(TEMPLATE, context, request.size(), now);
        let text = text.map_err(|error| readable(&error))?;
        match continued {
            None => Ok(text),
            Some(continued) => continued.check(&text).and_then(|()| continued.cut(text)),
        }
    }

    /// Renders the sealed copy and takes it apart.
    fn separate(
        &self,
        sealed: &Sealed,
        request: &ChatRequest,
        exact: &str,
        now: SystemTime,
    ) -> Result<Vec<Segment>> {
        let continued = Continuation::new(request, "").ok().flatten();
        let seal = |token: &str| self.spellings.seal(token, sealed.base);
        let context = self.context(request, continued.as_ref(), seal);
        let text = sealed.engine.render(TEMPLATE, context, request.size(), now);
        let text = text.ok().and_then(|text| match &continued {
            None => Some(text),
            Some(continued) => continued.cut(text).ok(),
        });
        let text = text.filter(|text| self.spellings.unseal(text, sealed.base) == exact);
        let text = text.ok_or_else(|| {
            inseparable("for this conversation it decides by text that holds control tokens")
        })?;
        let mut segments = Vec::new();
        let mut plain = String::new();
        for c in text.chars() {
            match sealed.base.index(c, self.spellings.len()) {
                None => plain.push(c),
                Some(index) => {
                    if !plain.is_empty() {
                        segments.push(Segment::Text(std::mem::take(&mut plain)));
                    }
                    segments.push(Segment::Control(self.spellings.get(index).to_string()));
                }
            }
        }
        if !plain.is_empty() {
            segments.push(Segment::Text(plain));
        }
        Ok(segments)
    }

    /// The sealed copy of a template, with seals that neither it nor the request (whose
    /// private-use characters are `used`) holds.
    fn seal(&self, compiled: &Compiled, mut used: HashSet<char>) -> Result<Sealed> {
        used.extend(compiled.source.chars().filter(|&c| seal::is_private_use(c)));
        let base = Base::free(self.spellings.len(), &used).ok_or_else(|| {
            inseparable("the conversation uses up the private-use characters of Unicode")
        })?;
        let literal = |text: &str| compiled.engine.literal(text);
        let source = seal::seal_source(&compiled.source, &self.spellings, base, literal);
        let mut engine = Engine::new();
        engine
            .add(TEMPLATE, &source)
            .map_err(|_| inseparable("its control tokens stand where they cannot be replaced"))?;
        Ok(Sealed { engine, base })
    }

    /// [`ChatTemplate::seal`], tried on conversations without any control token in their
    /// words: none may come out as text.
    fn audited(&self, compiled: &Compiled) -> Result<Sealed> {
        let sealed = self.seal(compiled, HashSet::new())?;
        let now = SystemTime::now();
        for request in AUDIT.iter().filter_map(|text| ChatRequest::from_json(text).ok()) {
            // A template that refuses the conversation has nothing to show.
            let Ok(exact) = self.render_exact(compiled, &request, now) else { continue };
            for segment in self.separate(&sealed, &request, &exact, now)? {
                let Segment::Text(text) = segment else { continue };
                if let Some((_, index)) = self.spellings.find(&text) {
                    return Err(inseparable(&format!(
                        "it puts the control token {} together from pieces",
                        self.spellings.get(index)
                    )));
                }
            }
        }
        Ok(sealed)
    }

    /// The variables of the template. `special` spells the special tokens among them.
    fn context(
        &self,
        request: &ChatRequest,
        continued: Option<&Continuation<'_>>,
        special: impl Fn(&str) -> String,
    ) -> Value {
        let last = request.messages.len().saturating_sub(1);
        let message = |(i, message): (usize, &Vec<(String, Json)>)| match continued {
            Some(continued) if i == last => continued.tag(message),
            _ => values::object(message),
        };
        let messages: Value = request.messages.iter().enumerate().map(message).collect();
        let special = self
            .special_tokens
            .iter()
            .map(|(name, token)| (Value::from(name.as_str()), Value::from(special(token))));
        let variables = request
            .variables
            .iter()
            .map(|(name, value)| (Value::from(name.as_str()), values::value(value)));
        let own = [
            ("messages", messages),
            ("tools", values::value(&request.tools)),
            ("documents", values::value(&request.documents)),
            ("add_generation_prompt", Value::from(request.add_generation_prompt)),
        ];
        let own = own.into_iter().map(|(name, value)| (Value::from(name), value));
        // Of equal names the last counts: the caller's variables replace special tokens.
        Value::from_pairs(special.chain(variables).chain(own))
    }
}

impl Compiled {
    fn new(name: String, source: String) -> Result<Self> {
        if source.trim().is_empty() {
            return Err(Error::template(format!("the chat template {name:?} is empty")));
        }
        let mut engine = Engine::new();
        engine.add(TEMPLATE, &source)?;
        Ok(Self { name, source, engine, sealed: OnceLock::new() })
    }
}

/// Runs `f` on a thread with room for the recursion of the engine (its parser goes 150
/// levels deep, its values 200, and every level takes kilobytes): hosts call from threads
/// with little stack. The memory is only touched as far as it is used, and starting the
/// thread takes some 30 microseconds.
///
/// # Errors
/// `OutOfMemory` where the system starts no thread: how much stack is left here is not known,
/// and where it is too little, the process would end.
fn on_large_stack<R: Send>(f: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    const STACK: usize = 64 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("qwen35-chat".into()).stack_size(STACK);
        match with_signals_blocked(|| thread.spawn_scoped(scope, f)) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("cannot start a thread for the chat template: {error}"),
            )),
        }
    })
}

fn inseparable(why: &str) -> Error {
    Error::template(format!(
        "the chat template's own control tokens cannot be told from the text of the messages: \
         {why}; only encoding as Transformers does it, where control tokens in messages \
         count, is possible"
    ))
}

/// Conversations without control tokens that visit the corners of a template.
const AUDIT: [&str; 4] = [
    r#"[{"role":"user","content":"a"}]"#,
    r#"[{"role":"system","content":"s"},{"role":"user","content":"a"},
        {"role":"assistant","content":"b","reasoning_content":"c"},
        {"role":"user","content":[{"type":"text","text":"d"}]}]"#,
    r#"{"messages":[{"role":"user","content":"a"}],"enable_thinking":true}"#,
    r#"{"messages":[{"role":"user","content":"a"},
        {"role":"assistant","content":"b","tool_calls":[{"id":"abcdefghi","type":"function",
         "function":{"name":"f","arguments":{"x":1}}}]},
        {"role":"tool","name":"f","tool_call_id":"abcdefghi","content":"r"}],
        "tools":[{"type":"function","function":{"name":"f","description":"d",
         "parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}}],
        "enable_thinking":false}"#,
];
