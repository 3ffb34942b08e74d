//! The chain of providers: who is accepted, who is refused, and how.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Seen, TestClock, Tokens, ask, bearer, headers, here};
use capstan_auth::{
    Authenticating, Chain, Forwarded, ForwardedSettings, Identity, Issued, OwnServer, Refusal,
    Refused, StaticToken, TokenVerifier, Verification, new_token,
};
use capstan_hub::ports::AccessToken;
use capstan_model::{Caller, Secret};

fn static_token(token: &str, subject: &str, roles: &[&str]) -> StaticToken {
    let roles = roles.iter().map(ToString::to_string).collect();
    let identity = Identity { subject: subject.to_owned(), roles };
    StaticToken { token: Secret::new(token.to_owned()), identity }
}

/// A chain whose only provider has the tokens of row C34.
fn static_chain(clock: &Arc<TestClock>, seen: &Arc<Seen>) -> Chain {
    let tokens = [
        static_token("secret-abc", "alice", &[]),
        static_token("secret-def", "bob", &["dev", "oncall"]),
    ];
    Chain::new(clock.clone(), seen.clone()).with_bearer(tokens).unwrap()
}

fn forwarded(trusted: &[&str]) -> Forwarded {
    let trusted = trusted.iter().map(|network| network.parse().unwrap()).collect();
    let (header, groups_header) = ("x-forwarded-user".to_owned(), "x-forwarded-groups".to_owned());
    Forwarded::new(&ForwardedSettings { header, groups_header, trusted }).unwrap()
}

/// An authorization server that knows two tokens.
struct Server;
impl TokenVerifier for Server {
    fn verify<'a>(&'a self, token: &'a str) -> Verification<'a> {
        Verification::Wait(Box::pin(async move {
            let identity = Identity { subject: "carol".to_owned(), roles: Vec::new() };
            match token {
                "from-server" | "secret-abc" => Ok(identity),
                _ => Err(Refusal::Unavailable),
            }
        }))
    }
}

const MISSING: Refused = Refused::Credentials(Refusal::Missing);
const INVALID: Refused = Refused::Credentials(Refusal::Invalid);

#[tokio::test]
async fn c34_both_shapes_of_a_token_lead_to_their_callers() {
    let chain = static_chain(&TestClock::new(), &Seen::new());
    let alice = ask(&chain, &bearer("secret-abc"), here()).await.unwrap();
    assert_eq!((alice.subject.as_str(), alice.roles.len()), ("alice", 0));
    let bob = ask(&chain, &bearer("secret-def"), here()).await.unwrap();
    assert_eq!((bob.subject.as_str(), bob.roles.join(" ").as_str()), ("bob", "dev oncall"));
    for (name, value, refused) in [
        ("authorization", "bearer secret-abc", None),
        ("authorization", "BEARER   secret-abc  ", None),
        ("authorization", "Bearer secret-ab", Some(INVALID)),
        ("authorization", "Bearer secret-abcd", Some(INVALID)),
        ("authorization", "Bearer SECRET-ABC", Some(INVALID)),
        ("authorization", "Bearer ", Some(MISSING)),
        ("authorization", "Bearer a b", Some(MISSING)),
        ("authorization", "Basic secret-abc", Some(MISSING)),
        ("authorization", "secret-abc", Some(MISSING)),
        ("x-api-key", "secret-abc", Some(MISSING)),
    ] {
        let answer = ask(&chain, &headers(&[(name, value)]), here()).await;
        assert_eq!(answer.err(), refused, "{value}");
    }
}

#[tokio::test]
async fn a_static_token_needs_no_future() {
    let chain = static_chain(&TestClock::new(), &Seen::new());
    let (anonymous, headers) = (Arc::new(Caller::anonymous()), bearer("secret-abc"));
    let answer = chain.authenticate(&headers, here(), &anonymous);
    assert!(matches!(answer, Authenticating::Ready(Ok(_))));
}

#[tokio::test]
async fn c33_the_first_provider_that_accepts_decides_and_the_first_error_is_the_answer() {
    let (clock, seen) = (TestClock::new(), Seen::new());
    let own_server = || OwnServer::new(Arc::new(Server), clock.clone());
    let chain = static_chain(&clock, &seen).with(own_server());
    for (token, expected) in [
        ("secret-abc", Ok("alice".to_owned())),
        ("from-server", Ok("carol".to_owned())),
        ("other", Err(INVALID)),
    ] {
        let answer = ask(&chain, &bearer(token), here()).await;
        assert_eq!(answer.map(|caller| caller.subject.clone()), expected, "{token}");
    }
    let (anonymous, known) = (Arc::new(Caller::anonymous()), bearer("from-server"));
    let answer = chain.authenticate(&known, here(), &anonymous);
    assert!(matches!(answer, Authenticating::Ready(Ok(_))), "a verified token needs no future");
    let turned = Chain::new(clock.clone(), seen.clone()).with(own_server());
    let turned = turned.with_bearer([static_token("secret-abc", "alice", &[])]).unwrap();
    let carol = ask(&turned, &bearer("secret-abc"), here()).await.unwrap();
    assert_eq!(carol.subject, "carol", "the order decides");
    let refused = ask(&turned, &bearer("other"), here()).await;
    assert_eq!(refused.err(), Some(Refused::Credentials(Refusal::Unavailable)));
    let empty = Chain::new(clock.clone(), seen.clone());
    assert_eq!(ask(&empty, &bearer("secret-abc"), here()).await.err(), Some(MISSING));
    let open = static_chain(&clock, &seen).with_none();
    let anyone = ask(&open, &headers(&[]), here()).await.unwrap();
    assert_eq!(anyone.subject, "anonymous");
}

#[tokio::test]
async fn c35_a_proxy_names_user_and_groups() {
    let chain = Chain::new(TestClock::new(), Seen::new());
    let chain = chain.with(forwarded(&["127.0.0.0/8", "::1/128", "10.1.0.0/16"]));
    let (user, groups) = ("x-forwarded-user", "x-forwarded-groups");
    for (given, roles) in [
        (vec![(user, "ann"), (groups, " a, ,B ")], vec!["a", "B"]),
        (vec![(user, "ann")], vec![]),
        (vec![(user, "ann"), (groups, "")], vec![]),
        (vec![(user, " ann "), (groups, ",,")], vec![]),
    ] {
        let ann = ask(&chain, &headers(&given), here()).await.unwrap();
        assert_eq!(
            (ann.subject.as_str(), &ann.roles),
            ("ann", &roles.iter().map(ToString::to_string).collect())
        );
    }
    for (from, is_trusted) in [
        ("127.0.0.9", true),
        ("::1", true),
        ("::ffff:10.1.2.3", true),
        ("10.2.0.1", false),
        ("192.0.2.1", false),
        ("2001:db8::1", false),
    ] {
        let from: IpAddr = from.parse().unwrap();
        let answer = ask(&chain, &headers(&[(user, "ann")]), from).await;
        assert_eq!(answer.is_ok(), is_trusted, "{from}");
    }
    for (bad, refusal) in [
        (vec![], MISSING),
        (vec![(user, "")], MISSING),
        (vec![(user, "  ")], MISSING),
        (vec![(groups, "a")], MISSING),
        (vec![(user, "ann"), (user, "eve")], INVALID),
        (vec![(user, "ann"), (groups, "a"), (groups, "admin")], INVALID),
        (vec![(user, "operator")], INVALID),
        (vec![(user, "anonymous")], INVALID),
    ] {
        assert_eq!(ask(&chain, &headers(&bad), here()).await.err(), Some(refusal), "{bad:?}");
    }
    let long = "x".repeat(300);
    assert_eq!(ask(&chain, &headers(&[(user, &long)]), here()).await.err(), Some(INVALID));
}

#[tokio::test]
async fn wrong_tokens_are_limited_per_network_and_known_callers_stay() {
    let (clock, seen) = (TestClock::new(), Seen::new());
    let chain = static_chain(&clock, &seen);
    let (here, there): (IpAddr, IpAddr) = (here(), "10.0.0.2".parse().unwrap());
    ask(&chain, &bearer("secret-abc"), here).await.unwrap();
    let mut wrong = 0;
    let wait = loop {
        match ask(&chain, &bearer(&format!("guess-{wrong}")), here).await {
            Err(Refused::Credentials(Refusal::Invalid)) => wrong += 1,
            Err(Refused::TooManyAttempts(wait)) => break wait,
            other => panic!("{other:?}"),
        }
        assert!(wrong < 100, "guesses are not limited");
    };
    assert!(ask(&chain, &bearer("secret-abc"), here).await.is_ok(), "a caller that was there");
    let guessed = ask(&chain, &bearer("secret-def"), here).await;
    assert!(
        matches!(guessed, Err(Refused::TooManyAttempts(_))),
        "a right guess looks as a wrong one"
    );
    assert!(ask(&chain, &bearer("secret-def"), there).await.is_ok(), "another network");
    let nothing = ask(&chain, &headers(&[]), here).await;
    assert_eq!(nothing.err(), Some(MISSING), "a request without a token is no guess");
    clock.advance(wait);
    assert!(ask(&chain, &bearer("secret-def"), here).await.is_ok(), "after a while");
    let told = seen.take();
    assert_eq!(told.iter().filter(|one| one.starts_with("accepted alice")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|one| one.contains("TooMany")).count(), 1, "{told:?}");
}

#[tokio::test]
async fn requests_without_a_token_are_never_limited() {
    let chain = static_chain(&TestClock::new(), &Seen::new());
    for _ in 0..200 {
        assert_eq!(ask(&chain, &headers(&[]), here()).await.err(), Some(MISSING));
    }
    assert!(ask(&chain, &bearer("secret-abc"), here()).await.is_ok());
}

#[tokio::test]
async fn a_created_token_is_accepted_until_it_expires_or_is_revoked() {
    let (clock, tokens) = (TestClock::new(), Tokens::new());
    let new = || new_token(aws_lc_rs::rand::fill).unwrap();
    let (ann, bob, never) = (new(), new(), new());
    let add = |token: &capstan_auth::NewToken, subject: &str, seconds: Option<i64>| {
        let now = clock.time();
        let end = seconds.map(|seconds| now + jiff::SignedDuration::from_secs(seconds));
        tokens.insert(AccessToken {
            id: token.id.clone(),
            digest: token.digest.clone(),
            subject: subject.to_owned(),
            roles: vec!["dev".to_owned()],
            created_at: now,
            expires_at: end,
        });
    };
    add(&ann, "ann", None);
    add(&bob, "bob", Some(3));
    let chain = Chain::new(clock.clone(), Seen::new());
    let chain = chain.with(Issued::new(tokens.clone(), clock.clone()));
    let asked = |token: &capstan_auth::NewToken| bearer(token.token.reveal());
    let caller = ask(&chain, &asked(&ann), here()).await.unwrap();
    assert_eq!((caller.subject.as_str(), caller.roles.len()), ("ann", 1));
    assert!(ask(&chain, &asked(&bob), here()).await.is_ok());
    assert_eq!(ask(&chain, &asked(&never), here()).await.err(), Some(INVALID));
    let digest = bearer(&format!("capstan_{}", ann.digest));
    assert_eq!(ask(&chain, &digest, here()).await.err(), Some(INVALID), "a stolen digest");
    let (anonymous, again) = (Arc::new(Caller::anonymous()), asked(&ann));
    let answer = chain.authenticate(&again, here(), &anonymous);
    assert!(matches!(answer, Authenticating::Ready(Ok(_))), "no future the second time");
    clock.advance(Duration::from_secs(3));
    assert_eq!(ask(&chain, &asked(&bob), here()).await.err(), Some(INVALID), "expired");
    tokens.remove(&ann.id);
    clock.advance(Duration::from_secs(5));
    assert_eq!(ask(&chain, &asked(&ann), here()).await.err(), Some(INVALID), "revoked");
    tokens.fail();
    let refused = ask(&chain, &asked(&never), here()).await.err();
    assert_eq!(refused, Some(Refused::Credentials(Refusal::Unavailable)));
}
