//! Answers that are too long to be kept.

use std::time::Duration;

use capstan_mcp::StdioSettings;
use capstan_model::{CallError, ErrorCode};

use crate::scene::{Scene, shell};

/// The longest message that is taken in these tests, in bytes.
const LIMIT: usize = 100_000;

/// What `sh` needs to print an answer that has more than that around `$1` and `$2`.
const LONG: &str = r#"printf '{"jsonrpc":"2.0",%s"result":{"x":"' "$1"; head -c 5000000 /dev/zero | tr '\0' x; printf '"}%s}\n' "$2""#;

/// A server in `sh` with one tool, which does this.
fn server(call: &str) -> StdioSettings {
    let arms = format!(
        r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) long() {{ {LONG}; }}; {call} ;;"#
    );
    StdioSettings { max_message: LIMIT, ..shell(&arms) }
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_own_call_and_no_other() {
    // The first call is answered after the second, in one and the same process.
    let call = r#"case $line in
      *'"long"'*) too_long=$id ;;
      *) short=$id ;;
    esac
    if [ -n "$too_long" ] && [ -n "$short" ]; then
      long "\"id\":$too_long,"; id=$short; answer '{"pid":'$$'}'; too_long=
    fi"#;
    let scene = Scene::of(server(call));
    let pid = scene.pid().await;
    let calls = futures::join!(
        scene.call("do", r#"{"size":"short"}"#),
        scene.call("do", r#"{"size":"long"}"#)
    );
    assert_eq!(calls.0.unwrap(), format!(r#"{{"pid":{pid}}}"#));
    let error = calls.1.unwrap_err();
    assert_eq!((error.code(), error.retryable()), (ErrorCode::ServerError, false));
    let CallError::AnswerTooLarge { item, limit, .. } = &error else { panic!("{error:?}") };
    assert_eq!((item.as_str(), *limit), ("s__do", LIMIT));
    assert_eq!((scene.pid().await, scene.state().as_str()), (pid, "connected"));
}

#[tokio::test]
async fn an_answer_that_does_not_say_whose_it_is_at_an_end_of_it_ends_with_the_timeout() {
    let call = r#"case $line in
      *'"last"'*) long '' ",\"id\":$id" ;;
      *'"nowhere"'*) long '' ",\"id\":$id,\"x\":[]" ;;
      *) answer '{"pid":'$$'}' ;;
    esac"#;
    let settings = StdioSettings { timeout: Duration::from_secs(1), ..server(call) };
    let scene = Scene::of(settings);
    let pid = scene.pid().await;
    let error = scene.call("do", r#"{"id":"last"}"#).await.unwrap_err();
    assert!(matches!(error, CallError::AnswerTooLarge { .. }), "{error:?}");
    let error = scene.call("do", r#"{"id":"nowhere"}"#).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    let answer = scene.call("do", r#"{"size":"short"}"#).await.unwrap();
    assert_eq!(answer, format!(r#"{{"pid":{pid}}}"#));
}

#[tokio::test]
async fn a_question_that_is_too_long_fails_no_call() {
    // Its id is that of the call, by chance or by intent.
    let call = r#"
      printf '{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"x":"' "$id"
      head -c 5000000 /dev/zero | tr '\0' x; printf '"}}\n'
      answer '{"pid":'$$'}'"#;
    let scene = Scene::of(server(call));
    let pid = scene.pid().await;
    assert_eq!(scene.call("do", "{}").await.unwrap(), format!(r#"{{"pid":{pid}}}"#));
}

/// Holes 10.
#[tokio::test]
async fn an_answer_that_does_not_end_is_no_passing_failure_and_names_the_limit_that_it_reached() {
    let printed = LIMIT + (256 << 20);
    for (begin, words) in [
        (r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"x":"' "$id""#, "the answer of `s__do`"),
        ("", "not MCP"),
    ] {
        let call = format!("{begin}\n head -c 300000000 /dev/zero | tr '\\0' x");
        let error = Scene::of(server(&call)).call("do", "{}").await.unwrap_err();
        assert_eq!((error.code(), error.retryable()), (ErrorCode::ServerError, false), "{error}");
        let said = error.to_string();
        assert!(said.contains(words) && said.contains(&printed.to_string()), "{said}");
    }
}
