//! `lakemark list`: what there is.

use anyhow::Result;
use lakemark_results::published::Study;
use lakemark_results::table::{Column, Field, OutputFormat, Table};
use lakemark_scenarios::definition::{self, Definition};
use lakemark_scenarios::{SCENARIOS, ScenarioInfo};
use lakemark_stores::profile::Profile;

use super::{Ended, run, simulate};
use crate::cli::{ListOptions, Listed};
use crate::{output, registry};

/// Catalogs that formats can commit through: name, how it is given, what it is.
const CATALOGS: [(&str, &str, &str); 4] = [
    ("none", "none", "the store alone decides which commit wins"),
    ("sqlite", "sqlite or sqlite:PATH", "SQL catalog on embedded SQLite, in a folder that lasts as long as the cell"),
    ("postgres", "postgres://USER:PASSWORD@HOST/DATABASE", "SQL catalog on a Postgres database"),
    ("mysql", "mysql://USER:PASSWORD@HOST/DATABASE", "SQL catalog on a MySQL or MariaDB database"),
];

/// Runs the command.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run(options: &ListOptions) -> Result<Ended> {
    let all = [Listed::Formats, Listed::Catalogs, Listed::Stores, Listed::Scenarios, Listed::Studies];
    let listed = options.what.map_or(all.to_vec(), |what| vec![what]);
    for what in &listed {
        let (title, table) = match what {
            Listed::Formats => ("formats", formats(options.what.is_some())),
            Listed::Catalogs => ("catalogs", catalogs()),
            Listed::Stores => ("stores (emulated; sources in docs/PROVIDERS.md)", stores()),
            Listed::Scenarios => ("scenarios", scenarios(options.what.is_some())),
            Listed::Studies => ("studies", studies()?),
        };
        print(title, &table, listed.len() > 1, options.format)?;
    }
    Ok(Ended::Verified)
}

fn print(title: &str, table: &Table, is_titled: bool, format: OutputFormat) -> Result<()> {
    if is_titled && run::is_for_people(format) {
        output::print(&format!("{title}:"))?;
    }
    output::print_table(table, format)
}

/// A column of words whose name needs no other header.
fn named(name: &'static str) -> Column {
    Column::text(name, name)
}

fn text(text: &str) -> Field {
    Field::text(Some(text))
}

fn formats(with_settings: bool) -> Table {
    if with_settings {
        let mut table = Table::new(&["format", "setting", "default", "what"].map(named));
        for info in registry::infos() {
            for setting in info.settings {
                table.push(vec![text(info.name), text(setting.name), text(setting.default), text(setting.help)]);
            }
        }
        return table;
    }
    let mut table = Table::new(&["format", "library", "catalogs"].map(named));
    for info in registry::infos() {
        table.push(vec![text(info.name), text(&info.library), text(&info.catalogs.join(", "))]);
    }
    table
}

fn catalogs() -> Table {
    let mut table = Table::new(&["catalog", "form", "what"].map(named));
    for (name, form, about) in CATALOGS {
        table.push(vec![text(name), text(form), text(about)]);
    }
    table
}

fn stores() -> Table {
    let mut columns = vec![named("store")];
    columns.extend([
        Column::number("get_ms", "get ms"),
        Column::number("put_ms", "put ms"),
        Column::number("put_if_absent_ms", "put-if-absent ms"),
        Column::number("list_ms", "list ms"),
    ]);
    columns.extend([Column::text("list_order", "list order"), named("what")]);
    let mut table = Table::new(&columns);
    for profile in Profile::builtin_names().filter_map(Profile::builtin) {
        let laws = &profile.laws;
        let medians = [&laws.get, &laws.put, &laws.put_if_absent, &laws.list].map(|law| law.law.median_ms);
        let mut fields = vec![text(&profile.name)];
        fields.extend(medians.map(|median_ms| Field::number(Some(median_ms))));
        fields.extend([text(if profile.list.ordered { "by key" } else { "none" }), text(&profile.about)]);
        table.push(fields);
    }
    table
}

fn scenarios(with_parameters: bool) -> Table {
    if with_parameters {
        let mut table = Table::new(&["scenario", "parameter", "default", "what"].map(named));
        for ScenarioInfo { name, parameters, .. } in SCENARIOS {
            for parameter in parameters {
                table.push(vec![text(name), text(parameter.name), text(parameter.default), text(parameter.help)]);
            }
        }
        return table;
    }
    let mut table = Table::new(&["scenario", "what"].map(named));
    for scenario in SCENARIOS {
        table.push(vec![text(scenario.name), text(scenario.about)]);
    }
    table
}

fn studies() -> Result<Table> {
    let columns = [
        named("study"),
        Column::number("figures", "figures"),
        Column::text("reproduced_by", "reproduced by"),
        named("what"),
    ];
    let mut table = Table::new(&columns);
    let definitions: Vec<Definition> =
        definition::builtin_names().filter_map(|name| Definition::builtin(name).ok()).collect();
    for name in Study::names() {
        let figures = Study::load(name)?.figures.len();
        let definition = definitions.iter().find(|definition| definition.study.as_deref() == Some(name));
        let is_simulated = name == simulate::endive::STUDY;
        let command = definition.map(|definition| definition.name.as_str()).or(is_simulated.then_some(name));
        let command = command.map(|name| format!("lakemark reproduce {name}"));
        let title = definition.map(|definition| definition.title.as_str());
        let title = title.or(is_simulated.then_some("commit contention, simulated: 2,090 cells, 5 seeds"));
        table.push(vec![text(name), Field::Count(figures as u64), Field::text(command.as_deref()), Field::text(title)]);
    }
    Ok(table)
}
