//! Tasks: only the caller whose call has become one can do anything with it.

use std::sync::Arc;

use capstan_hub::ports::{AuditLog, Subscriber, Unwritten};
use capstan_hub::{Answer, Call, Entry, Outcome, TaskHandle, TaskOp};
use capstan_model::{CallError, Caller, ErrorCode, Front};
use capstan_policy::access::Says;
use capstan_policy::{Access, AccessTable};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;

use super::{Scene, files, server, tool};
use crate::world::{Server, json, policy};

/// A subscriber that is told nothing.
struct Silent;

impl Subscriber for Silent {
    fn notify(&self, _: &str, _: &Json) {
        unreachable!()
    }
}

/// An audit log on a full disk.
struct Full;

impl AuditLog for Full {
    fn record(&self, _: Entry) {}

    fn ready(&self) -> Result<(), Unwritten> {
        Err(Unwritten("no space left".to_owned()))
    }
}

/// A scene with a task of its server, the right to it, and its owner.
async fn scene_with_task() -> (Scene, TaskHandle, Arc<Caller>) {
    scene_with_task_of(Caller::clone(&tool("files__read").caller)).await
}

async fn scene_with_task_of(owner: Caller) -> (Scene, TaskHandle, Arc<Caller>) {
    let task = r#"{"resultType":"task","taskId":"7","status":"working"}"#;
    let runs = move |_, _| ready(Ok(Answer::Whole(json(task)))).boxed();
    let scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
    let (owner, session) = (Arc::new(owner), scene.world.hub.session());
    let call = Call { caller: Arc::clone(&owner), ..tool("files__read") };
    let screened = scene.world.hub.call(&session, call, scene.person.requester()).await.unwrap();
    (scene, screened.task().unwrap(), owner)
}

/// The method and the outcome of each entry.
fn entries(scene: &Scene) -> Vec<(Option<&'static str>, Outcome)> {
    scene.world.entries().iter().map(|entry| (entry.method, entry.outcome)).collect()
}

#[tokio::test]
async fn a_second_id_of_a_task_never_reaches_the_server() {
    let (scene, handle, owner) = scene_with_task().await;
    for params in [r#"{"taskId":"7","taskId":"8"}"#, r#"{"TaskId":"8"}"#] {
        let (params, requester) = (json(params), scene.person.requester());
        let result = scene
            .world
            .hub
            .task(&owner, &scene.world.session, &handle, TaskOp::Get, &params, requester)
            .await;
        assert!(matches!(result, Err(CallError::InvalidArguments { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn a_task_is_its_callers_and_each_operation_on_it_is_written_down() {
    let (scene, handle, owner) = scene_with_task().await;
    let hub = &scene.world.hub;
    assert_eq!((handle.server().as_str(), handle.id()), ("files", "7"));

    let operate = async |caller: Arc<Caller>| {
        let params = json("{}");
        hub.task(
            &caller,
            &scene.world.session,
            &handle,
            TaskOp::Cancel,
            &params,
            scene.person.requester(),
        )
        .await
    };
    let by_name = Caller { subject: "mallory".to_owned(), ..Caller::clone(&owner) };
    let by_front = Caller { front: Front::Gateway, ..Caller::clone(&owner) };
    for other in [by_name, by_front] {
        let result = operate(Arc::new(other)).await;
        assert!(matches!(result, Err(CallError::Unknown { .. })), "{result:?}");
    }
    // It reaches the server, which has no tasks.
    assert!(matches!(operate(owner).await, Err(CallError::Server { .. })));
    let entries = scene.world.entries();
    let methods: Vec<_> = entries.iter().map(|entry| entry.method).collect();
    let cancel = Some("tasks/cancel");
    assert_eq!(methods, [None, cancel, cancel, cancel]);
}

#[tokio::test]
async fn a_subscription_to_a_task_leaves_one_entry_however_it_ends() {
    let (scene, handle, owner) = scene_with_task().await;
    let (hub, handles) = (&scene.world.hub, [Arc::new(handle)]);
    let follow = |caller| hub.follow(caller, &handles, json("{}"), Arc::new(Silent));
    let other = Arc::new(Caller::named("mallory", Front::Gateway));
    assert!(matches!(follow(&other).await, Err(CallError::Unknown { .. })));
    // It reaches the server, which has no subscriptions.
    assert!(matches!(follow(&owner).await, Err(CallError::Server { .. })));
    drop(follow(&owner));
    let listen = Some("subscriptions/listen");
    let expected = [
        (None, Outcome::Answered),
        (listen, Outcome::Failed(ErrorCode::NotFound)),
        (listen, Outcome::Failed(ErrorCode::NotFound)),
        (listen, Outcome::Abandoned),
    ];
    assert_eq!(entries(&scene), expected);
}

#[tokio::test]
async fn an_operation_that_is_dropped_before_it_runs_leaves_one_abandoned_entry() {
    let (scene, handle, owner) = scene_with_task().await;
    let params = json("{}");
    let requester = scene.person.requester();
    drop(scene.world.hub.task(
        &owner,
        &scene.world.session,
        &handle,
        TaskOp::Cancel,
        &params,
        requester,
    ));
    let expected = [(None, Outcome::Answered), (Some("tasks/cancel"), Outcome::Abandoned)];
    assert_eq!(entries(&scene), expected);
}

#[tokio::test]
async fn a_task_of_a_server_that_its_caller_may_no_longer_use_is_unknown() {
    let (mut scene, handle, _) = scene_with_task_of(Caller::remote("ann", Vec::new())).await;
    let mut source = policy(&[], &[], &["*"]);
    let none = AccessTable { default: Says::Deny, ..AccessTable::default() };
    source.access = vec![Access::new(none, [(&server(), "files")])];
    scene.world.change(|hub| hub.policy = Arc::new(source.compile()));
    let (hub, owner) = (&scene.world.hub, Arc::new(Caller::remote("ann", Vec::new())));
    let (params, requester) = (json("{}"), scene.person.requester());
    let result =
        hub.task(&owner, &scene.world.session, &handle, TaskOp::Get, &params, requester).await;
    assert!(matches!(result, Err(CallError::Unknown { .. })), "{result:?}");
    let result = hub.follow(&owner, &[Arc::new(handle)], json("{}"), Arc::new(Silent)).await;
    assert!(matches!(result, Err(CallError::Unknown { .. })), "{result:?}");
}

#[tokio::test]
async fn an_operation_that_could_not_be_written_down_is_not_sent() {
    let (mut scene, handle, owner) = scene_with_task().await;
    scene.world.change(|hub| hub.audit = Arc::new(Full));
    let (hub, params) = (&scene.world.hub, json("{}"));
    let result = hub
        .task(&owner, &scene.world.session, &handle, TaskOp::Get, &params, scene.person.requester())
        .await;
    assert!(matches!(result, Err(CallError::Unrecordable { .. })), "{result:?}");
    let result = hub.follow(&owner, &[Arc::new(handle)], json("{}"), Arc::new(Silent)).await;
    assert!(matches!(result, Err(CallError::Unrecordable { .. })), "{result:?}");
}
