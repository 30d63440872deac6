//! How long does the store take? A provider's laws, from the profiles of the emulated stores.

use std::path::Path;

use lakemark_stores::profile::{Profile, SourcedLaw};
use serde::{Deserialize, Serialize};

use crate::error::CellError;
use crate::law::Law;

/// Bytes in a MiB.
pub(crate) const MIB_BYTES: f64 = 1_048_576.0;

/// The law of one operation, with its terms for what it moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationLaw {
    /// Duration of a request that moves nothing.
    pub law: Law,
    /// Milliseconds for each MiB of body.
    #[serde(default)]
    pub per_mib_ms: f64,
    /// Milliseconds for each 1,000 keys of a listing's page.
    #[serde(default)]
    pub per_1000_keys_ms: f64,
}

/// Laws that take the place of those of the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LawOverrides {
    /// GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<OperationLaw>,
    /// HEAD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<OperationLaw>,
    /// PUT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<OperationLaw>,
    /// LIST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<OperationLaw>,
    /// PUT if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_if_absent: Option<OperationLaw>,
    /// Conditional PUT of the catalog's object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<OperationLaw>,
    /// Publish that is lost. The time to the check is half a draw of the law of a publish, as its outcome is not known
    /// yet; the answer takes half a draw of this law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_publish: Option<OperationLaw>,
}

/// A token bucket: `burst` requests at once, refilled at `per_s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Sustained requests a second.
    pub per_s: f64,
    /// Requests accepted at once after a pause.
    pub burst: f64,
}

impl LawOverrides {
    pub(crate) fn check(&self) -> Result<(), CellError> {
        for (name, law) in [
            ("read", &self.read),
            ("head", &self.head),
            ("write", &self.write),
            ("list", &self.list),
            ("put_if_absent", &self.put_if_absent),
            ("swap", &self.swap),
            ("failed_publish", &self.failed_publish),
        ] {
            let Some(law) = law else { continue };
            law.law.check(&format!("laws.{name}.law"))?;
            for (term, value) in [("per_mib_ms", law.per_mib_ms), ("per_1000_keys_ms", law.per_1000_keys_ms)] {
                if !(0.0..=1e6).contains(&value) {
                    return Err(CellError::field(format!("laws.{name}.{term}"), value, "0 to 1,000,000"));
                }
            }
        }
        Ok(())
    }
}

/// The laws of a store, overrides applied.
#[derive(Clone, Debug)]
pub(crate) struct StoreLaws {
    pub(crate) read: OperationLaw,
    pub(crate) head: OperationLaw,
    pub(crate) write: OperationLaw,
    pub(crate) list: OperationLaw,
    pub(crate) put_if_absent: OperationLaw,
    pub(crate) swap: OperationLaw,
    pub(crate) failed_publish: Option<OperationLaw>,
    /// Keys of a full page.
    pub(crate) page_keys: f64,
}

impl StoreLaws {
    pub(crate) fn new(profile: &Profile, overrides: &LawOverrides) -> Self {
        let pick = |own: &Option<OperationLaw>, law: &SourcedLaw| own.clone().unwrap_or_else(|| from_profile(law));
        let laws = &profile.laws;
        Self {
            read: pick(&overrides.read, &laws.get),
            head: pick(&overrides.head, &laws.head),
            write: pick(&overrides.write, &laws.put),
            list: pick(&overrides.list, &laws.list),
            put_if_absent: pick(&overrides.put_if_absent, &laws.put_if_absent),
            swap: pick(&overrides.swap, &laws.put_if_match),
            failed_publish: overrides.failed_publish.clone(),
            page_keys: f64::from(profile.list.page_keys.max(1)),
        }
    }
}

fn from_profile(sourced: &SourcedLaw) -> OperationLaw {
    let law = &sourced.law;
    OperationLaw {
        law: Law::log_normal(law.median_ms, law.sigma, law.floor_ms),
        per_mib_ms: law.per_mib_ms,
        per_1000_keys_ms: law.per_1000_keys_ms,
    }
}

/// The built-in profile of this name, or the one in the file of this name if it ends in `.toml`.
pub(crate) fn profile(name: &str) -> Result<Profile, CellError> {
    if name.ends_with(".toml") {
        return Ok(Profile::read(Path::new(name))?);
    }
    let allowed = || Profile::builtin_names().collect::<Vec<_>>().join(", ");
    Profile::builtin(name).ok_or_else(|| CellError::Provider { name: name.to_owned(), allowed: allowed() })
}
