//! The raw layers of the bindings in examples/, made from include/qwen35.h. Go, Zig and Swift
//! read the header themselves; Python, Lua, JavaScript and C# cannot.

use crate::api::{Api, Named, Value, What};

const NOTE: &str = "Generated from include/qwen35.h by `make header`. Do not edit.";

/// Base type and number of stars of a C type: `const char *const *` is ("char", 2).
fn split(kind: &str) -> (&str, usize) {
    let base = kind.trim_start_matches("const ");
    let base = base.split([' ', '*']).next().unwrap();
    (base, kind.matches('*').count())
}

fn joined(parameters: &[Named], each: impl Fn(&Named) -> String) -> String {
    parameters.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// examples/python/qwen35/_abi.py
pub fn python(api: &Api) -> String {
    let kind = |text: &str| -> String {
        let (base, stars) = split(text);
        let (mut name, wraps) = match (base, stars) {
            ("void", 0) => return "None".to_owned(),
            ("void", n) => ("ctypes.c_void_p".to_owned(), n - 1),
            ("char", 1) => ("ctypes.c_char_p".to_owned(), 0),
            ("char", n) => ("ctypes.c_char".to_owned(), n),
            (base, n) if base.starts_with("qwen_") => (base.to_owned(), n),
            (base, n) => (format!("ctypes.c_{}", base.trim_end_matches("_t")), n),
        };
        for _ in 0..wraps {
            name = format!("ctypes.POINTER({name})");
        }
        name
    };
    // ctypes has c_size_t but c_int32.
    let kind = |text: &str| kind(text).replace("ctypes.c_size", "ctypes.c_size_t");
    let mut text = format!(
        "# {NOTE}\n\"\"\"The C interface as ctypes sees it. What it means is in qwen35.h.\"\"\"\n\n\
         import ctypes\nfrom typing import Any, Dict, List, Tuple\n\n"
    );
    let mut functions = String::new();
    for item in &api.items {
        let name = &item.name;
        match &item.what {
            What::Constant(Value::Number(value)) => text += &format!("{name} = {value}\n"),
            What::Constant(Value::SizeMax) => {
                text += &format!("{name} = ctypes.c_size_t(-1).value\n");
            }
            What::Initializer => {}
            What::Alias(target) => text += &format!("{name} = {}\n", kind(target)),
            What::Opaque => {
                text += &format!("\n\nclass {name}(ctypes.Structure):\n    pass\n\n\n");
            }
            What::Struct(fields) => {
                text += &format!("\n\nclass {name}(ctypes.Structure):\n    _fields_ = [\n");
                for field in fields {
                    text += &format!("        (\"{}\", {}),\n", field.name, kind(&field.kind));
                }
                text += "    ]\n\n\n";
            }
            What::Callback { result, parameters } => {
                let all = joined(parameters, |p| kind(&p.kind));
                text += &format!("{name} = ctypes.CFUNCTYPE({}, {all})\n", kind(result));
            }
            What::Function { result, parameters } => {
                let all: String =
                    parameters.iter().map(|p| format!("\n        {},", kind(&p.kind))).collect();
                let end = if all.is_empty() { "])" } else { "\n    ])" };
                functions += &format!("    \"{name}\": ({}, [{all}{end},\n", kind(result));
            }
        }
    }
    // One blank line too many between neighbours.
    let text = text.replace("\n\n\n\n\n", "\n\n\n");
    text + "\n\n# Result and parameters of each function.\n\
            FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {\n"
        + &functions
        + "}\n"
}

/// A declaration without comments.
fn bare(code: &str) -> String {
    let mut text = String::new();
    let mut rest = code;
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before.trim_end_matches(' ');
        rest = comment.split_once("*/").unwrap().1.trim_start_matches('\n');
    }
    text + rest
}

/// examples/luajit/qwen35_abi.lua
pub fn lua(api: &Api) -> String {
    let (mut declarations, mut constants, mut structs) =
        (String::new(), String::new(), String::new());
    for item in &api.items {
        let name = &item.name;
        match &item.what {
            What::Constant(Value::Number(value)) => {
                constants += &format!("    {name} = {value},\n");
            }
            What::Constant(Value::SizeMax) => {
                constants += &format!("    {name} = 0xffffffffffffffffULL,\n");
            }
            What::Initializer => {}
            what => {
                declarations += &format!("{}\n", bare(&item.code));
                if let What::Struct(fields) = what {
                    let fields = joined(fields, |field| format!("\"{}\"", field.name));
                    structs += &format!("    {name} = {{{fields}}},\n");
                }
            }
        }
    }
    format!(
        "-- {NOTE}\n-- The C interface as LuaJIT's ffi sees it. What it means is in qwen35.h.\n\
         local ffi = require(\"ffi\")\n\nffi.cdef[[\n{declarations}]]\n\nlocal abi = {{}}\n\n\
         abi.constants = {{\n{constants}}}\n\n\
         -- The fields of each struct, in order.\n\
         abi.structs = {{\n{structs}}}\n\nreturn abi\n"
    )
}

/// examples/node/abi.js
pub fn node(api: &Api) -> String {
    // Text goes in as bytes, so that U+0000 can be inside; pointers come out as BigInt.
    let kind = |text: &str| match split(text) {
        ("char", 1) => "const uint8_t *".to_owned(),
        ("char", 2) => "_Out_ const void **".to_owned(),
        _ => text.to_owned(),
    };
    let parameter = |p: &Named| {
        let (base, stars) = split(&p.kind);
        let by_reference = !p.kind.starts_with("const ") && stars == 1;
        let kind = kind(&p.kind);
        let way = match stars {
            // An array of handles goes in, a place for one comes out.
            2 if kind.contains("*const *") => return format!("{base} **{}", p.name),
            2 if !kind.starts_with("_Out_") => "_Out_ ",
            1 if by_reference && api.is_struct(base) => "_Inout_ ",
            1 if by_reference && base == "char" => return format!("_Out_ uint8_t *{}", p.name),
            1 if by_reference && !api.is_opaque(base) && base != "void" => "_Out_ ",
            _ => "",
        };
        let star = if api.is_callback(base) { " *" } else { "" };
        let space = if kind.ends_with('*') || !star.is_empty() { "" } else { " " };
        format!("{way}{kind}{star}{space}{}", p.name)
    };
    let mut text = format!(
        "// {NOTE}\n// The C interface as koffi sees it. What it means is in qwen35.h.\n\
         'use strict';\n\nconst koffi = require('koffi');\n\nconst constants = {{\n"
    );
    for (item, value) in api.constants() {
        match value {
            Value::Number(value) => text += &format!("  {}: {value},\n", item.name),
            Value::SizeMax => text += &format!("  {}: 0xffffffffffffffffn,\n", item.name),
        }
    }
    text += "};\n\n// Types, in the order in which they need each other.\nconst structs = {};\n";
    let mut functions = String::new();
    for item in &api.items {
        let name = &item.name;
        match &item.what {
            What::Constant(_) | What::Initializer => {}
            What::Alias(target) => text += &format!("koffi.alias('{name}', '{target}');\n"),
            What::Opaque => text += &format!("koffi.opaque('{name}');\n"),
            What::Struct(fields) => {
                text += &format!("structs.{name} = koffi.struct('{name}', {{\n");
                for field in fields {
                    let star = if api.is_callback(&field.kind) { " *" } else { "" };
                    let kind = match split(&field.kind) {
                        ("char", 2) => "const char **".to_owned(),
                        _ => kind(&field.kind),
                    };
                    text += &format!("  {}: '{kind}{star}',\n", field.name);
                }
                text += "});\n";
            }
            What::Callback { result, parameters } => {
                let all = joined(parameters, |p| {
                    let space = if p.kind.ends_with('*') { "" } else { " " };
                    format!("{}{space}{}", p.kind, p.name)
                });
                text += &format!("koffi.proto('{result} {name}({all})');\n");
            }
            What::Function { result, parameters } => {
                let all = joined(parameters, parameter);
                let space = if result.ends_with('*') { "" } else { " " };
                functions += &format!("  {name}: '{result}{space}{name}({all})',\n");
            }
        }
    }
    text + "\nconst functions = {\n"
        + &functions
        + "};\n\n// Opens the library and binds every function.\nfunction load(path) {\n  \
           const library = koffi.load(path);\n  const bound = {};\n  \
           for (const name of Object.keys(functions)) bound[name] = library.func(functions[name]);\n  \
           return bound;\n}\n\nmodule.exports = { constants, structs, load };\n"
}

/// `qwen_stream_decoder` to `StreamDecoder`.
fn pascal(name: &str) -> String {
    let words = name.trim_start_matches("qwen_").split('_');
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// examples/csharp/Native.cs
pub fn csharp(api: &Api) -> String {
    let kind = |text: &str, parameter: bool| -> String {
        let (base, stars) = split(text);
        let scalar = match api.resolve(base) {
            "int32_t" => "int",
            "uint32_t" => "uint",
            "int64_t" => "long",
            "uint64_t" => "ulong",
            "size_t" => "UIntPtr",
            "uint8_t" | "char" => "byte",
            other => other,
        };
        match stars {
            1 if api.is_opaque(base) && parameter => format!("{}Handle", pascal(base)),
            2 if api.is_opaque(base) && text.contains("*const *") => "IntPtr*".to_owned(),
            2 if api.is_opaque(base) && parameter => format!("out {}Handle", pascal(base)),
            _ if api.is_opaque(base) => "IntPtr".to_owned(),
            0 if api.is_callback(base) && !parameter => "IntPtr".to_owned(),
            _ => format!("{scalar}{}", "*".repeat(stars)),
        }
    };
    let mut text = format!(
        "// {NOTE}\n// The C interface as P/Invoke sees it. What it means is in qwen35.h.\n\
         using System;\nusing System.Runtime.InteropServices;\n\nnamespace Qwen35\n{{\n"
    );
    let mut members = String::new();
    for item in &api.items {
        let name = &item.name;
        match &item.what {
            What::Constant(Value::Number(value)) => {
                members += &format!("        public const int {name} = {value};\n");
            }
            What::Constant(Value::SizeMax) => {
                members += &format!(
                    "        public static readonly UIntPtr {name} = \
                     UIntPtr.Size == 8 ? (UIntPtr)ulong.MaxValue : (UIntPtr)uint.MaxValue;\n"
                );
            }
            What::Initializer | What::Alias(_) => {}
            What::Opaque => {
                let class = format!("{}Handle", pascal(name));
                text += &format!(
                    "    /// <summary>Owns a {name}; frees it when nothing uses it any \
                     more.</summary>\n    public sealed class {class} : SafeHandle\n    {{\n        \
                     public {class}() : base(IntPtr.Zero, true) {{ }}\n        \
                     public override bool IsInvalid {{ get {{ return handle == IntPtr.Zero; }} }}\
                     \n        protected override bool ReleaseHandle()\n        {{\n            \
                     Native.{name}_free(handle);\n            return true;\n        }}\n    }}\n\n"
                );
            }
            What::Struct(fields) => {
                text += &format!(
                    "    [StructLayout(LayoutKind.Sequential)]\n    \
                     public unsafe struct {name}\n    {{\n"
                );
                for field in fields {
                    text +=
                        &format!("        public {} {};\n", kind(&field.kind, false), field.name);
                }
                text += "    }\n\n";
            }
            What::Callback { result, parameters } => {
                let all = joined(parameters, |p| format!("{} {}", kind(&p.kind, false), p.name));
                text += &format!(
                    "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]\n    \
                     public unsafe delegate {} {name}({all});\n\n",
                    kind(result, false)
                );
            }
            What::Function { result, parameters } => {
                let frees = name.ends_with("_free");
                let all = joined(parameters, |p| format!("{} {}", kind(&p.kind, !frees), p.name));
                members += &format!(
                    "\n        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]\n\
                     \x20       public static extern {} {name}({all});\n",
                    kind(result, false)
                );
            }
        }
    }
    text + "    public static unsafe class Native\n    {\n        \
            const string Library = \"qwen35\";\n\n"
        + &members
        + "    }\n}\n"
}

/// examples/swift/Layout.swift
pub fn swift(api: &Api) -> String {
    let mut text = format!(
        "// {NOTE}\n// Compares what Swift makes of qwen35.h with what a C compiler does.\n\
         import Qwen35\n\nfunc expect(_ name: String, _ found: Int?, _ expected: Int) {{\n    \
         precondition(found == expected, \"\\(name): \\(String(describing: found)), not \
         \\(expected)\")\n}}\n\nfunc checkLayout() {{\n"
    );
    for (item, value) in api.constants() {
        if let Value::Number(value) = value {
            text += &format!("    expect(\"{0}\", Int({0}), {value})\n", item.name);
        }
    }
    for (item, fields) in api.structs() {
        let name = &item.name;
        let (size, offsets) = layout(api, fields);
        text += &format!("    expect(\"{name}\", MemoryLayout<{name}>.size, {size})\n");
        for (field, (offset, _)) in fields.iter().zip(offsets) {
            text += &format!(
                "    expect(\"{name}.{0}\", MemoryLayout<{name}>.offset(of: \\.{0}), {offset})\n",
                field.name
            );
        }
    }
    text + "}\n"
}

/// Size of a struct, and offset and size of each field, as the x86-64 ABI lays them out.
fn layout(api: &Api, fields: &[Named]) -> (usize, Vec<(usize, usize)>) {
    let (mut end, mut align, mut offsets) = (0usize, 1, Vec::new());
    for field in fields {
        let size = match api.resolve(&field.kind) {
            "int32_t" | "uint32_t" | "float" => 4,
            "int64_t" | "uint64_t" | "size_t" | "double" => 8,
            kind if kind.contains('*') || api.is_callback(kind) => 8,
            kind => panic!("the size of {kind}?"),
        };
        let offset = end.next_multiple_of(size);
        offsets.push((offset, size));
        (end, align) = (offset + size, align.max(size));
    }
    (end.next_multiple_of(align), offsets)
}

/// What every binding must agree on, one line each: `const NAME VALUE`, `struct NAME SIZE`,
/// `field STRUCT.NAME OFFSET SIZE`.
pub fn table(api: &Api) -> String {
    let mut text = String::new();
    for (item, value) in api.constants() {
        match value {
            Value::Number(value) => text += &format!("const {} {value}\n", item.name),
            Value::SizeMax => text += &format!("const {} {}\n", item.name, u64::MAX),
        }
    }
    for (item, fields) in api.structs() {
        let (size, offsets) = layout(api, fields);
        text += &format!("struct {} {size}\n", item.name);
        for (field, (offset, size)) in fields.iter().zip(offsets) {
            text += &format!("field {}.{} {offset} {size}\n", item.name, field.name);
        }
    }
    text
}

/// A C program that prints the table as the compiler sees the header.
pub fn table_in_c(api: &Api) -> String {
    let mut text = "#include <stdio.h>\n#include \"qwen35.h\"\n\nint main(void) {\n".to_owned();
    for (item, value) in api.constants() {
        text += &match value {
            Value::Number(_) => {
                format!("    printf(\"const {0} %lld\\n\", (long long){0});\n", item.name)
            }
            Value::SizeMax => {
                format!("    printf(\"const {0} %zu\\n\", (size_t){0});\n", item.name)
            }
        };
    }
    for (item, fields) in api.structs() {
        let name = &item.name;
        text += &format!("    printf(\"struct {name} %zu\\n\", sizeof({name}));\n");
        for field in fields {
            text += &format!(
                "    printf(\"field {name}.{0} %zu %zu\\n\", offsetof({name}, {0}), \
                 sizeof((({name} *)0)->{0}));\n",
                field.name
            );
        }
    }
    text + "    return 0;\n}\n"
}

/// A Go program that prints the table as cgo sees the header.
pub fn table_in_go(api: &Api) -> String {
    let mut text =
        "package main\n\n// #include \"qwen35.h\"\nimport \"C\"\nimport (\n\t\"fmt\"\n\t\
                    \"unsafe\"\n)\n\nfunc main() {\n"
            .to_owned();
    for (item, value) in api.constants() {
        let cast = if value == Value::SizeMax { "uint64" } else { "int64" };
        text += &format!("\tfmt.Println(\"const {0}\", {cast}(C.{0}))\n", item.name);
    }
    for (item, fields) in api.structs() {
        let name = &item.name;
        text += &format!(
            "\t{{\n\t\tvar v C.{name}\n\t\tfmt.Println(\"struct {name}\", unsafe.Sizeof(v))\n"
        );
        for field in fields {
            text += &format!(
                "\t\tfmt.Println(\"field {name}.{0}\", unsafe.Offsetof(v.{0}), \
                 unsafe.Sizeof(v.{0}))\n",
                field.name
            );
        }
        text += "\t}\n";
    }
    text + "}\n"
}

/// A Zig program that prints the table as Zig translates the header.
pub fn table_in_zig(api: &Api) -> String {
    let mut text =
        "const std = @import(\"std\");\nconst c = @cImport(@cInclude(\"qwen35.h\"));\n\n\
                    pub fn main() !void {\n    const out = std.io.getStdOut().writer();\n"
            .to_owned();
    for (item, _) in api.constants() {
        text += &format!(
            "    try out.print(\"const {0} {{d}}\\n\", .{{@as(i128, c.{0})}});\n",
            item.name
        );
    }
    for (item, fields) in api.structs() {
        let name = &item.name;
        text +=
            &format!("    try out.print(\"struct {name} {{d}}\\n\", .{{@sizeOf(c.{name})}});\n");
        for field in fields {
            text += &format!(
                "    try out.print(\"field {name}.{0} {{d}} {{d}}\\n\", .{{ @offsetOf(c.{name}, \
                 \"{0}\"), @sizeOf(@TypeOf(@as(c.{name}, undefined).{0})) }});\n",
                field.name
            );
        }
    }
    text + "}\n"
}
