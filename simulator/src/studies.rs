//! Which cells did a study publish? The grid of endive-2026.

use crate::arrivals::Arrivals;
use crate::cell::{Catalog, Cell, TableSelection};

/// Median gaps between arrivals that each experiment of endive-2026 runs, in milliseconds, heaviest load first.
pub const ENDIVE_SCALES_MS: [f64; 10] = [20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 1_000.0, 2_000.0, 5_000.0];

/// endive-2026's names of its providers and the profiles that hold their numbers. The `-2025` profiles are those whose
/// conditional put is the study's (61 ms on S3, 22 ms on S3 Express).
pub const ENDIVE_PROVIDERS: [(&str, &str); 5] =
    [("s3x", "s3-express-2025"), ("s3", "s3-2025"), ("azurex", "azure-premium"), ("azure", "azure"), ("gcp", "gcs")];

const TABLES: [u32; 6] = [1, 2, 5, 10, 20, 50];

/// A cell of a published study, with the names that the study gives its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyCell {
    /// The study's experiment: `exp1` to `exp4c`.
    pub experiment: &'static str,
    /// Median gap between arrivals, in milliseconds.
    pub scale_ms: f64,
    /// Constant latency of the catalog, in milliseconds; none where the catalog is an object in the store.
    pub catalog_latency_ms: Option<f64>,
    /// The study's name of the provider.
    pub provider: &'static str,
    /// The cell. Its tables, mix and selection are the study's.
    pub cell: Cell,
}

/// The grid of endive-2026: 2,090 cells, in the order of the study's experiments. The study ran each with 5 seeds.
pub fn endive_2026() -> Vec<StudyCell> {
    let mut cells = Vec::with_capacity(2_090);
    let mut add = |experiment,
                   provider: (&'static str, &str),
                   tables,
                   fast_append_ratio,
                   latency_ms: Option<f64>,
                   zipf| {
        for scale_ms in ENDIVE_SCALES_MS {
            let cell = Cell {
                arrivals: Arrivals::LogNormal { scale_ms, sigma: 0.5 },
                tables,
                table_selection: if zipf { TableSelection::Zipf { exponent: 1.5 } } else { TableSelection::Uniform },
                fast_append_ratio,
                provider: provider.1.to_owned(),
                catalog: latency_ms.map_or(Catalog::Storage, |latency_ms| Catalog::Service { latency_ms }),
                ..Cell::default()
            };
            let provider = provider.0;
            cells.push(StudyCell { experiment, scale_ms, catalog_latency_ms: latency_ms, provider, cell });
        }
    };
    let s3 = ENDIVE_PROVIDERS[1];
    add("exp1", s3, 1, 1.0, Some(1.0), false);
    for ratio in [1.0, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0] {
        add("exp2", s3, 1, ratio, Some(1.0), false);
    }
    for (experiment, ratio) in [("exp3a", 1.0), ("exp3b", 0.9)] {
        for latency_ms in [1.0, 5.0, 10.0, 20.0, 50.0, 80.0, 120.0] {
            add(experiment, s3, 1, ratio, Some(latency_ms), false);
        }
    }
    for (experiment, ratio, zipf) in
        [("exp4a", 1.0, false), ("exp4b", 0.9, false), ("exp4a_zipf", 1.0, true), ("exp4b_zipf", 0.9, true)]
    {
        for tables in TABLES {
            for latency_ms in [1.0, 10.0, 50.0, 120.0] {
                add(experiment, s3, tables, ratio, Some(latency_ms), zipf);
            }
        }
    }
    for provider in ENDIVE_PROVIDERS {
        for tables in TABLES {
            for ratio in [1.0, 0.9, 0.5] {
                add("exp4c", provider, tables, ratio, None, false);
            }
        }
    }
    cells
}
