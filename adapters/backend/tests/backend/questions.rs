//! What servers ask: the operator, and us.

use capstan_backend::settings::Elicitation;
use capstan_backend::{Era, Root, StdioSettings};
use capstan_hub::ports::{Listing, Reply};
use capstan_model::CallError;

use crate::scene::{Scene, fixture, json, shell};

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
    assert_eq!(scene.list(Listing::Tools).await.unwrap(), ["do"]);
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
