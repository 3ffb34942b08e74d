//! Turns the configuration's rates into those that are counted.

use capstan_config::Config;
use capstan_hub::{Rate, Rates};

/// The rates of a configuration.
pub(crate) fn of(config: &Config) -> Rates {
    let rate = |written: &capstan_config::Rate| Rate {
        limit: written.limit,
        every: written.every,
        by: written.by,
        tools: written.tools.clone(),
        reason: written.reason.clone(),
    };
    Rates::new(config.tools.rates.iter().map(rate).collect())
}
