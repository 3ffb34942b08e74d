//! An independent client over stdio, in both eras.

use capstan_testkit::World;
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};

use crate::stage::{ALL, echoed, fixture, with};

async fn connect(
    world: &World,
    mode: ClientLifecycleMode,
) -> RunningService<RoleClient, ClientConfig> {
    let command = world.capstan(["serve"]).into_command();
    let child = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    ClientConfig::default().serve_with_lifecycle(child, mode).await.unwrap()
}

#[tokio::test]
async fn it_lists_calls_reads_and_leaves() {
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for mode in [ClientLifecycleMode::Initialize, modern] {
        let world = with(&format!("{ALL}{}", fixture("f", &[])));
        let client = connect(&world, mode).await;
        let tools = client.list_all_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "f__echo"), "{tools:?}");
        let arguments: Value = json!({ "text": "hi" });
        let call = CallToolRequestParams::new("f__echo")
            .with_arguments(arguments.as_object().cloned().unwrap());
        let answer = client.call_tool(call).await.unwrap();
        let answer = json!({ "result": serde_json::to_value(answer).unwrap() });
        assert_eq!(echoed(&answer), "hi");
        let resources = client.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 1, "{resources:?}");
        client.cancel().await.unwrap();
    }
}
