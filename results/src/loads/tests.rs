use super::*;
use crate::manifest::CellStatus;
use crate::table::Table;

fn operation(writer: u32, number: u64, kind: OperationKind, version: u64, latency_us: u64) -> Operation {
    let mut operation: Operation = serde_json::from_str(crate::run::tests::OPERATION).unwrap();
    (operation.writer, operation.operation, operation.kind) = (writer, number, kind);
    (operation.version, operation.latency_us) = (Some(version), latency_us);
    operation
}

fn request(writer: u32, operation: u64, key: &str, start_us: u64, latency_us: u64) -> Request {
    let text = format!(
        r#"{{"writer":{writer},"operation":{operation},"request":0,"method":"get","key":"{key}","class":"log","start_us":{start_us},"latency_us":{latency_us},"read_bytes":5,"written_bytes":0,"status":200,"outcome":"ok"}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn collected(operations: &[Operation], requests: &[Request]) -> Vec<LoadSummary> {
    let mut collector = Collector::default();
    operations.iter().for_each(|operation| collector.operation(operation));
    requests.iter().for_each(|request| collector.request(request));
    collector.finish()
}

const READER: u32 = FIRST_READER;

#[test]
fn loads_are_grouped_by_kind_and_by_the_appends_before_them() {
    use OperationKind::{Append, ColdOpen, Refresh};
    let mut early = operation(READER, 0, ColdOpen, 1, 9_000);
    early.excluded = true;
    let loads = collected(
        &[
            operation(0, 1, Append, 1, 1_000),
            early,
            operation(0, 2, Append, 2, 1_000),
            operation(0, 3, Append, 3, 1_000),
            operation(READER + 1, 0, ColdOpen, 3, 4_000),
            operation(READER + 2, 0, ColdOpen, 3, 6_000),
            operation(READER, 1, Refresh, 3, 2_000),
        ],
        &[
            request(READER + 1, 0, "a", 0, 1_000),
            request(READER + 1, 0, "b", 500, 1_000),
            request(READER + 1, 0, "b", 1_500, 500),
            request(READER + 2, 0, "a", 0, 1_000),
            // Of no load that counts.
            request(READER, 0, "a", 0, 1_000),
            request(0, 1, "a", 0, 1_000),
        ],
    );
    assert_eq!(
        loads.iter().map(|load| (load.kind, load.appends, load.loads_ok)).collect::<Vec<_>>(),
        [(ColdOpen, 3, 2), (Refresh, 3, 1)]
    );
    let cold = &loads[0];
    assert_eq!((cold.latency_ms, cold.version, cold.behind), (5.0, Some(3), None));
    // s = √2 over two values: t is 12.706.
    assert!((cold.latency_half_width_ms.unwrap() - 12.706).abs() < 1e-9);
    assert_eq!((cold.objects, cold.in_flight_max), (1.5, 2));
    // 3.5 ms of requests within 2 + 1 ms.
    assert!((cold.in_flight_mean - 3.5 / 3.0).abs() < 1e-9, "{cold:?}");
    assert_eq!((loads[1].behind, loads[1].latency_half_width_ms), (Some(2), None));
}

#[test]
fn loads_beside_the_writer_are_one_group() {
    use OperationKind::{Append, ColdOpen};
    let loads = collected(
        &[
            operation(FIRST_READER_BESIDE, 0, ColdOpen, 0, 1_000),
            operation(0, 1, Append, 1, 1_000),
            operation(FIRST_READER_BESIDE + 1, 0, ColdOpen, 1, 3_000),
            operation(READER, 0, ColdOpen, 1, 5_000),
        ],
        &[],
    );
    assert_eq!(
        loads.iter().map(|load| (load.is_beside, load.appends, load.latency_ms)).collect::<Vec<_>>(),
        [(false, 1, 5.0), (true, 1, 2.0)]
    );
}

#[test]
fn failed_loads_are_counted_and_in_no_mean() {
    let mut failed = operation(READER, 0, OperationKind::ColdOpen, 0, 90_000);
    (failed.outcome, failed.version) = (Outcome::Error, None);
    let loads = collected(&[failed, operation(READER + 1, 0, OperationKind::ColdOpen, 0, 1_000)], &[]);
    assert_eq!((loads[0].loads_ok, loads[0].loads_failed, loads[0].latency_ms), (1, 1, 1.0));
}

#[test]
fn a_short_table_keeps_powers_of_ten_and_the_last_and_names_what_is_not_offered() {
    let plan = crate::run::tests::plan("cell");
    let mut status = CellStatus::started("cell");
    let hello = r#"{"protocol":1,"format":"lance","library":"lance 1","clock":"skip","settings":{},"unsupported":{"shallow_open":"no such thing"}}"#;
    status.hello = Some(serde_json::from_str(hello).unwrap());
    let mut operations = Vec::new();
    for append in 1..=25 {
        operations.push(operation(0, append, OperationKind::Append, append, 1_000));
        operations.push(operation(READER + append as u32, 0, OperationKind::FreshHandle, append, 1_000));
    }
    let loads = collected(&operations, &[]);
    let text = Table::of(&rows(&plan, &status, &loads, true)).to_text(None);
    assert_eq!(text.matches("fresh handle").count(), 3, "{text}");
    assert!(text.contains("shallow open") && text.contains("not offered: no such thing"), "{text}");
    assert_eq!(rows(&plan, &status, &loads, false).len(), 26);
}
