//! Table formats, each through its own library's public commit path. A format knows no scenario.

#[cfg(feature = "delta")]
pub mod delta;
#[cfg(feature = "iceberg")]
pub mod iceberg;
#[cfg(feature = "lance")]
pub mod lance;
#[cfg(any(feature = "delta", feature = "iceberg", feature = "lance"))]
mod settings;
