use super::*;
use std::collections::HashSet;

fn spellings() -> Spellings {
    Spellings::new(["<a>", "</a>", "<a><b>", "|x|"].map(String::from))
}

/// The sealed source with seals shown as their spelling in double brackets.
fn sealed(source: &str) -> String {
    let spellings = spellings();
    let base = Base::free(spellings.len(), &HashSet::new()).unwrap();
    // Good enough for these literals.
    let literal = |text: &str| {
        let inner = text.get(1..text.len() - 1)?;
        Some(inner.replace("\\n", "\n").replace("\\x3c", "<").replace("\\'", "'"))
    };
    let mut shown = String::new();
    for c in seal_source(source, &spellings, base, literal).chars() {
        match base.index(c, spellings.len()) {
            Some(index) => shown.push_str(&format!("⟦{}⟧", spellings.get(index))),
            None => shown.push(c),
        }
    }
    shown
}

/// Nothing of the source may be sealed.
fn untouched(source: &str) {
    assert_eq!(sealed(source), source);
}

#[test]
fn text_is_sealed_the_longest_spelling_first() {
    assert_eq!(sealed("1<a>2</a>3"), "1⟦<a>⟧2⟦</a>⟧3");
    assert_eq!(sealed("<a><b><a><a></a>"), "⟦<a><b>⟧⟦<a>⟧⟦<a>⟧⟦</a>⟧");
    assert_eq!(
        sealed("<a{{ x }}><a> {% raw %}{{ '<a>' }}{% endraw %}"),
        "<a{{ x }}>⟦<a>⟧ {% raw %}{{ '⟦<a>⟧' }}{% endraw %}"
    );
    untouched("<b> < a> {# <a> #} {#- '<a>");
    untouched("");
}

#[test]
fn written_literals_are_sealed() {
    assert_eq!(sealed("{{ '<a>' + x + \"</a>\" }}"), "{{ \"⟦<a>⟧\" + x + \"⟦</a>⟧\" }}");
    assert_eq!(sealed(r"{{- 'q\n<a>' -}}"), r#"{{- "q\n⟦<a>⟧" -}}"#);
    // A spelling that only the value of the literal shows.
    assert_eq!(sealed(r"{{ '\x3ca>' }}"), r#"{{ "⟦<a>⟧" }}"#);
    for (source, part) in [
        ("{% set x = '<a>' %}", "⟦<a>⟧"),
        ("{{ ['<a>', 1][0] }}", "⟦<a>⟧"),
        ("{{ {'k': '<a>'} }}", "⟦<a>⟧"),
        ("{{ {'k': {'k': '<a>'}}['k'] }}", "⟦<a>⟧"),
        ("{{ '<a>' if x == 'y' else '</a>' }}", "⟦</a>⟧"),
        ("{{ x if y else '<a>' }}", "⟦<a>⟧"),
        ("{{ '<a>'.join(xs) }}", "⟦<a>⟧"),
        ("{{ xs | join('<a>') }}", "⟦<a>⟧"),
        ("{{ x | default('<a>') }}", "⟦<a>⟧"),
        ("{{ x.get('k', '<a>') }}", "⟦<a>⟧"),
        ("{{ x.replace('k', '<a>') }}", "⟦<a>⟧"),
        ("{{ x | replace('k', '<a>') }}", "⟦<a>⟧"),
        ("{{ f('<a>', y='</a>') }}", "⟦</a>⟧"),
        ("{% for t in ['<a>', '</a>'] %}{{ t }}{% endfor %}", "⟦</a>⟧"),
        ("{% macro m(x='<a>') %}{% endmacro %}", "⟦<a>⟧"),
        ("{{ '<a>' ~ ('</a>' ~ x) }}", "⟦</a>⟧"),
        ("{{ '<a>' * 2 }}", "⟦<a>⟧"),
        ("{{ x and '<a>' or not y and '</a>' }}", "⟦</a>⟧"),
    ] {
        let sealed = sealed(source);
        assert!(sealed.contains(part), "{source}: {sealed}");
        assert!(!source.contains("'<a>'") || sealed.contains("⟦<a>⟧"), "{source}: {sealed}");
    }
}

#[test]
fn deciding_literals_stay() {
    for source in [
        "{% if '<a>' in x %}",
        "{% if '<a>' not in x %}",
        "{% if not '<a>' in x %}",
        "{% if x in '<a>' %}",
        "{% if x in ['<a>', ('</a>', '|x|')] %}",
        "{% if x not in ('<a>', '</a>') %}",
        "{% if x == '<a>' %}",
        "{% if '<a>' != x %}",
        "{% if x == ('<a>' + y) %}",
        "{% if x.startswith('<a>') and x.endswith(\"</a>\") %}",
        "{% if x.startswith(('<a>', '</a>')) %}",
        "{{ x.split('</a>')[0].rstrip('\\n').split('<a>')[-1].lstrip('\\n') }}",
        "{{ x.replace('<a>', '') }}",
        "{{ x | replace('<a>', '') }}",
        "{{ x | trim('<a>') }}",
        "{{ xs | selectattr('k', 'equalto', '<a>') | list }}",
        "{{ xs | map('replace', '<a>', '') }}",
        "{% if x is startingwith '<a>' %}",
        "{% if x is not startingwith('<a>') %}",
        "{% if x is in ['<a>'] %}",
        "{{ x['<a>'] }}",
        "{{ x.y['<a>'].z }}",
        "{{ f(x)['<a>'] }}",
        "{{ {'<a>': 1} }}",
        "{{ x.find('<a>') }}{{ x.count('<a>') }}{{ x.removeprefix('<a>') }}{{ x.partition('<a>') }}",
        "{% for y in x if y == '<a>' %}{% endfor %}",
        "{% for y in x if '<a>' in y %}{% endfor %}",
        "{% filter replace('<a>', '') %}{% endfilter %}",
        "{{ x.get('<a>') }}",
    ] {
        untouched(source);
    }
}

#[test]
fn tags_end_where_the_engine_ends_them() {
    // A brace within brackets, quotes within comments, quotes in quotes.
    assert_eq!(sealed("{{ {'a': {'b': 1}} }}<a>"), "{{ {'a': {'b': 1}} }}⟦<a>⟧");
    assert_eq!(sealed("{{ '}}<a>' }}<a>"), "{{ \"}}⟦<a>⟧\" }}⟦<a>⟧");
    assert_eq!(sealed("{# it's #}<a>{{ \"it's\" }}<a>"), "{# it's #}⟦<a>⟧{{ \"it's\" }}⟦<a>⟧");
    assert_eq!(sealed(r"{{ 'it\'s' }}<a>"), r"{{ 'it\'s' }}⟦<a>⟧");
    assert_eq!(sealed("{%- if x -%}<a>{%+ endif +%}<a>"), "{%- if x -%}⟦<a>⟧{%+ endif +%}⟦<a>⟧");
    assert_eq!(sealed("{%- raw -%}{{<a>{%- endraw %}<a>"), "{%- raw -%}{{⟦<a>⟧{%- endraw %}⟦<a>⟧");
    assert_eq!(sealed("{ {<a>} } {"), "{ {⟦<a>⟧} } {");
    // Unfinished ones end with the text.
    for source in ["{{ '<a>", "{{ \"\\", "{% if ", "{# <a>", "{{", "{{ é '", "{% raw %}"] {
        untouched(source);
    }
}

#[test]
fn any_source_is_covered_without_gaps() {
    let parts = [
        "{{", "}}", "{%", "%}", "{#", "#}", "'", "\"", "\\", "<a>", "raw", "endraw", " ", "-", "é",
        "😀", "(", "]", "x", "==", "in", "\n",
    ];
    let mut state = 1u64;
    for _ in 0..3000 {
        let mut source = String::new();
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            source.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        let tokens = lex(&source);
        let mut at = 0;
        for token in &tokens {
            assert_eq!(token.range.start, at, "{source:?}");
            at = token.range.end;
        }
        assert_eq!(at, source.len(), "{source:?}");
        let _ = sealed(&source);
        let _ = crate::chat::prepare::prepare(&source);
    }
}

#[test]
fn seals_avoid_what_is_used() {
    let free = |used: &[char]| Base::free(3, &used.iter().copied().collect());
    assert_eq!(free(&[]), Some(Base(0xE000)));
    assert_eq!(free(&['\u{e001}']), Some(Base(0xE002)));
    assert_eq!(free(&['\u{e002}', '\u{e005}']), Some(Base(0xE006)));
    let all: HashSet<char> = ('\u{e000}'..='\u{f8ff}').collect();
    assert_eq!(Base::free(3, &all), Some(Base(0xF_0000)));
    let all: HashSet<char> = ('\0'..=char::MAX).filter(|&c| is_private_use(c)).collect();
    assert_eq!(Base::free(3, &all), None);
    assert_eq!(Base::free(0, &HashSet::new()), Some(Base(0xE000)));
    let spellings = spellings();
    let base = Base(0xE000);
    let text = "x<a><b>|x|é";
    let sealed = spellings.seal(text, base);
    assert_eq!(sealed.chars().filter(|&c| is_private_use(c)).count(), 2);
    assert_eq!(spellings.unseal(&sealed, base), text);
}
