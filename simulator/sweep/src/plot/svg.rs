//! How is a picture written? SVG, one element at a time.

use std::fmt::Write;

/// Where a text stands, from its point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that grows.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A filled rectangle; `hint` is what a pointer over it shows.
    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], fill: &str, hint: &str) {
        let hint = if hint.is_empty() { String::new() } else { format!("<title>{}</title>", escape(hint)) };
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}">{hint}</rect>"#
        ));
    }

    pub(crate) fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, fill: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.add(format_args!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{fill}">{text}</text>"#));
    }

    /// A text that reads upwards, its middle at the point.
    pub(crate) fn upright(&mut self, [x, y]: [f64; 2], text: &str) {
        let text = escape(text);
        self.add(format_args!(
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="middle" fill="{INK}">{text}</text>"#
        ));
    }

    pub(crate) fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], stroke: &str) {
        self.add(format_args!(r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}"/>"#));
    }

    /// A line through points, in dashes if they have a length.
    pub(crate) fn path(&mut self, points: &[[f64; 2]], stroke: &str, dash: usize) {
        let mut through = String::new();
        for [x, y] in points {
            // Writing to a string cannot fail.
            let _ = write!(through, "{x:.1},{y:.1} ");
        }
        let through = through.trim_end();
        let dash = if dash == 0 { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.add(format_args!(
            r#"<polyline points="{through}" fill="none" stroke="{stroke}" stroke-width="1.5"{dash}/>"#
        ));
    }

    pub(crate) fn dot(&mut self, [x, y]: [f64; 2], fill: &str, hint: &str) {
        let hint = escape(hint);
        self.add(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{fill}"><title>{hint}</title></circle>"#));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }

    /// The picture; `label` says what it shows to who cannot see it.
    pub(crate) fn finish(self, label: &str) -> String {
        let Self { width, height, body } = self;
        let label = escape(label);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{label}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"11\">\n{body}</svg>\n"
        )
    }
}

/// Colour of text and axes.
pub(crate) const INK: &str = "#222";

/// Colour of grid lines.
pub(crate) const FAINT: &str = "#ddd";

/// Text as SVG and HTML hold it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
