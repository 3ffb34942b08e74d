//! Which item of which server a name stands for.

use capstan_gateway::View;

use crate::harness::{Harness, Server};

#[tokio::test]
async fn where_one_server_is_shown_its_own_names_hold_and_no_others() {
    let files = Server::new("files").with_tools(&["mcp__read", "read"]);
    let mcp = Server::new("mcp").with_tools(&["read", "files__read"]);
    let harness = Harness::new(vec![files, mcp]);
    let all = harness.legacy(View::All, "{}").await;
    harness.ask(&all, "tools/list", "{}").await;
    for (server, tool) in [("files", "mcp__read"), ("files", "read"), ("mcp", "files__read")] {
        let client = harness.legacy(View::One(server.parse().unwrap()), "{}").await;
        harness.ask(&client, "tools/call", &format!(r#"{{"name":"{tool}"}}"#)).await;
        assert_eq!(harness.take_sent(), [format!(r#"{server} {{"name":"{tool}"}}"#)]);
    }
    for (server, tool) in [("files", "files__read"), ("mcp", "mcp__read"), ("mcp", "mcp")] {
        let client = harness.legacy(View::One(server.parse().unwrap()), "{}").await;
        let said = harness.ask(&client, "tools/call", &format!(r#"{{"name":"{tool}"}}"#)).await;
        assert!(said.answer.contains(&format!("Unknown tool: {tool}")), "{}", said.answer);
        assert!(harness.take_sent().is_empty());
    }
}
