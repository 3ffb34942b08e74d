//! The rates of a configuration.

use capstan_config::Config;
use capstan_hub::Rates;

/// The rates of a configuration; equal rates keep their counters.
pub(super) fn of(config: &Config, before: Option<&Rates>) -> Rates {
    let rates = config.tools.rates.iter().map(|setting| setting.rate.clone()).collect();
    match before {
        Some(before) => before.then(rates),
        None => Rates::new(rates),
    }
}
