//! Tasks: only the caller whose call has become one can do anything with it.

use std::sync::Arc;

use capstan_hub::{Answer, TaskOp};
use capstan_model::{CallError, Caller, Front};
use futures::FutureExt;
use futures::future::ready;

use super::{Scene, files, tool};
use crate::world::{Server, json};

#[tokio::test]
async fn a_task_is_its_callers_and_each_operation_on_it_is_written_down() {
    let task = r#"{"resultType":"task","taskId":"7","status":"working"}"#;
    let runs = move |_, _| ready(Ok(Answer::Whole(json(task)))).boxed();
    let scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
    let hub = &scene.world.hub;
    let call = tool("files__read");
    let (owner, session) = (Arc::clone(&call.caller), hub.session());
    let screened = hub.call(&session, call, scene.person.requester()).await.unwrap();
    let handle = screened.task().unwrap();
    assert_eq!((handle.server().as_str(), handle.id()), ("files", "7"));

    let operate = async |caller: Arc<Caller>| {
        let params = json("{}");
        hub.task(&caller, &handle, TaskOp::Cancel, &params, scene.person.requester()).await
    };
    let other = Arc::new(Caller::named("mallory", Front::Gateway));
    assert!(matches!(operate(other).await, Err(CallError::Unknown { .. })));
    // It reaches the server, which has no tasks.
    assert!(matches!(operate(owner).await, Err(CallError::Server { .. })));
    let entries = scene.world.entries();
    let methods: Vec<_> = entries.iter().map(|entry| entry.method).collect();
    assert_eq!(methods, [None, Some("tasks/cancel"), Some("tasks/cancel")]);
}
