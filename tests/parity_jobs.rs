//! The engine's side of `make test-model`: does what a job file asks and writes down what came
//! out. The comparison with Transformers is in tests/reference/; alone this checks nothing, so it
//! only runs when asked for.
//!
//! `QWEN35_PARITY_JOBS` names a JSON file with a list of jobs of the kinds below. The results go
//! to a file beside it with `.out` appended, one a job; rows of logits go to the file that the
//! job names, as little-endian f32.

use std::io::{BufWriter, Write};
use std::path::Path;

use qwen35::chat::ChatRequest;
use qwen35::sampling::SamplingOptions;
use qwen35::tokenizer::{AddedTokens, Special, StreamDecoder};
use qwen35::{ChatEncoding, Model, ModelOptions, Next, Session, SessionOptions};
use serde_json::{Value, json};

fn text<'a>(job: &'a Value, key: &str) -> &'a str {
    job[key].as_str().unwrap_or_else(|| panic!("{key} in {job}"))
}

fn list<'a>(job: &'a Value, key: &str) -> &'a [Value] {
    job[key].as_array().unwrap_or_else(|| panic!("{key} in {job}"))
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number")) as usize
}

fn ids(values: &[Value]) -> Vec<u32> {
    values.iter().map(|value| number(value) as u32).collect()
}

fn open(job: &Value) -> Model {
    let options = ModelOptions {
        threads: job.get("threads").map_or(0, number),
        isa: job.get("isa").and_then(Value::as_str).map(str::to_owned),
        tokenizer_only: job.get("tokenizer_only").is_some(),
        ..ModelOptions::default()
    };
    Model::open(Path::new(text(job, "model")), &options).unwrap()
}

fn session(model: &Model) -> Session {
    let options =
        SessionOptions { sampling: SamplingOptions::greedy(), ..SessionOptions::default() };
    Session::new(model, options).unwrap()
}

/// Up to `count` greedy ids; with `stop` the end of the turn ends them.
fn generate(session: &mut Session, count: usize, stop: bool) -> Vec<u32> {
    let mut out = Vec::new();
    while out.len() < count {
        match session.next_token().unwrap() {
            Next::Token(id) => out.push(id),
            Next::EndOfTurn(id) => {
                out.push(id);
                if stop {
                    break;
                }
            }
            Next::LimitReached => break,
        }
    }
    out
}

/// Each run feeds `ids` in parts of the lengths `feeds`, writes a row of logits after each part to
/// `out`, if named, and then takes `greedy` tokens.
fn rows(job: &Value) -> Value {
    let model = open(job);
    let mut results = Vec::new();
    for run in list(job, "runs") {
        let mut session = session(&model);
        let mut out = run
            .get("out")
            .map(|_| BufWriter::new(std::fs::File::create(text(run, "out")).unwrap()));
        let ids = ids(list(run, "ids"));
        let mut rest = ids.as_slice();
        for length in list(run, "feeds") {
            let (part, others) = rest.split_at(number(length));
            session.feed(part).unwrap();
            rest = others;
            if let Some(out) = &mut out {
                for value in session.logits().unwrap() {
                    out.write_all(&value.to_le_bytes()).unwrap();
                }
            }
        }
        if let Some(mut out) = out {
            out.flush().unwrap();
        }
        let greedy = generate(&mut session, run.get("greedy").map_or(0, number), false);
        results.push(json!({ "greedy": greedy }));
    }
    json!({ "isa": model.isa(), "threads": model.threads(), "runs": results })
}

/// Ids of each text; with `special` the spellings of added tokens count.
fn encode(job: &Value) -> Value {
    let model = open(job);
    let added = match job["special"].as_bool().unwrap() {
        true => AddedTokens::Honour,
        false => AddedTokens::AsText,
    };
    let one = |value: &Value| {
        let mut out = Vec::new();
        model.tokenizer().encode(value.as_str().unwrap(), added, &mut out);
        out
    };
    list(job, "texts").iter().map(one).collect::<Vec<_>>().into()
}

/// Text of each list of ids, whole and as the stream decoder gives it.
fn decode(job: &Value) -> Value {
    let model = open(job);
    let tokenizer = model.tokenizer();
    let special = match job["skip_special"].as_bool().unwrap() {
        true => Special::Skip,
        false => Special::Keep,
    };
    let one = |value: &Value| {
        let ids = ids(value.as_array().unwrap());
        let mut bytes = Vec::new();
        tokenizer.decode(&ids, special, &mut bytes).unwrap();
        let (mut stream, mut streamed) = (StreamDecoder::new(special), String::new());
        for &id in &ids {
            stream.push(tokenizer, id, &mut streamed);
        }
        stream.finish(&mut streamed);
        json!({ "whole": String::from_utf8_lossy(&bytes), "streamed": streamed })
    };
    list(job, "lists").iter().map(one).collect::<Vec<_>>().into()
}

/// For each request the rendered text and the ids in both encodings, or the error's text.
fn chat(job: &Value) -> Value {
    let model = open(job);
    let template = model.chat_template().unwrap();
    let one = |value: &Value| {
        let render = || {
            let request = ChatRequest::from_json(&value.to_string())?;
            Ok(json!({
                "text": template.render(&request)?,
                "special": model.encode_chat(&request, ChatEncoding::AsTransformers)?,
                "safe": model.encode_chat(&request, ChatEncoding::Safe)?,
            }))
        };
        render().unwrap_or_else(|e: qwen35::Error| json!({ "error": e.to_string() }))
    };
    list(job, "requests").iter().map(one).collect::<Vec<_>>().into()
}

/// A conversation: each user turn is answered greedily, and the answer becomes part of the next
/// request as text, as a host does it.
fn converse(job: &Value) -> Value {
    let model = open(job);
    let mut session = session(&model);
    let (mut messages, mut answers) = (Vec::new(), Vec::new());
    for turn in list(job, "turns") {
        messages.push(json!({ "role": "user", "content": turn }));
        let request = ChatRequest::from_json(&Value::from(messages.clone()).to_string()).unwrap();
        let fed = session.feed_chat(&request, ChatEncoding::Safe).unwrap();
        let prompt = session.tokens().to_vec();
        let ids = generate(&mut session, number(&job["count"]), true);
        let text = model.tokenizer().decode_text(&ids, Special::Skip).unwrap();
        messages.push(json!({ "role": "assistant", "content": text }));
        answers.push(json!({ "prompt": prompt, "ids": ids, "text": text,
            "computed": fed.computed, "total": fed.total }));
    }
    answers.into()
}

#[test]
#[ignore = "driven by tests/reference/run.sh"]
fn answer_jobs() {
    let path = std::env::var("QWEN35_PARITY_JOBS").expect("QWEN35_PARITY_JOBS names a job file");
    let jobs: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let results: Vec<Value> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|job| match text(job, "kind") {
            "rows" => rows(job),
            "encode" => encode(job),
            "decode" => decode(job),
            "chat" => chat(job),
            "converse" => converse(job),
            other => panic!("unknown kind of job {other}"),
        })
        .collect();
    std::fs::write(format!("{path}.out"), Value::from(results).to_string()).unwrap();
}
