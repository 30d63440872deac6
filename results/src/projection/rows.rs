//! Growth and projection beside what a study says.

use serde::{Deserialize, Serialize};

use super::{FILES, Growth, Quantity, growth};
use crate::compare::Measured;
use crate::published::{CatalogClass, Study};
use crate::table::{Column, Field, Row};

/// Setting that holds the commits between checkpoints, for formats that write any.
const CHECKPOINT_INTERVAL: &str = "checkpoint-interval";

/// Setting that says which column statistics are kept.
const STATISTICS: &str = "statistics";

/// One fitted quantity of one cell, and what it comes to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ProjectionRow {
    /// The cell.
    pub cell: String,
    /// Whether its store is emulated.
    pub emulated: bool,
    /// Whether it passed its audit.
    pub verified: bool,
    /// Column statistics that its metadata holds, as its setting says.
    pub statistics: Option<String>,
    /// What grows, and its line.
    pub growth: Growth,
    /// Bytes for each active file that the study states.
    pub published_bytes_per_file: Option<f64>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// What the samples of some cells come to, beside a study if there is one.
pub fn rows(study: Option<&Study>, cells: &[Measured<'_>]) -> Vec<ProjectionRow> {
    cells.iter().flat_map(|cell| of_cell(study, cell)).collect()
}

fn of_cell(study: Option<&Study>, cell: &Measured<'_>) -> Vec<ProjectionRow> {
    let setting = |name: &str| {
        let resolved = cell.status.hello.as_ref().and_then(|hello| hello.settings.get(name));
        resolved.or_else(|| cell.plan.settings.get(name)).cloned()
    };
    let interval = setting(CHECKPOINT_INTERVAL).and_then(|interval| interval.parse().ok());
    let files = cell.plan.parameters.get("files").and_then(serde_json::Value::as_u64).unwrap_or(1);
    let published = study.and_then(|study| published_bytes_per_file(study, cell));
    let fitted = growth(&cell.summary.metadata, files, interval);
    let row = |growth: Growth| {
        let mut notes = Vec::new();
        if !cell.status.is_verified() {
            notes.push("the cell is not verified".to_owned());
        }
        if let Some(distance) = growth.distance {
            let interval = interval.unwrap_or_default();
            let place = if distance == 0 { String::new() } else { format!("{distance} past ") };
            notes.push(format!(
                "checkpoints every {interval} commits: fitted to samples as far from one as each other ({place}multiples of \
                 {interval} appends), {} left out",
                growth.left_out
            ));
        } else if interval.is_some_and(|interval| interval > 1) {
            notes.push("samples at different distances from a checkpoint: too few at one distance".to_owned());
        }
        let published = published.as_ref().filter(|_| growth.quantity == Quantity::Active);
        notes.extend(published.map(|(_, said)| format!("study: {said}; times a million is our arithmetic")));
        ProjectionRow {
            cell: cell.plan.id.clone(),
            emulated: cell.plan.is_emulated(),
            verified: cell.status.is_verified(),
            statistics: setting(STATISTICS),
            growth,
            published_bytes_per_file: published.map(|(bytes, _)| *bytes),
            notes,
        }
    };
    fitted.into_iter().map(row).collect()
}

/// Bytes for each active file, as the study's note beside the active metadata has them, with its words. A figure for
/// another store stands in where the note is missing: the metadata is the same on any store.
fn published_bytes_per_file(study: &Study, cell: &Measured<'_>) -> Option<(f64, String)> {
    let class = CatalogClass::of(&cell.plan.catalog)?;
    let figures = study.figures.iter().filter(|figure| {
        figure.metric == "active_metadata"
            && figure.system == cell.plan.format
            && CatalogClass::of(&figure.catalog) == Some(class)
    });
    let noted = figures.filter_map(|figure| Some((figure, bytes_per_file(&figure.note)?)));
    let best = noted.max_by_key(|(figure, _)| figure.store == cell.plan.provider());
    best.map(|(figure, bytes)| (bytes, format!("{} (on {})", figure.note, figure.store)))
}

/// `about 4.5 KiB per active data file` in bytes.
fn bytes_per_file(note: &str) -> Option<f64> {
    let (figure, _) = note.split_once(" per active ")?;
    let mut words = figure.rsplit(' ');
    let unit = match words.next()? {
        "bytes" => 1.0,
        "KiB" => 1_024.0,
        _ => return None,
    };
    Some(words.next()?.parse::<f64>().ok()? * unit)
}

const BYTES_PER_MIB: f64 = 1_048_576.0;

impl Row for ProjectionRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("cell", "cell"),
        Column::text("emulated", ""),
        Column::data_only("verified"),
        Column::text("statistics", "statistics"),
        Column::text("quantity", "quantity"),
        Column::number("samples", "n"),
        Column::data_only("intercept_bytes"),
        Column::number("bytes_per_file", "bytes/\nactive file"),
        Column::number("bytes_per_file_half_width", "± 95 %"),
        Column::number("residual_max_percent", "largest\nresidual %"),
        Column::number("published_bytes_per_file", "published\nbytes/file"),
        Column::number("ratio", "ratio"),
        Column::number("projected_mib", "at 1M files\nMiB"),
        Column::number("projected_half_width_mib", "± 95 %"),
        Column::number("published_projected_mib", "published\n× 1M, MiB"),
        Column::text("notes", "notes"),
    ];

    fn fields(&self) -> Vec<Field> {
        let Growth { quantity, line, .. } = &self.growth;
        let quantity = match quantity {
            Quantity::Active => Field::Label("active", "active"),
            Quantity::WrittenPerCommit => Field::Label("written_per_commit", "written/commit"),
            Quantity::RetainedPerCommit => Field::Label("retained_per_commit", "retained/commit"),
        };
        let published = self.published_bytes_per_file;
        let mib = |bytes: f64| bytes / BYTES_PER_MIB;
        vec![
            Field::Text(self.cell.clone()),
            Field::Flag(self.emulated, ["emulated", "real"]),
            Field::Flag(self.verified, ["yes", "no"]),
            Field::text(self.statistics.as_deref()),
            quantity,
            Field::Count(line.points),
            Field::Number(line.intercept),
            Field::Number(line.slope),
            Field::number(line.slope_half_width),
            Field::Number(line.residual_max * 100.0),
            published.map_or(Field::Missing, Field::Exact),
            published.map_or(Field::Missing, |published| Field::Ratio(line.slope / published)),
            Field::Number(mib(line.at(FILES))),
            Field::number(line.half_width_at(FILES).map(mib)),
            Field::number(published.map(|published| mib(published * FILES))),
            Field::Notes(self.notes.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_studys_words_give_bytes() {
        assert_eq!(bytes_per_file("about 82 bytes per active fragment"), Some(82.0));
        assert_eq!(bytes_per_file("about 226 bytes per active data file"), Some(226.0));
        assert_eq!(bytes_per_file("about 4.5 KiB per active data file"), Some(4_608.0));
        for note in ["", "roughly, both Iceberg variants", "about 4.5 MB per active file", "per active file"] {
            assert_eq!(bytes_per_file(note), None, "{note}");
        }
    }
}
