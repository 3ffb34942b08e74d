//! Who sees which servers in the metrics (Holes 8).

use capstan_gateway::http::{HttpError, bind};

use crate::peer::{Peer, ask};
use crate::world::{World, settings};

#[tokio::test]
async fn servers_out_of_reach_are_not_in_the_metrics() {
    let world = World::new().await;
    let seen = world.ask(&ask("GET", "/metrics")).await.body;
    assert!(seen.contains(r#"server="files""#) && seen.contains("capstan_servers{"), "{seen}");

    let world = World::hidden(settings()).await;
    let seen = world.ask(&ask("GET", "/metrics")).await.body;
    assert!(!seen.contains("files") && !seen.contains("capstan_servers{"), "{seen}");
    assert!(seen.contains("capstan_calls_total{"), "{seen}");
}

#[tokio::test]
async fn an_address_of_their_own_has_all_servers_and_nothing_else() {
    let mut settings = settings();
    settings.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    let world = World::hidden(settings).await;
    let at = world.metrics.unwrap();
    let answer = Peer::new(at).await.ask(&ask("GET", "/metrics")).await;
    assert_eq!(answer.head.status, 200);
    assert!(answer.body.contains(r#"server="files""#), "{}", answer.body);
    for (ask, status) in [
        (ask("POST", "/metrics"), 405),
        (ask("GET", "/mcp"), 404),
        (ask("GET", "/health"), 404),
        (ask("GET", "/metrics").with("Host", "evil.example"), 403),
        (ask("GET", "/metrics").with("Origin", "http://evil.example"), 403),
        (ask("GET", "/metrics").without("Host"), 400),
    ] {
        let answer = Peer::new(at).await.ask(&ask).await;
        assert_eq!(answer.head.status, status, "{}", ask.text());
        assert!(!answer.body.contains("files"), "{}", answer.body);
    }
    assert_eq!(world.ask(&ask("GET", "/metrics")).await.head.status, 404);
    assert_eq!(world.ask(&ask("GET", "/health")).await.head.status, 200);
}

#[tokio::test]
async fn other_machines_get_no_metrics_unless_the_operator_says_so() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let mut settings = settings();
        settings.metrics_listen = Some(address.parse().unwrap());
        let result = bind(settings).await;
        assert!(matches!(result, Err(HttpError::Exposed(_))), "{address}");
    }
}
