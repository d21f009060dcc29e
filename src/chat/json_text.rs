//! JSON values as text, in the style of Python's `json.dumps(value, ensure_ascii=False)`.

use std::fmt::Write;

use super::json::Json;
use super::python;

impl Json {
    /// The value as one line of JSON. Floats beyond their range become `null`.
    pub(crate) fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Appends the value, see [`Json::to_text`].
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(on) => out.push_str(if *on { "true" } else { "false" }),
            // Writing to a String cannot fail.
            Json::Int(n) => drop(write!(out, "{n}")),
            Json::BigInt(digits) => out.push_str(digits),
            Json::Float(f) if f.is_finite() => out.push_str(&python::float(*f)),
            Json::Float(_) => out.push_str("null"),
            Json::String(text) => write_string(text, false, out),
            Json::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(entries) => {
                out.push('{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    write_string(key, false, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends `text` in double quotes, with what JSON demands escaped, and with `ascii` all that
/// is not ASCII as well.
pub(super) fn write_string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ascii && !(' '..='~').contains(&c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            r#"{"a": [1, -2.5, true, false, null, "é\"\\\n\r\t\b\f\u0000"], "b": {}, "c": []}"#,
            "1e+300",
            "123456789012345678901234567890123456789012",
            r#""😀 </script> \u001f""#,
        ] {
            assert_eq!(Json::parse(text).unwrap().to_text(), text);
        }
        assert_eq!(Json::Float(f64::INFINITY).to_text(), "null");
    }
}
