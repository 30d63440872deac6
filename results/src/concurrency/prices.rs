//! What do requests cost? By the price list of the provider's profile, as the run keeps it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::{Method, Request};

const BYTES_PER_GB: f64 = 1e9;

/// The part of a price list that requests are paid by. Storage is not in it: it has no failed attempts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Prices {
    /// 1,000 requests of class A: puts of any kind, listings and copies. Deletes cost nothing.
    pub usd_per_1000_class_a: f64,
    /// 1,000 requests of class B: get and head.
    pub usd_per_1000_class_b: f64,
    /// One GB written, on top of the request.
    #[serde(default)]
    pub usd_per_gb_upload: f64,
    /// One GB read, on top of the request.
    #[serde(default)]
    pub usd_per_gb_retrieval: f64,
}

impl Prices {
    /// The prices of a store in a run's folder; none if its profile has none, or cannot be read.
    pub fn read(run: &Path, store: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Profile {
            prices: Option<Prices>,
        }
        let text = std::fs::read_to_string(run.join("profiles").join(format!("{store}.json"))).ok()?;
        serde_json::from_str::<Profile>(&text).ok()?.prices
    }

    /// Price of a request, answered well or not, in US dollars.
    pub fn of(&self, request: &Request) -> f64 {
        let per_1000 = match request.method {
            Method::Put | Method::PutIfAbsent | Method::PutIfMatch | Method::List | Method::Copy => {
                self.usd_per_1000_class_a
            }
            Method::Get | Method::Head => self.usd_per_1000_class_b,
            Method::Delete => 0.0,
        };
        // The bytes of a listing's answer are its text, which no provider sells.
        let read_bytes = if request.method == Method::Get { request.read_bytes } else { 0 };
        per_1000 / 1e3
            + self.usd_per_gb_upload * request.written_bytes as f64 / BYTES_PER_GB
            + self.usd_per_gb_retrieval * read_bytes as f64 / BYTES_PER_GB
    }
}
