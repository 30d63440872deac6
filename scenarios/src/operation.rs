//! One measured operation: its time, its CPU time, and the log of what it sent.

use lakemark_core::clock;
use lakemark_core::table::{OperationError, OperationResult};
use lakemark_core::writer::Writer;
use lakemark_results::record::{Attempt, Line, Operation, OperationKind, Outcome, Request};

use crate::Sink;

/// An operation that ended, with everything that it sent.
#[derive(Clone, Debug)]
pub struct Measured<T> {
    /// Its record.
    pub record: Operation,
    /// Its requests.
    pub requests: Vec<Request>,
    /// Its attempts.
    pub attempts: Vec<Attempt>,
    /// What it gave.
    pub result: OperationResult<T>,
    /// When it ended: process time in nanoseconds.
    pub end_ns: u64,
}

/// What is known of an operation before it starts.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// What it does.
    pub kind: OperationKind,
    /// Its table, by its place in the writer's scope.
    pub table: u32,
    /// When it should start, if arrivals follow a schedule: process time in nanoseconds.
    pub intended_ns: Option<u64>,
    /// Whether other operations run in the process meanwhile, so that its CPU time cannot be told from theirs.
    pub is_beside_others: bool,
}

/// Runs an operation of a writer and takes its log. `version` says which version the result stands for.
pub async fn measure<T>(
    writer: &Writer,
    kind: OperationKind,
    version: impl FnOnce(&T) -> Option<u64>,
    run: impl Future<Output = OperationResult<T>>,
) -> Measured<T> {
    let planned = Planned { kind, table: 0, intended_ns: None, is_beside_others: false };
    measure_planned(writer, planned, version, run).await
}

/// As [`measure`], with what else is known of the operation.
pub async fn measure_planned<T>(
    writer: &Writer,
    planned: Planned,
    version: impl FnOnce(&T) -> Option<u64>,
    run: impl Future<Output = OperationResult<T>>,
) -> Measured<T> {
    let operation = writer.operation();
    writer.start_operation_on(planned.table as usize);
    let library_cpu_ns = || if planned.is_beside_others { 0 } else { clock::library_cpu_ns() };
    let cpu_ns = library_cpu_ns();
    let start_ns = clock::now_ns();
    let result = run.await;
    let end_ns = clock::now_ns();
    let cpu_ns = library_cpu_ns().saturating_sub(cpu_ns);
    clock::frozen(|| {
        let log = writer.finish_operation();
        let (outcome, error, version) = match &result {
            Ok(value) => (Outcome::Ok, None, version(value)),
            Err(OperationError { outcome, message }) => (*outcome, Some(message.clone()), None),
        };
        let record = Operation {
            writer: writer.id(),
            operation,
            kind: planned.kind,
            intended_us: planned.intended_ns.map(clock::since_start_us),
            table: planned.table,
            excluded: false,
            start_us: clock::since_start_us(start_ns),
            latency_us: end_ns.saturating_sub(start_ns) / 1_000,
            wait_us: log.wait_ns / 1_000,
            catalog_us: log.catalog_ns / 1_000,
            cpu_us: cpu_ns / 1_000,
            outcome,
            version,
            attempts: u32::try_from(log.attempts.len()).unwrap_or(u32::MAX),
            requests: u32::try_from(log.requests.len()).unwrap_or(u32::MAX),
            read_bytes: log.requests.iter().map(|request| request.read_bytes).sum(),
            written_bytes: log.requests.iter().map(|request| request.written_bytes).sum(),
            error,
        };
        Measured { record, requests: log.requests, attempts: log.attempts, result, end_ns }
    })
}

impl<T> Measured<T> {
    /// Hands the records to a sink: what was sent first, then the operation that sent it. Gives what the operation gave.
    pub fn emit(self, sink: &dyn Sink) -> OperationResult<T> {
        clock::frozen(|| {
            for request in self.requests {
                sink.emit(&Line::Request(request));
            }
            for attempt in self.attempts {
                sink.emit(&Line::Attempt(attempt));
            }
            sink.emit(&Line::Operation(self.record));
        });
        self.result
    }
}
