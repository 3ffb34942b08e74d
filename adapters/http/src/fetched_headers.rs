//! Headers that are fetched when a request first needs them, and again when they expire or the server
//! does not accept them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_lazy::{Attempt, AttemptError};
use capstan_model::Secret;
use capstan_safety::mask::Masker;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::StatusCode;
use tokio::time::Instant;

use crate::client::HttpError;
use crate::credentials::{Applied, Challenge, Challenged, Credentials, StaticHeaders};
use crate::transport::HttpRequest;

/// Headers that the server refused are not fetched again within this time after they were fetched.
const MIN_AGE: Duration = Duration::from_secs(5);

/// Fetches headers.
pub trait HeaderSource: Send + Sync {
    /// Fetches the headers. The reason of a failure contains no secret.
    fn fetch(&self) -> BoxFuture<'static, Result<Headers, String>>;
}

/// Headers from a [`HeaderSource`].
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The names and values.
    pub headers: Vec<(String, Secret<String>)>,
    /// Other values that must not be shown, such as the parts of the headers' values.
    pub secrets: Vec<Secret<String>>,
    /// How long they can be used; `None` until the server refuses them.
    pub lifetime: Option<Duration>,
}

/// Credentials that are headers from a source. All requests share them; one fetch runs at a time.
pub struct FetchedHeaders {
    source: Arc<dyn HeaderSource>,
    attempt: Attempt<Fetched>,
    /// The maskers that learn the secrets.
    maskers: Arc<Mutex<Vec<Weak<Masker>>>>,
}

/// Headers that were fetched.
struct Fetched {
    headers: StaticHeaders,
    since: Instant,
    until: Option<Instant>,
    /// True once the server has refused them.
    is_refused: AtomicBool,
    /// True if they replace headers that the server refused.
    replaces_refused: bool,
}

/// The headers that a fetch replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// None, or some that have expired.
    Unused,
    /// Some that the server refused.
    Refused,
}

// === impl FetchedHeaders ===

impl FetchedHeaders {
    /// Makes credentials from a source. Nothing is fetched yet.
    pub fn new(source: Arc<dyn HeaderSource>) -> Self {
        Self { source, attempt: Attempt::default(), maskers: Arc::default() }
    }

    fn fetch(
        &self,
        before: Before,
    ) -> impl Future<Output = Result<Arc<Fetched>, AttemptError>> + Send + 'static {
        let (fetching, maskers) = (self.source.fetch(), Arc::clone(&self.maskers));
        async move {
            let Headers { headers, secrets, lifetime } = fetching.await?;
            let values = headers.iter().map(|(_, value)| value).chain(&secrets);
            for value in values.map(Secret::reveal) {
                // A server may repeat the token without the scheme word before it.
                let token = value.split_once(' ').map(|(_, token)| token);
                for masker in lock(&maskers).iter().filter_map(Weak::upgrade) {
                    masker.learn(value);
                    masker.learn(token.unwrap_or_default());
                }
            }
            let since = Instant::now();
            Ok(Arc::new(Fetched {
                headers: StaticHeaders::new(&headers)?,
                since,
                until: lifetime.map(|lifetime| since + lifetime),
                is_refused: AtomicBool::new(false),
                replaces_refused: before == Before::Refused,
            }))
        }
    }
}

impl Credentials for FetchedHeaders {
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a> {
        let known = self.attempt.peek(|known| {
            let is_usable = !known.is_stale();
            if is_usable {
                known.add_to(request);
            }
            (is_usable, known.is_refused.load(Ordering::Relaxed))
        });
        let (is_added, is_refused) = known.unwrap_or_default();
        if is_added {
            return Applied::Ready;
        }
        let before = if is_refused { Before::Refused } else { Before::Unused };
        let link = self.attempt.get(|known| known.is_stale(), || self.fetch(before));
        let waiting = async move {
            let fetched = link.await.map_err(|error| HttpError::NotSent(error.to_string()))?;
            fetched.add_to(request);
            Ok(0)
        };
        Applied::Wait(waiting.boxed())
    }

    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Challenged<'a> {
        let is_refused = challenge.status == StatusCode::UNAUTHORIZED;
        if is_refused && self.attempt.peek(Fetched::challenged).unwrap_or(false) {
            return Challenged::Retry;
        }
        Challenged::Final
    }

    fn hide_in(&self, masker: &Arc<Masker>) {
        let mut maskers = lock(&self.maskers);
        maskers.retain(|masker| masker.strong_count() > 0);
        maskers.push(Arc::downgrade(masker));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Fetched ===

impl Fetched {
    fn is_stale(&self) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        is_over || self.is_refused.load(Ordering::Relaxed)
    }

    fn add_to(&self, request: &mut HttpRequest) {
        // They are always ready.
        let _ready = self.headers.apply(request);
    }

    /// True if one more request is justified: with new headers, or because this request still had
    /// the headers that these replaced.
    fn challenged(&self) -> bool {
        if self.since.elapsed() < MIN_AGE {
            return self.replaces_refused || self.is_refused.load(Ordering::Relaxed);
        }
        self.is_refused.store(true, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use reqwest::{Method, Url};

    use super::*;
    use crate::payload::Payload;

    /// Gives one header, with another value each time.
    struct Counter(Mutex<u32>, Option<Duration>);

    impl HeaderSource for Counter {
        fn fetch(&self) -> BoxFuture<'static, Result<Headers, String>> {
            let count = {
                let mut count = self.0.lock().unwrap();
                *count += 1;
                *count
            };
            let value = Secret::new(format!("secret-{count}"));
            let headers = vec![("X-Key".to_owned(), value)];
            let lifetime = self.1;
            async move { Ok(Headers { headers, secrets: Vec::new(), lifetime }) }.boxed()
        }
    }

    async fn sent(credentials: &FetchedHeaders) -> String {
        let to = Url::parse("https://h/").unwrap().into();
        let (headers, body) = (HeaderMap::new(), Payload::default());
        let mut request = HttpRequest { method: Method::GET, to, headers, body };
        if let Applied::Wait(waiting) = credentials.apply(&mut request) {
            waiting.await.unwrap();
        }
        request.headers.get("x-key").unwrap().to_str().unwrap().to_owned()
    }

    fn challenged(credentials: &FetchedHeaders, status: StatusCode) -> bool {
        let headers = HeaderMap::new();
        let challenge = Challenge { status, headers: &headers, number: 0 };
        matches!(credentials.challenged(challenge), Challenged::Retry)
    }

    #[tokio::test(start_paused = true)]
    async fn headers_are_fetched_once_and_again_when_they_expire() {
        let masker = Arc::new(Masker::default());
        let source = Arc::new(Counter(Mutex::new(0), Some(Duration::from_mins(1))));
        let credentials = FetchedHeaders::new(source);
        credentials.hide_in(&masker);
        assert_eq!(masker.mask("secret-1"), "secret-1");
        assert_eq!((sent(&credentials).await, sent(&credentials).await).1, "secret-1");
        assert_eq!(masker.mask("secret-1"), "***");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(sent(&credentials).await, "secret-1");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(sent(&credentials).await, "secret-2");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_headers_are_fetched_again_but_not_again_and_again() {
        let source = Arc::new(Counter(Mutex::new(0), None));
        let credentials = FetchedHeaders::new(source);
        assert!(!challenged(&credentials, StatusCode::UNAUTHORIZED));
        assert_eq!(sent(&credentials).await, "secret-1");
        assert!(
            !challenged(&credentials, StatusCode::UNAUTHORIZED),
            "new headers would be the same"
        );
        tokio::time::advance(MIN_AGE).await;
        assert!(!challenged(&credentials, StatusCode::FORBIDDEN));
        assert!(challenged(&credentials, StatusCode::UNAUTHORIZED));
        assert_eq!(sent(&credentials).await, "secret-2");
        // Another request had the old headers.
        assert!(challenged(&credentials, StatusCode::UNAUTHORIZED));
        assert_eq!(sent(&credentials).await, "secret-2");
    }
}
