//! Is a protocol one that can be run?

use super::{Operation, Protocol, Publish, Step};
use crate::error::CellError;

impl Protocol {
    pub(crate) fn check(&self) -> Result<(), CellError> {
        let phases: [(&str, &[Step]); 8] = [
            ("before_refresh", &self.before_refresh),
            ("after_failed_refresh", &self.after_failed_refresh),
            ("winners.steps", self.winners.as_ref().map_or(&[], |winners| &winners.steps)),
            ("first", &self.first),
            ("after_catalog_conflict", &self.after_catalog_conflict),
            ("after_table_conflict", &self.after_table_conflict),
            ("after_success", &self.after_success),
            ("after_failure", &self.after_failure),
        ];
        for (phase, steps) in phases {
            for (index, step) in steps.iter().enumerate() {
                step.check(&format!("protocol.{phase}[{index}]"))?;
            }
        }
        if let Some(winners) = &self.winners
            && winners.steps.iter().any(|step| step.bytes_per_version > 0.0 || step.keys_per_version > 0.0)
        {
            return Err(CellError::field(
                "protocol.winners.steps",
                "growing",
                "steps that do not grow with the version",
            ));
        }
        if matches!(self.refresh, Operation::Write | Operation::PutIfAbsent | Operation::Work) {
            return Err(CellError::field("protocol.refresh", format!("{:?}", self.refresh), "a kind of read"));
        }
        if let Publish::Batch { batch_max, round_trip_ms, .. } = &self.publish {
            if *batch_max == 0 {
                return Err(CellError::field("protocol.publish.batch_max", batch_max, "1 or more"));
            }
            if !(0.0..=1e6).contains(round_trip_ms) {
                return Err(CellError::field("protocol.publish.round_trip_ms", round_trip_ms, "0 to 1,000,000"));
            }
        }
        Ok(())
    }
}

impl Step {
    fn check(&self, field: &str) -> Result<(), CellError> {
        if !(1..=100_000).contains(&self.times) {
            return Err(CellError::field(format!("{field}.times"), self.times, "1 to 100,000"));
        }
        for (name, value) in [
            ("bytes_per_version", self.bytes_per_version),
            ("keys_per_version", self.keys_per_version),
            ("work_ms", self.work_ms),
        ] {
            if !(0.0..=1e9).contains(&value) {
                return Err(CellError::field(format!("{field}.{name}"), value, "0 to 1,000,000,000"));
            }
        }
        Ok(())
    }
}
