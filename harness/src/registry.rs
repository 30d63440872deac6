//! The formats that this build has, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use lakemark_core::table::{Format, FormatInfo};

/// One format of this build.
struct Entry {
    make: fn(catalog: &str, cell: &str) -> Result<Arc<dyn Format>>,
    check: fn(&BTreeMap<String, String>) -> Result<(), String>,
}

const ENTRIES: &[Entry] = &[
    #[cfg(feature = "lance")]
    Entry { make: |_, _| Ok(Arc::new(lakemark_formats::lance::Lance)), check: lakemark_formats::lance::check_settings },
    #[cfg(feature = "delta")]
    Entry { make: |_, _| Ok(Arc::new(lakemark_formats::delta::Delta)), check: lakemark_formats::delta::check_settings },
    #[cfg(feature = "iceberg")]
    Entry {
        make: |catalog, cell| Ok(Arc::new(lakemark_formats::iceberg::Iceberg::new(catalog.parse()?, cell))),
        check: lakemark_formats::iceberg::check_settings,
    },
];

/// A catalog that every format's entry can be made with, to ask what the format is.
const ANY_CATALOG: &str = "sqlite";

fn all() -> impl Iterator<Item = (&'static Entry, FormatInfo)> {
    ENTRIES.iter().filter_map(|entry| Some((entry, (entry.make)(ANY_CATALOG, "list").ok()?.info())))
}

fn find(name: &str) -> Option<(&'static Entry, FormatInfo)> {
    all().find(|(_, info)| info.name == name)
}

/// What the formats of this build are.
pub(crate) fn infos() -> Vec<FormatInfo> {
    all().map(|(_, info)| info).collect()
}

/// What a format is.
///
/// # Errors
/// If this build has none of the name.
pub(crate) fn info(name: &str) -> Result<FormatInfo> {
    match find(name) {
        Some((_, info)) => Ok(info),
        None => {
            let known: Vec<&str> = all().map(|(_, info)| info.name).collect();
            bail!("format {name:?} is not known: this build has {}", known.join(", "))
        }
    }
}

/// A format with its catalog. `cell` tells its rows in a shared catalog from others'.
///
/// # Errors
/// If this build has no such format, or the catalog is not one.
pub(crate) fn make(name: &str, catalog: &str, cell: &str) -> Result<Arc<dyn Format>> {
    info(name)?;
    match find(name) {
        Some((entry, _)) => (entry.make)(catalog, cell),
        None => bail!("format {name:?} is not known"),
    }
}

/// Every setting of a format, from those given and the defaults.
///
/// # Errors
/// If a setting is unknown or its value is not allowed.
pub(crate) fn settings(name: &str, given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let info = info(name)?;
    if let Some(unknown) = given.keys().find(|given| info.settings.iter().all(|setting| setting.name != **given)) {
        let known: Vec<&str> = info.settings.iter().map(|setting| setting.name).collect();
        bail!("{name} has no setting {unknown:?}: it has {}", known.join(", "));
    }
    let mut settings: BTreeMap<String, String> =
        info.settings.iter().map(|setting| (setting.name.to_owned(), setting.default.to_owned())).collect();
    settings.extend(given.clone());
    if let Some((entry, _)) = find(name)
        && let Err(reason) = (entry.check)(&settings)
    {
        bail!("{name}: {reason}");
    }
    Ok(settings)
}
