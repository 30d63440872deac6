//! What formats, stores, catalogs and scenarios share: the clock, the writer's log, and the small traits in which they
//! meet.

pub mod clock;
pub mod store;
pub mod table;
pub mod writer;

pub use lakemark_results::record;
