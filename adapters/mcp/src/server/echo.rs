//! Recognises a change that a server reports on both of its connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// The longest time between the two reports of one change.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The largest number of reports that are remembered.
const MAX_REPORTS: usize = 1024;

/// The last reports of a server, by what has changed.
#[derive(Default)]
pub(crate) struct Reports {
    next: AtomicU64,
    last: Mutex<FxHashMap<String, Report>>,
}

/// The reports of one connection.
pub(crate) struct Reporter {
    all: Arc<Reports>,
    number: u64,
}

/// A report that no other connection has repeated yet.
struct Report {
    reporter: u64,
    at: Instant,
}

// === impl Reporter ===

impl Reporter {
    pub(crate) fn new(all: &Arc<Reports>) -> Self {
        let number = all.next.fetch_add(1, Ordering::Relaxed);
        Self { all: Arc::clone(all), number }
    }

    /// Notes that the connection reports a change. Returns true if another connection reported the
    /// same a moment ago; each report is repeated once.
    pub(crate) fn repeats(&self, what: &str) -> bool {
        let now = Instant::now();
        let is_recent = |report: &Report| now.duration_since(report.at) < MAX_DELAY;
        let mut last = self.all.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = |report: &Report| report.reporter != self.number && is_recent(report);
        if last.get(what).is_some_and(is_other) {
            last.remove(what);
            return true;
        }
        if last.len() >= MAX_REPORTS {
            last.retain(|_, report| is_recent(report));
        }
        if last.len() < MAX_REPORTS {
            last.insert(what.to_owned(), Report { reporter: self.number, at: now });
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_other_connections_report_of_a_moment_ago_is_repeated_once() {
        let all = Arc::<Reports>::default();
        let (one, other) = (Reporter::new(&all), Reporter::new(&all));
        assert!(!one.repeats("a") && !one.repeats("a"), "a connection does not repeat itself");
        assert!(!other.repeats("b"));
        assert!(other.repeats("a"));
        assert!(!other.repeats("a"), "this is another change");
        assert!(one.repeats("a"));
        assert!(!one.repeats("a"));
        tokio::time::advance(MAX_DELAY).await;
        assert!(!other.repeats("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_reports_are_remembered() {
        let all = Arc::<Reports>::default();
        let one = Reporter::new(&all);
        for number in 0..2 * MAX_REPORTS {
            one.repeats(&number.to_string());
        }
        assert_eq!(all.last.lock().unwrap().len(), MAX_REPORTS);
        tokio::time::advance(MAX_DELAY).await;
        one.repeats("x");
        assert_eq!(all.last.lock().unwrap().len(), 1);
    }
}
