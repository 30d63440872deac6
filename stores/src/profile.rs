//! What is an emulated provider like? Its profile: latency laws, limits, answers and prices, read from TOML.
//!
//! The file format is described in `docs/PROVIDERS.md`. Every law names the source of its numbers and lists those that
//! no source gives.

use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::law::{Law, Term};

mod check;
#[cfg(test)]
mod tests;

const BUILTIN: [(&str, &str); 10] = [
    ("s3", include_str!("../profiles/s3.toml")),
    ("s3-2025", include_str!("../profiles/s3-2025.toml")),
    ("s3-express", include_str!("../profiles/s3-express.toml")),
    ("s3-express-2025", include_str!("../profiles/s3-express-2025.toml")),
    ("azure", include_str!("../profiles/azure.toml")),
    ("azure-premium", include_str!("../profiles/azure-premium.toml")),
    ("gcs", include_str!("../profiles/gcs.toml")),
    ("tigris", include_str!("../profiles/tigris.toml")),
    ("r2", include_str!("../profiles/r2.toml")),
    ("instant", include_str!("../profiles/instant.toml")),
];

/// An emulated provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name on the command line and in results: lower-case letters, digits and hyphens.
    pub name: String,
    /// What it stands for, in a line.
    pub about: String,
    /// How long each request takes.
    pub laws: Laws,
    /// How many requests a second it accepts.
    pub limits: Limits,
    /// What it answers when a precondition fails.
    pub conflict: Conflict,
    /// How it lists.
    pub list: Listing,
    /// How it appends; none where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<Append>,
    /// What it costs; none where no price could be sourced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// The latency law of each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Laws {
    /// Read of an object or a part of it.
    pub get: SourcedLaw,
    /// Read of what the provider says of an object.
    pub head: SourcedLaw,
    /// Write without a precondition.
    pub put: SourcedLaw,
    /// Write if no object has the key.
    pub put_if_absent: SourcedLaw,
    /// Write if the object has a given tag.
    pub put_if_match: SourcedLaw,
    /// One page of a listing.
    pub list: SourcedLaw,
    /// Removal of an object.
    pub delete: SourcedLaw,
    /// Copy inside the provider.
    pub copy: SourcedLaw,
    /// Append to an object; none where the provider cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<SourcedLaw>,
}

impl Laws {
    /// The laws by name, those that the profile has.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, &SourcedLaw)> {
        [
            ("get", Some(&self.get)),
            ("head", Some(&self.head)),
            ("put", Some(&self.put)),
            ("put_if_absent", Some(&self.put_if_absent)),
            ("put_if_match", Some(&self.put_if_match)),
            ("list", Some(&self.list)),
            ("delete", Some(&self.delete)),
            ("copy", Some(&self.copy)),
            ("append", self.append.as_ref()),
        ]
        .into_iter()
        .filter_map(|(name, law)| Some((name, law?)))
    }
}

/// A law and where its numbers come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcedLaw {
    /// The law.
    pub law: Law,
    /// Where the numbers come from, and why an assumed one was chosen.
    pub source: String,
    /// The numbers that no source gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<Term>,
}

/// Rates beyond which the provider refuses requests; none where no limit is documented.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// HTTP status of a refused request: 429 or 503. Throttle faults answer it too.
    pub status: u16,
    /// Writes to one object name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_object_writes: Option<Rate>,
    /// Writes under one prefix (PUT, COPY, POST, DELETE), as long as the provider has not split it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_prefix_writes: Option<Rate>,
    /// Reads under one prefix (GET, HEAD), as long as the provider has not split it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_prefix_reads: Option<Rate>,
    /// Writes to one bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_bucket_writes: Option<Rate>,
    /// Reads from one bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_bucket_reads: Option<Rate>,
    /// Where the limits come from.
    pub source: String,
}

/// A token bucket: `burst` requests at once, refilled at `per_s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Sustained requests a second.
    pub per_s: f64,
    /// Requests accepted at once after a pause; at least 1.
    pub burst: f64,
}

/// HTTP statuses of a failed precondition, each 409 or 412.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    /// Put-if-absent, and the object exists.
    pub exists_status: u16,
    /// Put-if-match, and the object has another tag.
    pub mismatch_status: u16,
    /// Another conditional write to the key is in flight.
    pub in_flight_status: u16,
    /// Where the statuses come from.
    pub source: String,
}

/// How a provider lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Keys and common prefixes of a full page.
    pub page_keys: u32,
    /// Keys come in key order.
    pub ordered: bool,
    /// A listing can start after a key. Without this a client lists the whole prefix and filters.
    pub start_after: bool,
    /// A prefix must end in a slash.
    pub prefix_ends_in_slash: bool,
    /// Where this comes from.
    pub source: String,
}

/// How a provider appends to an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// Appends that one object takes.
    pub appends_max: u64,
    /// Bytes that one append takes; none where no limit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_bytes_max: Option<u64>,
    /// Where this comes from.
    pub source: String,
}

/// List prices in US dollars, inside one region: no egress, no free tier, no volume discount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// When they held: a year and month, or a day.
    pub as_of: String,
    /// 1,000 requests of class A: put of any kind, list, copy, append. Deletes cost nothing.
    pub usd_per_1000_class_a: f64,
    /// 1,000 requests of class B: get, head.
    pub usd_per_1000_class_b: f64,
    /// One GB stored for one month.
    pub usd_per_gb_month: f64,
    /// One GB written, on top of the request.
    #[serde(default)]
    pub usd_per_gb_upload: f64,
    /// One GB read, on top of the request.
    #[serde(default)]
    pub usd_per_gb_retrieval: f64,
    /// Where they come from.
    pub source: String,
}

impl Profile {
    /// The built-in profile of this name.
    pub fn builtin(name: &str) -> Option<Self> {
        let (name, text) = BUILTIN.iter().find(|(builtin, _)| *builtin == name)?;
        // That every built-in profile parses is tested.
        Self::parse(text, name).ok()
    }

    /// Names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Reads a profile from a TOML file.
    ///
    /// # Errors
    /// As [`Profile::parse`], and when the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &origin),
            Err(source) => Err(ProfileError::Read { origin, source }),
        }
    }

    /// Reads a profile from TOML text; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text is not TOML, misses a field, has an unknown one or one of another type, or a value is out of
    /// range.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError::toml(origin, text, &error))?;
        check::check(&profile).map_err(|invalid| ProfileError::Field {
            origin: origin.to_owned(),
            field: invalid.field,
            value: invalid.value,
            allowed: invalid.allowed,
        })?;
        Ok(profile)
    }

    /// The profile as it is recorded in a run's manifest, keys in order.
    #[expect(clippy::expect_used, reason = "strings, numbers and structs: nothing in a profile can fail to serialize")]
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).expect("a profile serializes");
        value.sort_all_objects();
        value
    }

    /// Identifies the profile's content, sources included: XXH3 (64 bits) of its compact JSON with sorted keys, in hex.
    pub fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.to_json().to_string().as_bytes()))
    }
}

/// Why a profile was refused.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file could not be read.
    #[error("{origin}: {source}")]
    Read {
        /// The file.
        origin: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a profile.
    #[error("{origin}:{line}: {message}")]
    Toml {
        /// File or name of the profile.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A value is out of range.
    #[error("{origin}: {field} is {value}; allowed: {allowed}")]
    Field {
        /// File or name of the profile.
        origin: String,
        /// The field, with its table.
        field: String,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
}

impl ProfileError {
    /// The first line of a TOML error, without the excerpt and caret that follow it.
    fn toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Self::Toml {
            origin: origin.to_owned(),
            line: 1 + before.matches('\n').count(),
            message: error.message().lines().collect::<Vec<_>>().join("; "),
        }
    }
}
