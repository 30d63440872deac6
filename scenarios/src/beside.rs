//! Readers that load a table again and again while a writer appends to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lakemark_results::loads::FIRST_READER_BESIDE;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::metadata_load::Found;
use crate::parameters::{self, Kind, Parameter};
use crate::sample;
use crate::{Bench, ScenarioError};

/// Parameter `readers-beside`.
pub(crate) const READERS_BESIDE: Parameter = Parameter {
    name: "readers-beside",
    default: "0",
    kind: Kind::Count { min: 0, max: 1_000 },
    help: "readers that open the table cold, again and again, beside the writer",
};

/// Loads of one reader that fail one after another before it gives up: one more would teach nothing.
const FAILURES_IN_A_ROW_MAX: u32 = 10;

/// Readers at work.
pub(crate) struct Beside {
    readers: Vec<JoinHandle<Result<Found, ScenarioError>>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// Files that the writer was told are in the table.
    acknowledged_files: AtomicU64,
}

impl Beside {
    /// Starts as many readers as the parameters say, perhaps none.
    pub(crate) fn start(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Self {
        let shared = Arc::new(Shared::default());
        let readers = parameters::count(parameters, READERS_BESIDE.name);
        let start = |reader| tokio::spawn(read(bench.clone(), shared.clone(), reader, readers));
        Self { readers: (0..readers).map(start).collect(), shared }
    }

    /// From now on, loads must find so many files.
    pub(crate) fn acknowledge(&self, files: u64) {
        self.shared.acknowledged_files.store(files, Ordering::Relaxed);
    }

    /// Lets each reader end its load and gives what they found; none without readers.
    ///
    /// # Errors
    /// If a reader gave up.
    pub(crate) async fn stop(self) -> Result<Option<Found>, ScenarioError> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut all = None;
        for reader in self.readers {
            let found = match reader.await {
                Ok(found) => found?,
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            };
            all.get_or_insert_with(Found::default).merge(found);
        }
        Ok(all)
    }
}

/// One reader: loads until it is told to stop, with a new client each time.
async fn read(bench: Bench, shared: Arc<Shared>, reader: u64, readers: u64) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut failures_in_a_row = 0;
    for load in 0.. {
        // A number for each load, since random latencies go by the number; whatever the other readers are at.
        let Ok(number) = u32::try_from(u64::from(FIRST_READER_BESIDE) + load * readers + reader) else { break };
        let least = shared.acknowledged_files.load(Ordering::Relaxed);
        let measured = sample::cold_open(&bench, &bench.site(number)).await;
        measured.emit(bench.sink.as_ref());
        match measured.result {
            Ok((_, files)) => {
                failures_in_a_row = 0;
                found.add_count(&files, least, u64::MAX);
            }
            Err(source) => {
                failures_in_a_row += 1;
                if failures_in_a_row == FAILURES_IN_A_ROW_MAX {
                    let what = format!("load beside the writer: {failures_in_a_row} failures in a row, the last");
                    return Err(ScenarioError::Operation { what, source });
                }
            }
        }
        // A store that answers at once leaves no other place for the writer to go on.
        tokio::task::yield_now().await;
        if shared.is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(found)
}
