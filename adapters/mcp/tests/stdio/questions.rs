//! What servers ask: the operator, and us.

use std::sync::Arc;

use capstan_hub::ports::{
    Ask, Asking, BoxFuture, ClientSide, Listing, Notice, Reply, Unanswered, Wishes,
};
use capstan_hub::{Call, Requester};
use capstan_mcp::settings::Elicitation;
use capstan_mcp::{Era, Root, StdioSettings};
use capstan_model::CallError;
use capstan_model::{Caller, Front, Target};
use capstan_wire::Json;
use futures::FutureExt as _;
use tokio::sync::watch;

use crate::scene::{LIMIT, Scene, fixture, json, settings, shell};

/// A modern server that answers every call with a question.
const ASKS_MODERN: &str = r#"
*'"server/discover"'*) answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*) answer '{"resultType":"input_required","inputRequests":{"q":{"method":"METHOD","params":{"message":"Hm?","requestedSchema":{}}}},"requestState":"x"}' ;;"#;

/// A legacy server that asks while it is called and answers with what it was told.
const ASKS_LEGACY: &str = r#"
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*)
  printf '{"jsonrpc":"2.0","id":"q","method":"METHOD","params":{"message":"Hm?","requestedSchema":{}}}\n'
  IFS= read -r said; answer "$said" ;;"#;

fn asks(arms: &str, method: &str, era: Era, elicitation: Elicitation) -> StdioSettings {
    StdioSettings { era, elicitation, ..shell(&arms.replace("METHOD", method)) }
}

#[tokio::test]
async fn the_operators_answer_reaches_the_server() {
    let content = Some(json(r#"{"name":"Ann"}"#));
    let table = [
        (Reply::Accept(content), r#"{"action":"accept","content":{"name":"Ann"}}"#),
        (Reply::Accept(None), r#"{"action":"accept"}"#),
        (Reply::Decline, r#"{"action":"decline"}"#),
        (Reply::Cancel, r#"{"action":"cancel"}"#),
    ];
    for era in ["legacy", "modern"] {
        for (reply, told) in table.clone() {
            let scene = Scene::with_reply(fixture(&["--era", era]), reply);
            assert_eq!(scene.text("elicit", "{}").await, told, "{era}");
            let seen = scene.person.seen();
            let [question] = seen.as_slice() else { panic!("{seen:?}") };
            assert!(question.starts_with("s asks: Who are you? Form("), "{question}");
            assert!(question.contains(r#""maxLength":40"#), "{question}");
        }
    }
}

#[tokio::test]
async fn a_page_is_shown_and_not_visited() {
    for era in ["legacy", "modern"] {
        let scene = Scene::with_reply(fixture(&["--era", era]), Reply::Accept(None));
        let told = scene.text("elicit", r#"{"url":"https://example.com/x?y=1"}"#).await;
        assert_eq!(told, r#"{"action":"accept"}"#);
        let seen = scene.person.seen();
        assert_eq!(seen, [r#"s asks: Please visit Visit("https://example.com/x?y=1")"#]);
    }
}

#[tokio::test]
async fn a_server_that_may_not_ask_is_not_told_that_it_could() {
    for (era, answer) in [("legacy", "the client has no elicitation"), ("modern", "-32021")] {
        let elicitation = Elicitation::Off;
        let settings = StdioSettings { elicitation, ..fixture(&["--era", era]) };
        let scene = Scene::with_reply(settings, Reply::Accept(None));
        let told = match scene.call("elicit", "{}").await {
            Ok(answer) => answer,
            Err(error) => error.to_string(),
        };
        assert!(told.contains(answer), "{told}");
        assert!(scene.received(r#""elicitation""#).is_empty(), "{era}");
        assert_eq!(scene.person.seen(), [""; 0]);
    }
}

#[tokio::test]
async fn a_server_that_may_not_ask_reaches_nobody_when_it_does() {
    let legacy = |method, switch| asks(ASKS_LEGACY, method, Era::Legacy, switch);
    let modern = |method, switch| asks(ASKS_MODERN, method, Era::Modern, switch);
    let (elicit, sample) = ("elicitation/create", "sampling/createMessage");
    for settings in [
        legacy(elicit, Elicitation::Off),
        legacy(sample, Elicitation::Offered),
        legacy("elicitation/other", Elicitation::Offered),
    ] {
        let scene = Scene::with_reply(settings, Reply::Accept(None));
        let told = scene.call("do", "{}").await.unwrap();
        assert!(told.contains(r#""id":"q","error":{"code":-32601,"#), "{told}");
        assert_eq!(scene.person.seen(), [""; 0]);
    }
    for settings in [modern(elicit, Elicitation::Off), modern(sample, Elicitation::Offered)] {
        let scene = Scene::with_reply(settings, Reply::Accept(None));
        let error = scene.call("do", "{}").await.unwrap_err();
        assert!(matches!(error, CallError::Protocol { .. }), "{error}");
        assert!(error.to_string().contains("which was not offered"), "{error}");
        assert_eq!(scene.person.seen(), [""; 0]);
    }
}

#[tokio::test]
async fn a_legacy_server_is_told_the_same_for_people_and_for_programs() {
    let conformance = capstan_testkit::binary("capstan-conformance-server");
    let mut told = Vec::new();
    for others in [capstan_mcp::Others::People, capstan_mcp::Others::Clients] {
        let settings = settings(conformance.to_str().unwrap(), &["--stdio", "--era", "legacy"]);
        let scene = Scene::of(StdioSettings { others, ..settings });
        told.push(scene.call("client", "{}").await.unwrap());
    }
    assert_eq!(told.first(), told.last());
    assert!(told.iter().all(|told| told.contains("sampling")), "{told:?}");
}

#[tokio::test]
async fn a_server_that_asks_for_ever_is_given_up() {
    let settings = asks(ASKS_MODERN, "elicitation/create", Era::Modern, Elicitation::Offered);
    let scene = Scene::with_reply(settings, Reply::Accept(None));
    let error = scene.call("do", "{}").await.unwrap_err();
    assert!(error.to_string().contains("more than 10 times"), "{error}");
    assert_eq!(scene.person.seen().len(), 10);
}

#[tokio::test]
async fn a_question_that_belongs_to_no_call_is_declined() {
    let arms = r#"
    *'"tools/list"'*) list=$id
      printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Hm?","requestedSchema":{}}}\n'
      IFS= read -r said
      id=$list; case $said in *'"action":"decline"'*) answer "$TOOLS" ;; esac ;;"#;
    let scene = Scene::with_reply(shell(arms), Reply::Accept(None));
    assert_eq!(scene.names(Listing::Tools).await.unwrap(), ["do"]);
    assert_eq!(scene.person.seen(), [""; 0]);
}

#[tokio::test]
async fn the_roots_are_told_without_asking_anybody() {
    let root = |uri: &str, name: &str| Root { uri: uri.to_owned(), name: name.to_owned() };
    let roots = vec![root("file:///a%20b", "a \"b\""), root("file:///c", "c")];
    for era in ["legacy", "modern"] {
        let settings = StdioSettings { roots: roots.clone(), ..fixture(&["--era", era]) };
        let scene = Scene::of(settings);
        let told = r#"{"roots":[{"uri":"file:///a%20b","name":"a \"b\""},{"uri":"file:///c","name":"c"}]}"#;
        assert_eq!(scene.text("roots", "{}").await, told, "{era}");
        assert_eq!(scene.person.seen(), [""; 0]);
    }
}

#[tokio::test]
async fn a_ping_is_answered() {
    let scene = Scene::of(asks(ASKS_LEGACY, "ping", Era::Legacy, Elicitation::Off));
    let told = scene.call("do", "{}").await.unwrap();
    assert_eq!(told, r#"{"jsonrpc":"2.0","id":"q","result":{}}"#);
}

/// Is asked, and never answers.
struct Silent {
    open: watch::Sender<usize>,
    capabilities: Option<Json>,
}

/// A question that is open.
struct Open(watch::Sender<usize>);

impl Silent {
    /// A requester of which that many questions are open.
    fn requester(open: watch::Sender<usize>, capabilities: Option<Json>) -> Requester<'static> {
        let client = Arc::new(Self { open, capabilities });
        Requester { client, ..Requester::unattended() }
    }
}

impl ClientSide for Silent {
    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        self.open.send_modify(|open| *open += 1);
        let open = Open(self.open.clone());
        async move {
            let _open = open;
            std::future::pending().await
        }
        .boxed()
    }

    fn notice(&self, _: Notice) {}

    fn capabilities(&self) -> Option<Json> {
        self.capabilities.clone()
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        false
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// A server that asks while it is called; then it takes the question back, or answers the call.
const CHANGES_ITS_MIND: &str = r#"
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*)
  call=$id
  printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Hm?","requestedSchema":{}}}\n' ;;
*'"take"'*)
  printf '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}\n'
  answer '{}' ;;
*'"end"'*)
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$call"
  answer '{}' ;;"#;

#[tokio::test]
async fn a_question_is_open_no_longer_than_its_server_and_its_call_want() {
    for ending in ["take", "end"] {
        let scene = Scene::of(shell(CHANGES_ITS_MIND));
        let count = watch::Sender::new(0);
        let mut open = count.subscribe();
        let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
        let (hub, session) = (Arc::clone(&scene.hub), scene.hub.session());
        let calling = tokio::spawn(async move {
            hub.call(&session, call, Silent::requester(count, None))
                .await
                .map(|said| said.result().clone())
        });
        tokio::time::timeout(LIMIT, open.wait_for(|open| *open == 1)).await.unwrap().unwrap();
        scene.subscribe(ending).await;
        tokio::time::timeout(LIMIT, open.wait_for(|open| *open == 0)).await.unwrap().unwrap();
        if ending == "take" {
            scene.subscribe("end").await;
        }
        assert_eq!(calling.await.unwrap().unwrap().to_string(), r#"{"content":[]}"#);
    }
}

/// A server with two calls in hand, of which the first one asks and the second one ends first.
const ASKS_FOR_ANOTHER: &str = r#"
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*)
  if [ -z "$first" ]; then first=$id; else
    second=$id
    printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Hm?","requestedSchema":{}}}\n'
  fi ;;
*'"second"'*)
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$second"
  answer '{}' ;;
*'"first"'*)
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$first"
  answer '{}' ;;"#;

#[tokio::test]
async fn a_question_that_may_be_another_calls_stays_open_for_as_long_as_that_goes_on() {
    let scene = Scene::of(shell(ASKS_FOR_ANOTHER));
    scene.names(Listing::Tools).await.unwrap();
    let count = watch::Sender::new(0);
    let mut open = count.subscribe();
    let call = || {
        let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
        let (hub, session) = (Arc::clone(&scene.hub), scene.hub.session());
        let requester = Silent::requester(count.clone(), None);
        tokio::spawn(async move { hub.call(&session, call, requester).await.is_ok() })
    };
    let (one, other) = (call(), call());
    tokio::time::timeout(LIMIT, open.wait_for(|open| *open == 1)).await.unwrap().unwrap();
    scene.subscribe("second").await;
    let ended = tokio::select! { ended = one => ended, ended = other => ended };
    assert!(ended.unwrap());
    assert_eq!(*open.borrow(), 1, "the first call may be the one that asks");
    scene.subscribe("first").await;
    tokio::time::timeout(LIMIT, open.wait_for(|open| *open == 0)).await.unwrap().unwrap();
}

/// A server that asks for more at once than can be worked on, and answers with the last it was told.
const ASKS_TOO_MUCH: &str = r#"
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*)
  call=$id; i=0
  while [ $i -le 32 ]; do
    printf '{"jsonrpc":"2.0","id":"q%s","method":"METHOD","params":{"message":"Hm?"}}\n' $i; i=$((i+1))
  done
  IFS= read -r said; id=$call; answer "$said" ;;"#;

#[tokio::test]
async fn what_is_asked_too_often_is_declined_in_its_own_words() {
    for (asking, told) in [
        (Asking::Elicit, r#""result":{"action":"decline"}"#),
        (Asking::Sample, r#""error":{"code":-1,"#),
        (Asking::Roots, r#""error":{"code":-1,"#),
    ] {
        let settings = shell(&ASKS_TOO_MUCH.replace("METHOD", asking.method()));
        let settings = StdioSettings { others: capstan_mcp::Others::Clients, ..settings };
        let scene = Scene::of(settings);
        let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
        let able = json(r#"{"elicitation":{},"sampling":{},"roots":{}}"#);
        let silent = Silent::requester(watch::Sender::new(0), Some(able));
        let said = scene.hub.call(&scene.hub.session(), call, silent).await.unwrap();
        assert!(said.result().as_str().contains(told), "{}", said.result());
    }
}

#[tokio::test]
async fn what_a_caller_did_not_declare_is_answered_here_and_not_handed_out() {
    // With `wishes` for results as they are, a question that was not declared is no result.
    for (able, told) in [
        (r#"{"elicitation":{}}"#, "input_required"),
        (r#"{"elicitation":{"url":{}}}"#, "more than 10 times"),
        ("{}", "no answer"),
    ] {
        let scene =
            Scene::of(asks(ASKS_MODERN, "elicitation/create", Era::Modern, Elicitation::Offered));
        let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
        let requester = Requester { client: Arc::new(Modern(able)), ..Requester::unattended() };
        let said = scene.hub.call(&scene.hub.session(), call, requester).await;
        let said = said.map_or_else(|error| error.to_string(), |said| said.result().to_string());
        assert!(said.contains(told), "{able}: {said}");
    }
}

/// A program that takes questions as results, and declines those that it is asked.
struct Modern(&'static str);

impl ClientSide for Modern {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        ask.by_person(|_| std::future::ready(Reply::Decline)).boxed()
    }

    fn outlives_answer(&self) -> bool {
        false
    }

    fn capabilities(&self) -> Option<Json> {
        Some(json(self.0))
    }

    fn wishes(&self) -> Wishes {
        Wishes { progress: false, input_required: true, flow: false, level: None }
    }

    fn notice(&self, _: Notice) {}
}
