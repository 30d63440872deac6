//! Is a profile's every value in range?

use super::{Profile, Rate};

/// A value that is not.
pub(super) struct Invalid {
    pub(super) field: String,
    pub(super) value: String,
    pub(super) allowed: &'static str,
}

type Checked = Result<(), Invalid>;

/// Checks every value; answers with the first that is out of range.
pub(super) fn check(profile: &Profile) -> Checked {
    name(&profile.name)?;
    text("about", &profile.about)?;
    laws(profile)?;
    limits(profile)?;
    conflict(profile)?;

    require(profile.list.page_keys >= 1, "list.page_keys", profile.list.page_keys, "1 or more")?;
    text("list.source", &profile.list.source)?;
    if let Some(append) = &profile.append {
        require(append.appends_max >= 1, "append.appends_max", append.appends_max, "1 or more")?;
        if let Some(bytes) = append.append_bytes_max {
            require(bytes >= 1, "append.append_bytes_max", bytes, "1 or more")?;
        }
        text("append.source", &append.source)?;
    }
    prices(profile)
}

fn laws(profile: &Profile) -> Checked {
    for (name, sourced) in profile.laws.by_name() {
        for (term, value) in sourced.law.terms() {
            not_negative(&format!("laws.{name}.{term}"), value)?;
        }
        text(&format!("laws.{name}.source"), &sourced.source)?;
    }
    let value = if profile.laws.append.is_some() { "present" } else { "absent" };
    let consistent = profile.laws.append.is_some() == profile.append.is_some();
    require(consistent, "laws.append", value, "present if and only if there is an [append] table")
}

fn limits(profile: &Profile) -> Checked {
    let limits = &profile.limits;
    require(matches!(limits.status, 429 | 503), "limits.status", limits.status, "429 or 503")?;
    for (field, rate) in [
        ("limits.per_object_writes", limits.per_object_writes),
        ("limits.per_prefix_writes", limits.per_prefix_writes),
        ("limits.per_prefix_reads", limits.per_prefix_reads),
        ("limits.per_bucket_writes", limits.per_bucket_writes),
        ("limits.per_bucket_reads", limits.per_bucket_reads),
    ] {
        let Some(Rate { per_s, burst }) = rate else {
            continue;
        };
        require(per_s.is_finite() && per_s > 0.0, &format!("{field}.per_s"), per_s, "a finite number above 0")?;
        require(burst.is_finite() && burst >= 1.0, &format!("{field}.burst"), burst, "a finite number, 1 or more")?;
    }
    text("limits.source", &limits.source)
}

fn conflict(profile: &Profile) -> Checked {
    let conflict = &profile.conflict;
    for (field, status) in [
        ("conflict.exists_status", conflict.exists_status),
        ("conflict.mismatch_status", conflict.mismatch_status),
        ("conflict.in_flight_status", conflict.in_flight_status),
    ] {
        require(matches!(status, 409 | 412), field, status, "409 or 412")?;
    }
    text("conflict.source", &conflict.source)
}

fn prices(profile: &Profile) -> Checked {
    let Some(prices) = &profile.prices else {
        return Ok(());
    };
    let date = "a date as YYYY-MM or YYYY-MM-DD";
    require(is_date(&prices.as_of), "prices.as_of", quoted(&prices.as_of), date)?;
    for (field, usd) in [
        ("prices.usd_per_1000_class_a", prices.usd_per_1000_class_a),
        ("prices.usd_per_1000_class_b", prices.usd_per_1000_class_b),
        ("prices.usd_per_gb_month", prices.usd_per_gb_month),
        ("prices.usd_per_gb_upload", prices.usd_per_gb_upload),
        ("prices.usd_per_gb_retrieval", prices.usd_per_gb_retrieval),
    ] {
        not_negative(field, usd)?;
    }
    text("prices.source", &prices.source)
}

fn name(name: &str) -> Checked {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let allowed = "lower-case letters, digits and hyphens, at least one";
    require(!name.is_empty() && name.chars().all(plain), "name", quoted(name), allowed)
}

fn text(field: &str, value: &str) -> Checked {
    require(!value.trim().is_empty(), field, quoted(value), "a text that is not empty")
}

fn not_negative(field: &str, value: f64) -> Checked {
    require(value.is_finite() && value >= 0.0, field, value, "a finite number, 0 or more")
}

fn require(holds: bool, field: &str, value: impl ToString, allowed: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(Invalid { field: field.to_owned(), value: value.to_string(), allowed }) }
}

/// Escaped, so that the error stays one line.
fn quoted(value: &str) -> String {
    format!("{value:?}")
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let widths_match = matches!(parts.len(), 2 | 3)
        && parts.iter().zip([4, 2, 2]).all(|(part, width)| part.len() == width)
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let in_range = |part: Option<&&str>, last: u8| {
        part.is_none_or(|part| part.parse::<u8>().is_ok_and(|number| (1..=last).contains(&number)))
    };
    widths_match && in_range(parts.get(1), 12) && in_range(parts.get(2), 31)
}
