//! The rates of a configuration.

use capstan_config::Config;
use capstan_hub::{Rate, Rates};

/// The rates of a configuration; equal rates keep their counters.
pub(super) fn of(config: &Config, before: Option<&Rates>) -> Rates {
    let rate = |written: &capstan_config::Rate| Rate {
        limit: written.limit,
        every: written.every,
        by: written.by,
        tools: written.tools.clone(),
        reason: written.reason.clone(),
    };
    let rates = config.tools.rates.iter().map(rate).collect();
    match before {
        Some(before) => before.then(rates),
        None => Rates::new(rates),
    }
}
