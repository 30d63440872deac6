//! Readers that load a table again and again while a writer appends to it.

use std::collections::BTreeMap;

use lakemark_results::loads::FIRST_READER_BESIDE;
use serde_json::Value;
use tokio::sync::watch;
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
    writer: watch::Sender<WriterState>,
}

/// What readers know of the writer.
#[derive(Clone, Copy, Default)]
struct WriterState {
    /// Files that it was told are in the table.
    acknowledged_files: u64,
    is_over: bool,
}

impl Beside {
    /// Starts as many readers as the parameters say, perhaps none.
    pub(crate) fn start(bench: &Bench, parameters: &BTreeMap<String, Value>) -> Self {
        let (writer, watched) = watch::channel(WriterState::default());
        let readers = parameters::count(parameters, READERS_BESIDE.name);
        let start = |reader| tokio::spawn(read(bench.clone(), watched.clone(), reader, readers));
        Self { readers: (0..readers).map(start).collect(), writer }
    }

    /// From now on, loads must find so many files.
    pub(crate) fn acknowledge(&self, files: u64) {
        self.writer.send_modify(|writer| writer.acknowledged_files = files);
    }

    /// Lets each reader end its load and gives what they found; none without readers.
    ///
    /// # Errors
    /// If a reader gave up.
    pub(crate) async fn stop(self) -> Result<Option<Found>, ScenarioError> {
        self.writer.send_modify(|writer| writer.is_over = true);
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

/// One reader: loads until the writer is over, with a new client each time.
async fn read(
    bench: Bench,
    mut writer: watch::Receiver<WriterState>,
    reader: u64,
    readers: u64,
) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut failures_in_a_row = 0;
    for load in 0.. {
        // A number for each load, since random latencies go by the number; whatever the other readers are at.
        let Ok(number) = u32::try_from(u64::from(FIRST_READER_BESIDE) + load * readers + reader) else { break };
        let least = writer.borrow_and_update().acknowledged_files;
        let measured = sample::cold_open(&bench, &bench.site(number)).await;
        let took_no_time = measured.record.latency_us == 0;
        match measured.emit(bench.sink.as_ref()) {
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
        if writer.borrow().is_over {
            break;
        }
        // Where neither the store nor computing takes process time, there is no end of loads beside one append: the
        // reader then waits for the next.
        if took_no_time && writer.changed().await.is_err() {
            break;
        }
    }
    Ok(found)
}
