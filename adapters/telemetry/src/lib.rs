//! Traces and metrics for collectors that speak OTLP over HTTP.
//!
//! Read in this order: [`settings`] are the switches, [`telemetry`] is what they switch on,
//! [`spans`] turns the steps of calls into spans, [`series`] are numbers that are read from time to
//! time, and `courier` sends both.
//!
//! **Invariant:** nothing here waits on the thread that serves calls, and nothing of what a call
//! says or gets back is written into a span.

pub mod settings;
mod courier;
pub mod spans;
pub mod series;
pub mod telemetry;

pub use series::{Point, Series, Sort};
pub use settings::{Settings, Signal};
pub use telemetry::{Telemetry, TelemetryError};
