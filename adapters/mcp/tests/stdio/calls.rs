//! Calls that are answered, and calls that nobody waits for any more.

use std::time::Duration;

use capstan_hub::Call;
use capstan_hub::ports::Backend;
use capstan_mcp::StdioSettings;
use capstan_model::{CallError, Caller, ErrorCode, Front, Target};
use capstan_wire::object;

use crate::scene::{Scene, fixture, json, shell};

/// What a typed model of the protocol would drop, reorder or refuse.
const WEIRD: &str = r#"{"zeta":1,"alpha":2.50,"mu":3,"content":[{"type":"hologram","depth":{"z":1,"a":12345678901234567890123456789.1234567890123}},{"type":"text","text":"after \u00fc \/","x-unknown":null}],"future":{"z":[],"a":{},"m":-0.0},"isError":false}"#;

/// What a JSON library that keeps numbers in floats would spoil.
const LONG_NUMBER: &str = r#"{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"z":1,"value":12345678901234567890123456789.1234567890123,"a":1.0,"m":1E+2},"isError":false}"#;

#[tokio::test]
async fn an_answer_comes_back_byte_for_byte() {
    let (legacy, modern) = (Scene::new(&["--era", "legacy"]), Scene::new(&["--era", "modern"]));
    for (tool, answer) in [("weird", WEIRD), ("long_number", LONG_NUMBER)] {
        assert_eq!(legacy.call(tool, "{}").await.unwrap(), answer);
        let open = answer.strip_suffix('}').unwrap();
        let expected = format!(r#"{open},"resultType":"complete"}}"#);
        assert_eq!(modern.call(tool, "{}").await.unwrap(), expected);
    }
}

#[tokio::test]
async fn arguments_reach_the_server_byte_for_byte() {
    let odd = r#"{"z":1.50,"a":12345678901234567890123456789.1234567890123, "e":1E+2 ,"u":"\u00fc\/","n":null}"#;
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        let answer = scene.call("echo", odd).await.unwrap();
        assert!(answer.as_str().contains(&format!(r#""structuredContent":{odd}"#)), "{answer}");
        let sent = format!(r#""params":{{"name":"echo","arguments":{odd},"_meta":"#);
        assert_eq!(scene.received(&sent).len(), 1, "{era}");
    }
}

#[tokio::test]
async fn a_message_in_the_arguments_never_becomes_a_line_of_its_own() {
    let hidden = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"weird"}}"#;
    for end in ["\n", "\r", "\r\n"] {
        let scene = Scene::new(&["--era", "legacy"]);
        let arguments = format!(r#"{{"list":[{end}{hidden}{end}]}}"#);
        scene.call("echo", &arguments).await.unwrap();
        let calls = scene.received("tools/call");
        let one = format!(r#""arguments":{}"#, arguments.replace(['\r', '\n'], " "));
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls.iter().all(|line| line.contains(&one)), "{calls:?}");
    }
}

#[tokio::test]
async fn the_metadata_of_the_caller_survives_and_only_ours_is_added() {
    let params = r#"{"_meta":{"vendor/x":{"b":1.50,"a":2},"progressToken":"mine"},"later":[1.0],"name":"echo"}"#;
    for (era, added) in [
        ("legacy", vec![]),
        ("modern", vec!["protocolVersion", "clientInfo", "clientCapabilities"]),
    ] {
        let scene = Scene::new(&["--era", era]);
        scene.call_with("echo", params).await.unwrap();
        let request = json(scene.received("tools/call").first().unwrap());
        let sent = object::get(&request, "params").unwrap();
        let names: Vec<_> = object::members(&sent).unwrap().into_iter().map(|(k, _)| k).collect();
        assert_eq!(names, ["_meta", "later", "name"], "{era}");
        let meta = object::get(&sent, "_meta").unwrap();
        assert_eq!(object::get(&meta, "vendor/x").unwrap().as_str(), r#"{"b":1.50,"a":2}"#);
        // Our own token, because two callers may choose the same.
        assert_eq!(object::get(&meta, "progressToken"), object::get(&request, "id"), "{era}");
        let names: Vec<_> = object::members(&meta).unwrap().into_iter().map(|(k, _)| k).collect();
        let own = ["vendor/x", "progressToken"].into_iter().map(ToOwned::to_owned);
        let ours = added.iter().map(|name| format!("io.modelcontextprotocol/{name}"));
        assert_eq!(names, own.chain(ours).collect::<Vec<_>>(), "{era}");
    }
}

#[tokio::test]
async fn what_a_modern_client_says_of_itself_is_not_for_a_legacy_server() {
    let era = |key| format!(r#""io.modelcontextprotocol/{key}":"x""#);
    let own =
        ["protocolVersion", "clientInfo", "clientCapabilities", "logLevel"].map(era).join(",");
    let table = [
        (format!(r#"{{{own},"vendor/x":1.50}}"#), r#"{"vendor/x":1.50,"progressToken":"#),
        (
            format!(r#"{{"io.modelcontextprotocol/other":1,{own}}}"#),
            r#"{"io.modelcontextprotocol/other":1,"#,
        ),
        (format!("{{{own}}}"), r#"{"progressToken":"#),
    ];
    for (meta, expected) in table {
        let scene = Scene::new(&["--era", "legacy"]);
        let params = format!(r#"{{"name":"echo","arguments":{{}},"_meta":{meta}}}"#);
        scene.call_with("echo", &params).await.unwrap();
        let sent = scene.received("tools/call").concat();
        assert!(sent.contains(&format!(r#""_meta":{expected}"#)), "{sent}");
        assert!(!sent.contains("protocolVersion") && !sent.contains("logLevel"), "{sent}");
    }
}

#[tokio::test]
async fn resources_and_prompts_are_answered_too() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        let caller = Caller::operator(Front::Cli);
        let resource = Target::resource("s:fixture://greeting");
        let answer = scene.send(Call::new(caller.clone(), resource, None)).await.unwrap();
        assert!(answer.as_str().contains(r#""text":"hello""#), "{era}: {answer}");
        let arguments = json(r#"{"name":"Ann"}"#);
        let prompt = Call::new(caller, Target::prompt("s__greet"), Some(&arguments));
        assert!(scene.send(prompt).await.unwrap().as_str().contains("Greet Ann."), "{era}");
    }
}

#[tokio::test]
async fn progress_arrives_in_order_and_before_the_answer() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        scene.call("progress", r#"{"steps":50}"#).await.unwrap();
        let expected: Vec<_> =
            (1..=50).map(|n| format!(r#"s: {n} of Some(50.0), Some("step {n}")"#)).collect();
        assert_eq!(scene.person.seen(), expected, "{era}");
    }
}

#[tokio::test]
async fn a_log_message_reaches_whoever_called() {
    let scene = Scene::new(&["--era", "legacy"]);
    scene.call("log", "{}").await.unwrap();
    assert_eq!(scene.person.seen(), ["s: info hello"]);
}

#[tokio::test]
async fn progress_puts_the_deadline_off() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*)
      for n in 1 2 3 4 5; do
        sleep 0.5
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}\n' "$id" "$n"
      done
      answer '{"content":[]}' ;;"#;
    let scene = Scene::of(StdioSettings { timeout: Duration::from_secs(2), ..shell(arms) });
    assert_eq!(scene.call("do", "{}").await.unwrap(), r#"{"content":[]}"#);
    assert_eq!(scene.person.seen().len(), 5);
}

#[tokio::test]
async fn several_messages_in_one_line_are_all_taken() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) printf '[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}, {"jsonrpc":"2.0","id":%s,"result":{"a": 1.0}}]\n' "$id" "$id" ;;"#;
    let scene = Scene::of(shell(arms));
    assert_eq!(scene.call("do", "{}").await.unwrap(), r#"{"a": 1.0}"#);
    assert_eq!(scene.person.seen(), ["s: 1 of None, None"]);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era, "--garbage"]);
        assert_eq!(scene.text("add", r#"{"a":2,"b":3}"#).await, "5", "{era}");
        assert_eq!(scene.state(), "connected");
    }
}

#[tokio::test]
async fn a_large_answer_comes_whole() {
    let scene = Scene::new(&[]);
    assert_eq!(scene.text("big", r#"{"bytes":5000000}"#).await.len(), 5_000_000);
}

#[tokio::test]
async fn an_error_of_the_server_keeps_its_code_and_words() {
    let scene = Scene::new(&[]);
    for (code, class) in [
        (-32602, ErrorCode::InvalidInput),
        (-32601, ErrorCode::NotFound),
        (-32002, ErrorCode::NotFound),
        (-32603, ErrorCode::ServerError),
        (7, ErrorCode::ServerError),
    ] {
        let error = scene.call("rpc_error", &format!(r#"{{"code":{code}}}"#)).await.unwrap_err();
        assert_eq!((error.code(), error.retryable()), (class, false));
        let words = format!("server `s` answered with error {code}: as you wish");
        assert_eq!(error.to_string(), words);
    }
    // A tool that says that it failed has answered.
    assert!(scene.call("fail", "{}").await.unwrap().contains(r#""isError":true"#));
}

#[tokio::test]
async fn a_slow_call_holds_no_other_up() {
    let scene = Scene::new(&[]);
    let slow = scene.call("hang", "{}");
    let quick = async {
        scene.receives(r#""name":"hang""#).await;
        for _ in 0..100 {
            scene.call("echo", "{}").await.unwrap();
        }
    };
    tokio::select! {
        _ = slow => panic!("it hangs"),
        () = quick => {}
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_fails_and_the_server_is_told() {
    // What only reads may be tried again; of the other nobody knows whether it ran.
    for (tool, arguments, may_have_run) in
        [("hang", "{}", true), ("slow", r#"{"ms":600000}"#, false)]
    {
        let limit = Duration::from_secs(1);
        let scene = Scene::of(StdioSettings { timeout: limit, ..fixture(&[]) });
        let error = scene.call(tool, arguments).await.unwrap_err();
        let CallError::TimedOut { limit: waited, may_have_run: may, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((waited, may), (limit, may_have_run), "{tool}");
        assert_cancelled(&scene, tool).await;
        // Nothing else is the worse for it.
        scene.call("echo", "{}").await.unwrap();
        assert_eq!(scene.count("server/discover"), 1);
    }
}

#[tokio::test]
async fn a_server_is_told_of_a_caller_who_went_away() {
    let scene = Scene::new(&[]);
    abandon(&scene, "hang").await;
    assert_cancelled(&scene, "hang").await;
    scene.call("echo", "{}").await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_closed_is_still_told_of_a_caller_who_went_away() {
    let scene = Scene::new(&["--ignore-term"]);
    abandon(&scene, "hang").await;
    scene.server.close().await;
    assert_cancelled(&scene, "hang").await;
}

/// Calls a tool and goes away as soon as the server has the call.
async fn abandon(scene: &Scene, tool: &str) {
    let call = format!(r#""name":"{tool}""#);
    tokio::select! {
        _ = scene.call(tool, "{}") => panic!("it was answered"),
        () = scene.receives(&call) => {}
    }
}

/// Expects the call of this tool, and no other request, to have been cancelled.
async fn assert_cancelled(scene: &Scene, tool: &str) {
    scene.receives("notifications/cancelled").await;
    let call = json(scene.received(&format!(r#""name":"{tool}""#)).first().unwrap());
    let cancelled = scene.received("notifications/cancelled");
    assert_eq!(cancelled.len(), 1, "{cancelled:?}");
    let params = object::get(&json(cancelled.first().unwrap()), "params").unwrap();
    assert_eq!(object::get(&params, "requestId"), object::get(&call, "id"));
}
