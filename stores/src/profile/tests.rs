//! Every built-in profile parses and says what its sources say; bad input is refused in one line that names it.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::seed::stream;

const S3: &str = include_str!("../../profiles/s3.toml");
const PROVIDERS: &str = include_str!("../../../docs/PROVIDERS.md");

fn builtin(name: &str) -> Profile {
    Profile::builtin(name).unwrap_or_else(|| panic!("{name} does not parse"))
}

fn refused(from: &str, to: &str) -> String {
    assert!(S3.contains(from), "the profile has no {from:?}");
    let error = Profile::parse(&S3.replacen(from, to, 1), "my.toml").expect_err("is refused").to_string();
    assert!(!error.contains('\n'), "more than one line: {error}");
    error
}

fn median_ms(law: &SourcedLaw, mib: f64, keys: u64) -> f64 {
    law.law.median((mib * 1_048_576.0) as u64, keys).as_secs_f64() * 1e3
}

#[test]
fn every_builtin_parses_under_its_own_name() {
    for (name, text) in BUILTIN {
        let profile = Profile::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, name);
        assert_eq!(Profile::builtin(name), Some(profile));
    }
    assert_eq!(Profile::builtin_names().count(), 10);
    assert_eq!(Profile::builtin("s4"), None);
}

/// Checked against the mean that a study published: 140 ms over 10,000 commits.
#[test]
fn one_lance_commit_on_s3_takes_142_ms() {
    let laws = builtin("s3").laws;
    let sum = median_ms(&laws.list, 0.0, 1) + median_ms(&laws.put, 0.0, 0) + median_ms(&laws.put_if_absent, 0.0, 0);
    assert!((sum - 142.0).abs() < 0.001, "{sum}");
}

/// Version hint, HEAD probes, transaction, manifest, version hint. Published mean: 27.6 ms.
#[test]
fn one_lance_commit_on_s3_express_takes_28_ms() {
    let laws = builtin("s3-express").laws;
    let reads = median_ms(&laws.get, 0.0, 0) + median_ms(&laws.head, 0.0, 0);
    let writes = 2.0 * median_ms(&laws.put, 0.0, 0) + median_ms(&laws.put_if_absent, 0.0, 0);
    assert!((reads + writes - 28.0).abs() < 0.001, "{}", reads + writes);
}

/// Three GETs and three PUTs; a metadata.json of 6.7 MiB is read twice and written once. CPU time comes on top.
#[test]
fn one_late_iceberg_commit_without_cpu_time() {
    for (name, expected_ms) in [("s3", 578.6), ("s3-express", 288.3)] {
        let laws = builtin(name).laws;
        let small = median_ms(&laws.get, 0.0, 0) + 2.0 * median_ms(&laws.put, 0.0, 0);
        let large = 2.0 * median_ms(&laws.get, 6.7, 0) + median_ms(&laws.put, 6.7, 0);
        assert!((small + large - expected_ms).abs() < 0.1, "{name}: {}", small + large);
    }
}

#[test]
fn a_page_of_s3_express_costs_by_its_keys() {
    let express = builtin("s3-express").laws.list;
    assert_eq!(express.law.median(0, 1_000), Duration::from_millis(30));
    assert_eq!(express.law.median(0, 0), builtin("s3-express").laws.get.law.median(0, 0));
    assert_eq!(builtin("s3").laws.list.law.median(0, 1_000), Duration::from_millis(27));
}

#[test]
fn two_readings_differ_in_conditional_writes_only() {
    for (main, other, other_ms) in [("s3", "s3-2025", 61.0), ("s3-express", "s3-express-2025", 22.0)] {
        let (main, mut other) = (builtin(main), builtin(other));
        assert_eq!(other.laws.put_if_absent.law.median_ms, other_ms);
        assert_eq!(other.laws.put_if_match.law, other.laws.put_if_absent.law);
        other.name.clone_from(&main.name);
        other.about.clone_from(&main.about);
        other.laws.put_if_absent = main.laws.put_if_absent.clone();
        other.laws.put_if_match = main.laws.put_if_match.clone();
        assert_eq!(main, other);
    }
}

/// The mean of real draws, with the clamp in place.
#[test]
fn sampled_means_follow_every_builtin_law() {
    const DRAWS: u32 = 20_000;
    for name in Profile::builtin_names() {
        for (method, sourced) in builtin(name).laws.by_name() {
            let law = sourced.law;
            let mut rng = stream(5, 0, 0, 0);
            let total: Duration = (0..DRAWS).map(|_| law.sample(&mut rng, 0, 0)).sum();
            let mean_ms = total.as_secs_f64() * 1e3 / f64::from(DRAWS);
            assert!((mean_ms - law.mean_ms()).abs() <= 0.04 * law.mean_ms(), "{name} {method}: {mean_ms}");
        }
    }
}

#[test]
fn instant_takes_no_time_and_costs_nothing() {
    let profile = builtin("instant");
    for (method, sourced) in profile.laws.by_name() {
        let latency = sourced.law.sample(&mut stream(1, 1, 1, 1), u64::MAX, 1_000);
        assert_eq!(latency, Duration::ZERO, "{method}");
    }
}

/// Published cost of 30 commits a second for 30 days, two requests of class A each, and of 50 TB stored.
#[test]
fn prices_agree_with_published_costs() {
    let requests = 30.0 * 30.0 * 86_400.0 * 2.0;
    for (name, requests_usd, stored_usd) in
        [("s3", 778.0, 1150.0), ("s3-express", 176.0, 5500.0), ("tigris", 778.0, 1000.0), ("r2", 698.0, 750.0)]
    {
        let prices = builtin(name).prices.expect("has prices");
        let got = requests / 1000.0 * prices.usd_per_1000_class_a;
        assert!((got / requests_usd - 1.0).abs() < 0.005, "{name}: {got}");
        assert!((50_000.0 * prices.usd_per_gb_month - stored_usd).abs() < 0.01, "{name}");
    }
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    let sigma = "laws.get.sigma is -0.62; allowed: a finite number, 0 or more";
    assert_eq!(refused("sigma = 0.62", "sigma = -0.62"), format!("my.toml: {sigma}"));
    assert!(refused("median_ms = 27", "median_ms = -27").contains("laws.get.median_ms is -27;"));
    assert!(refused("median_ms = 27", "median_ms = nan").contains("laws.get.median_ms is NaN;"));
    assert!(refused("floor_ms = 10", "floor_ms = inf").contains("laws.get.floor_ms is inf;"));
    assert!(refused("page_keys = 1000", "page_keys = 0").contains("list.page_keys is 0; allowed: 1 or more"));
    assert!(refused("per_s = 3500", "per_s = 0").contains("limits.per_prefix_writes.per_s is 0;"));
    assert!(refused("burst = 5500", "burst = 0.5").contains("limits.per_prefix_reads.burst is 0.5;"));
    assert!(refused("usd_per_gb_month = 0.023", "usd_per_gb_month = -1").contains("prices.usd_per_gb_month is -1;"));
}

#[test]
fn statuses_names_and_dates_are_refused_by_name() {
    assert!(refused("status = 503", "status = 500").contains("limits.status is 500; allowed: 429 or 503"));
    let in_flight = refused("in_flight_status = 409", "in_flight_status = 200");
    assert!(in_flight.contains("conflict.in_flight_status is 200; allowed: 409 or 412"));
    assert!(refused("\"s3\"", "\"S3 new\\n\"").contains("name is \"S3 new\\n\";"));
    for date in ["2026", "2026-13", "2026-08-32", "26-08", "2026-08-01-01", "August"] {
        assert!(refused("2026-08", date).contains(&format!("prices.as_of is \"{date}\";")));
    }
    let append = "name = \"s3\"\nappend = { appends_max = 1, source = \"a\" }";
    assert!(refused("name = \"s3\"", append).contains("laws.append is absent; allowed: present if and only if"));
}

#[test]
fn what_is_not_a_profile_is_refused_with_its_line() {
    let unknown = refused("about = ", "abuot = 1\nabout = ");
    assert!(unknown.starts_with("my.toml:4: unknown field `abuot`, expected one of"), "{unknown}");
    let mistyped = refused("page_keys = 1000", "page_keys = \"1000\"");
    let line = 1 + S3.lines().position(|line| line == "page_keys = 1000").expect("is there");
    assert!(mistyped.starts_with(&format!("my.toml:{line}: invalid type: string \"1000\"")), "{mistyped}");
    assert!(refused("page_keys = 1000", "page_keys = -1").contains("-1"));
    assert!(refused("[laws.head]", "[laws.haed]").contains("haed"));
    assert!(refused("assumed = [\"median_ms\"", "assumed = [\"mean_ms\"").contains("mean_ms"));
    assert!(refused("sigma = 0.62, ", "").contains("missing field `sigma`"));
    assert!(refused("[list]", "[list").starts_with("my.toml:"));
}

#[test]
fn missing_file_is_named() {
    let error = Profile::read(Path::new("no/such.toml")).expect_err("is refused").to_string();
    assert!(error.starts_with("no/such.toml: "), "{error}");
}

#[test]
fn json_is_the_profile_again() {
    for name in Profile::builtin_names() {
        let profile = builtin(name);
        assert_eq!(serde_json::from_value::<Profile>(profile.to_json()).expect("reads"), profile);
    }
}

#[test]
fn hash_is_stable_and_follows_the_content() {
    let hashes: HashSet<String> = Profile::builtin_names().map(|name| builtin(name).hash()).collect();
    assert_eq!(hashes.len(), BUILTIN.len());

    let s3 = builtin("s3");
    assert_eq!(s3.hash(), builtin("s3").hash());
    assert_eq!(s3.hash().len(), 16);
    // Comments, layout and the form of a number are no content.
    let rewritten = S3.replace("median_ms = 27,", "median_ms = 27.00,").replace("[laws.get]", "\n# GET\n[laws.get]");
    assert_eq!(Profile::parse(&rewritten, "s3").expect("parses").hash(), s3.hash());

    let mut changed = s3.clone();
    changed.laws.get.law.floor_ms = 11.0;
    assert_ne!(changed.hash(), s3.hash());
}

/// A law that stands in for one that nobody timed says so.
#[test]
fn borrowed_laws_are_declared() {
    for name in Profile::builtin_names().filter(|name| *name != "instant") {
        let laws = builtin(name).laws;
        for (method, sourced) in laws.by_name() {
            let borrowed = matches!(method, "head" | "list" | "delete" | "copy" | "put_if_match");
            assert!(!borrowed || sourced.assumed.contains(&Term::MedianMs), "{name} {method}");
        }
    }
}

/// The tables of `docs/PROVIDERS.md` are the profiles, number for number and source for source.
#[test]
fn documentation_holds_every_law() {
    for name in Profile::builtin_names().filter(|name| *name != "instant") {
        let heading = format!("\n### {name}\n");
        let (_, section) = PROVIDERS.split_once(&heading).unwrap_or_else(|| panic!("no section {name}"));
        let section = section.split("\n##").next().unwrap_or_default();
        for (method, SourcedLaw { law, source, assumed }) in builtin(name).laws.by_name() {
            let star = |term| if assumed.contains(&term) { "*" } else { "" };
            let row = format!(
                "| {method} | {}{} | {}{} | {}{} | {}{} | {}{} | {source} |",
                law.median_ms,
                star(Term::MedianMs),
                law.sigma,
                star(Term::Sigma),
                law.per_mib_ms,
                star(Term::PerMibMs),
                law.per_1000_keys_ms,
                star(Term::Per1000KeysMs),
                law.floor_ms,
                star(Term::FloorMs),
            );
            assert!(section.contains(&row), "{name}: no row {row}");
        }
    }
}
