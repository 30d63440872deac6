//! Tables of results, as text for a reader, JSON or CSV for a program.
//!
//! Text is plain: no colour, whether a terminal reads it or not. JSON and CSV carry every column under its full name,
//! with numbers unrounded.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use comfy_table::{CellAlignment, ContentArrangement, TableComponent, presets};
use serde_json::{Map, Value};

/// How a table is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OutputFormat {
    /// Aligned columns.
    #[default]
    Text,
    /// One document: an array of objects.
    Json,
    /// Comma-separated, with a header.
    Csv,
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            _ => Err(format!("unknown output format {name:?}: it is text, json or csv")),
        }
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
        })
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Column {
    /// Name for programs, ending with the unit: `commit_latency_ms`.
    pub name: &'static str,
    /// Header for readers, with the unit; none leaves the column out of the text.
    pub header: Option<&'static str>,
    /// Whether it holds numbers, which are aligned to the right.
    pub numeric: bool,
}

impl Column {
    /// A column of words.
    pub const fn text(name: &'static str, header: &'static str) -> Self {
        Self { name, header: Some(header), numeric: false }
    }

    /// A column of numbers.
    pub const fn number(name: &'static str, header: &'static str) -> Self {
        Self { name, header: Some(header), numeric: true }
    }

    /// A column for programs only.
    pub const fn data_only(name: &'static str) -> Self {
        Self { name, header: None, numeric: false }
    }
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// There is none: `-` in text, `null` in JSON, nothing in CSV.
    Missing,
    /// A word or a name.
    Text(String),
    /// A name for programs, and what readers see instead.
    Label(&'static str, &'static str),
    /// A count.
    Count(u64),
    /// A measured number; text shows about three digits.
    Number(f64),
    /// A number that text shows as it is, such as a published one.
    Exact(f64),
    /// A ratio.
    Ratio(f64),
    /// A number that bounds another: text puts the sign before it.
    Bound(&'static str, Box<Field>),
    /// Yes or no, and the words for it in text.
    Flag(bool, [&'static str; 2]),
    /// Remarks: text puts them below the table, each once, and marks the row.
    Notes(Vec<String>),
}

impl Field {
    /// A measured number that may be missing.
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }

    /// A word that may be missing.
    pub fn text(value: Option<&str>) -> Self {
        value.map_or(Self::Missing, |text| Self::Text(text.to_owned()))
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Missing => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Label(name, _) => (*name).into(),
            Self::Count(count) => (*count).into(),
            Self::Number(value) | Self::Exact(value) | Self::Ratio(value) => (*value).into(),
            Self::Bound(_, bound) => bound.to_json(),
            Self::Flag(value, _) => (*value).into(),
            Self::Notes(notes) => notes.clone().into(),
        }
    }

    fn to_csv(&self) -> String {
        match self {
            Self::Notes(notes) => notes.join("; "),
            other => match other.to_json() {
                Value::Null => String::new(),
                Value::String(text) => text,
                value => value.to_string(),
            },
        }
    }

    fn to_text(&self, footnotes: &mut Vec<String>) -> String {
        match self {
            Self::Missing => "-".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Label(_, text) => (*text).to_owned(),
            Self::Count(count) => group_digits(&count.to_string()),
            Self::Number(value) => format_number(*value),
            Self::Exact(value) => group_digits(&value.to_string()),
            Self::Ratio(value) => format_ratio(*value),
            Self::Bound(sign, bound) => format!("{sign} {}", bound.to_text(footnotes)),
            Self::Flag(value, [yes, no]) => (if *value { *yes } else { *no }).to_owned(),
            Self::Notes(notes) => {
                let numbers: Vec<String> = notes.iter().map(|note| footnote(note, footnotes).to_string()).collect();
                numbers.join(",")
            }
        }
    }
}

/// Number of a note below the table, from 1; it is added if it is new.
fn footnote(note: &str, footnotes: &mut Vec<String>) -> usize {
    let known = footnotes.iter().position(|known| known == note);
    known.unwrap_or_else(|| {
        footnotes.push(note.to_owned());
        footnotes.len() - 1
    }) + 1
}

/// A number with about three digits: `0.784`, `5.50`, `42.8`, `168`, `1,442`.
pub fn format_number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    group_digits(&format!("{value:.decimals$}"))
}

/// A ratio with two decimals, or with as many digits as a small one needs: `1.06`, `12.40`, `0.0031`.
pub fn format_ratio(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.095 { format!("{value:.4}") } else { group_digits(&format!("{value:.2}")) }
}

/// `1234567.25` as `1,234,567.25`.
pub fn group_digits(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-');
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut grouped = whole[..whole.len() - digits.len()].to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// What a table can be made of.
pub trait Row {
    /// The columns.
    const COLUMNS: &'static [Column];

    /// One value for each column.
    fn fields(&self) -> Vec<Field>;
}

/// A table of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Field>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// A table of rows of one kind.
    pub fn of<R: Row>(rows: &[R]) -> Self {
        let mut table = Self::new(R::COLUMNS);
        for row in rows {
            table.push(row.fields());
        }
        table
    }

    /// Adds a row: a value for each column, the rest missing.
    pub fn push(&mut self, mut fields: Vec<Field>) {
        fields.resize(self.columns.len(), Field::Missing);
        self.rows.push(fields);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table. `width` wraps text to so many columns, as a terminal needs; none leaves lines whole.
    pub fn write(&self, out: &mut dyn Write, format: OutputFormat, width: Option<u16>) -> io::Result<()> {
        match format {
            OutputFormat::Text => out.write_all(self.to_text(width).as_bytes()),
            OutputFormat::Json => {
                serde_json::to_writer_pretty(&mut *out, &self.to_json())?;
                writeln!(out)
            }
            OutputFormat::Csv => self.write_csv(out),
        }
    }

    /// The table as an array of objects, for a document that holds more than the table.
    pub fn to_json(&self) -> Value {
        let object = |fields: &Vec<Field>| {
            let pairs = self.columns.iter().zip(fields);
            Value::Object(pairs.map(|(column, field)| (column.name.to_owned(), field.to_json())).collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// The table as text, remarks below it. Columns that no row fills are left out.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let shown: Vec<(usize, &Column, &str)> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(i, column)| column.header.map(|header| (i, column, header)))
            .filter(|(i, ..)| !self.rows.iter().all(|row| row[*i] == Field::Missing))
            .collect();
        let mut footnotes = Vec::new();
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table.set_header(shown.iter().map(|(_, _, header)| *header));
        for row in &self.rows {
            table.add_row(shown.iter().map(|(i, ..)| row[*i].to_text(&mut footnotes)));
        }
        for (column, (_, shown, _)) in table.column_iter_mut().zip(&shown) {
            // The preset leaves one blank between columns; padding would add to it and push wide tables off a page.
            column.set_padding((0, 0));
            column.set_cell_alignment(if shown.numeric { CellAlignment::Right } else { CellAlignment::Left });
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for (i, note) in footnotes.iter().enumerate() {
            let gap = if i == 0 { "\n" } else { "" };
            text.push_str(&format!("{gap}{}  {note}\n", i + 1));
        }
        text
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.columns.iter().map(|column| column.name))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Field::to_csv))?;
        }
        writer.flush()
    }
}

#[cfg(test)]
mod tests;
