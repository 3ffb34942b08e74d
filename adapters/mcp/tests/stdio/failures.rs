//! Servers that cannot be used, and why.

use std::path::PathBuf;
use std::time::Duration;

use capstan_hub::ports::Backend;
use capstan_mcp::{Era, StdioSettings};
use capstan_model::{CallError, ErrorCode};

use crate::scene::{Scene, fixture, settings, shell, until};

/// Why the server cannot be used, as every way to ask tells it.
async fn reason(scene: &Scene) -> String {
    let error = scene.call("echo", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    let reason = error.to_string().replace("server `s` is not usable: ", "");
    assert_eq!(scene.state(), format!("failed: {reason}"));
    reason
}

#[tokio::test]
async fn a_reply_that_is_no_message_is_told_at_once_and_the_next_call_works() {
    for odd in [
        r#"{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":%s,"result":{"text":"\377"}}"#,
        r#"{"jsonrpc":"1.0","id":%s,"result":{}}"#,
    ] {
        let arms = format!(
            "*'\"tools/list\"'*) answer \"$TOOLS\" ;;\n*fine*) answer '{{}}' ;;\n\
             *'\"tools/call\"'*) printf '{odd}\\n' \"$id\" ;;"
        );
        let scene = Scene::of(shell(&arms));
        let error = scene.call("do", "{}").await.unwrap_err();
        assert!(matches!(error, CallError::Protocol { .. }), "{odd}: {error}");
        assert_eq!(scene.call("do", r#"{"a":"fine"}"#).await.unwrap(), "{}", "{odd}");
    }
}

#[tokio::test]
async fn a_line_of_a_log_that_looks_like_a_reply_is_none() {
    let arms = "*'\"tools/list\"'*) answer \"$TOOLS\" ;;\n*'\"tools/call\"'*)
        printf '{\"level\":\"warn\",\"id\":%s,\"error\":\"trying again\"}\\n' \"$id\"
        answer '{\"fine\":1}' ;;";
    let scene = Scene::of(shell(arms));
    assert_eq!(scene.call("do", "{}").await.unwrap(), r#"{"fine":1}"#);
}

#[tokio::test]
async fn a_server_that_exits_is_quoted_with_its_code_and_its_last_words() {
    for era in [Era::Auto, Era::Legacy, Era::Modern] {
        let scene = Scene::of(StdioSettings { era, ..fixture(&["--exit", "3", "--stderr", "2"]) });
        let words = "it exited with code 3; last line of its output: fixture: exiting with 3";
        assert_eq!(reason(&scene).await, words, "{era:?}");
        let lines = scene.server.stderr();
        let tail: Vec<_> = lines.iter().rev().take(3).rev().map(String::as_str).collect();
        let expected = ["fixture: line 1 of 2", "fixture: line 2 of 2", "fixture: exiting with 3"];
        assert_eq!(tail, expected, "{era:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_fails_when_its_time_is_over_and_harms_no_other() {
    let startup_timeout = Duration::from_millis(500);
    let silent = StdioSettings { startup_timeout, ..fixture(&["--silent", "--stderr", "1"]) };
    let (silent, other) = (Scene::of(silent), Scene::new(&[]));
    assert_eq!(silent.state(), "idle");
    let waiting = reason(&silent);
    let meanwhile = async {
        until(|| silent.state() == "connecting").await;
        other.call("echo", "{}").await.unwrap();
    };
    let (reason, ()) = tokio::join!(waiting, meanwhile);
    let words = "it did not answer within 500ms (`startup_timeout`); last line of its output: fixture: line 1 of 1";
    assert_eq!(reason, words);
    assert_eq!(other.state(), "connected");
}

#[tokio::test]
async fn a_command_that_is_not_there_is_named_with_what_to_do() {
    let hint = "correct `command` under `[servers.s]`";
    let reason_of = async |command| reason(&Scene::of(settings(command, &[]))).await;
    let name = "capstan-no-such-program";
    let words = format!("command `{name}` was not found in PATH; install `{name}`, or {hint}");
    assert_eq!(reason_of(name).await, words);
    let words = format!("`/no/such/program` does not exist; {hint}");
    assert_eq!(reason_of("/no/such/program").await, words);
    let words = reason_of("./capstan-fixture").await;
    assert!(words.ends_with(&format!("/capstan-fixture` does not exist; {hint}")), "{words}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_with_what_to_do() {
    let cwd = Some(PathBuf::from("/no/such/folder"));
    let reason = reason(&Scene::of(StdioSettings { cwd, ..fixture(&[]) })).await;
    let words = "its folder `/no/such/folder` does not exist; correct `cwd` under `[servers.s]`";
    assert_eq!(reason, words);
}

#[tokio::test]
async fn a_file_that_is_no_program_fails_with_what_the_system_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, "\0").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let reason = reason(&Scene::of(settings(path.to_str().unwrap(), &[]))).await;
    let begin =
        "it exited with code 127; last line of its output: capstan: cannot start the server: ";
    assert!(reason.starts_with(begin), "{reason}");
}

#[tokio::test]
async fn a_start_goes_on_when_the_first_who_asked_goes_away() {
    let scene = Scene::new(&["--start-delay-ms", "100"]);
    tokio::select! {
        _ = scene.about() => panic!("nothing was waited for"),
        () = until(|| scene.state() == "connecting") => {}
    }
    until(|| scene.state() == "connected").await;
    assert_eq!(scene.count("server/discover"), 1);
}

#[tokio::test]
async fn a_server_that_was_closed_is_not_started_again() {
    let scene = Scene::new(&[]);
    scene.call("echo", "{}").await.unwrap();
    scene.server.close().await;
    assert_eq!(reason(&scene).await, "it was stopped");
    assert_eq!(scene.count("server/discover"), 1);
    let never_used = Scene::new(&[]);
    never_used.server.close().await;
    assert_eq!(reason(&never_used).await, "it was stopped");
    assert_eq!(never_used.count("server/discover"), 0);
}

#[tokio::test]
async fn closing_ends_a_start_that_goes_on_and_the_calls_in_flight() {
    let starting = Scene::new(&["--silent"]);
    let close = async {
        starting.receives("server/discover").await;
        starting.server.close().await;
    };
    let (reason, ()) = tokio::join!(reason(&starting), close);
    assert_eq!(reason, "it was stopped");
    let busy = Scene::new(&[]);
    let close = async {
        busy.receives(r#""name":"hang""#).await;
        busy.server.close().await;
    };
    let (result, ()) = tokio::join!(busy.call("hang", "{}"), close);
    assert_eq!(result.unwrap_err().code(), ErrorCode::OutcomeUnknown);
}
