//! Numbers that are counted elsewhere and read when they are sent.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

/// A named number.
#[derive(Clone)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its unit, in UCUM: `{call}`.
    pub unit: &'static str,
    /// Its type.
    pub sort: Sort,
    /// Reads it. Called on a separate thread.
    pub read: Arc<dyn Fn() -> Vec<Point> + Send + Sync>,
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It only increases.
    Counter,
    /// It increases and decreases.
    Gauge,
}

/// A value, optionally with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Name and value of the label.
    pub label: Option<(&'static str, &'static str)>,
    /// The value.
    pub value: u64,
}

// === impl Series ===

impl Series {
    pub(crate) fn register(self, meter: &Meter) {
        let Self { name, help, unit, sort, read } = self;
        let points = move || read().into_iter().map(Point::labelled);
        match sort {
            Sort::Counter => {
                let counter = meter.u64_observable_counter(name).with_description(help);
                let counter = counter.with_unit(unit).with_callback(move |observer| {
                    points().for_each(|(value, labels)| observer.observe(value, &labels));
                });
                counter.build();
            }
            Sort::Gauge => {
                let gauge = meter.u64_observable_gauge(name).with_description(help);
                let gauge = gauge.with_unit(unit).with_callback(move |observer| {
                    points().for_each(|(value, labels)| observer.observe(value, &labels));
                });
                gauge.build();
            }
        }
    }
}

// === impl Point ===

impl Point {
    fn labelled(self) -> (u64, Vec<KeyValue>) {
        let label = self.label.map(|(name, value)| KeyValue::new(name, value));
        (self.value, label.into_iter().collect())
    }
}
