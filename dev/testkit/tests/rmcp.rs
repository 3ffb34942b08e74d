//! The fixture speaks MCP as an independent client understands it, in both eras.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]
#![expect(deprecated, reason = "roots, logging and their kind stay supported for legacy peers")]

use std::sync::Mutex;

use capstan_testkit::binary;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientInfo, ElicitRequestParams,
    ElicitResult, ElicitationAction, GetPromptRequestParams, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, Root, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client that answers everything it is asked, and tells what it heard.
struct Client {
    heard: UnboundedSender<String>,
    asked: Mutex<Vec<String>>,
}

type Running = RunningService<RoleClient, Client>;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientInfo {
        let capabilities =
            ClientCapabilities::builder().enable_elicitation().enable_roots().build();
        ClientInfo::new(capabilities, Implementation::new("peer", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(request).unwrap()["message"].to_string();
        self.asked.lock().unwrap().push(asked);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///here")]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.send(format!("progress {}", params.progress)).unwrap();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.send(format!("log {}", params.data)).unwrap();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.send("tools changed".to_owned()).unwrap();
    }
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "the independent peer wants a command of tokio's")]
async fn connect(
    arguments: &[&str],
    lifecycle: ClientLifecycleMode,
) -> (Running, UnboundedReceiver<String>) {
    let mut command = tokio::process::Command::new(binary("capstan-fixture"));
    command.args(arguments);
    let (heard, told) = unbounded_channel();
    let client = Client { heard, asked: Mutex::default() };
    let transport = TokioChildProcess::new(command).unwrap();
    let running = client.serve_with_lifecycle(transport, lifecycle).await.unwrap();
    (running, told)
}

async fn call(client: &Running, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(params).await.unwrap()
}

async fn text(client: &Running, tool: &'static str, arguments: Value) -> String {
    let result = serde_json::to_value(call(client, tool, arguments).await).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

async fn both_eras() -> [(Running, UnboundedReceiver<String>); 2] {
    [connect(&[], ClientLifecycleMode::Initialize).await, connect(&[], modern()).await]
}

#[tokio::test]
async fn tools_are_listed_over_all_pages() {
    for (arguments, expected) in [(&[][..], 18), (&["--pages", "4", "--tools", "30"], 48)] {
        for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
            let (client, _told) = connect(arguments, lifecycle).await;
            assert_eq!(client.list_all_tools().await.unwrap().len(), expected);
        }
    }
}

#[tokio::test]
async fn simple_tools_answer() {
    for (client, _told) in both_eras().await {
        assert_eq!(text(&client, "add", json!({ "a": 2, "b": 3 })).await, "5");
        assert_eq!(text(&client, "echo", json!({ "z": 1, "a": 2 })).await, r#"{"z":1,"a":2}"#);
        assert_eq!(text(&client, "count", json!({})).await, "1");
        assert_eq!(text(&client, "count", json!({})).await, "2");
        assert_eq!(text(&client, "big", json!({ "bytes": 70_000 })).await.len(), 70_000);
        assert_eq!(call(&client, "fail", json!({})).await.is_error, Some(true));
    }
}

#[tokio::test]
async fn errors_come_as_asked_for_and_the_next_call_is_served() {
    for (client, _told) in both_eras().await {
        for code in [-32042, -32000, 7] {
            let arguments = json!({ "code": code }).as_object().unwrap().clone();
            let params = CallToolRequestParams::new("rpc_error").with_arguments(arguments);
            let error = client.call_tool(params).await.unwrap_err().to_string();
            assert!(error.contains("as you wish"), "{error}");
        }
        assert!(client.call_tool(CallToolRequestParams::new("no such tool")).await.is_err());
        assert!(
            client.read_resource(ReadResourceRequestParams::new("fixture://no")).await.is_err()
        );
        assert_eq!(text(&client, "add", json!({ "a": 1, "b": 1 })).await, "2");
    }
}

#[tokio::test]
async fn questions_reach_the_client_and_its_answers_come_back() {
    for (client, _told) in both_eras().await {
        let said: Value = serde_json::from_str(&text(&client, "elicit", json!({})).await).unwrap();
        assert_eq!(said["content"], json!({ "name": "Ada" }));
        assert_eq!(*client.service().asked.lock().unwrap(), ["\"Who are you?\""]);
        let said: Value = serde_json::from_str(&text(&client, "roots", json!({})).await).unwrap();
        assert_eq!(said["roots"][0]["uri"], "file:///here");
    }
}

#[tokio::test]
async fn progress_and_log_messages_are_heard() {
    for (client, mut told) in both_eras().await {
        text(&client, "progress", json!({ "steps": 3 })).await;
        let mut heard = Vec::new();
        for _ in 0..3 {
            heard.push(told.recv().await.unwrap());
        }
        // The peer hands every notification to a task of its own, in any order.
        heard.sort();
        assert_eq!(heard, ["progress 1", "progress 2", "progress 3"]);
    }
    let (client, mut told) = connect(&[], ClientLifecycleMode::Initialize).await;
    text(&client, "log", json!({})).await;
    assert_eq!(told.recv().await.unwrap(), "log \"hello\"");
}

#[tokio::test]
async fn a_tool_that_grew_is_announced_and_listed() {
    let (client, mut told) = connect(&[], ClientLifecycleMode::Initialize).await;
    let name = text(&client, "grow", json!({})).await;
    assert_eq!(told.recv().await.unwrap(), "tools changed");
    let listed = client.list_all_tools().await.unwrap();
    assert!(listed.iter().any(|tool| tool.name == name));

    let (client, _told) = connect(&[], modern()).await;
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    text(&client, "grow", json!({})).await;
    let heard = subscription.next().await.unwrap();
    assert!(matches!(heard, Some(ServerNotification::ToolListChangedNotification(_))));
}

#[tokio::test]
async fn resources_and_prompts_are_there() {
    for (client, _told) in both_eras().await {
        assert_eq!(client.list_all_resources().await.unwrap().len(), 1);
        assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 1);
        assert_eq!(client.list_all_prompts().await.unwrap().len(), 1);
        let params = ReadResourceRequestParams::new("fixture://echo/hi");
        let read = serde_json::to_value(client.read_resource(params).await.unwrap()).unwrap();
        assert_eq!(read["contents"][0]["text"], "hi");
        let arguments = json!({ "name": "Ada" }).as_object().unwrap().clone();
        let params = GetPromptRequestParams::new("greet").with_arguments(arguments);
        let got = serde_json::to_value(client.get_prompt(params).await.unwrap()).unwrap();
        assert_eq!(got["messages"][0]["content"]["text"], "Greet Ada.");
    }
}

#[tokio::test]
async fn a_probing_client_finds_the_era() {
    for (era, version) in [
        ("legacy", ProtocolVersion::V_2025_11_25),
        ("modern", ProtocolVersion::V_2026_07_28),
        ("both", ProtocolVersion::V_2026_07_28),
    ] {
        let (client, _told) = connect(&["--era", era], auto()).await;
        assert_eq!(client.peer_info().unwrap().protocol_version, version, "{era}");
        assert_eq!(text(&client, "add", json!({ "a": 1, "b": 1 })).await, "2");
    }
}

#[tokio::test]
async fn instructions_and_the_lack_of_tools_are_told() {
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let arguments = ["--no-tools", "--instructions", "Be kind."];
        let (client, _told) = connect(&arguments, lifecycle).await;
        let info = client.peer_info().unwrap();
        assert_eq!(info.instructions.as_deref(), Some("Be kind."));
        assert!(info.capabilities.tools.is_none());
        assert!(client.call_tool(CallToolRequestParams::new("echo")).await.is_err());
    }
}
