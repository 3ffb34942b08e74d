//! Tasks that somebody listens to: who hears of them, and for how long.

use std::sync::{Arc, Mutex};

use capstan_hub::ports::{BoxFuture, Subscriber};
use capstan_hub::{Call, Requester, TaskHandle};
use capstan_mcp::{Era, StdioSettings};
use capstan_model::{CallError, Caller, Front, Target};
use capstan_testkit::binary;
use capstan_wire::Json;
use futures::future::join;

use crate::scene::{Scene, json, settings, shell, until};

const ABLE: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A server that tells of a task as soon as somebody listens, and then, of the same, somebody else's
/// subscription and nobody's. It writes down what it is told.
const TELLS: &str = r#"
*'"server/discover"'*) answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
*'"subscriptions/listen"'*)
    printf '%s\n' "$line" >> TRACE
    say() { printf '{"jsonrpc":"2.0","method":"notifications/%s","params":{%s%s}}\n' "$1" "$2" "$3"; }
    tag='"_meta":{"io.modelcontextprotocol/subscriptionId":'
    say subscriptions/acknowledged "$tag$id}," '"notifications":{"taskIds":["t"]}'
    say tasks "$tag$id}," '"of":'$id
    say tasks "${tag}999}," '"of":999'
    say tasks '' '"of":0' ;;
*'"notifications/cancelled"'*) printf '%s\n' "$line" >> TRACE ;;
*'"tools/call"'*) exit 3 ;;
*'"tools/list"'*) answer "$TOOLS" ;;"#;

/// Hears what comes on its subscription.
#[derive(Default)]
struct Hears(Mutex<Vec<String>>);

impl Subscriber for Hears {
    fn notify(&self, method: &str, params: &Json) {
        self.0.lock().unwrap().push(format!("{method} {params}"));
    }
}

/// A server whose tool becomes a task.
const WORKS: &str = r#"
*'"server/discover"'*) answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
*'"tools/call"'*) answer '{"resultType":"task","taskId":"t","status":"working"}' ;;
*'"tools/list"'*) answer "$TOOLS" ;;"#;

/// The right to the task `t` of the server `s`, as a call gives it.
async fn handle() -> Arc<TaskHandle> {
    let scene = Scene::of(StdioSettings { era: Era::Modern, ..shell(WORKS) });
    let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
    let requester = Requester::unattended();
    let screened = scene.hub.call(&scene.hub.session(), call, requester).await.unwrap();
    Arc::new(screened.task().unwrap())
}

/// Somebody who can do this, and what becomes of their subscription.
fn follow(
    scene: &Scene,
    handle: &Arc<TaskHandle>,
    able: &'static str,
) -> (Arc<Hears>, BoxFuture<'static, Result<Json, CallError>>) {
    let hears = Arc::new(Hears::default());
    let (caller, subscriber) = (Arc::new(Caller::operator(Front::Cli)), Arc::clone(&hears));
    let running = scene.hub.follow(&caller, &[Arc::clone(handle)], json(able), subscriber);
    (hears, running)
}

#[tokio::test]
async fn each_subscription_is_made_for_somebody_and_heard_by_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("told");
    let arms = TELLS.replace("TRACE", trace.to_str().unwrap());
    let scene = Scene::of(StdioSettings { era: Era::Modern, ..shell(&arms) });
    scene.about().await.unwrap();
    let task = handle().await;
    let ((ann, of_ann), (bob, of_bob)) = (follow(&scene, &task, ABLE), follow(&scene, &task, ABLE));
    let all_heard = until(|| [&ann, &bob].iter().all(|one| one.0.lock().unwrap().len() == 2));
    tokio::select! {
        ended = join(of_ann, of_bob) => panic!("{ended:?}"),
        () = all_heard => {}
    }
    let told = || std::fs::read_to_string(&trace).unwrap();
    for hears in [ann, bob] {
        let heard = std::mem::take(&mut *hears.0.lock().unwrap());
        let (_, id) = heard[1].rsplit_once(r#""of":"#).unwrap();
        let tag = format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#,
            id.trim_end_matches('}')
        );
        assert!(heard[0].starts_with("notifications/subscriptions/acknowledged"), "{heard:?}");
        assert_eq!(heard[1], format!("notifications/tasks {tag},\"of\":{id}"));
        let id = id.trim_end_matches('}');
        let asked = told()
            .lines()
            .find(|line| line.contains(&format!(r#""id":{id},"#)))
            .unwrap()
            .to_owned();
        assert!(asked.contains(r#""notifications":{"taskIds":["t"]}"#), "{asked}");
        assert!(asked.contains(&format!(r#"/clientCapabilities":{ABLE}"#)), "{asked}");
        // Nobody waits any more.
        until(|| told().contains(&format!(r#""requestId":{id}"#))).await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_or_will_not_tell_of_tasks_says_so() {
    let task = handle().await;
    let legacy = Scene::new(&["--era", "legacy"]);
    let conformance = binary("capstan-conformance-server");
    let conformance = settings(conformance.to_str().unwrap(), &["--stdio", "--era", "modern"]);
    for (scene, able, expected) in
        [(&legacy, ABLE, -32601), (&Scene::of(conformance), "{}", -32021)]
    {
        let (hears, running) = follow(scene, &task, able);
        let refused = running.await;
        assert!(
            matches!(refused, Err(CallError::Server { code, .. }) if code == expected),
            "{refused:?}"
        );
        assert!(hears.0.lock().unwrap().is_empty());
    }
    assert_eq!(legacy.count("subscriptions/listen"), 0);
    assert_eq!(legacy.count("initialize"), 1, "what is asked is seen");
}

#[tokio::test]
async fn a_subscription_ends_with_its_server_and_starts_no_other() {
    let arms = TELLS.replace("TRACE", "/dev/null");
    let scene = Scene::of(StdioSettings { era: Era::Modern, ..shell(&arms) });
    let task = handle().await;
    let (hears, running) = follow(&scene, &task, ABLE);
    let dies = async {
        until(|| !hears.0.lock().unwrap().is_empty()).await;
        scene.call("do", "{}").await.unwrap_err();
    };
    let (ended, ()) = join(running, dies).await;
    assert!(matches!(ended, Err(CallError::Unreachable { .. })), "{ended:?}");
    assert_eq!(scene.state(), "failed: it exited with code 3");
}
