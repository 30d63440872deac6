//! How is one metric drawn against another? Curves, with a legend.

use super::scale::{LINES, Scale, Unit, label};
use super::svg::{Anchor, FAINT, INK, Svg};

/// A point of a curve, and what a pointer over it shows.
pub(crate) type Point = ([f64; 2], String);

/// What a chart of curves shows.
#[derive(Clone, Debug)]
pub(crate) struct Curves<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_title: &'a str,
    pub(crate) y_title: &'a str,
    pub(crate) y_unit: Unit,
    pub(crate) legend_title: &'a str,
    /// Name and points of each curve, in the order in which they are joined.
    pub(crate) curves: Vec<(String, Vec<Point>)>,
    /// A level to draw across, such as the success rate of a knee.
    pub(crate) level: Option<f64>,
}

const LEFT: f64 = 64.0;
const TOP: f64 = 24.0;
const SIZE: [f64; 2] = [380.0, 230.0];

impl Curves<'_> {
    pub(crate) fn draw(&self) -> String {
        let longest = self.curves.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let longest = longest.max(self.legend_title.chars().count());
        let right = LEFT + SIZE[0];
        let bottom = TOP + SIZE[1];
        let height = (bottom + 44.0).max(TOP + 16.0 * (self.curves.len() as f64 + 2.0));
        let mut svg = Svg::new(right + 44.0 + 6.4 * longest as f64, height);
        let all = || self.curves.iter().flat_map(|(_, points)| points.iter().map(|(point, _)| *point));
        let x = Scale::of(all().map(|[x, _]| x));
        let y = match self.y_unit {
            Unit::Share => Scale::linear(0.0, 1.0),
            _ => Scale::of(all().map(|[_, y]| y)),
        };
        let at =
            |[value_x, value_y]: [f64; 2]| [LEFT + x.place(value_x) * SIZE[0], bottom - y.place(value_y) * SIZE[1]];
        svg.text([LEFT, 14.0], Anchor::Start, INK, self.title);
        for tick in x.ticks() {
            let [place, _] = at([tick, 0.0]);
            svg.line([place, TOP], [place, bottom], FAINT);
            svg.text([place, bottom + 14.0], Anchor::Middle, INK, &label(tick));
        }
        for tick in y.ticks() {
            let [_, place] = at([0.0, tick]);
            svg.line([LEFT, place], [right, place], FAINT);
            svg.text([LEFT - 5.0, place + 4.0], Anchor::End, INK, &self.y_unit.show(tick));
        }
        svg.line([LEFT, bottom], [right, bottom], INK);
        svg.line([LEFT, TOP], [LEFT, bottom], INK);
        if let Some(level) = self.level {
            let [_, place] = at([0.0, level]);
            svg.line([LEFT, place], [right, place], "#c00");
        }
        svg.text([(LEFT + right) / 2.0, bottom + 32.0], Anchor::Middle, INK, self.x_title);
        svg.upright([12.0, (TOP + bottom) / 2.0], self.y_title);
        svg.text([right + 12.0, TOP + 4.0], Anchor::Start, INK, self.legend_title);
        for (place, (name, points)) in self.curves.iter().enumerate() {
            let colour = LINES[place % LINES.len()];
            let places: Vec<[f64; 2]> = points.iter().map(|(point, _)| at(*point)).collect();
            // Where colours come again, dashes tell.
            let dash = 4 * (place / LINES.len());
            svg.path(&places, colour, dash);
            for (place, (_, hint)) in places.iter().zip(points) {
                svg.dot(*place, colour, hint);
            }
            let row = TOP + 16.0 * (place as f64 + 1.25);
            svg.path(&[[right + 10.0, row - 3.5], [right + 28.0, row - 3.5]], colour, dash);
            svg.text([right + 31.0, row], Anchor::Start, INK, name);
        }
        svg.finish(self.title)
    }
}
