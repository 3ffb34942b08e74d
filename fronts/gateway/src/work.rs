//! The work for one request: done by whoever waits for it, or apart from it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use tokio::task::JoinHandle;

use crate::delivering::Done;
use crate::fault::Fault;

/// Work that ends when nobody waits for it any more.
///
/// Whoever waits for it does it: an answer that comes by itself needs no task of its own, and nobody
/// has to be woken for it.
pub(crate) struct Work {
    place: Place,
    handle: AbortHandle,
}

/// What came of it.
pub(crate) type Worked = Result<Result<Done, Fault>, Undone>;

/// Why there is neither a result nor a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// Somebody took it back.
    Cancelled,
    /// It panicked.
    Broken,
}

enum Place {
    Here(BoxFuture<'static, Worked>),
    Apart(JoinHandle<Worked>),
}

// === impl Work ===

impl Work {
    pub(crate) fn new<T: Into<Done>>(
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Self {
        let (handle, registration) = AbortHandle::new_pair();
        // What broke is dropped, and looked at by nobody.
        let work = Abortable::new(AssertUnwindSafe(work).catch_unwind(), registration);
        let place = Place::Here(Box::pin(work.map(|ended| match ended {
            Ok(Ok(result)) => Ok(result.map(Into::into)),
            Ok(Err(_)) => Err(Undone::Broken),
            Err(Aborted) => Err(Undone::Cancelled),
        })));
        Self { place, handle }
    }

    /// By which it is taken back.
    pub(crate) fn handle(&self) -> AbortHandle {
        self.handle.clone()
    }

    /// Lets it go on by itself, whether or not somebody waits for it just now.
    pub(crate) fn detach(&mut self) {
        if let Place::Here(work) = &mut self.place {
            let work = std::mem::replace(work, std::future::pending().boxed());
            self.place = Place::Apart(tokio::spawn(work));
        }
    }
}

impl Future for Work {
    type Output = Worked;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Worked> {
        match &mut self.place {
            Place::Here(work) => work.poll_unpin(cx),
            Place::Apart(task) => task.poll_unpin(cx).map(|joined| match joined {
                Ok(worked) => worked,
                Err(error) if error.is_cancelled() => Err(Undone::Cancelled),
                Err(_) => Err(Undone::Broken),
            }),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Place::Apart(task) = &self.place {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use capstan_wire::Json;
    use tokio::sync::oneshot;

    use super::*;
    use crate::exchange::Payload;

    fn done() -> Payload {
        Payload::from(Json::empty_object())
    }

    #[tokio::test]
    async fn work_goes_on_without_anybody_who_waits_only_when_it_is_detached() {
        for detached in [false, true] {
            let (begun, mut has_begun) = oneshot::channel();
            let mut work = Work::new(async {
                begun.send(()).unwrap();
                Ok(done())
            });
            if detached {
                work.detach();
                (&mut has_begun).await.unwrap();
            } else {
                tokio::task::yield_now().await;
                assert!((&mut has_begun).now_or_never().is_none());
            }
            assert!(matches!(work.await, Ok(Ok(Done::Payload(_)))));
        }
    }

    #[tokio::test]
    async fn work_that_is_taken_back_is_cancelled_wherever_it_is_done() {
        for detached in [false, true] {
            let mut work = Work::new(pending::<Result<Payload, Fault>>());
            if detached {
                work.detach();
            }
            assert!((&mut work).now_or_never().is_none());
            work.handle().abort();
            assert_eq!(work.await.err(), Some(Undone::Cancelled));
        }
    }

    #[tokio::test]
    async fn work_that_breaks_breaks_nobody_else() {
        for detached in [false, true] {
            let mut work = Work::new(ready(()).map(|()| -> Result<Payload, Fault> { panic!("x") }));
            if detached {
                work.detach();
            }
            assert_eq!(work.await.err(), Some(Undone::Broken));
        }
    }

    #[tokio::test]
    async fn dropped_work_ends_wherever_it_is_done() {
        for detached in [false, true] {
            let (held, ended) = oneshot::channel::<()>();
            let mut work = Work::new(async move {
                let _held = held;
                pending::<Result<Payload, Fault>>().await
            });
            if detached {
                work.detach();
                tokio::task::yield_now().await;
            }
            drop(work);
            ended.await.unwrap_err();
        }
    }
}
