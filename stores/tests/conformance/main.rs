//! What every store must do, whichever adapter it is seen through and whichever provider it stands for.
//!
//! A case is written once, against [`Subject`], and runs through the store client itself and through each adapter, on
//! providers that differ in order, paging, limits and statuses. A case that needs what an interface has no words for
//! (Iceberg's storage neither lists nor writes conditionally) is left out for that interface.

#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used)]

mod bench;
mod cases;
#[cfg(feature = "iceberg")]
mod iceberg;
#[cfg(any(feature = "delta", feature = "lance"))]
mod object_store;
mod raw;
mod subject;
#[path = "../support/mod.rs"]
mod support;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use lakemark_stores::profile::Profile;

use crate::bench::{Bench, Open};
use crate::cases::CASES;

/// Runs every case that the subject can express; says at the end which of them failed.
fn conforms(open: Open, profile: &str) {
    let profile = Profile::builtin(profile).expect("a built-in profile");
    let (ran, failed) = support::on_the_clock(async |_| {
        let (mut ran, mut failed) = (0, Vec::new());
        for case in CASES {
            let bench = Bench::new(profile.clone(), open);
            let able = bench.subject();
            if case.needs.iter().all(|need| able.abilities().contains(need)) {
                ran += 1;
                // The panic's message is on the test's output already.
                if AssertUnwindSafe((case.run)(bench)).catch_unwind().await.is_err() {
                    failed.push(case.name);
                }
            }
        }
        (ran, failed)
    });
    assert!(failed.is_empty(), "{} of {ran} cases failed on {}: {}", failed.len(), profile.name, failed.join(", "));
    assert!(ran >= 8, "only {ran} cases ran");
}

macro_rules! suites {
    ($($(#[$gate:meta])* $subject:ident: $open:path;)*) => {$(
        $(#[$gate])*
        mod $subject {
            use crate::conforms;

            suites!(@profiles $open; s3 "s3", s3_express "s3-express", gcs "gcs", azure "azure", instant "instant");
        }
    )*};
    (@profiles $open:path; $($test:ident $profile:literal),*) => {$(
        #[test]
        fn $test() {
            conforms($open, $profile);
        }
    )*};
}

suites! {
    client: crate::raw::open;
    #[cfg(feature = "delta")]
    object_store_013: crate::object_store::version_013::open;
    #[cfg(feature = "lance")]
    object_store_014: crate::object_store::version_014::open;
    #[cfg(feature = "iceberg")]
    iceberg_storage: crate::iceberg::open;
}
