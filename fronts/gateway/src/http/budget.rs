//! How much may be kept for clients that may come back, all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are kept at the most.
const MAX: usize = 64 * 1024 * 1024;

/// Bytes that are kept.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

/// Bytes of the budget, given back when all copies of this are dropped.
#[derive(Clone, Debug)]
pub(super) struct Spent(#[expect(dead_code, reason = "is there to be dropped")] Arc<Part>);

#[derive(Debug)]
struct Part {
    budget: Arc<Budget>,
    size: usize,
}

// === impl Budget ===

impl Budget {
    /// So many bytes; `None` when they are not there.
    pub(super) fn take(self: &Arc<Self>, size: usize) -> Option<Spent> {
        let more = |spent: usize| spent.checked_add(size).filter(|all| *all <= MAX);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Spent(Arc::new(Part { budget: Arc::clone(self), size })))
    }
}

// === impl Part ===

impl Drop for Part {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_there_may_be_and_what_is_let_go_can_be_had_again() {
        let budget = Arc::<Budget>::default();
        let half = budget.take(MAX / 2).unwrap();
        let copy = half.clone();
        let other = budget.take(MAX / 2).unwrap();
        assert!(budget.take(1).is_none());
        drop(half);
        assert!(budget.take(1).is_none(), "a copy is still there");
        drop(copy);
        assert!(budget.take(MAX / 2 + 1).is_none());
        assert!(budget.take(MAX / 2).is_some());
        drop(other);
        assert!(budget.take(usize::MAX).is_none() && budget.take(MAX).is_some());
    }
}
