//! How is a metric drawn over two settings? A heatmap, its values in the cells.

use super::scale::{Scale, Unit, colour};
use super::svg::{Anchor, INK, Svg};

/// What a heatmap shows.
#[derive(Clone, Debug)]
pub(crate) struct Heatmap<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
    pub(crate) x_title: &'a str,
    pub(crate) y_title: &'a str,
    /// Labels of columns, left to right.
    pub(crate) x: Vec<String>,
    /// Labels of rows, top to bottom.
    pub(crate) y: Vec<String>,
    /// Values by row and column; none where nothing is known.
    pub(crate) values: Vec<Vec<Option<f64>>>,
    /// What a pointer shows beside the value, by row and column.
    pub(crate) hints: Vec<Vec<String>>,
}

const CELL: [f64; 2] = [52.0, 22.0];
const TOP: f64 = 38.0;
const KEY_STEPS: usize = 24;

impl Heatmap<'_> {
    pub(crate) fn draw(&self) -> String {
        let longest = self.y.iter().map(|label| label.chars().count()).max().unwrap_or_default();
        let left = 12.0 + 6.4 * longest as f64;
        let (columns, rows) = (self.x.len() as f64, self.y.len() as f64);
        let (right, bottom) = (left + columns * CELL[0], TOP + rows * CELL[1]);
        let key_width = 130.0;
        let width = (right + 8.0).max(left + key_width + 90.0).max(20.0 + 6.4 * self.title.chars().count() as f64);
        let mut svg = Svg::new(width, bottom + 74.0);
        svg.text([2.0, 14.0], Anchor::Start, INK, self.title);
        for (row, label) in self.y.iter().enumerate() {
            svg.text([left - 5.0, TOP + (row as f64 + 0.66) * CELL[1]], Anchor::End, INK, label);
        }
        for (column, label) in self.x.iter().enumerate() {
            svg.text([left + (column as f64 + 0.5) * CELL[0], bottom + 14.0], Anchor::Middle, INK, label);
        }
        svg.text([(left + right) / 2.0, bottom + 30.0], Anchor::Middle, INK, self.x_title);
        // Upright it would be cut off beside few rows.
        svg.text([2.0, TOP - 6.0], Anchor::Start, INK, &format!("{} ↓", self.y_title));
        for (row, values) in self.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let corner = [left + column as f64 * CELL[0], TOP + row as f64 * CELL[1]];
                let (fill, ink) =
                    value.map_or_else(|| ("#f2f2f2".to_owned(), "#777"), |value| colour(self.scale.place(value)));
                let shown = value.map_or_else(|| "–".to_owned(), |value| self.unit.show(value));
                let hint = self.hints.get(row).and_then(|hints| hints.get(column)).map_or("", String::as_str);
                svg.rect([corner[0], corner[1], CELL[0] - 1.0, CELL[1] - 1.0], &fill, hint);
                svg.text([corner[0] + CELL[0] / 2.0, corner[1] + 0.66 * CELL[1]], Anchor::Middle, ink, &shown);
            }
        }
        self.draw_key(&mut svg, [left, bottom + 42.0], key_width);
        svg.finish(self.title)
    }

    /// The colours' scale.
    fn draw_key(&self, svg: &mut Svg, [x, y]: [f64; 2], width: f64) {
        let step = width / KEY_STEPS as f64;
        for i in 0..KEY_STEPS {
            let (fill, _) = colour((i as f64 + 0.5) / KEY_STEPS as f64);
            svg.rect([x + i as f64 * step, y, step + 0.5, 9.0], &fill, "");
        }
        let [low, high] = self.scale.ends();
        let middle = self.scale.value(0.5);
        for (place, value) in [(0.0, low), (0.5, middle), (1.0, high)] {
            svg.text([x + place * width, y + 21.0], Anchor::Middle, INK, &self.unit.show(value));
        }
        let unit = match self.unit {
            Unit::Share => "%",
            Unit::Ms => "ms, or s",
            Unit::Plain => "",
        };
        svg.text([x + width + 22.0, y + 9.0], Anchor::Start, INK, unit);
    }
}
