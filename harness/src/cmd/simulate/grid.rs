//! Which grid do the options of `simulate` ask for?

use std::path::Path;

use anyhow::{Context, Result, bail};
use lakemark_sweep::{GridSpec, LOAD, MIX, STUDIES, SweepFolder};
use serde_json::{Value, json};

use crate::cli::SimulateOptions;
use crate::plan;

/// The grid, and what its errors are to name.
///
/// # Errors
/// If it cannot be read, or an option is not what it should be.
pub(super) fn spec(options: &SimulateOptions) -> Result<(GridSpec, String)> {
    let (mut spec, origin) = match options.grid.as_deref() {
        None => (GridSpec::new("simulate"), "options".to_owned()),
        Some(name) if STUDIES.contains(&name) => (GridSpec::study(name), name.to_owned()),
        Some(name) if Path::new(name).join("sweep.toml").exists() => {
            let folder = SweepFolder::open(Path::new(name))?;
            anyhow::ensure!(options.resume, "{name} is the folder of a sweep: add --resume to go on with it");
            return Ok((folder.manifest().grid.clone(), name.to_owned()));
        }
        Some(name) if name.ends_with(".toml") => {
            let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
            (GridSpec::parse(&text, name)?, name.to_owned())
        }
        Some(name) => bail!("unknown grid {name:?}: it is a file ending in .toml, or a study ({})", STUDIES.join(", ")),
    };
    let origin =
        if apply(options, &mut spec)? && origin != "options" { format!("{origin} with options") } else { origin };
    spec.seeds = options.seeds.unwrap_or(spec.seeds);
    Ok((spec, origin))
}

/// Lays the options over a grid; gives whether there were any.
fn apply(options: &SimulateOptions, spec: &mut GridSpec) -> Result<bool> {
    let before = spec.cell.clone();
    let mut settings: Vec<(String, Vec<Value>)> = Vec::new();
    for setting in &options.settings {
        let (path, values) = plan::pair(setting, "--set", "SETTING=VALUE,VALUE")?;
        settings.push((path, values.split(',').map(value).collect()));
    }
    let words = |values: &[String]| values.iter().map(|text| json!(text)).collect::<Vec<Value>>();
    let values = |values: &[String]| values.iter().map(|text| value(text)).collect::<Vec<Value>>();
    for (path, given) in [
        (LOAD, values(&options.load)),
        ("tables", values(&options.tables)),
        ("provider", words(&options.provider)),
        ("protocol", words(&options.protocol)),
        ("retry", words(&options.retry)),
        (MIX, words(&options.mix)),
        ("catalog", options.catalog.iter().map(|text| catalog(text)).collect::<Result<_>>()?),
        ("table_selection", options.zipf.iter().map(|text| json!({"kind": "zipf", "exponent": value(text)})).collect()),
    ] {
        settings.push((path.to_owned(), given));
    }
    if !options.clients.is_empty() {
        let clients = values(&options.clients);
        let think = json!({"kind": "constant", "ms": 0});
        settings.push(("arrivals".to_owned(), vec![json!({"kind": "closed-loop", "think": think})]));
        settings.push(("arrivals.clients".to_owned(), clients));
    }
    for (path, values) in settings {
        if !values.is_empty() {
            spec.set(&path, values);
        }
    }
    Ok(spec.cell != before)
}

/// A value as an option has it: a number, yes or no, or else a word.
fn value(text: &str) -> Value {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => match text {
            "true" => true.into(),
            "false" => false.into(),
            word => word.into(),
        },
    }
}

/// A catalog as an option has it.
fn catalog(text: &str) -> Result<Value> {
    match (text, text.parse::<f64>()) {
        ("storage", _) => Ok(json!({"kind": "storage"})),
        (_, Ok(latency_ms)) => Ok(json!({"kind": "service", "latency_ms": latency_ms})),
        _ => bail!("--catalog {text:?}: it is the latency of a service in milliseconds, or storage"),
    }
}
