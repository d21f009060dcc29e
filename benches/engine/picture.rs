//! A picture of the figures: bars to compare, lines to see how speed holds with length.

use std::fmt::Write;

use crate::report::{Figure, Report};

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 32.0;
/// Between the two columns of panels.
const GAP: f64 = 40.0;
const PANEL: f64 = (WIDTH - 2.0 * MARGIN - GAP) / 2.0;
const BAR: f64 = 26.0;
const NAMES: f64 = 150.0;
const LINES_HEIGHT: f64 = 220.0;
const OURS: [&str; 3] = ["#0b6e4f", "#2a9d8f", "#8ac6a0"];
const OTHERS: [&str; 6] = ["#8d99ae", "#b08968", "#a5a58d", "#9a8c98", "#c9ada7", "#6c757d"];

/// The picture, with the figures of the most threads measured.
pub fn svg(report: &Report) -> String {
    let threads = report.figures.iter().map(|f| f.threads).max().unwrap_or(1);
    let shown: Vec<&Figure> = report.figures.iter().filter(|f| f.threads == threads).collect();
    let engines = engines(&shown);
    let length = near(&shown, "prefill", 512);
    let depth = near(&shown, "decode", 0);
    let bars = 40.0 + engines.len() as f64 * BAR;
    let height = 84.0 + bars + 60.0 + LINES_HEIGHT + 60.0;
    let right = MARGIN + PANEL + GAP;
    let second = 84.0 + bars + 60.0;

    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#22303c\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"12\" fill=\"#fbfaf7\"/>\n"
    );
    let machine = |key: &str| report.machine.get(key).and_then(|v| v.as_str()).unwrap_or("?");
    text(&mut out, MARGIN, 38.0, "start", 20.0, "Qwen3.5-0.8B shapes on a CPU");
    let line = format!(
        "{}, {threads} threads, {}. Tokens per second, medians; more is better.",
        machine("cpu"),
        machine("isa")
    );
    text(&mut out, MARGIN, 60.0, "start", 13.0, &line);

    let title =
        format!("Decode{}", if depth == 0 { String::new() } else { format!(" at {depth}") });
    bar_panel(&mut out, MARGIN, 84.0, &title, &shown, &engines, ("decode", depth));
    let title = format!("Prefill of {length} tokens");
    bar_panel(&mut out, right, 84.0, &title, &shown, &engines, ("prefill", length));
    line_panel(
        &mut out,
        MARGIN,
        second,
        "Decode by tokens in the context",
        &shown,
        &engines,
        "decode",
    );
    line_panel(&mut out, right, second, "Prefill by length", &shown, &engines, "prefill");
    out + "</svg>\n"
}

/// The engines in the order of the figures, each with its colour.
fn engines<'a>(shown: &[&'a Figure]) -> Vec<(&'a str, &'static str)> {
    let mut engines: Vec<(&str, &str)> = Vec::new();
    let (mut ours, mut others) = (OURS.iter().cycle(), OTHERS.iter().cycle());
    let compared = shown.iter().filter(|f| f.what == "decode" || f.what == "prefill");
    for figure in compared {
        if engines.iter().all(|(name, _)| *name != figure.engine) {
            let mine = figure.engine.starts_with("libqwen35");
            let colour = if mine { ours.next() } else { others.next() };
            engines.push((&figure.engine, colour.copied().unwrap_or("#000")));
        }
    }
    engines
}

/// The measured length of `what` that is nearest to `wanted`.
fn near(shown: &[&Figure], what: &str, wanted: usize) -> usize {
    let lengths = shown.iter().filter(|f| f.what == what).map(|f| f.tokens);
    lengths.min_by_key(|length| length.abs_diff(wanted)).unwrap_or(wanted)
}

fn bar_panel(
    out: &mut String,
    x: f64,
    y: f64,
    title: &str,
    shown: &[&Figure],
    engines: &[(&str, &str)],
    which: (&str, usize),
) {
    text(out, x, y + 18.0, "start", 15.0, title);
    let of = |engine: &str| {
        shown.iter().find(|f| f.engine == engine && f.what == which.0 && f.tokens == which.1)
    };
    let most = engines.iter().filter_map(|(e, _)| of(e)).map(|f| f.max).fold(1e-9, f64::max);
    for (row, (engine, colour)) in engines.iter().enumerate() {
        let Some(figure) = of(engine) else { continue };
        let top = y + 34.0 + row as f64 * BAR;
        let scale = (PANEL - NAMES - 56.0) / most;
        let (start, width) = (x + NAMES, figure.median * scale);
        text(out, x + NAMES - 8.0, top + 14.0, "end", 12.0, engine);
        let _ = writeln!(
            out,
            "<rect x=\"{start:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"18\" rx=\"3\" \
             fill=\"{colour}\"/>"
        );
        // From the slowest to the fastest run.
        let (low, high) = (start + figure.min * scale, start + figure.max * scale);
        let middle = top + 9.0;
        let _ = writeln!(
            out,
            "<path d=\"M{low:.1} {middle:.1}H{high:.1}\" stroke=\"#22303c\" stroke-width=\"1.5\" \
             opacity=\"0.6\"/>"
        );
        let digits = if figure.median < 100.0 { 1 } else { 0 };
        let value = format!("{:.digits$}", figure.median);
        text(out, high.max(start + width) + 6.0, top + 14.0, "start", 12.0, &value);
    }
}

fn line_panel(
    out: &mut String,
    x: f64,
    y: f64,
    title: &str,
    shown: &[&Figure],
    engines: &[(&str, &str)],
    what: &str,
) {
    let figures: Vec<&&Figure> = shown.iter().filter(|f| f.what == what).collect();
    let mut lengths: Vec<usize> = figures.iter().map(|f| f.tokens).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.len() < 2 {
        return;
    }
    text(out, x, y + 4.0, "start", 15.0, title);
    let most = figures.iter().map(|f| f.median).fold(1e-9, f64::max);
    let (left, bottom) = (x + 44.0, y + LINES_HEIGHT);
    let across = (PANEL - 60.0) / (lengths.len() - 1) as f64;
    let up = (LINES_HEIGHT - 32.0) / most;
    for part in 0..=4 {
        let value = most * f64::from(part) / 4.0;
        let at = bottom - value * up;
        let end = x + PANEL - 16.0;
        let _ = writeln!(
            out,
            "<path d=\"M{left:.1} {at:.1}H{end:.1}\" stroke=\"#22303c\" opacity=\"0.12\"/>"
        );
        text(out, left - 6.0, at + 4.0, "end", 11.0, &format!("{value:.0}"));
    }
    for (column, length) in lengths.iter().enumerate() {
        let at = left + column as f64 * across;
        text(out, at, bottom + 18.0, "middle", 11.0, &length.to_string());
    }
    for (engine, colour) in engines {
        let points: Vec<String> = lengths
            .iter()
            .enumerate()
            .filter_map(|(column, length)| {
                let figure = figures.iter().find(|f| f.engine == *engine && f.tokens == *length)?;
                let (px, py) = (left + column as f64 * across, bottom - figure.median * up);
                Some(format!("{px:.1} {py:.1}"))
            })
            .collect();
        if points.len() > 1 {
            let _ = writeln!(
                out,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-linejoin=\"round\"><title>{engine}</title></path>",
                points.join("L")
            );
        }
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: f64, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let weight = if size > 14.0 { " font-weight=\"600\"" } else { "" };
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight}>\
         {content}</text>"
    );
}
