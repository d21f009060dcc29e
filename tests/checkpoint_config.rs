//! `config.json` in the forms that tools write, and what must not pass for one.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;

use qwen35::checkpoint::{Config, LayerKind};
use qwen35::{Error, ErrorKind};
use serde_json::{Value, json};
use synthetic::Spec;
use temp::TempDir;

fn published() -> Value {
    Spec::named("qwen3.5-0.8b").config
}

fn parse(config: &Value) -> Result<Config, Error> {
    Config::from_json(config.to_string().as_bytes(), None)
}

/// The published file with one key of `text_config` set; null removes it.
fn with(key: &str, value: Value) -> Value {
    let mut config = published();
    set(&mut config["text_config"], key, value);
    config
}

fn set(object: &mut Value, key: &str, value: Value) {
    object.as_object_mut().unwrap().shift_remove(key);
    if !value.is_null() {
        object[key] = value;
    }
}

/// The text-only form: the keys of `text_config` at the top, another architecture.
fn flat() -> Value {
    let mut config = published()["text_config"].clone();
    config["architectures"] = json!(["Qwen3_5ForCausalLM"]);
    config
}

#[track_caller]
fn refused(config: &Value, parts: &[&str]) -> ErrorKind {
    refused_text(&config.to_string(), parts)
}

#[track_caller]
fn refused_text(config: &str, parts: &[&str]) -> ErrorKind {
    let error = Config::from_json(config.as_bytes(), None).expect_err("accepted");
    let message = error.to_string();
    for part in parts.iter().chain(&["config.json"]) {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    error.kind()
}

#[test]
fn the_published_configurations_are_read_in_full() {
    let config = parse(&published()).unwrap();
    let expected = Config {
        vocab_size: 248_320,
        hidden_size: 1024,
        intermediate_size: 3584,
        num_hidden_layers: 24,
        num_attention_heads: 8,
        num_key_value_heads: 2,
        head_dim: 256,
        rotary_dim: 64,
        rope_theta: 1e7,
        mrope_section: [11, 11, 10],
        rms_norm_eps: 1e-6,
        linear_num_key_heads: 16,
        linear_num_value_heads: 16,
        linear_key_head_dim: 128,
        linear_value_head_dim: 128,
        linear_conv_kernel_dim: 4,
        layer_kinds: (0..24)
            .map(|i| if i % 4 == 3 { LayerKind::Full } else { LayerKind::Linear })
            .collect(),
        tie_word_embeddings: true,
        max_position_embeddings: 262_144,
        mtp_num_hidden_layers: 1,
        eos_token_ids: vec![248_044],
    };
    assert_eq!(config, expected);
    assert_eq!(
        (config.key_width(), config.value_width(), config.conv_channels()),
        (2048, 2048, 6144)
    );

    for (size, hidden, inner, layers, heads, kv_heads, value_heads, tied) in [
        ("2b", 2048, 6144, 24, 8, 2, 16, true),
        ("4b", 2560, 9216, 32, 16, 4, 32, true),
        ("9b", 4096, 12288, 32, 16, 4, 32, false),
        ("27b", 5120, 17408, 64, 24, 4, 48, false),
    ] {
        let config = parse(&Spec::named(&format!("qwen3.5-{size}")).config).unwrap();
        let expected = Config {
            hidden_size: hidden,
            intermediate_size: inner,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: kv_heads,
            linear_num_value_heads: value_heads,
            layer_kinds: expected.layer_kinds.iter().copied().cycle().take(layers).collect(),
            tie_word_embeddings: tied,
            ..expected.clone()
        };
        assert_eq!(config, expected, "{size}");
    }
}

#[test]
fn nested_and_flat_forms_mean_the_same() {
    let expected = parse(&published()).unwrap();
    assert_eq!(parse(&flat()).unwrap(), expected);

    // A byte order mark, Windows line ends, null for absent, keys given in both places alike.
    let text = serde_json::to_string_pretty(&published()).unwrap();
    let dressed = format!("\u{FEFF}{}\r\n", text.replace('\n', "\r\n"));
    assert_eq!(Config::from_json(dressed.as_bytes(), None).unwrap(), expected);
    let mut both = published();
    both["hidden_size"] = json!(1024);
    both["quantization_config"] = Value::Null;
    assert_eq!(parse(&both).unwrap(), expected);
    let mut null = flat();
    null["text_config"] = Value::Null;
    assert_eq!(parse(&null).unwrap(), expected);

    both["hidden_size"] = json!(1025);
    refused(&both, &["hidden_size", "1024", "1025"]);
    let mut odd = published();
    odd["text_config"] = json!(7);
    refused(&odd, &["text_config"]);
}

#[test]
fn rotary_settings_are_found_wherever_they_are() {
    let expected = parse(&published()).unwrap();
    let rope = published()["text_config"]["rope_parameters"].clone();

    let mut beside = with("rope_parameters", Value::Null);
    beside["text_config"]["rope_theta"] = json!(10_000_000.0);
    beside["text_config"]["partial_rotary_factor"] = json!(0.25);
    assert_eq!(parse(&beside).unwrap(), expected);

    let mut former = with("rope_parameters", Value::Null);
    former["text_config"]["rope_scaling"] =
        json!({ "type": "mrope", "mrope_section": [11, 11, 10], "mrope_interleaved": true });
    former["text_config"]["rope_theta"] = json!(10_000_000);
    former["text_config"]["partial_rotary_factor"] = json!(0.25);
    assert_eq!(parse(&former).unwrap(), expected);

    let mut top = with("rope_parameters", Value::Null);
    top["rope_parameters"] = rope.clone();
    assert_eq!(parse(&top).unwrap(), expected);

    for key in ["rope_theta", "partial_rotary_factor"] {
        let mut missing = published();
        set(&mut missing["text_config"]["rope_parameters"], key, Value::Null);
        refused(&missing, &[key, "is missing"]);
    }
    for (key, value) in [("rope_theta", json!(10_000)), ("partial_rotary_factor", json!(1.0))] {
        let mut two = published();
        two["text_config"][key] = value;
        refused(&two, &[key, "rope_parameters of text_config", "text_config"]);
    }
    for (home, key) in
        [("rope_parameters", "rope_type"), ("rope_parameters", "type"), ("rope_scaling", "type")]
    {
        for kind in ["yarn", "linear", "dynamic", "llama3", "longrope"] {
            let mut scaled = published();
            if home == "rope_scaling" {
                scaled["text_config"][home] = json!({});
            }
            scaled["text_config"][home][key] = json!(kind);
            assert_eq!(refused(&scaled, &["rope", kind]), ErrorKind::Unsupported);
        }
    }
    for (key, value) in [
        ("rope_theta", json!(0)),
        ("rope_theta", json!(-1e7)),
        ("rope_theta", json!("10000000")),
        ("partial_rotary_factor", json!(0)),
        ("partial_rotary_factor", json!(1.5)),
        ("partial_rotary_factor", json!(0.001)),
        ("mrope_section", json!([11, 11])),
        ("mrope_section", json!([11, 11, 11])),
        ("mrope_section", json!([11, 11, -10])),
        ("mrope_section", json!([u64::MAX, 1, 32])),
        ("mrope_section", json!("11")),
    ] {
        let mut bad = published();
        bad["text_config"]["rope_parameters"][key] = value;
        refused(&bad, &[key]);
    }
    refused(&with("rope_parameters", json!([1])), &["rope_parameters"]);

    // Text-only files of other head sizes need no section.
    let mut small = with("head_dim", json!(64));
    set(&mut small["text_config"]["rope_parameters"], "mrope_section", Value::Null);
    assert_eq!(parse(&small).unwrap().mrope_section, [8, 0, 0]);
}

#[test]
fn layers_come_from_the_list_or_the_interval() {
    let expected = parse(&published()).unwrap();
    assert_eq!(parse(&with("layer_types", Value::Null)).unwrap(), expected);
    assert_eq!(parse(&with("full_attention_interval", Value::Null)).unwrap(), expected);
    let mut neither = with("layer_types", Value::Null);
    set(&mut neither["text_config"], "full_attention_interval", Value::Null);
    refused(&neither, &["layer_types", "full_attention_interval"]);

    refused(&with("num_hidden_layers", json!(23)), &["24", "num_hidden_layers is 23"]);
    refused(&with("full_attention_interval", json!(3)), &["layer_types[2]", "3"]);
    refused(&with("full_attention_interval", json!(0)), &["full_attention_interval"]);
    refused(&with("layer_types", json!("x")), &["layer_types", "array"]);
    let mut kinds = published()["text_config"]["layer_types"].clone();
    kinds[5] = json!("sliding_attention");
    let kind =
        refused(&with("layer_types", kinds.clone()), &["layer_types[5]", "sliding_attention"]);
    assert_eq!(kind, ErrorKind::Unsupported);
    kinds[5] = json!(5);
    refused(&with("layer_types", kinds), &["layer_types[5]"]);
}

#[test]
fn missing_and_senseless_numbers_are_named() {
    for key in [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "rms_norm_eps",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
        "max_position_embeddings",
    ] {
        refused(&with(key, Value::Null), &[key, "is missing"]);
        for value in [
            json!(0),
            json!(-1),
            json!(1u64 << 40),
            json!(u64::MAX),
            json!(1e300),
            json!("1024"),
            json!([1024]),
            json!({}),
            json!(true),
        ] {
            refused(&with(key, value), &[key]);
        }
        // Spellings that Python writes and JSON does not know, and numbers beyond all types.
        for number in ["NaN", "Infinity", "-Infinity", "1e999", "01", "1e", "0x10"] {
            let text = with(key, json!("HERE")).to_string().replace("\"HERE\"", number);
            refused_text(&text, &[]);
        }
        if key != "rms_norm_eps" {
            refused(&with(key, json!(1.5)), &[key, "1.5"]);
        }
    }
    refused(&with("num_key_value_heads", json!(3)), &["num_attention_heads is 8", "3"]);
    refused(&with("linear_num_value_heads", json!(24)), &["linear_num_value_heads is 24", "16"]);
    refused(&with("linear_conv_kernel_dim", json!(1)), &["linear_conv_kernel_dim"]);
    refused(&with("rms_norm_eps", json!(1e-60)), &["rms_norm_eps"]);
    refused(&with("rms_norm_eps", json!(1.0)), &["rms_norm_eps"]);
}

#[test]
fn other_models_are_refused_by_what_makes_them_other() {
    for (key, value) in [
        ("model_type", json!("qwen3_5_moe_text")),
        ("model_type", json!("llama")),
        ("model_type", json!(3)),
        ("num_experts", json!(256)),
        ("quantization_config", json!({ "quant_method": "fp8" })),
        ("attn_output_gate", json!(false)),
        ("attention_bias", json!(true)),
        ("hidden_act", json!("gelu")),
    ] {
        assert_eq!(refused(&with(key, value), &[key]), ErrorKind::Unsupported);
    }
    let mut config = published();
    config["model_type"] = json!("qwen3_next");
    assert_eq!(refused(&config, &["qwen3_next"]), ErrorKind::Unsupported);
}

#[test]
fn damaged_files_are_refused_quickly() {
    for text in ["", "[]", "1", "null", "{", "{}", "\u{FEFF}", "{\"a\":1}x", "\0"] {
        refused_text(text, &[]);
    }
    refused_text(&"[".repeat(1_000_000), &[]);
    refused_text(&format!("{{\"a\":{}", "[".repeat(1_000_000)), &[]);
    // Hosts call from threads with little stack.
    let deep = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let work = move || {
        refused_text(&deep(31), &["missing"]);
        for levels in [32, 120, 127, 1000] {
            refused_text(&deep(levels), &["deeper than 32 levels"]);
        }
    };
    std::thread::Builder::new().stack_size(64 << 10).spawn(work).unwrap().join().unwrap();
    let error = Config::from_json(b"{\"a\":\"\xFF\"}", None).unwrap_err().to_string();
    assert!(error.contains("not UTF-8 at byte 6"), "{error}");

    let dir = TempDir::new();
    let error = Config::from_dir(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("config.json"));
    let file = std::fs::File::create(dir.join("config.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = Config::from_dir(dir.path()).unwrap_err().to_string();
    assert!(error.contains("1099511627776 bytes long"), "{error}");
}

/// Seeded damage to a good file: an error or a sensible configuration, never a panic.
#[test]
fn random_damage_gives_errors_not_panics() {
    let good = published().to_string().into_bytes();
    let tokens: [&[u8]; 12] =
        [b"0", b"-", b"9", b"1e9", b"null", b"[]", b"{}", b"\"", b",", b"}", b"16777216", b"\xFF"];
    let mut state = 2u64;
    let mut random = |below: usize| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (synthetic::splitmix64(state) % below as u64) as usize
    };
    for _ in 0..20_000 {
        let mut text = good.clone();
        for _ in 0..1 + random(4) {
            let at = random(text.len());
            let token = tokens[random(tokens.len())];
            match random(4) {
                0 => text[at] = random(256) as u8,
                1 => drop(text.splice(at..at, token.iter().copied())),
                2 => drop(text.splice(at..text.len().min(at + token.len()), token.iter().copied())),
                _ => drop(text.drain(at..text.len().min(at + 1 + random(20)))),
            }
        }
        match Config::from_json(&text, Some(&text)) {
            Ok(config) => {
                assert_eq!(config.layer_kinds.len(), config.num_hidden_layers);
                assert!(config.rotary_dim <= config.head_dim && config.rope_theta > 1.0);
                assert!(config.conv_channels() >= config.value_width());
                assert!(config.eos_token_ids.iter().all(|&id| (id as usize) < config.vocab_size));
            }
            Err(e) => assert!(e.to_string().contains("config.json") && e.to_string().len() < 1000),
        }
    }
}

#[test]
fn end_ids_are_the_union_of_all_places() {
    let ids = |config: &Value, generation: Option<&str>| {
        Config::from_json(config.to_string().as_bytes(), generation.map(str::as_bytes))
            .map(|c| c.eos_token_ids)
            .map_err(|e| e.to_string())
    };
    let none = with("eos_token_id", Value::Null);
    assert_eq!(ids(&none, None).unwrap(), [0u32; 0]);
    assert_eq!(ids(&published(), None).unwrap(), [248_044]);
    let list = with("eos_token_id", json!([248_046, 248_044, 248_046]));
    assert_eq!(ids(&list, None).unwrap(), [248_044, 248_046]);
    let mut top = published();
    top["eos_token_id"] = json!(248_046);
    assert_eq!(ids(&top, None).unwrap(), [248_044, 248_046]);
    let generation = r#"{"eos_token_id":[248046,7]}"#;
    assert_eq!(ids(&published(), Some(generation)).unwrap(), [7, 248_044, 248_046]);
    assert_eq!(ids(&none, Some("\u{FEFF}{\"eos_token_id\":9}")).unwrap(), [9]);
    assert_eq!(ids(&none, Some(r#"{"eos_token_id":null}"#)).unwrap(), [0u32; 0]);
    assert_eq!(ids(&none, Some("{}")).unwrap(), [0u32; 0]);

    for bad in
        [r#"{"eos_token_id":-1}"#, r#"{"eos_token_id":248320}"#, "{", r#"{"eos_token_id":[[1]]}"#]
    {
        let message = ids(&none, Some(bad)).unwrap_err();
        assert!(message.contains("generation_config.json"), "{message}");
    }
    refused(&with("eos_token_id", json!("<|im_end|>")), &["eos_token_id"]);

    // The same from files; a broken link is not an absent file.
    let dir = TempDir::new();
    std::fs::write(dir.join("config.json"), published().to_string()).unwrap();
    assert_eq!(Config::from_dir(dir.path()).unwrap().eos_token_ids, [248_044]);
    std::fs::write(dir.join("generation_config.json"), generation).unwrap();
    assert_eq!(Config::from_dir(dir.path()).unwrap().eos_token_ids, [7, 248_044, 248_046]);
    std::fs::remove_file(dir.join("generation_config.json")).unwrap();
    std::os::unix::fs::symlink("gone", dir.join("generation_config.json")).unwrap();
    let error = Config::from_dir(dir.path()).unwrap_err().to_string();
    assert!(error.contains("generation_config.json: a link to gone"), "{error}");
}
