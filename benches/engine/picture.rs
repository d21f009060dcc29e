//! A picture of the figures: bars to compare, and how near they are to what the machine can do
//! at most; lines to see how speed holds with length.

use std::fmt::Write;

use crate::report::{Figure, Report};

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 36.0;
/// Between the two columns of panels.
const GAP: f64 = 44.0;
const PANEL: f64 = (WIDTH - 2.0 * MARGIN - GAP) / 2.0;
const BAR: f64 = 27.0;
const NAMES: f64 = 152.0;
/// For the figures behind the longest bar.
const VALUES: f64 = 78.0;
const LINES: f64 = 210.0;
/// For the names of lines at their ends.
const ENDS: f64 = 84.0;
/// Between the rows of panels.
const SPACE: f64 = 34.0;
const INK: &str = "#22303c";
const OURS: [&str; 5] = ["#0b6e4f", "#37a987", "#2a6f97", "#61a5c2", "#7b6d8d"];
const OTHERS: [&str; 6] = ["#c8a27c", "#b5bac4", "#a3a380", "#d6ab9d", "#9a8c98", "#8f99a6"];

/// What all panels draw from: the figures of the most threads measured.
struct Shown<'a> {
    figures: Vec<&'a Figure>,
    /// The engines in the order of the figures, each with its colour.
    engines: Vec<(&'a str, &'static str)>,
    /// What all names begin with, which is not said again and again.
    prefix: &'static str,
}

/// The picture, with the figures of the most threads measured.
pub fn svg(report: &Report) -> String {
    let threads = report.figures.iter().map(|f| f.threads).max().unwrap_or(1);
    let shown = Shown::new(report, threads);
    let right = MARGIN + PANEL + GAP;
    let mut out = String::new();
    let machine = |key: &str| report.machine.get(key).and_then(|v| v.as_str()).unwrap_or("?");
    text(&mut out, MARGIN, 44.0, "start", 22.0, "Qwen3.5-0.8B shapes on a CPU");
    let runs = shown.figures.iter().map(|f| f.runs).max().unwrap_or(1);
    let line = format!(
        "{}, {}, {threads} threads. Medians of up to {runs} runs, with the slowest and the fastest.",
        machine("cpu"),
        machine("isa")
    );
    text(&mut out, MARGIN, 66.0, "start", 13.0, &line);
    if shown.figures.iter().any(|f| f.share.is_some()) {
        let line = "Pale: what the machine could do at most, by its arithmetic (prefill) or its \
                    memory (decode), measured in the same run.";
        text(&mut out, MARGIN, 84.0, "start", 13.0, line);
    }

    let mut y = 104.0;
    let (depth, length) = (shown.near("decode", 0), shown.near("prefill", 512));
    let first = shown.near("first token", 19);
    // The peers' decoding begins behind a short prompt.
    let at = if depth < 64 { String::new() } else { format!(" at {depth} tokens") };
    let mut row = |out: &mut String, panels: [Option<(String, &str, usize)>; 2]| {
        let mut most: f64 = 0.0;
        for ((title, what, tokens), x) in panels.into_iter().flatten().zip([MARGIN, right]) {
            most = most.max(shown.bars(out, (x, y), &title, what, tokens));
        }
        y += if most > 0.0 { most + SPACE } else { 0.0 };
    };
    row(
        &mut out,
        [
            Some((format!("Decode{at}, tokens per second"), "decode", depth)),
            Some((format!("Prefill of {length}, tokens per second"), "prefill", length)),
        ],
    );
    row(
        &mut out,
        [
            Some((format!("First token after {first}, ms: less is better"), "first token", first)),
            Some((
                "Resident memory, MB: less is better".into(),
                "resident",
                shown.near("resident", 2048),
            )),
        ],
    );
    let decode = shown.lines(&mut out, (MARGIN, y), "Decode by tokens in the context", "decode");
    let prefill = shown.lines(&mut out, (right, y), "Prefill by length", "prefill");
    y += f64::max(decode, prefill);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y:.0}\" \
         font-family=\"system-ui, DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
         <rect width=\"{WIDTH}\" height=\"{y:.0}\" rx=\"12\" fill=\"#fbfaf7\"/>\n{out}</svg>\n"
    )
}

impl<'a> Shown<'a> {
    fn new(report: &'a Report, threads: usize) -> Self {
        let figures: Vec<&Figure> =
            report.figures.iter().filter(|f| f.threads == threads).collect();
        let mut engines: Vec<(&str, &str)> = Vec::new();
        let (mut ours, mut others) = (OURS.iter().cycle(), OTHERS.iter().cycle());
        let compared = figures.iter().filter(|f| f.what == "decode" || f.what == "prefill");
        for figure in compared {
            if engines.iter().all(|(name, _)| *name != figure.engine) {
                let mine = figure.engine.starts_with("libqwen35");
                let colour = if mine { ours.next() } else { others.next() };
                engines.push((&figure.engine, colour.copied().unwrap_or("#000")));
            }
        }
        let alone = engines.iter().all(|(name, _)| name.starts_with("libqwen35 "));
        Self { figures, engines, prefix: if alone { "libqwen35 " } else { "" } }
    }

    /// The measured length of `what` that is nearest to `wanted`.
    fn near(&self, what: &str, wanted: usize) -> usize {
        let lengths = self.figures.iter().filter(|f| f.what == what).map(|f| f.tokens);
        lengths.min_by_key(|length| length.abs_diff(wanted)).unwrap_or(wanted)
    }

    fn name<'b>(&self, engine: &'b str) -> &'b str {
        engine.strip_prefix(self.prefix).unwrap_or(engine)
    }

    /// A panel of bars; returns its height, 0 if there is nothing to show.
    fn bars(
        &self,
        out: &mut String,
        (x, y): (f64, f64),
        title: &str,
        what: &str,
        tokens: usize,
    ) -> f64 {
        let of = |engine: &str| {
            let mut figures = self.figures.iter();
            figures.find(|f| f.engine == engine && f.what == what && f.tokens == tokens)
        };
        let rows: Vec<_> = self
            .engines
            .iter()
            .filter_map(|(engine, colour)| Some((*engine, *colour, *of(engine)?)))
            .collect();
        if rows.is_empty() {
            return 0.0;
        }
        text(out, x, y + 16.0, "start", 15.0, title);
        let ends = rows.iter().map(|(.., f)| limit(f).map_or(f.max, |(most, _)| most.max(f.max)));
        let scale = (PANEL - NAMES - VALUES) / ends.fold(1e-9, f64::max);
        for (n, (engine, colour, figure)) in rows.iter().enumerate() {
            let top = y + 30.0 + n as f64 * BAR;
            let (start, width) = (x + NAMES, figure.median * scale);
            text(out, start - 10.0, top + 14.0, "end", 12.0, self.name(engine));
            let mut end = start + f64::max(figure.max * scale, width);
            let mut value = number(figure.median);
            if let Some((most, of)) = limit(figure) {
                let width = most * scale;
                let share = 100.0 * figure.median / most;
                let read = figure.read.map_or(String::new(), |read| format!(", {read:.1} GB/s"));
                let _ = writeln!(
                    out,
                    "<rect x=\"{start:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"18\" \
                     rx=\"3\" fill=\"{colour}\" opacity=\"0.17\"><title>{share:.0}% of \
                     {of}{read}</title></rect>"
                );
                end = end.max(start + width);
                let _ = write!(value, " · {share:.0}%");
            }
            let _ = writeln!(
                out,
                "<rect x=\"{start:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"18\" \
                 rx=\"3\" fill=\"{colour}\"/>"
            );
            if figure.runs > 1 {
                let (low, high) = (start + figure.min * scale, start + figure.max * scale);
                let middle = top + 9.0;
                let _ = writeln!(
                    out,
                    "<path d=\"M{low:.1} {middle:.1}H{high:.1}\" stroke=\"{INK}\" \
                     stroke-width=\"1.5\" opacity=\"0.55\"/>"
                );
            }
            text(out, end + 7.0, top + 13.5, "start", 12.0, &value);
        }
        30.0 + rows.len() as f64 * BAR
    }

    /// A panel of lines, each named at its end; returns its height, 0 if there is nothing to
    /// show.
    fn lines(&self, out: &mut String, (x, y): (f64, f64), title: &str, what: &str) -> f64 {
        let figures: Vec<&&Figure> = self.figures.iter().filter(|f| f.what == what).collect();
        let mut lengths: Vec<usize> = figures.iter().map(|f| f.tokens).collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() < 2 {
            return 0.0;
        }
        text(out, x, y + 16.0, "start", 15.0, title);
        let (left, bottom) = (x + 40.0, y + 40.0 + LINES);
        let step = round_step(figures.iter().map(|f| f.median).fold(1e-9, f64::max) / 6.0);
        let most = figures.iter().map(|f| f.median).fold(0.0, f64::max);
        let up = LINES / most;
        let across = (PANEL - 40.0 - ENDS) / (lengths.len() - 1) as f64;
        let end = left + across * (lengths.len() - 1) as f64;
        let ticks = (0..).map(|n| f64::from(n) * step).take_while(|value| *value <= most);
        for value in ticks {
            let at = bottom - value * up;
            let _ = writeln!(
                out,
                "<path d=\"M{left:.1} {at:.1}H{end:.1}\" stroke=\"{INK}\" opacity=\"0.12\"/>"
            );
            text(out, left - 8.0, at + 4.0, "end", 11.0, &format!("{value:.0}"));
        }
        for (column, length) in lengths.iter().enumerate() {
            let at = left + column as f64 * across;
            let name = match length {
                length if *length >= 1024 && length.is_multiple_of(1024) => {
                    format!("{}k", length / 1024)
                }
                length => length.to_string(),
            };
            text(out, at, bottom + 18.0, "middle", 11.0, &name);
        }
        let mut names: Vec<(f64, &str, &str)> = Vec::new();
        for (engine, colour) in &self.engines {
            let points = lengths.iter().enumerate().filter_map(|(column, length)| {
                let figure = figures.iter().find(|f| f.engine == *engine && f.tokens == *length)?;
                Some((left + column as f64 * across, bottom - figure.median * up))
            });
            let points: Vec<(f64, f64)> = points.collect();
            let Some(&(_, last)) = points.last() else { continue };
            let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            let _ = writeln!(
                out,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-linejoin=\"round\"/>",
                line.join("L")
            );
            for (x, y) in points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
            names.push((last, self.name(engine), colour));
        }
        // From the top down, none on another.
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        for (at, name, colour) in names {
            let at = at.max(free);
            free = at + 14.0;
            let name = escaped(name);
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" font-weight=\"600\" \
                 fill=\"{colour}\">{name}</text>",
                end + 10.0,
                at + 4.0
            );
        }
        40.0 + LINES + 46.0
    }
}

/// What the figure could be at most, and by which limit.
fn limit(figure: &Figure) -> Option<(f64, &str)> {
    figure.share.as_ref().map(|(share, of)| (figure.median / share, of.as_str()))
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: f64, content: &str) {
    let weight = if size > 14.0 { " font-weight=\"600\"" } else { "" };
    let content = escaped(content);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight}>\
         {content}</text>"
    );
}
