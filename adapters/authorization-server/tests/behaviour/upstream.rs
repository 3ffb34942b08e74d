//! Sign-in at an OpenID Connect provider, and what tries to get around it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_authorization_server::{
    Endpoint, Response, Settings, SignIn, Upstream, UpstreamProvider, UpstreamSignIn, UpstreamUser,
};
use capstan_hub::ports::BoxFuture;

use crate::site::{
    CALLBACK, ISSUER, Site, body, encode, get, header, param, query, set, settings, submit, text,
};

const PROVIDER: &str = "https://login.example.com";

/// A provider whose next user a test sets.
struct Provider {
    user: Mutex<Result<UpstreamUser, String>>,
    /// The codes that were exchanged.
    codes: Mutex<Vec<String>>,
}

impl Upstream for Provider {
    fn page<'a>(&'a self, sign_in: &'a UpstreamSignIn) -> BoxFuture<'a, Result<String, String>> {
        assert_eq!(sign_in.redirect_uri, format!("{ISSUER}/authorize/callback"));
        let query = encode(&[("state", &sign_in.state), ("nonce", &sign_in.nonce)]);
        Box::pin(std::future::ready(Ok(format!("{PROVIDER}/auth?{query}"))))
    }

    fn user<'a>(
        &'a self,
        _: &'a UpstreamSignIn,
        code: &'a str,
    ) -> BoxFuture<'a, Result<UpstreamUser, String>> {
        self.codes.lock().unwrap().push(code.to_owned());
        Box::pin(std::future::ready(self.user.lock().unwrap().clone()))
    }
}

fn user(subject: &str) -> UpstreamUser {
    UpstreamUser { subject: subject.to_owned(), roles: vec!["dev".to_owned()] }
}

/// A site whose users sign in at a provider.
async fn site() -> (Site, Arc<Provider>) {
    let provider = Provider { user: Mutex::new(Ok(user("ann"))), codes: Mutex::default() };
    let provider = Arc::new(provider);
    let upstream = UpstreamProvider {
        issuer: PROVIDER.to_owned(),
        provider: Arc::<Provider>::clone(&provider),
    };
    let settings = Settings { sign_in: SignIn::Upstream(upstream), ..settings() };
    (Site::with(settings, Arc::default()).await, provider)
}

/// Agrees on the page of a client: the cookie of the browser, and the state.
async fn agree(site: &Site, client: &str) -> (String, String) {
    let asked = query(client, CALLBACK);
    let page = site.open(&asked).await;
    let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
    let request = submit(&page, &asked, &[("decision", "allow")]);
    let sent = site.send(Endpoint::Authorize, request).await;
    assert_eq!(sent.status, 303, "{}", text(&sent));
    assert!(header(&sent, "location").starts_with(PROVIDER), "{sent:?}");
    (cookie, param(&sent, "state").unwrap())
}

async fn back(site: &Site, cookie: &str, answer: &[(&str, &str)]) -> Response {
    let mut request = get(&encode(answer));
    set(&mut request, "cookie", cookie);
    site.send(Endpoint::Callback, request).await
}

#[tokio::test]
async fn a_user_agrees_first_and_then_signs_in_at_the_provider() {
    let (site, _) = site().await;
    let client = site.register(CALLBACK).await;
    let page = text(&site.open(&query(&client, CALLBACK)).await);
    assert!(page.contains("You sign in at") && page.contains("login.example.com"), "{page}");
    assert!(!page.contains("password") && !page.contains("Signed in as"), "{page}");
    let (cookie, state) = agree(&site, &client).await;
    let sent = back(&site, &cookie, &[("state", &state), ("code", "c"), ("iss", PROVIDER)]).await;
    assert_eq!(sent.status, 303, "{}", text(&sent));
    assert_eq!(param(&sent, "state").as_deref(), Some("st&te"));
    assert_eq!(param(&sent, "iss").as_deref(), Some(ISSUER));
    let answer = site.redeem(&client, &param(&sent, "code").unwrap()).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    let token = body(&answer)["access_token"].as_str().unwrap().to_owned();
    let known = site.server.tokens().check(&token).await.unwrap();
    assert_eq!(known.subject, "ann");
    assert_eq!(known.roles, ["dev", "via-oauth"]);
    let refresh = body(&answer)["refresh_token"].as_str().unwrap().to_owned();
    assert_eq!(site.refresh(&client, &refresh).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_once_in_its_browser_and_for_its_time() {
    let (site, provider) = site().await;
    let client = site.register(CALLBACK).await;
    let (cookie, state) = agree(&site, &client).await;
    let (other, _) = agree(&site, &client).await;
    let whole =
        |state: &str| [("state".to_owned(), state.to_owned()), ("code".to_owned(), "c".to_owned())];
    let bring = async |cookie: &str, state: &str| {
        let pairs = whole(state);
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        back(&site, cookie, &pairs).await.status.as_u16()
    };
    for (cookie, state) in
        [(other.as_str(), state.as_str()), ("", &state), (&cookie, "made up"), (&cookie, "")]
    {
        assert_eq!(bring(cookie, state).await, 400, "{cookie} {state}");
    }
    assert!(provider.codes.lock().unwrap().is_empty(), "no code was exchanged");
    assert_eq!(bring(&cookie, &state).await, 303);
    assert_eq!(bring(&cookie, &state).await, 400, "a second time");
    let (cookie, state) = agree(&site, &client).await;
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(bring(&cookie, &state).await, 400, "too late");
}

#[tokio::test]
async fn a_user_without_a_usable_name_gets_no_code() {
    let (site, provider) = site().await;
    let client = site.register(CALLBACK).await;
    let refused = [
        Err("the signature of the ID token is wrong".to_owned()),
        Ok(user("")),
        Ok(user("operator")),
        Ok(user("anonymous")),
        Ok(user("ann\nops")),
        Ok(user(&"a".repeat(300))),
    ];
    for result in refused {
        *provider.user.lock().unwrap() = result.clone();
        let (cookie, state) = agree(&site, &client).await;
        let answer = back(&site, &cookie, &[("state", &state), ("code", "c")]).await;
        assert_eq!(answer.status, 403, "{result:?}");
        assert_eq!(header(&answer, "location"), "");
        assert!(!text(&answer).contains("signature"), "the reason is for the operator");
    }
    *provider.user.lock().unwrap() = Ok(user("ann"));
    for answer in [
        vec![("code", "c"), ("iss", "https://evil.test")],
        vec![("error", "server_error")],
        vec![],
        vec![("code", "c"), ("error", "x")],
    ] {
        let (cookie, state) = agree(&site, &client).await;
        let mut whole = vec![("state", state.as_str())];
        whole.extend(answer.iter().copied());
        assert_eq!(back(&site, &cookie, &whole).await.status, 403, "{answer:?}");
    }
    let (cookie, state) = agree(&site, &client).await;
    let denied = back(&site, &cookie, &[("state", &state), ("error", "access_denied")]).await;
    assert_eq!(param(&denied, "error").as_deref(), Some("access_denied"));
    assert_eq!(param(&denied, "code"), None);
}

#[tokio::test]
async fn without_a_provider_there_is_no_callback() {
    let site = Site::with_users().await;
    let answer = back(&site, "", &[("state", "x"), ("code", "c")]).await;
    assert_eq!(answer.status, 404);
}
