use super::*;

fn sample() -> Table {
    let mut table = Table::new(&[
        Column::text("system", "system"),
        Column::data_only("unit"),
        Column::number("mean_ms", "mean\nms"),
        Column::number("empty_ms", "empty\nms"),
        Column::text("emulated", "store is"),
        Column::text("notes", "notes"),
    ]);
    let notes = |notes: &[&str]| Field::Notes(notes.iter().map(|note| note.to_string()).collect());
    let words = ["emulated", "real"];
    table.push(vec![
        Field::Label("lance", "Lance"),
        Field::Text("ms".into()),
        Field::Exact(1441.9),
        Field::Missing,
        Field::Flag(true, words),
        notes(&["a, \"b\"", "c"]),
    ]);
    table.push(vec![
        Field::Text("delta".into()),
        Field::Text("ms".into()),
        Field::Number(33.5678),
        Field::Missing,
        Field::Flag(false, words),
        notes(&["c"]),
    ]);
    table.push(vec![Field::Text("iceberg".into())]);
    table
}

fn written(format: OutputFormat) -> String {
    let mut out = Vec::new();
    sample().write(&mut out, format, None).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_is_aligned_plain_and_has_its_notes_below() {
    let expected = "\
system     mean store is notes
             ms
──────────────────────────────
Lance   1,441.9 emulated 1,2
delta      33.6 real     2
iceberg       - -        -

1  a, \"b\"
2  c
";
    assert_eq!(written(OutputFormat::Text), expected);
}

#[test]
fn text_keeps_to_a_given_width() {
    let text = sample().to_text(Some(24));
    assert!(text.lines().take_while(|line| !line.is_empty()).all(|line| line.chars().count() <= 24), "{text}");
}

#[test]
fn json_is_one_document_with_unrounded_numbers_and_nulls() {
    let rows: Value = serde_json::from_str(&written(OutputFormat::Json)).unwrap();
    assert_eq!(rows[1]["mean_ms"], 33.5678);
    assert_eq!(
        (&rows[0]["system"], &rows[0]["unit"], &rows[0]["emulated"]),
        (&"lance".into(), &"ms".into(), &true.into())
    );
    assert_eq!(rows[0]["notes"][1], "c");
    assert_eq!(rows[2]["mean_ms"], Value::Null);
}

#[test]
fn csv_quotes_what_it_must_and_survives_a_round_trip() {
    let text = written(OutputFormat::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows[0], csv::StringRecord::from(vec!["lance", "ms", "1441.9", "", "true", "a, \"b\"; c"]));
    assert_eq!(rows[2], csv::StringRecord::from(vec!["iceberg", "", "", "", "", ""]));
}

#[test]
fn an_empty_table_is_still_a_document() {
    let table = Table::new(&[Column::text("system", "system")]);
    let mut out = Vec::new();
    table.write(&mut out, OutputFormat::Json, None).unwrap();
    assert_eq!(out, b"[]\n");
}

#[test]
fn numbers_ratios_and_groups() {
    let numbers = [0.0, 0.7841, 0.99951, 5.5, 9.996, 42.84, 99.96, 167.6, -1441.9, f64::NAN];
    let texts = ["0", "0.784", "1.00", "5.50", "10.0", "42.8", "100", "168", "-1,442", "NaN"];
    assert_eq!(numbers.map(format_number), texts);
    let ratios = [1.0642, 0.5, 12.4, 0.0951, 0.00313, 0.0, 1234.5];
    assert_eq!(ratios.map(format_ratio), ["1.06", "0.50", "12.40", "0.10", "0.0031", "0.00", "1,234.50"]);
    assert_eq!(group_digits("1234567.25"), "1,234,567.25");
}

#[test]
fn output_formats_are_named() {
    for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("yaml".parse::<OutputFormat>().unwrap_err().contains("\"yaml\""));
}
