//! Which item of which server a name stands for.

use capstan_gateway::View;

use crate::world::{Server, World};

#[tokio::test]
async fn where_one_server_is_shown_its_own_names_hold_and_no_others() {
    let files = Server::new("files").with_tools(&["mcp__read", "read"]);
    let mcp = Server::new("mcp").with_tools(&["read", "files__read"]);
    let world = World::new(vec![files, mcp]);
    let all = world.legacy(View::All, "{}").await;
    world.ask(&all, "tools/list", "{}").await;
    for (server, tool) in [("files", "mcp__read"), ("files", "read"), ("mcp", "files__read")] {
        let client = world.legacy(View::One(server.parse().unwrap()), "{}").await;
        world.ask(&client, "tools/call", &format!(r#"{{"name":"{tool}"}}"#)).await;
        assert_eq!(world.take_sent(), [format!(r#"{server} {{"name":"{tool}"}}"#)]);
    }
    for (server, tool) in [("files", "files__read"), ("mcp", "mcp__read"), ("mcp", "mcp")] {
        let client = world.legacy(View::One(server.parse().unwrap()), "{}").await;
        let said = world.ask(&client, "tools/call", &format!(r#"{{"name":"{tool}"}}"#)).await;
        assert!(said.answer.contains(&format!("Unknown tool: {tool}")), "{}", said.answer);
        assert!(world.take_sent().is_empty());
    }
}
