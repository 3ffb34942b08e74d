//! Where requests may go and where not.

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
        assert!(error.starts_with("server_error"), "{error}");
        assert!(error.contains("nothing of ours goes there"), "{error}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_that_would_lose_the_body_or_never_ends_is_refused() {
    for (status, location, part) in [
        (302, "/other", "it has moved to"),
        (303, "/other", "it has moved to"),
        (307, "/mcp", "more than 5 times"),
        (307, "", "redirects"),
        (308, "http://[", "to nowhere"),
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
