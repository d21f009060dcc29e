//! The parser on proper and malformed replies, at every cut, and on random text.

use super::super::tools::Tools;
use super::*;
use crate::chat::Json;

fn tools() -> Arc<Tools> {
    let json = r#"[{"type": "function", "function": {"name": "f", "parameters": {
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}},
        {"type": "function", "function": {"name": "any"}}]"#;
    Arc::new(Tools::new(&Json::parse(json).unwrap()))
}

/// All events, with texts of one kind joined.
fn events<'a>(
    thinking: bool,
    calls: bool,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Vec<Event> {
    let mut parser = ReplyParser::new(thinking, calls.then(tools));
    let mut all = Vec::new();
    for piece in pieces {
        parser.push(piece, &mut all);
    }
    parser.finish(&mut all);
    let mut joined: Vec<Event> = Vec::new();
    for event in all {
        match (joined.last_mut(), event) {
            (Some(Event::Text(last)), Event::Text(text))
            | (Some(Event::Thinking(last)), Event::Thinking(text))
            | (Some(Event::Markup(last)), Event::Markup(text)) => last.push_str(&text),
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// The bytes of the events, in order: those of the reply.
fn bytes(events: &[Event]) -> String {
    let text = |event: &Event| match event {
        Event::Thinking(text) | Event::Text(text) | Event::Markup(text) => text.clone(),
        Event::Call(call) => call.raw.clone(),
    };
    events.iter().map(text).collect()
}

/// Asserts that every cut into two, and into single characters, gives the same, and that no byte
/// is lost. Returns the events without markup.
fn parse(thinking: bool, calls: bool, reply: &str) -> Vec<Event> {
    let whole = events(thinking, calls, [reply]);
    assert_eq!(bytes(&whole), reply);
    let starts: Vec<usize> = reply.char_indices().map(|(at, _)| at).collect();
    for &at in &starts {
        let cut = events(thinking, calls, [&reply[..at], &reply[at..]]);
        assert_eq!(cut, whole, "{reply:?} cut at {at}");
    }
    let ends = starts.iter().skip(1).copied().chain([reply.len()]);
    let characters = starts.iter().zip(ends).map(|(&from, to)| &reply[from..to]);
    assert_eq!(events(thinking, calls, characters), whole, "{reply:?} by character");
    whole.into_iter().filter(|event| !matches!(event, Event::Markup(_))).collect()
}

fn parts(events: &[Event]) -> (String, String) {
    let (mut thoughts, mut text) = (String::new(), String::new());
    for event in events {
        match event {
            Event::Thinking(t) => thoughts.push_str(t),
            Event::Text(t) => text.push_str(t),
            other => panic!("{other:?}"),
        }
    }
    (thoughts, text)
}

#[test]
fn thoughts_and_text() {
    for (thinking, reply, thoughts, text) in [
        (true, "a</think>\n\nb", "a", "b"),
        (true, "a", "a", ""),
        (true, "</think>b", "", "b"),
        (true, "\n\na\n\nb\n</think>\n\n\n c\n", "a\n\nb", " c\n"),
        (true, "<think>\na</think>b", "a", "b"),
        (true, "a</thin</think", "a</thin</think", ""),
        (true, "a\n", "a\n", ""),
        (true, "a <think> b</think>c</think>d", "a <think> b", "c</think>d"),
        (true, "a<tool_call>\n<function=f>\n</think>b", "a<tool_call>\n<function=f>", "b"),
        (false, "b", "", "b"),
        (false, "b</think>c", "", "b</think>c"),
        (false, "<think>a</think>b", "a", "b"),
        (false, "\n<think>\n\na\n</think>\n\nb", "a", "b"),
        (false, "a <think>b</think>", "", "a <think>b</think>"),
        (false, " a", "", " a"),
        (false, "\n", "", "\n"),
        (false, "<thi", "", "<thi"),
        (false, "", "", ""),
        (true, "", "", ""),
        (true, "é😀</think>é", "é😀", "é"),
    ] {
        for calls in [false, true] {
            let found = parts(&parse(thinking, calls, reply));
            assert_eq!(found, (thoughts.into(), text.into()), "{reply:?}");
        }
    }
}

/// A call as `name(key=value, ...)`, with what is wrong with it.
fn shown(events: &[Event]) -> Vec<String> {
    let show = |event: &Event| match event {
        Event::Text(text) => format!("{text:?}"),
        Event::Call(call) => {
            let values = call.parameters.iter().map(|(key, value)| format!("{key}={value:?}"));
            let values: Vec<String> = values.collect();
            let cut = if call.whole { "" } else { " cut" };
            let problems = if call.problems.is_empty() { "" } else { " !" };
            format!("{}({}){cut}{problems}", call.name, values.join(", "))
        }
        other => panic!("{other:?}"),
    };
    events.iter().map(show).collect()
}

#[test]
fn calls() {
    let call = |body: &str| format!("<tool_call>\n<function=f>\n{body}</function>\n</tool_call>");
    let a = |value: &str| format!("<parameter=a>\n{value}\n</parameter>\n");
    let cases: Vec<(String, &[&str])> = vec![
        (call(&a("x")), &[r#"f(a="x")"#]),
        (call(""), &["f()"]),
        (call(&a("")), &[r#"f(a="")"#]),
        (call("<parameter=a>\n</parameter>\n"), &[r#"f(a="")"#]),
        (call("<parameter=a>x</parameter>"), &[r#"f(a="x")"#]),
        (call(&a("a\n</b>\n\n  x")), &[r#"f(a="a\n</b>\n\n  x")"#]),
        (call(&a("\n x \n")), &[r#"f(a="\n x \n")"#]),
        (call(&a("1 </parameter> 2")), &[r#"f(a="1 </parameter> 2")"#]),
        (call(&a("</parameter>")), &[r#"f(a="</parameter>")"#]),
        (call(&a("a </function> b </tool_call> c")), &[r#"f(a="a </function> b </tool_call> c")"#]),
        (call(&a("<parameter=b> x <tool_call>")), &[r#"f(a="", b=" x <tool_call>") !"#]),
        (call(&a("if a <parameter=b>")), &[r#"f(a="if a <parameter=b>")"#]),
        (call(&a("x\n<parameter=zz>\ny")), &[r#"f(a="x\n<parameter=zz>\ny")"#]),
        (call("<parameter=a>\nx\n<parameter=b>\n2\n</parameter>\n"), &[r#"f(a="x", b="2") !"#]),
        (call("<parameter=a>\nx\n"), &[r#"f(a="x") !"#]),
        (call(&(a("x") + &a("y"))), &[r#"f(a="x", a="y")"#]),
        (call(&(a("x") + "so\n" + "<parameter=b>\n1\n</parameter>\n")), &[r#"f(a="x\n</parameter>\nso", b="1") !"#]),
        ("<tool_call><function=f><parameter=a>x</parameter></function></tool_call>".into(), &[r#"f(a="x")"#]),
        ("<tool_call>\n<function= my tool >\n</function>\n</tool_call>".into(), &["my tool()"]),
        ("<tool_call>\n<function=f\n<parameter=a\nx</parameter></function></tool_call>".into(), &[r#"f(a="x") !"#]),
        (format!("Let me see.\n\n{}", call(&a("x"))), &["\"Let me see.\"", r#"f(a="x")"#]),
        (format!("{}\n\nDone.\n", call(&a("x"))), &[r#"f(a="x")"#, "\"\\n\\nDone.\\n\""]),
        (call(&a("x")) + "\n", &[r#"f(a="x")"#]),
        (format!("{}\n{}", call(&a("x")), call(&a("y"))), &[r#"f(a="x")"#, r#"f(a="y")"#]),
        (format!("{}{}", call(&a("x")), call(&a("y"))), &[r#"f(a="x")"#, r#"f(a="y")"#]),
        // Closing tags that are missing.
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>\nt".into(), &[r#"f(a="x") !"#, "\"\\nt\""]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</tool_call>\nt".into(), &[r#"f(a="x") !"#, "\"\\nt\""]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>".into(), &[r#"f(a="x") !"#]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>".into(), &[r#"f(a="x") !"#]),
        ("<tool_call>\n<function=f>\n</function>\n<tool_call>\n<function=any>\n</function>\n</tool_call>".into(), &["f() !", "any()"]),
        ("<tool_call>\n<function=f>\n<tool_call>\n<function=any>\n</function>\n</tool_call>".into(), &["f() !", "any()"]),
        ("<tool_call>\n<function=f>\n</function>\n<function=any>\n</function>\n</tool_call>".into(), &["f()", "any()"]),
        ("<tool_call>\n<function=f>\n</function>\nand so on".into(), &["f() !", "\"\\nand so on\""]),
        // Cut by the end.
        ("<tool_call>\n<function=f>\n<parameter=a>\nx".into(), &[r#"f(a="x") cut !"#]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</para".into(), &[r#"f(a="x") cut !"#]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</func".into(), &[r#"f(a="x") cut !"#]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool".into(), &[r#"f(a="x") !"#]),
        ("<tool_call>\n<function=f>\n<parameter=a".into(), &[r#"f(a="") cut !"#]),
        ("<tool_call>\n<function=f".into(), &["f() cut !"]),
        // No calls.
        ("<tool_call>".into(), &["\"<tool_call>\""]),
        ("use <tool_call> like this".into(), &["\"use <tool_call> like this\""]),
        ("<tool_call>{\"name\": \"f\"}</tool_call>".into(), &["\"<tool_call>{\\\"name\\\": \\\"f\\\"}</tool_call>\""]),
        ("<function=f>\n</function>".into(), &["\"<function=f>\\n</function>\""]),
        ("a < b </tool_call> c".into(), &["\"a < b </tool_call> c\""]),
    ];
    for (reply, expected) in cases {
        assert_eq!(shown(&parse(false, true, &reply)), expected, "{reply:?}");
        let thought = format!("hm\n</think>\n\n{reply}");
        let rest: Vec<Event> = parse(true, true, &thought).split_off(1);
        assert_eq!(shown(&rest), expected, "{thought:?}");
        // Without tools it is all text.
        let text: Vec<Event> = parse(false, false, &reply);
        assert_eq!(parts(&text), (String::new(), reply.clone()));
    }
}

#[test]
fn text_comes_as_soon_as_it_is_sure() {
    let mut parser = ReplyParser::new(true, Some(tools()));
    let mut step = |text: &str| {
        let mut all = Vec::new();
        parser.push(text, &mut all);
        all
    };
    assert_eq!(step("so"), [Event::Thinking("so".into())]);
    assert_eq!(step(" <b>\n"), [Event::Thinking(" <b>".into())]);
    assert_eq!(step("</thin"), []);
    assert_eq!(step("g\n"), [Event::Thinking("\n</thing".into())]);
    assert_eq!(
        step("</think>\n"),
        [Event::Markup("\n</think>".into()), Event::Markup("\n".into())]
    );
    assert_eq!(step("\nA word "), [Event::Markup("\n".into()), Event::Text("A word".into())]);
    assert_eq!(step("more"), [Event::Text(" more".into())]);
}

/// A small generator of its own, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Replies put together from what matters to the parser, cut at random: the same events for every
/// cut, no byte lost, no panic.
#[test]
fn random_replies_at_random_cuts() {
    const WORDS: [&str; 30] = [
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<function=",
        "</function>",
        "<function=f>",
        "<function=any>",
        "<parameter=",
        "<parameter=a>",
        "<parameter=b>",
        "</parameter>",
        ">",
        "<",
        "</",
        "\n",
        "\n\n",
        " ",
        "\t",
        "a",
        "b",
        "word ",
        "é",
        "😀",
        "{\"a\": 1}",
        "<param",
        "eter=a>",
        "</func",
        "tion>",
        "\u{0}",
    ];
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut reply = String::new();
        for _ in 0..random.below(24) {
            let word = WORDS[random.below(WORDS.len())];
            // Often a beginning only.
            let cut = if random.below(8) == 0 { random.below(word.len() + 1) } else { word.len() };
            let cut = (cut..).find(|&at| word.is_char_boundary(at)).unwrap();
            reply.push_str(&word[..cut]);
        }
        let (thinking, calls) = (random.below(2) == 0, random.below(4) > 0);
        let whole = events(thinking, calls, [reply.as_str()]);
        assert_eq!(bytes(&whole), reply, "seed {seed}");
        for _ in 0..3 {
            let mut pieces = Vec::new();
            let mut rest = reply.as_str();
            while !rest.is_empty() {
                let at = 1 + random.below(rest.len().min(9));
                let at = (at..).find(|&at| rest.is_char_boundary(at)).unwrap();
                pieces.push(&rest[..at]);
                rest = &rest[at..];
            }
            let cut = events(thinking, calls, pieces.iter().copied());
            assert_eq!(cut, whole, "seed {seed}: {reply:?} as {pieces:?}");
        }
    }
}

/// Long and hostile replies take time in proportion to their length.
#[test]
fn long_replies_are_read_in_time() {
    let start = std::time::Instant::now();
    for unit in ["<", "</parameter>", "<parameter=", " ", "\n", "</function>", "<tool_call>", "x"] {
        let reply = format!("<tool_call>\n<function=f>\n<parameter=a>\n{}", unit.repeat(20_000));
        let mut parser = ReplyParser::new(false, Some(tools()));
        let mut all = Vec::new();
        for piece in reply.as_bytes().chunks(4) {
            parser.push(std::str::from_utf8(piece).unwrap(), &mut all);
        }
        parser.finish(&mut all);
        assert_eq!(bytes(&all), reply);
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
