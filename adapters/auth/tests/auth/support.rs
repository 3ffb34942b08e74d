//! A clock, a store and an observer for tests of the chain.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_auth::{Authenticating, Chain, Observer, Refused};
use capstan_http::header::{HeaderMap, HeaderName, HeaderValue};
use capstan_hub::ports::{AccessToken, AccessTokens, BoxFuture, Clock, StoreError};
use capstan_model::Caller;
use jiff::{SignedDuration, Timestamp};

/// A clock that stands until it is advanced.
pub(crate) struct TestClock {
    start: Timestamp,
    passed: Mutex<Duration>,
}

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        // The time of the machine, because issuers of tests have it too.
        let start = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        Arc::new(Self { start, passed: Mutex::new(Duration::from_secs(100)) })
    }

    pub(crate) fn advance(&self, time: Duration) {
        *self.passed.lock().unwrap() += time;
    }

    pub(crate) fn time(&self) -> Timestamp {
        let passed = *self.passed.lock().unwrap();
        self.start + SignedDuration::try_from(passed).unwrap()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.time()
    }

    fn monotonic(&self) -> Duration {
        *self.passed.lock().unwrap()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Writes down what it is told.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<String>>);

impl Seen {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Seen {
    fn accepted(&self, caller: &Arc<Caller>, provider: &'static str, from: IpAddr) {
        self.0.lock().unwrap().push(format!("accepted {} by {provider} at {from}", caller.subject));
    }

    fn refused(&self, refused: Refused, from: IpAddr) {
        self.0.lock().unwrap().push(format!("refused {refused:?} at {from}"));
    }
}

/// A store of tokens in memory.
#[derive(Default)]
pub(crate) struct Tokens {
    tokens: Mutex<Vec<AccessToken>>,
    fails: Mutex<bool>,
}

impl Tokens {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn insert(&self, token: AccessToken) {
        self.tokens.lock().unwrap().push(token);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.tokens.lock().unwrap().retain(|token| token.id != id);
    }

    pub(crate) fn fail(&self) {
        *self.fails.lock().unwrap() = true;
    }
}

impl AccessTokens for Tokens {
    fn add<'a>(&'a self, _: &'a AccessToken) -> BoxFuture<'a, Result<(), StoreError>> {
        unreachable!("the chain only reads")
    }

    fn find<'a>(
        &'a self,
        digest: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>> {
        let failed = *self.fails.lock().unwrap();
        let is_valid = |token: &&AccessToken| {
            token.digest == digest && token.expires_at.is_none_or(|end| now < end)
        };
        let found = self.tokens.lock().unwrap().iter().find(is_valid).cloned();
        Box::pin(async move {
            if failed {
                return Err(StoreError { what: "the disk is full".to_owned(), cause: None });
            }
            Ok(found)
        })
    }

    fn all(&self, _: u32) -> BoxFuture<'_, Result<Vec<AccessToken>, StoreError>> {
        unreachable!("the chain only looks up")
    }

    fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>> {
        unreachable!("the chain only reads")
    }
}

pub(crate) fn here() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

pub(crate) fn headers(given: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

pub(crate) fn bearer(token: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {token}"))])
}

pub(crate) async fn ask(
    chain: &Chain,
    headers: &HeaderMap,
    from: IpAddr,
) -> Result<Arc<Caller>, Refused> {
    let anonymous = Arc::new(Caller::stranger(Some(from)));
    match chain.authenticate(headers, from, &anonymous) {
        Authenticating::Ready(answer) => answer,
        Authenticating::Wait(answer) => answer.await,
    }
}
