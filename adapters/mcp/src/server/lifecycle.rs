//! The current state of a server: its connection, its failures, and when it may be tried again.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{About, BoxFuture, Listing};
use capstan_model::{CallError, ServerState};
use futures::future::Shared;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::server::backoff::wait_after;
use crate::session::Session;

/// The longest wait that a server can request.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The wait between two attempts at a server that requires a login.
const LOGIN_WAIT: Duration = Duration::from_millis(300);

/// Consecutive failures that open the circuit breaker.
/// Until the server may be tried again, callers then fail at once; after that, a single attempt is
/// shared by all callers.
const CIRCUIT: u32 = 5;

/// The run time after which an exit no longer counts as a failed start.
/// A process that ends sooner counts as a failed start, even if it answered requests.
const PROVEN: Duration = Duration::from_secs(30);

/// The current state of a server.
pub(crate) struct Lifecycle {
    /// The connection, or the attempt at one, shared by all callers that wait for it.
    pub(crate) attempt: Option<ConnectAttempt>,
    /// Failures in a row.
    failures: u32,
    /// The earliest time of the next start.
    pub(crate) not_before: Instant,
    /// The time of the last connect.
    since: Instant,
    /// The last reason why the server could not be used.
    failure: Option<Fault>,
    /// The lists that could not be read although the server is connected, with the reasons.
    unread: Vec<(Listing, String)>,
    /// True if the server was disconnected because it offers nothing.
    pub(crate) dormant: bool,
    /// The server's description from the last connection.
    pub(crate) about: Option<Arc<About>>,
}

pub(crate) type ConnectAttempt = Shared<BoxFuture<'static, Result<Arc<Session>, Fault>>>;

// === impl Lifecycle ===

impl Lifecycle {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            attempt: None,
            failures: 0,
            not_before: now,
            since: now,
            failure: None,
            unread: Vec::new(),
            dormant: false,
            about: None,
        }
    }

    pub(crate) fn state(&self) -> ServerState {
        match (&self.attempt, &self.failure) {
            (Some(attempt), _) => match attempt.peek() {
                Some(Ok(session)) => {
                    match (session.connection.requests().gone(), self.unread.first()) {
                        (Some(fault), _) => self.in_circuit(&fault).state(),
                        (None, Some((_, reason))) => ServerState::Degraded(reason.clone()),
                        (None, None) => ServerState::Connected,
                    }
                }
                Some(Err(fault)) => self.in_circuit(fault).state(),
                None => ServerState::Connecting,
            },
            (None, Some(fault)) => fault.state(),
            (None, None) => ServerState::Idle,
        }
    }

    pub(crate) fn connected(&mut self, about: &Arc<About>) {
        self.about = Some(Arc::clone(about));
        self.since = Instant::now();
        self.failure = None;
        self.unread.clear();
    }

    /// Resets the failures of a server that works and has no process that we restart.
    ///
    /// A process has to run for a while first; see [`Self::died`].
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
    }

    /// Takes the connection away to end it. A server that is still connected has not failed.
    pub(crate) fn take_attempt(&mut self) -> Option<ConnectAttempt> {
        match self.attempt.as_ref().and_then(ConnectAttempt::peek) {
            // The connection is already lost, which is still to be counted as a failure.
            Some(Ok(session)) if session.connection.requests().gone().is_some() => return None,
            Some(Ok(_)) => self.failures = 0,
            Some(Err(_)) | None => {}
        }
        self.attempt.take()
    }

    pub(crate) fn could_not_read(&mut self, listing: Listing, error: &CallError) {
        self.could_read(listing);
        self.unread.push((listing, error.to_string()));
    }

    pub(crate) fn could_read(&mut self, listing: Listing) {
        self.unread.retain(|(unread, _)| *unread != listing);
    }

    /// Records that a connected server is gone.
    pub(crate) fn died(&mut self, fault: Fault) {
        if self.since.elapsed() >= PROVEN {
            self.failures = 0;
        }
        self.failed(fault);
    }

    pub(crate) fn failed(&mut self, fault: Fault) {
        if let Fault::Login(_) = fault {
            // Somebody may log in at any time, in another process; the next call must notice it.
            self.not_before = Instant::now() + LOGIN_WAIT;
            self.failure = Some(fault);
            return;
        }
        if let Fault::Blocked(_) = fault {
            // Nothing was tried, so there is nothing to wait for: each caller gets the fault anew.
            self.not_before = Instant::now();
            self.failure = Some(fault);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let mut wait = wait_after(self.failures - 1, fastrand::f64());
        if let Fault::RateLimited(Some(asked)) = &fault {
            wait = wait.max(*asked).min(LONGEST_WAIT);
        }
        self.not_before = Instant::now() + wait;
        self.failure = Some(fault);
    }

    /// Returns the fault that a caller gets at once, without a new attempt.
    /// This is the case if the last failure would not change by waiting, or if the circuit is open.
    pub(crate) fn would_fail_again(&self) -> Option<Fault> {
        if Instant::now() >= self.not_before {
            return None;
        }
        match self.attempt.as_ref()?.peek()? {
            Err(fault) if fault.lasts() || self.failures >= CIRCUIT => Some(self.in_circuit(fault)),
            Err(_) => None,
            Ok(session) => {
                let fault =
                    session.connection.requests().gone().filter(|_| self.failures >= CIRCUIT)?;
                Some(self.in_circuit(&fault))
            }
        }
    }

    /// Adds the time of the next attempt to the fault while the circuit is open.
    fn in_circuit(&self, fault: &Fault) -> Fault {
        let left = self.not_before.saturating_duration_since(Instant::now());
        let Fault::Unreachable(reason) = fault else { return fault.clone() };
        if self.failures < CIRCUIT || left.is_zero() {
            return fault.clone();
        }
        let mut text = reason.clone();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "; it failed {} times in a row and is tried again in {} s",
            self.failures,
            left.as_secs().saturating_add(1)
        );
        Fault::Unreachable(text)
    }
}

/// True if the attempt is still connecting, or is connected and not lost.
pub(crate) fn is_usable(attempt: &ConnectAttempt) -> bool {
    match attempt.peek() {
        None => true,
        Some(Ok(session)) => session.connection.requests().gone().is_none(),
        Some(Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::ready;

    use super::*;

    fn fail(lifecycle: &mut Lifecycle) {
        let fault = Fault::Unreachable("it ended".to_owned());
        let attempt = ready(Err(fault.clone())).boxed().shared();
        assert!(attempt.clone().now_or_never().is_some());
        lifecycle.attempt = Some(attempt);
        lifecycle.failed(fault);
    }

    #[tokio::test(start_paused = true)]
    async fn after_many_failures_nobody_waits_until_one_attempt_has_decided() {
        let mut lifecycle = Lifecycle::new();
        for _ in 1..CIRCUIT {
            fail(&mut lifecycle);
            assert_eq!(lifecycle.would_fail_again(), None);
        }
        fail(&mut lifecycle);
        let Some(Fault::Unreachable(told)) = lifecycle.would_fail_again() else {
            panic!("no refusal")
        };
        assert!(told.contains("it ended") && told.contains("5 times in a row"), "{told}");
        assert!(told.contains("tried again in "), "{told}");
        assert_eq!(lifecycle.state(), ServerState::Failed(told));

        tokio::time::advance(LONGEST_WAIT).await;
        assert_eq!(lifecycle.would_fail_again(), None, "one attempt is made");
        fail(&mut lifecycle);
        assert!(lifecycle.would_fail_again().is_some(), "it failed, so that it is closed again");

        tokio::time::advance(LONGEST_WAIT).await;
        lifecycle.connected(&Arc::default());
        lifecycle.worked();
        fail(&mut lifecycle);
        assert_eq!(
            lifecycle.would_fail_again(),
            None,
            "a server without a process of ours had worked"
        );
    }

    /// Holes 7.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_dies_a_second_after_each_start_is_started_ever_more_rarely() {
        let (mut lifecycle, begun) = (Lifecycle::new(), Instant::now());
        let (mut starts, mut refused) = (0, 0);
        while begun.elapsed() < Duration::from_mins(1) {
            if lifecycle.would_fail_again().is_some() {
                refused += 1;
            } else if Instant::now() >= lifecycle.not_before {
                starts += 1;
                lifecycle.connected(&Arc::default());
                tokio::time::advance(Duration::from_secs(1)).await;
                let fault = Fault::Unreachable("it ended".to_owned());
                let attempt = ready(Err(fault.clone())).boxed().shared();
                assert!(attempt.clone().now_or_never().is_some());
                lifecycle.attempt = Some(attempt);
                lifecycle.died(fault);
            }
            tokio::time::advance(Duration::from_millis(20)).await;
        }
        assert!((6..=11).contains(&starts), "{starts} starts");
        assert!(refused > 1000, "only {refused} calls were told at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_crashes_once_is_started_again_at_once() {
        let mut lifecycle = Lifecycle::new();
        for _ in 0..20 {
            lifecycle.connected(&Arc::default());
            tokio::time::advance(PROVEN).await;
            lifecycle.died(Fault::Unreachable("it ended".to_owned()));
            assert!(lifecycle.not_before <= Instant::now());
            assert_eq!(lifecycle.would_fail_again(), None);
        }
    }

    /// Holes 1: an address that a rule refuses is not a failure of the server.
    #[tokio::test(start_paused = true)]
    async fn a_refused_address_is_not_counted_and_not_waited_for() {
        let mut lifecycle = Lifecycle::new();
        for _ in 0..=CIRCUIT {
            let fault = Fault::Blocked("10.0.0.1 is not a public address".to_owned());
            let attempt = ready(Err(fault.clone())).boxed().shared();
            assert!(attempt.clone().now_or_never().is_some());
            lifecycle.attempt = Some(attempt);
            lifecycle.failed(fault);
            assert_eq!((lifecycle.failures, lifecycle.not_before), (0, Instant::now()));
            assert!(
                matches!(lifecycle.state(), ServerState::Failed(reason) if reason.contains("10.0"))
            );
        }
    }

    /// Holes 1: a request was sent, so the next one waits.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_leads_elsewhere_is_asked_ever_more_rarely() {
        let (mut lifecycle, mut asked) = (Lifecycle::new(), 0);
        for _ in 0..30 {
            if lifecycle.would_fail_again().is_none() {
                asked += 1;
                let fault = Fault::Elsewhere("the redirect is not followed".to_owned());
                let attempt = ready(Err(fault.clone())).boxed().shared();
                assert!(attempt.clone().now_or_never().is_some());
                lifecycle.attempt = Some(attempt);
                lifecycle.failed(fault);
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!((2..=6).contains(&asked), "{asked} requests");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_dies_right_after_each_start_fails_as_one_that_does_not_start() {
        let mut lifecycle = Lifecycle::new();
        let gone = || Fault::Unreachable("gone".to_owned());
        for _ in 0..3 {
            lifecycle.connected(&Arc::default());
            lifecycle.died(gone());
        }
        assert_eq!(lifecycle.failures, 3);
        lifecycle.connected(&Arc::default());
        tokio::time::advance(PROVEN).await;
        lifecycle.died(gone());
        assert_eq!(lifecycle.failures, 1);
    }
}
