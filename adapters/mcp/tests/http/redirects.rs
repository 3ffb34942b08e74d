//! Where requests may go and where not.

use capstan_http::{HttpError, WebAddress, download};
use capstan_safety::address::AddressPolicy;
use serde_json::json;

use crate::peer::{Answer, Peer};
use crate::scene::{Scene, legacy, settings};

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_body_and_credentials() {
    for status in [307, 308] {
        let peer = Peer::new(move |seen| match seen.path.as_str() {
            "/mcp" => Answer::status(status).with("location", "/new/mcp"),
            _ => legacy(seen),
        })
        .await;
        assert_eq!(Scene::new(&peer).call("do", json!({})).await.unwrap(), "done", "{status}");
        let calls = peer.of("tools/call");
        assert_eq!(calls.len(), 2);
        assert_eq!(
            (calls[1].path.as_str(), calls[1].header("x-key")),
            ("/new/mcp", Some("s3cr3t-key"))
        );
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_refused_and_nothing_arrives_there() {
    let elsewhere = Peer::new(legacy).await;
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/mcp", elsewhere.origin);
        let peer = Peer::new(move |_| Answer::status(status).with("location", &target)).await;
        let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("policy_blocked"), "{error}");
        assert!(error.contains("which is another server"), "{error}");
        assert!(error.contains("the request was sent"), "{error}");
        assert!(error.contains("is not followed"), "{error}");
        assert!(!error.contains("set its address"), "this machine is not advised: {error}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn the_target_of_a_redirect_is_advised_only_where_it_may_be_public() {
    for (target, is_advised) in [
        ("https://new.example/mcp", true),
        ("https://1.1.1.1/mcp", true),
        ("https://[2606:4700::1111]/mcp", true),
        ("http://10.0.0.1/mcp", false),
        ("http://169.254.169.254/latest", false),
        ("http://2130706433/mcp", false),
        ("http://[::1]/mcp", false),
        ("http://[::ffff:10.0.0.1]/mcp", false),
        ("http://LOCALHOST/mcp", false),
        ("http://localhost./mcp", false),
        ("http://a.localhost/mcp", false),
        ("http://metadata.google.internal/mcp", false),
        ("http://intranet/mcp", false),
    ] {
        let peer = Peer::new(move |_| Answer::status(307).with("location", target)).await;
        let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("policy_blocked"), "{error}");
        assert_eq!(error.contains("set its address to that"), is_advised, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_redirects_elsewhere_is_not_asked_by_every_call() {
    let peer = Peer::new(|_| Answer::status(307).with("location", "http://127.0.0.1:9/mcp")).await;
    let scene = Scene::new(&peer);
    for _ in 0..30 {
        let error = scene.call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("policy_blocked"), "{error}");
    }
    assert!(peer.seen().len() < 8, "{} requests", peer.seen().len());
}

#[tokio::test]
async fn a_redirect_that_would_lose_the_body_or_never_ends_is_refused() {
    for (status, location, part) in [
        (302, "/other", "it has moved to"),
        (303, "/other", "it has moved to"),
        (307, "/mcp", "more than 5 times"),
        (307, "", "redirects"),
        (308, "http://[", "without a target"),
    ] {
        let peer = Peer::new(move |_| Answer::status(status).with("location", location)).await;
        let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
        assert!(error.contains(part), "{error}");
        // The probe and the handshake, each with at most five hops.
        assert!(peer.seen().len() <= 12, "{}", peer.seen().len());
    }
}

#[tokio::test]
async fn a_server_behind_a_socket_is_reached_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::on_socket(&folder.path().join("mcp.sock"), legacy);
    let scene = Scene::of(settings(&format!("{}/deep/mcp", peer.origin)));
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert!(peer.seen().iter().all(|seen| seen.path == "/deep/mcp"));
    let nobody = folder.path().join("nobody.sock");
    let error = Scene::of(settings(&format!("unix://{}", nobody.display())));
    let error = error.call("do", json!({})).await.unwrap_err();
    assert!(error.starts_with("transient"), "{error}");
}

/// Holes 1: each hop is checked, and only the first may be this machine.
#[tokio::test]
async fn a_download_is_redirected_within_its_origin_or_to_public_addresses() {
    let elsewhere = Peer::new(legacy).await;
    let target = elsewhere.origin.clone();
    let peer = Peer::new(move |seen| match seen.path.as_str() {
        "/moved" => Answer::status(302).with("location", "/here"),
        "/here" => Answer::json("{}"),
        "/loop" => Answer::status(307).with("location", "/loop"),
        "/mapped" => Answer::status(302).with("location", "http://[::ffff:127.0.0.1]:9/"),
        "/any" => Answer::status(302).with("location", "http://0.0.0.0:9/"),
        "/login" => Answer::status(302).with("location", "http://me:pw@127.0.0.1:9/"),
        _ => Answer::status(302).with("location", &target),
    })
    .await;
    let fetch = async |path: &str| {
        let address = WebAddress::parse(&format!("{}{path}", peer.origin)).unwrap();
        download(&address, &AddressPolicy::default(), 100).await
    };
    assert_eq!(&*fetch("/moved").await.unwrap().body, b"{}");
    assert!(!fetch("/here").await.unwrap().body.is_empty());
    for blocked in ["/mapped", "/any", "/elsewhere"] {
        let error = fetch(blocked).await.unwrap_err();
        assert!(matches!(error, HttpError::Blocked(_)), "{blocked}: {error}");
    }
    for odd in ["/loop", "/login"] {
        let error = fetch(odd).await.unwrap_err();
        assert!(matches!(error, HttpError::Redirected { .. }), "{odd}: {error}");
    }
    assert!(elsewhere.seen().is_empty());
}
