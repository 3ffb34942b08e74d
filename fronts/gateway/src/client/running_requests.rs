//! The running requests of a client, by their ids.

use std::collections::HashMap;

use capstan_wire::RequestId;
use tokio::task::AbortHandle;

/// The running requests of a client. Nearly always there is one, which needs no table: a modern
/// client lasts for one request.
#[derive(Default)]
pub(super) struct RunningRequests {
    first: Option<(RequestId, AbortHandle)>,
    others: HashMap<RequestId, AbortHandle>,
}

// === impl RunningRequests ===

impl RunningRequests {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.is_first(id) || (!self.others.is_empty() && self.others.contains_key(id))
    }

    /// Adds a request, or replaces the handle of the one with this id.
    pub(super) fn insert(&mut self, id: RequestId, handle: AbortHandle) {
        let is_other = !self.others.is_empty() && self.others.contains_key(&id);
        if !is_other && (self.first.is_none() || self.is_first(&id)) {
            self.first = Some((id, handle));
        } else {
            self.others.insert(id, handle);
        }
    }

    pub(super) fn remove(&mut self, id: &RequestId) -> Option<AbortHandle> {
        if self.is_first(id) {
            return self.first.take().map(|(_, handle)| handle);
        }
        if self.others.is_empty() { None } else { self.others.remove(id) }
    }

    /// Aborts all of them.
    pub(super) fn abort(self) {
        for handle in
            self.first.into_iter().map(|(_, handle)| handle).chain(self.others.into_values())
        {
            handle.abort();
        }
    }

    fn is_first(&self, id: &RequestId) -> bool {
        self.first.as_ref().is_some_and(|(first, _)| first == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[tokio::test]
    async fn each_id_has_one_request_whatever_the_order() {
        let task = || tokio::spawn(std::future::pending::<()>());
        let mut running = RunningRequests::default();
        let tasks = [task(), task(), task(), task()];
        for (number, task) in (0..).zip(&tasks) {
            running.insert(id(number), task.abort_handle());
            assert!(running.contains(&id(number)) && !running.contains(&id(number + 1)));
        }
        assert_eq!(running.len(), 4);
        // The place of the first one is free; one that is elsewhere stays there.
        assert!(running.remove(&id(0)).is_some() && running.remove(&id(0)).is_none());
        running.insert(id(2), tasks[0].abort_handle());
        assert_eq!(running.len(), 3);
        running.insert(id(9), tasks[2].abort_handle());
        assert_eq!(running.len(), 4);
        assert!(running.remove(&id(2)).is_some() && !running.contains(&id(2)));
        running.abort();
        let [zero, one, two, three] = tasks;
        assert!(!zero.is_finished(), "its handle was removed");
        for aborted in [one, two, three] {
            assert!(aborted.await.unwrap_err().is_cancelled());
        }
    }
}
