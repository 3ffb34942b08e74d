//! The page on which a user agrees, and what tries to get around it.

use capstan_authorization_server::Endpoint;
use serde_json::json;

use crate::site::{CALLBACK, Site, body, header, param, query, set, submit, text};

#[tokio::test]
async fn the_page_cannot_be_framed_runs_no_script_and_leaks_no_address() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let page = site.open(&query(&client, CALLBACK)).await;
    assert_eq!(header(&page, "x-frame-options"), "DENY");
    assert_eq!(header(&page, "referrer-policy"), "no-referrer");
    assert_eq!(header(&page, "cache-control"), "no-store");
    let policy = header(&page, "content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"));
    assert!(!text(&page).contains("<script"));
    let cookie = header(&page, "set-cookie");
    assert!(cookie.starts_with("__Host-"), "{cookie}");
    for part in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"));
}

#[tokio::test]
async fn the_page_names_client_scopes_and_host_and_escapes_them() {
    let site = Site::new().await;
    let answer = site
        .try_register(&json!({
            "redirect_uris": [CALLBACK],
            "client_name": "<script>alert(1)</script>\u{202e}",
            "logo_uri": "javascript:alert(2)",
        }))
        .await;
    let client = body(&answer)["client_id"].as_str().unwrap().to_owned();
    let page = text(&site.open(&query(&client, CALLBACK)).await);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(!page.contains("<script") && !page.contains("javascript:") && !page.contains("<img"));
    assert!(!page.contains('\u{202e}'));
    assert!(page.contains("claude.ai") && page.contains("<li>read</li>"));
    assert!(!page.contains("<li>other"), "unknown scopes are not granted");
    assert!(page.contains("Signed in as") && page.contains("ann"));
}

#[tokio::test]
async fn a_yes_for_one_client_is_no_yes_for_another() {
    let site = Site::new().await;
    let (a, b) = (site.register(CALLBACK).await, site.register(CALLBACK).await);
    let page = site.open(&query(&a, CALLBACK)).await;
    let granted = submit(&page, &query(&a, CALLBACK), &[("decision", "allow")]);
    assert_eq!(site.send(Endpoint::Authorize, granted.clone()).await.status, 303);
    // With the cookie of the first client, the second one is asked about.
    let mut second = crate::site::get(&query(&b, CALLBACK));
    second.headers.insert("cookie", granted.headers["cookie"].clone());
    let page = site.send(Endpoint::Authorize, second).await;
    assert_eq!((page.status.as_u16(), param(&page, "code")), (200, None));
    // The form of the first client, sent for the second.
    let mut moved = granted;
    moved.query = query(&b, CALLBACK);
    let refused = site.send(Endpoint::Authorize, moved).await;
    assert_eq!((refused.status.as_u16(), param(&refused, "code")), (400, None));
}

#[tokio::test]
async fn every_authorization_is_asked_about_also_a_silent_one_from_another_site() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    site.code(&client).await;
    let mut again = crate::site::get(&query(&client, CALLBACK));
    set(&mut again, "sec-fetch-site", "cross-site");
    let page = site.send(Endpoint::Authorize, again).await;
    assert_eq!((page.status.as_u16(), param(&page, "code")), (200, None));
}

#[tokio::test]
async fn a_form_needs_its_own_browser_site_and_time() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let page = site.open(&asked).await;
    let good = submit(&page, &asked, &[("decision", "allow")]);
    let status = async |change: fn(&mut capstan_authorization_server::Request)| {
        let mut request = good.clone();
        change(&mut request);
        let answer = site.send(Endpoint::Authorize, request).await;
        assert_eq!(param(&answer, "code"), None);
        answer.status.as_u16()
    };
    // Another browser: without the cookie, or with the cookie of another page.
    assert_eq!(status(|request| drop(request.headers.remove("cookie"))).await, 400);
    let other = site.open(&asked).await;
    let mut mixed = good.clone();
    let cookie = header(&other, "set-cookie").split(';').next().unwrap();
    set(&mut mixed, "cookie", cookie);
    assert_eq!(site.send(Endpoint::Authorize, mixed).await.status, 400);
    // Another site.
    assert_eq!(status(|request| set(request, "origin", "https://evil.test")).await, 403);
    assert_eq!(status(|request| set(request, "sec-fetch-site", "cross-site")).await, 403);
    assert_eq!(status(|request| set(request, "sec-fetch-site", "same-site")).await, 403);
    // Another request than the one that was shown.
    assert_eq!(status(|request| request.query.push_str("&resource=x")).await, 400);
    assert_eq!(status(|request| request.query.push_str("&nonce=1")).await, 400);
    // The form itself is good.
    assert_eq!(site.send(Endpoint::Authorize, good.clone()).await.status, 303);
}

#[tokio::test(start_paused = true)]
async fn a_form_that_is_too_old_is_refused() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let page = site.open(&asked).await;
    let form = submit(&page, &asked, &[("decision", "allow")]);
    tokio::time::advance(std::time::Duration::from_secs(601)).await;
    assert_eq!(site.send(Endpoint::Authorize, form).await.status, 400);
}

#[tokio::test]
async fn a_local_user_signs_in_with_the_right_password_only() {
    let site = Site::with_users().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let allow = |user, password| [("decision", "allow"), ("user", user), ("password", password)];
    for (user, password) in
        [("ann", "wrong horse"), ("bob", "correct horse"), ("ann", ""), ("", "correct horse")]
    {
        let answer = site.answer(&asked, &allow(user, password)).await;
        assert_eq!(answer.status, 403, "{user}");
        assert_eq!(param(&answer, "code"), None);
        assert!(text(&answer).contains("name or the password is wrong"), "{user}");
    }
    // The header of a proxy names nobody here.
    assert!(!text(&site.open(&asked).await).contains("Signed in as"));
    let answer = site.answer(&asked, &allow("ann", "correct horse")).await;
    assert_eq!(answer.status, 303, "{}", text(&answer));
    assert!(site.events.0.lock().unwrap().iter().any(|event| event.contains("SignInRefused")));
}

#[tokio::test]
async fn passwords_cannot_be_guessed_quickly() {
    let site = Site::with_users().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let form = [("decision", "allow"), ("user", "ann"), ("password", "wrong horse")];
    for _ in 0..5 {
        assert!(text(&site.answer(&asked, &form).await).contains("wrong"));
    }
    let right = [("decision", "allow"), ("user", "ann"), ("password", "correct horse")];
    let refused = site.answer(&asked, &right).await;
    assert!(text(&refused).contains("oo many attempts"), "{}", text(&refused));
    assert_eq!(param(&refused, "code"), None);
}
