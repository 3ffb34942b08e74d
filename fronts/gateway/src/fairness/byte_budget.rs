//! Memory budget for events kept for clients that may reconnect: per session, and in total.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Maximum number of bytes in total, and for one session.
const MAX: usize = 64 * 1024 * 1024;
const MAX_OF_SESSION: usize = MAX / 8;

/// A budget of bytes.
pub(crate) struct Budget {
    max: usize,
    spent: AtomicUsize,
    /// Memory that can be released for others, by number; the lowest is released first.
    spare: Mutex<BTreeMap<u64, Weak<dyn Spare>>>,
    /// The budget that this one is a part of.
    whole: Option<Arc<Budget>>,
}

/// Memory that can be released when the budget is used up.
pub(crate) trait Spare: Send + Sync {
    /// Releases the memory, if it is still spare.
    fn let_go(&self);
}

/// Bytes of the budget, given back when all copies of this are dropped.
#[derive(Clone)]
pub(crate) struct Spent(#[expect(dead_code, reason = "is there to be dropped")] Arc<Part>);

struct Part {
    budget: Arc<Budget>,
    size: usize,
}

// === impl Budget ===

impl Default for Budget {
    fn default() -> Self {
        Self { max: MAX, spent: AtomicUsize::new(0), spare: Mutex::default(), whole: None }
    }
}

impl Budget {
    /// Creates the budget of one session.
    pub(crate) fn of_session(self: &Arc<Self>) -> Arc<Self> {
        let whole = Some(Arc::clone(self));
        Arc::new(Self { max: MAX_OF_SESSION, whole, ..Self::default() })
    }

    /// Reserves bytes; `None` if they are not available even after all spare memory is released.
    pub(crate) fn take(self: &Arc<Self>, size: usize) -> Option<[Option<Spent>; 2]> {
        let own = self.take_own(size)?;
        let of_whole = match &self.whole {
            Some(whole) => Some(whole.take_own(size)?),
            None => None,
        };
        Some([Some(own), of_whole])
    }

    /// Registers memory that can be released.
    pub(crate) fn spare(&self, number: u64, spare: &Weak<dyn Spare>) {
        for budget in self.both() {
            budget.spares().insert(number, Weak::clone(spare));
        }
    }

    /// Removes the registration with this number.
    pub(crate) fn forget(&self, number: u64) {
        for budget in self.both() {
            budget.spares().remove(&number);
        }
    }

    fn take_own(self: &Arc<Self>, size: usize) -> Option<Spent> {
        if size > self.max {
            return None;
        }
        let more = |spent: usize| spent.checked_add(size).filter(|all| *all <= self.max);
        while self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            let (_, spare) = self.spares().pop_first()?;
            if let Some(spare) = spare.upgrade() {
                spare.let_go();
            }
        }
        Some(Spent(Arc::new(Part { budget: Arc::clone(self), size })))
    }

    fn both(&self) -> impl Iterator<Item = &Self> {
        [Some(self), self.whole.as_deref()].into_iter().flatten()
    }

    fn spares(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<dyn Spare>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Part ===

impl Drop for Part {
    fn drop(&mut self) {
        self.budget.spent.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Option<Bytes>>);

    type Bytes = [Option<Spent>; 2];

    impl Spare for Kept {
        fn let_go(&self) {
            self.0.lock().unwrap().take();
        }
    }

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

    #[test]
    fn a_session_has_its_share_and_leaves_the_rest_to_others() {
        let whole = Arc::<Budget>::default();
        let (greedy, modest) = (whole.of_session(), whole.of_session());
        let share = greedy.take(MAX_OF_SESSION).unwrap();
        assert!(greedy.take(1).is_none());
        let _theirs = modest.take(MAX_OF_SESSION).unwrap();
        let rest: Vec<Bytes> =
            (2..8).map(|_| whole.of_session().take(MAX_OF_SESSION).unwrap()).collect();
        assert!(whole.of_session().take(1).is_none(), "there is no more");
        drop(rest);
        drop(share);
        assert!(greedy.take(MAX_OF_SESSION + 1).is_none());
        assert!(greedy.take(MAX_OF_SESSION).is_some());
    }

    #[test]
    fn what_is_spare_is_let_go_of_before_anything_is_refused_and_the_oldest_first() {
        let whole = Arc::<Budget>::default();
        let own = whole.of_session();
        let kept: Vec<Arc<Kept>> = (0..2)
            .map(|_| Arc::new(Kept(Mutex::new(Some(own.take(MAX_OF_SESSION / 2).unwrap())))))
            .collect();
        let has = || kept.iter().map(|kept| kept.0.lock().unwrap().is_some()).collect::<Vec<_>>();
        assert!(own.take(1).is_none(), "nothing is spare");
        for (number, kept) in (1..).zip(&kept) {
            let spare: Arc<dyn Spare> = Arc::<Kept>::clone(kept);
            own.spare(number, &Arc::downgrade(&spare));
        }
        let first = own.take(1).unwrap();
        assert_eq!(has(), [false, true]);
        own.forget(2);
        assert!(own.take(MAX_OF_SESSION / 2).is_none());
        assert_eq!(has(), [false, true], "it is needed again");
        drop(first);
    }
}
