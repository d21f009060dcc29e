//! Templates that do not compile, do not end, or take too much: always an error, soon.

use std::time::{Duration, Instant};

use qwen35::ErrorKind;
use qwen35::chat::{ChatRequest, ChatTemplate};

fn compile(source: &str) -> qwen35::Result<ChatTemplate> {
    ChatTemplate::from_source(source, &[], &["<|im_end|>"])
}

/// The error of compiling or rendering, which must come soon and on a small stack.
fn failure(source: &str) -> String {
    failure_within(5, source)
}

fn failure_within(seconds: u64, source: &str) -> String {
    let owned = source.to_string();
    let run = move || {
        let request = ChatRequest::from_turns([("user", "hi")]);
        let start = Instant::now();
        let error = compile(&owned).and_then(|t| t.render(&request)).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(seconds), "took {:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::Template);
        error.message().to_string()
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap();
    thread.join().unwrap_or_else(|_| panic!("{source}"))
}

#[test]
fn broken_templates_name_the_line() {
    assert!(failure("{% for m in").contains("line 1"));
    assert!(failure("a\nb\n{{ x").contains("line 3"));
    assert!(failure("a\n{% nonsense %}").contains("line 2"));
    assert!(failure("a\n\n{{ 'x' | foo }}").contains("foo"));
    assert!(failure("a\n\n{{ 'x' | foo }}").contains("line 3"));
    assert!(failure("{{ messages[0].content.foo() }}").contains("foo"));
    assert!(failure("{{ missing.field }}").contains("line 1"));
    assert!(failure("").contains("empty"));
    assert!(failure(" \n\t").contains("empty"));
    assert!(
        failure("{% macro m() %}\n{{ raise_exception('inside') }}\n{% endmacro %}\n\n{{ m() }}")
            .contains("inside")
    );
    assert!(failure("{% include 'other' %}").contains("line 1"));
    assert!(failure("{% raw %}").contains("line 1"));
    assert!(failure("{# ").contains("line 1"));
    assert!(failure("{{ '").contains("line 1"));
}

#[test]
fn endless_work_is_stopped() {
    let stopped = "was stopped";
    let loops = |n: usize, body: &str| {
        format!("{}{body}{}", "{% for i in range(100000) %}".repeat(n), "{% endfor %}".repeat(n))
    };
    assert!(failure(&loops(2, "")).contains(stopped));
    assert!(failure(&loops(4, "x")).contains(stopped));
    assert!(failure("{% for i in range(10**9) %}x{% endfor %}").contains("range"));
    // Texts and lists that double.
    for step in
        ["ns.x ~ ns.x", "ns.x + ns.x", "ns.x.replace('a', 'aa')", "ns.x | replace('a', 'aa')"]
    {
        let source = format!(
            "{{% set ns = namespace(x='a') %}}{{% for i in range(99999) %}}{{% set ns.x = {step} %}}{{% endfor %}}"
        );
        assert!(failure(&source).contains(stopped), "{step}");
    }
    let lists = "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x %}{% endfor %}";
    assert!(failure(lists).contains("too many items"));
    assert!(failure("{{ 'x' * 10000000000 }}").contains(stopped));
    assert!(failure("{{ 'x'.ljust(10000000000) }}").contains(stopped));
    failure("{{ [1] * 10000000000 }}");
    // Fields that are wide, and many fields, separators or values that are long.
    for source in [
        "{{ '{:>10000000000}'.format(1) }}",
        "{{ '{:.10000000000f}'.format(1.5) }}",
        "{{ ('{0}' * 100000).format('a' * 100000) }}",
        "{{ ('{a}' * 100000).format(a='a' * 100000) }}",
        "{{ ('%s' * 10000) | format(*['a' * 100000] * 10000) }}",
        "{{ ('%(a)s' * 100000) | format({'a': 'a' * 100000}) }}",
        "{{ '%010000000000d' | format(1) }}",
        "{{ ''.join(['a' * 1000000] * 90000) }}",
        "{{ ('a' * 1000000).join(['b'] * 90000) }}",
        "{% set l = range(90000) | list %}{% for i in range(90000) %}{{ l.count(1) }}{% endfor %}",
    ] {
        assert!(failure(source).contains(stopped), "{source}");
    }
    // A small value that is huge when written out.
    for write in
        ["ns.x", "ns.x | tojson", "ns.x | string", "ns.x ~ ''", "ns.x | join", "ns.x | trim"]
    {
        let source = format!(
            "{{% set ns = namespace(x=['a']) %}}{{% for i in range(60) %}}{{% set ns.x = [ns.x, ns.x] %}}{{% endfor %}}{{{{ {write} }}}}"
        );
        assert!(failure(&source).contains("chat template"), "{write}");
    }
    // Looking at long texts takes time but hardly fuel, which alone would let these go on for
    // minutes.
    for body in [
        "{{ LAST }}",
        "{% if LAST == x %}{% endif %}",
        "{% if x %}{% elif LAST == 'a' %}{% endif %}",
        "{% set x = LAST == x %}",
        "{% with x = 1, y = LAST %}{% endwith %}",
        "{% for j in LAST if LAST == 'a' %}{% endfor %}",
        "{% do range(3 if LAST == 'a' else 2) %}",
    ] {
        let body = body.replace("LAST", "s[3999998]");
        let source = format!(
            "{{% set s = 'ab' * 2000000 %}}{{% for i in range(90000) %}}{body}{{% endfor %}}"
        );
        assert!(failure_within(60, &source).contains(stopped), "{body}");
    }
}

#[test]
fn deep_recursion_is_stopped() {
    failure("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}");
    failure("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
    failure(&format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)));
    failure(&format!("{}{}", "{% if 1 %}".repeat(10_000), "{% endif %}".repeat(10_000)));
    failure(&format!("{{{{ {}1 }}}}", "-".repeat(10_000)));
    failure(&format!("{{{{ {}1 }}}}", "not ".repeat(10_000)));
    let _ = compile(&format!("{{{{ 1{} }}}}", " + 1".repeat(10_000)));
    let _ = compile(&format!("{{{{ a{} }}}}", ".b".repeat(10_000)));
    let _ = compile(&format!("{{{{ a{} }}}}", "|trim".repeat(10_000)));
}

/// A list in a list in a list .. cannot be freed by plain recursion on a small stack.
#[test]
fn deeply_nested_values_do_not_overflow_the_stack() {
    for wrap in ["[ns.x]", "{'k': ns.x}", "(ns.x,)"] {
        for write in
            ["", "{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == ns.x }}", "{{ ns.x ~ '' }}"]
        {
            let source = format!(
                "{{% set ns = namespace(x=1) %}}{{% for i in range(100000) %}}{{% set ns.x = {wrap} %}}{{% endfor %}}{write}{{{{ raise_exception('end') }}}}"
            );
            failure(&source);
        }
    }
}
