//! Which files should be active? The acknowledged changes, made again in the order of their versions.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Effect, FileId, Removal};

/// The files that should be active.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Files that must be active.
    pub(super) certain: HashSet<FileId>,
    /// Files that may be, with the version that added each: of changes without an answer, or in an overwrite's way.
    pub(super) possible: HashMap<FileId, u64>,
    /// Files that were acknowledged more than once.
    pub(super) doubled: usize,
    /// Files that another writer added after an overwrite had looked and before it committed.
    pub(super) beside_overwrites: usize,
}

/// Replays acknowledged changes. `commits` are the versions present: one that no writer was told of is a change without
/// an answer, if there was one; otherwise nothing that is not acknowledged is possible.
pub(super) fn expected(acknowledged: &[(Option<u64>, Effect)], unknown: &[Effect], commits: &[u64]) -> Expected {
    let told: BTreeSet<u64> = acknowledged.iter().filter_map(|(version, _)| *version).collect();
    let untold: Vec<u64> = commits.iter().copied().filter(|version| !told.contains(version)).collect();
    // A change without a version is a fault that another check finds: it counts as the last.
    let mut in_order: Vec<(u64, &Effect)> =
        acknowledged.iter().map(|(version, effect)| (version.unwrap_or(u64::MAX), effect)).collect();
    in_order.sort_by_key(|(version, _)| *version);

    let mut expected = Expected::default();
    let mut ever: HashSet<FileId> = HashSet::new();
    // Active files, with the version that added each.
    let mut active: HashMap<FileId, u64> = HashMap::new();
    for (version, effect) in in_order {
        match &effect.remove {
            Removal::Nothing => {}
            Removal::Files(files) => {
                for file in files {
                    active.remove(file);
                    expected.possible.remove(file);
                }
            }
            Removal::All { seen } => {
                let seen = seen.unwrap_or(u64::MAX);
                expected.possible.retain(|_, added| *added > seen);
                let unseen = active.extract_if(|_, added| *added > seen);
                let before = expected.possible.len();
                expected.possible.extend(unseen);
                expected.beside_overwrites += expected.possible.len() - before;
                active.clear();
            }
        }
        for file in &effect.add {
            expected.doubled += usize::from(!ever.insert(*file));
            active.insert(*file, version);
        }
    }

    if let Some(last_untold) = untold.last().copied().filter(|_| !unknown.is_empty()) {
        for effect in unknown {
            expected.possible.extend(effect.add.iter().map(|file| (*file, last_untold)));
            match &effect.remove {
                Removal::Nothing => {}
                Removal::Files(files) => {
                    expected.possible.extend(files.iter().filter_map(|file| active.remove_entry(file)));
                }
                Removal::All { .. } => {
                    // It may be any of the versions that no writer was told of: at most the last.
                    expected.possible.extend(active.extract_if(|_, added| *added < last_untold));
                }
            }
        }
    }
    expected.certain = active.into_keys().collect();
    expected
}
