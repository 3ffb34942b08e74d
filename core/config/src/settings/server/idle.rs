//! The keys `idle_timeout`, `min_idle_timeout` and `max_idle_timeout`.

use std::time::Duration;

use crate::fields::Fields;
use crate::source::problem::Problem;
use crate::units;

/// The idle timeout of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The policy that chooses the time.
    pub policy: IdlePolicy,
    /// The shortest time that the adaptive policy chooses.
    pub min: Duration,
    /// The longest time that the adaptive policy chooses.
    pub max: Duration,
}

/// The policy that chooses the idle timeout of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// By the frequency of its use.
    #[default]
    Adaptive,
    /// The server is never stopped.
    Never,
    /// After this time.
    After(Duration),
}

// === impl Idle ===

impl Idle {
    pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let default = Self::default();
        let policy = match fields.peek("idle_timeout").and_then(|entry| entry.node.as_text()) {
            Some("adaptive") => Some(IdlePolicy::Adaptive),
            Some("never") => Some(IdlePolicy::Never),
            Some(_) | None => None,
        };
        let policy = match policy {
            Some(policy) => {
                fields.entry("idle_timeout");
                policy
            }
            None => fields.duration("idle_timeout").map(IdlePolicy::After).unwrap_or_default(),
        };
        let min = fields.duration("min_idle_timeout").unwrap_or(default.min);
        let max = fields.duration("max_idle_timeout").unwrap_or(default.max);
        if min > max {
            let (low, high) = (units::show_duration(min), units::show_duration(max));
            let message = format!(
                "`{}` is {low}, which is more than `max_idle_timeout` ({high})",
                fields.key("min_idle_timeout")
            );
            let key = if fields.has("min_idle_timeout") {
                "min_idle_timeout"
            } else {
                "max_idle_timeout"
            };
            fields.problem(key, Problem::error(message).help("make the minimum the smaller value"));
        }
        Self { policy, min, max }
    }
}

impl Default for Idle {
    fn default() -> Self {
        let policy = IdlePolicy::default();
        Self { policy, min: Duration::from_mins(1), max: Duration::from_mins(5) }
    }
}
