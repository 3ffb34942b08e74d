//! Traces and metrics for OTLP collectors over HTTP.
//!
//! Read in this order: [`settings`] reads the configuration, [`telemetry`] starts the exporters,
//! [`spans`] converts the steps of calls to spans, [`series`] are numbers that are read
//! periodically, and `collector` sends both.
//!
//! **Invariant:** nothing here blocks the thread that serves calls, and no arguments or answers of
//! a call are written into a span.

pub mod settings;
mod collector;
pub mod spans;
pub mod series;
pub mod telemetry;

pub use series::{Point, Series, Sort};
pub use settings::{Settings, Signal};
pub use telemetry::{Telemetry, TelemetryError};
