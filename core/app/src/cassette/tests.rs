//! Recordings are played as they were made.

use serde_json::{Value as Json, json};

use super::{CassetteError, Player, Recorder, Side};

/// A conversation: lines of the client (`>`) and of the server (`<`).
fn recorded(lines: &[&str]) -> String {
    let mut recorder = Recorder::new("s", Box::new(|text| text.replace("hunter22", "***")));
    for line in lines {
        match line.split_at(1) {
            (">", line) => recorder.line(Side::Client, line.as_bytes()),
            (_, line) => recorder.line(Side::Server, line.as_bytes()),
        }
    }
    recorder.cassette()
}

/// Plays the client's lines of a conversation; returns all lines in their order.
fn played(cassette: &str, lines: &[&str]) -> Vec<String> {
    let mut player = Player::read(cassette).unwrap();
    let mut all = Vec::new();
    for line in lines.iter().filter_map(|line| line.strip_prefix('>')) {
        all.push(format!(">{line}"));
        all.extend(player.answer(line).into_iter().map(|line| format!("<{line}")));
    }
    all
}

const TALK: &[&str] = &[
    r#">{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
    r#"<{"result":{"protocolVersion":"2025-11-25", "capabilities":{"tools":{}},"serverInfo":{"name":"s"},"instructions":"i"},"jsonrpc":"2.0","id":0}"#,
    r#">{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","n":1.0}]}}"#,
    r#">{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{"b":1,"c":2},"_meta":{"progressToken":7}}}"#,
    r#"<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
    r#"<{"jsonrpc":"2.0","id":"x","result":{"content":[]}}"#,
    r#">{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask"}}"#,
    r#"<{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#,
    r#">{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#,
    r#"<{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"m"}}"#,
];

#[test]
fn the_same_run_gets_every_byte_again() {
    let cassette = recorded(TALK);
    assert_eq!(played(&cassette, TALK), TALK);
}

#[test]
fn other_ids_tokens_and_orders_of_members_get_the_same_answers() {
    let mut player = Player::read(&recorded(TALK)).unwrap();
    let line = r#"{"id":9,"params":{"arguments":{"c":2,"b":1},"_meta":{"progressToken":"t"},"name":"a"},"method":"tools/call","jsonrpc":"2.0"}"#;
    for _ in 0..2 {
        assert_eq!(
            player.answer(line),
            [
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
                r#"{"jsonrpc":"2.0","id":9,"result":{"content":[]}}"#,
            ]
        );
    }
}

#[test]
fn equal_requests_get_their_answers_in_order_and_the_last_one_again() {
    let ask = r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = |n: u32| format!(r#"<{{"jsonrpc":"2.0","id":1,"result":{{"n":{n}}}}}"#);
    let (first, second) = (answer(1), answer(2));
    let cassette = recorded(&[ask, &first, ask, &second]);
    let all = played(&cassette, &[ask, ask, ask]);
    assert_eq!(all, [ask, &first, ask, &second, ask, &second]);
}

#[test]
fn a_request_that_was_not_recorded_is_refused_and_says_why() {
    let mut player = Player::read(&recorded(TALK)).unwrap();
    for (method, params, code, told) in [
        ("resources/list", json!({}), -32601, "has no answer to `resources/list`"),
        ("tools/call", json!({ "name": "b" }), -32602, "2 answers to `tools/call`, and none for"),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answers = player.answer(&line.to_string());
        let answer: Json = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!((answers.len(), &answer["error"]["code"]), (1, &json!(code)));
        assert!(answer["error"]["message"].as_str().unwrap().contains(told), "{answer}");
    }
    assert!(player.answer("junk")[0].contains("-32700"));
    let none: [&str; 0] = [];
    assert_eq!(player.answer(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), none);
    assert_eq!(
        player.answer(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
    );
}

#[test]
fn a_client_of_the_other_era_is_greeted_and_served() {
    let mut legacy = Player::read(&recorded(TALK)).unwrap();
    let discover = legacy.answer(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#);
    let result: Json = serde_json::from_str(&discover[0]).unwrap();
    assert_eq!(result["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["result"]["instructions"], "i");
    let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{meta}}}"#);
    let listed: Json = serde_json::from_str(&legacy.answer(&list)[0]).unwrap();
    assert_eq!(listed["result"]["resultType"], "complete");
    let discover = r#">{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    let answer = r#"<{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"s"}}}"#;
    let mut modern = Player::read(&recorded(&[discover, answer])).unwrap();
    let greeting = modern.answer(r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}"#);
    let greeting: Json = serde_json::from_str(&greeting[0]).unwrap();
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(greeting["result"]["supportedVersions"], Json::Null);
}

#[test]
fn secrets_are_masked_and_what_has_no_answer_is_left_out() {
    let cassette = recorded(&[
        r#">{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","key":"hunter22"}}"#,
        r#"<{"jsonrpc":"2.0","id":1,"result":{"text":"it is \u0068unter22","hunter22":1.50}}"#,
        r#">{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "<not a message",
        r#"<{"jsonrpc":"2.0","id":99,"result":{}}"#,
    ]);
    assert!(!cassette.contains("unter22"), "{cassette}");
    assert_eq!(cassette.lines().count(), 2, "{cassette}");
    assert!(cassette.contains(r#""text":"it is ***""#), "{cassette}");
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    let header = r#"{"capstan_cassette":1,"server":"s"}"#;
    for (text, expected) in [
        ("", CassetteError::NoHeader),
        ("{}", CassetteError::NoHeader),
        ("[1]", CassetteError::NoHeader),
        (r#"{"capstan_cassette":2,"server":"s"}"#, CassetteError::Version(2)),
    ] {
        assert_eq!(Player::read(text).unwrap_err(), expected, "{text}");
    }
    for line in ["{", "{}", r#"{"method":"a","id":1,"messages":[],"more":1}"#] {
        let error = Player::read(&format!("{header}\n\n{line}")).unwrap_err();
        assert!(matches!(error, CassetteError::Line { line: 3, .. }), "{line}: {error}");
    }
    assert_eq!(Player::read(header).unwrap().server(), "s");
}
