//! The loads of cells as a table.

use std::collections::BTreeMap;

use super::{KINDS, LoadSummary, kind_name};
use crate::manifest::{CellPlan, CellStatus};
use crate::record::OperationKind;
use crate::table::{Column, Field, Row};

/// One row: loads of one kind at one version of a cell, or a kind that its library does not offer.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadRow {
    cell: String,
    store: String,
    is_emulated: bool,
    is_verified: bool,
    kind: OperationKind,
    loads: Option<LoadSummary>,
    notes: Vec<String>,
}

/// The loads of a cell. `is_short` leaves out versions between the powers of ten, except the last.
pub fn rows(plan: &CellPlan, status: &CellStatus, loads: &[LoadSummary], is_short: bool) -> Vec<LoadRow> {
    let row = |kind, loads: Option<&LoadSummary>, notes| LoadRow {
        cell: plan.id.clone(),
        store: plan.store.clone(),
        is_emulated: plan.is_emulated(),
        is_verified: status.is_verified(),
        kind,
        loads: loads.cloned(),
        notes,
    };
    let last = loads.iter().filter(|load| !load.is_beside).map(|load| load.appends).max();
    let is_shown = |load: &&LoadSummary| {
        !is_short || load.is_beside || Some(load.appends) == last || is_power_of_ten(load.appends)
    };
    let mut rows: Vec<LoadRow> =
        loads.iter().filter(is_shown).map(|load| row(load.kind, Some(load), notes(load))).collect();
    // Cells of other scenarios have no loads but the samples' cold opens: that others are not offered is beside the point.
    let none = BTreeMap::new();
    let unsupported = status.hello.as_ref().map_or(&none, |hello| &hello.unsupported);
    if loads.iter().any(|load| load.kind != OperationKind::ColdOpen) {
        let missing = KINDS.into_iter().filter_map(|kind| Some((kind, unsupported.get(kind_name(kind))?)));
        rows.extend(missing.map(|(kind, why)| row(kind, None, vec![format!("not offered: {why}")])));
    }
    rows
}

fn is_power_of_ten(number: u64) -> bool {
    number > 0 && 10_u64.pow(number.ilog10()) == number
}

fn notes(load: &LoadSummary) -> Vec<String> {
    let mut notes = Vec::new();
    if load.is_beside {
        notes.push("while the writer appends, at rising versions; CPU is that of all that ran".to_owned());
    }
    if load.loads_failed > 0 {
        notes.push(format!("{} loads failed", load.loads_failed));
    }
    notes
}

impl Row for LoadRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("cell", "cell"),
        Column::data_only("store"),
        Column::text("emulated", ""),
        Column::data_only("verified"),
        Column::text("load", "load"),
        Column::number("appends", "appends"),
        Column::data_only("version"),
        Column::data_only("beside"),
        Column::number("behind", "behind"),
        Column::number("loads", "n"),
        Column::data_only("failed"),
        Column::number("latency_ms", "latency\nms"),
        Column::number("latency_half_width_ms", "± 95 %"),
        Column::data_only("latency_with_cpu_ms"),
        Column::data_only("latency_with_cpu_half_width_ms"),
        Column::number("wait_ms", "wait\nms"),
        Column::number("catalog_ms", "catalog\nms"),
        Column::number("cpu_ms", "CPU\nms"),
        Column::number("requests", "requests"),
        Column::number("objects", "objects"),
        Column::number("read_kib", "read\nKiB"),
        Column::number("in_flight_max", "most at\nonce"),
        Column::number("in_flight_mean", "mean at\nonce"),
        Column::text("notes", "notes"),
    ];

    fn fields(&self) -> Vec<Field> {
        let loads = self.loads.as_ref();
        let count = |pick: fn(&LoadSummary) -> Option<u64>| loads.and_then(pick).map_or(Field::Missing, Field::Count);
        let figure = |pick: fn(&LoadSummary) -> Option<f64>| {
            Field::number(loads.filter(|loads| loads.loads_ok > 0).and_then(pick))
        };
        let name = match self.kind {
            OperationKind::ColdOpen => Field::Label("cold_open", "cold open"),
            OperationKind::FreshHandle => Field::Label("fresh_handle", "fresh handle"),
            OperationKind::Refresh => Field::Label("refresh", "refresh"),
            OperationKind::ShallowOpen => Field::Label("shallow_open", "shallow open"),
            _ => Field::Missing,
        };
        vec![
            Field::Text(self.cell.clone()),
            Field::Text(self.store.clone()),
            Field::Flag(self.is_emulated, ["emulated", "real"]),
            Field::Flag(self.is_verified, ["yes", "no"]),
            name,
            count(|loads| Some(loads.appends)),
            count(|loads| loads.version),
            loads.map_or(Field::Missing, |loads| Field::Flag(loads.is_beside, ["yes", "no"])),
            count(|loads| loads.behind),
            count(|loads| Some(loads.loads_ok)),
            count(|loads| Some(loads.loads_failed)),
            figure(|loads| Some(loads.latency_ms)),
            figure(|loads| loads.latency_half_width_ms),
            figure(|loads| Some(loads.latency_with_cpu_ms)),
            figure(|loads| loads.latency_with_cpu_half_width_ms),
            figure(|loads| Some(loads.wait_ms)),
            figure(|loads| Some(loads.catalog_ms)),
            figure(|loads| Some(loads.cpu_ms)),
            figure(|loads| Some(loads.requests)),
            figure(|loads| Some(loads.objects)),
            figure(|loads| Some(loads.read_bytes / 1_024.0)),
            count(|loads| Some(loads.in_flight_max)),
            figure(|loads| Some(loads.in_flight_mean)),
            Field::Notes(self.notes.clone()),
        ]
    }
}
