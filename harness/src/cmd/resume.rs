//! `lakemark resume`: the cells of a run folder that have not ended yet.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lakemark_results::manifest::{CellPlan, CellStatus};
use lakemark_results::run::RunFolder;
use lakemark_stores::profile::Profile;

use super::{Ended, run};
use crate::cli::ResumeOptions;
use crate::plan::{self, Cell};
use crate::{driver, output};

/// Runs the command.
///
/// # Errors
/// If the folder is not a run folder, or cannot be written.
pub(crate) fn run(options: &ResumeOptions) -> Result<Ended> {
    let folder = plan::usage(RunFolder::open(&options.folder).map_err(Into::into))?;
    let cells: Vec<Cell> =
        folder.unfinished()?.into_iter().map(|plan| cell(&folder, plan, options)).collect::<Result<_>>()?;
    if options.dry_run {
        output::print_table(&run::plan_table(&cells), options.output)?;
        return Ok(Ended::Verified);
    }
    output::tell(&format!("{} of {} cells are left", cells.len(), folder.manifest().cells.len()));
    driver::run(&folder, &cells, options.jobs)?;
    let statuses: BTreeMap<String, CellStatus> =
        folder.statuses()?.into_iter().filter_map(|(plan, status)| Some((plan.id.clone(), status?))).collect();
    run::print(&folder, &statuses, None, options.output)?;
    Ok(Ended::of(folder.manifest().cells.iter().map(|plan| statuses.get(&plan.id))))
}

/// A cell as it was planned, with the profile that was kept.
fn cell(folder: &RunFolder, plan: &CellPlan, options: &ResumeOptions) -> Result<Cell> {
    let path = folder.path().join("profiles").join(format!("{}.json", plan.store));
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let profile: Profile =
        serde_json::from_str(&text).with_context(|| format!("{} is not a profile", path.display()))?;
    let recorded = folder.manifest().profiles.get(&plan.store);
    ensure!(recorded == Some(&profile.hash()), "{} is not the profile that the run began with", path.display());
    let catalog = match &options.catalog {
        Some(catalog) if plan.catalog != "none" => catalog.clone(),
        _ => plan.catalog.clone(),
    };
    Ok(Cell { plan: plan.clone(), profile, catalog })
}
