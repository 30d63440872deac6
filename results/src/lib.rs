//! What a run leaves behind: the schema of its records, where they are kept, statistics over them, and comparison with
//! published figures.

pub mod compare;
pub mod concurrency;
pub mod loads;
pub mod manifest;
pub mod projection;
pub mod published;
pub mod read;
pub mod record;
pub mod run;
pub mod statistics;
pub mod summary;
pub mod table;
