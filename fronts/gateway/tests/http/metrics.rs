//! Who sees which servers in the metrics (Holes 8).

use capstan_gateway::http::{HttpError, bind};
use capstan_policy::AccessTable;
use capstan_policy::access::{AccessTo, Grant, Says, Subject};
use capstan_policy::glob::Glob;

use crate::harness::{Harness, initialize, settings};
use capstan_testkit::http::{HttpConnection, post, request};

/// A grant for the server `files`, for all of its items or for one tool.
fn grant(says: Says, access: AccessTo, tool: Option<&str>) -> Grant {
    let tools = tool.map(|tool| vec![Glob::stars(tool)]);
    let servers = vec![Glob::stars("files")];
    Grant { servers, access, tools, resources: None, prompts: None, says }
}

#[tokio::test]
async fn servers_out_of_reach_are_not_in_the_metrics() {
    let harness = Harness::new().await;
    let seen = harness.ask(&request("GET", "/metrics")).await.body;
    assert!(seen.contains(r#"server="files""#) && seen.contains("capstan_servers{"), "{seen}");

    let harness = Harness::hidden(settings()).await;
    let seen = harness.ask(&request("GET", "/metrics")).await.body;
    assert!(!seen.contains("files") && !seen.contains("capstan_servers{"), "{seen}");
    assert!(seen.contains("capstan_calls_total{"), "{seen}");
}

#[tokio::test]
async fn the_metrics_and_the_page_of_a_server_follow_the_grants_of_the_caller() {
    use AccessTo::{All, Read, Write};
    use Says::{Allow, Deny};
    let deny = |access| grant(Deny, access, None);
    let allow = |access| grant(Allow, access, None);
    for (default, grants, is_shown) in [
        (Allow, vec![deny(All)], false),
        (Allow, vec![deny(Read), deny(Write)], false),
        (Allow, vec![allow(All), deny(All)], false),
        (Deny, vec![deny(Read)], false),
        (Deny, vec![allow(All), deny(All)], false),
        (Deny, vec![], false),
        (Allow, vec![], true),
        (Allow, vec![deny(Write)], true),
        (Allow, vec![grant(Deny, All, Some("say"))], true),
        (Deny, vec![allow(Read)], true),
        (Deny, vec![grant(Allow, Read, Some("say"))], true),
    ] {
        // The same by a role and by a grant to the subject.
        for by_role in [true, false] {
            let words = format!("{default:?} {grants:?} by role: {by_role}");
            let mut table = AccessTable { default, ..AccessTable::default() };
            let mut subject = Subject::default();
            if by_role {
                table.roles.push(("guest".to_owned(), grants.clone()));
                subject.roles.push("guest".to_owned());
            } else {
                subject.extra.clone_from(&grants);
            }
            table.subjects.push(("anonymous".to_owned(), subject));
            let harness = Harness::with_access(settings(), table).await;
            let seen = harness.ask(&request("GET", "/metrics")).await.body;
            assert_eq!(seen.contains(r#"server="files""#), is_shown, "{words}: {seen}");
            assert_eq!(seen.contains("files"), is_shown, "{words}: {seen}");
            let hello = post("/servers/files/mcp", &initialize("2025-11-25"));
            let status = harness.ask(&hello).await.head.status;
            assert_eq!(status, if is_shown { 200 } else { 404 }, "{words}");
        }
    }
}

#[tokio::test]
async fn an_address_of_their_own_has_all_servers_and_nothing_else() {
    let mut settings = settings();
    settings.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    let harness = Harness::hidden(settings).await;
    let at = harness.metrics.unwrap();
    let answer = HttpConnection::new(at).await.ask(&request("GET", "/metrics")).await;
    assert_eq!(answer.head.status, 200);
    assert!(answer.body.contains(r#"server="files""#), "{}", answer.body);
    for (ask, status) in [
        (request("POST", "/metrics"), 405),
        (request("GET", "/mcp"), 404),
        (request("GET", "/health"), 404),
        (request("GET", "/metrics").with("Host", "evil.example"), 403),
        (request("GET", "/metrics").with("Origin", "http://evil.example"), 403),
        (request("GET", "/metrics").without("Host"), 400),
    ] {
        let answer = HttpConnection::new(at).await.ask(&ask).await;
        assert_eq!(answer.head.status, status, "{}", ask.text());
        assert!(!answer.body.contains("files"), "{}", answer.body);
    }
    assert_eq!(harness.ask(&request("GET", "/metrics")).await.head.status, 404);
    assert_eq!(harness.ask(&request("GET", "/health")).await.head.status, 200);
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
