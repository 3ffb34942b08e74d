//! The system clock, as a port of the hub.

use std::sync::Arc;
use std::time::{Duration, Instant};

use capstan_hub::ports::{BoxFuture, Clock};
use jiff::Timestamp;

/// The system's clocks.
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn shared() -> Arc<dyn Clock> {
        Arc::new(Self::new())
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock adapter")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
