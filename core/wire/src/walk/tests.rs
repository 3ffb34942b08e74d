//! Tests of the walk, with pieces cut at any place.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Message, Reply};

const KEYS: &[&str] = &["isError", "resultType", "structuredContent"];

/// Walks over a text in pieces of `step` bytes.
fn walk(text: &[u8], step: usize) -> Result<Walk, NoReply> {
    let mut walk = Walk::new(KEYS);
    for piece in text.chunks(step) {
        walk.push(piece)?;
    }
    walk.finish()?;
    Ok(walk)
}

/// Compares the walk over a reply with the parser, in pieces of several sizes.
#[track_caller]
fn check(text: &str) {
    let Ok(Message::Reply { reply: Reply::Result(result), .. }) =
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    else {
        panic!("no reply: {text}");
    };
    for step in [1, 2, 3, 5, 7, 64, 65, 1000] {
        let walk = walk(text.as_bytes(), step).unwrap_or_else(|why| panic!("{why}: {text}"));
        let inside = text.get(walk.inside()).unwrap();
        assert_eq!(format!("{inside}}}"), result.as_str(), "in pieces of {step}");
    }
}

#[test]
fn a_reply_is_the_same_wherever_it_is_cut() {
    let long = "x".repeat(200);
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        " {\n\"result\" : { \"a\" : [ ] , \"b\":{} } ,\"id\":\"x\",\"\\u006asonrpc\":\"2.0\" }\r\n ",
        r#"{"jsonrpc":"2.0","id":7,"result":{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"a":[0,-0,10,-1.5,1e9,2E-3,0.1e+5,true,false,null]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"é":"日本語 é 😀 x"},"more":[{"result":1}]}"#,
        &format!(
            r#"{{"jsonrpc":"2.0","{long}":"{long}","id":7,"result":{{"a":"{long}é{long}"}}}}"#
        ),
    ] {
        check(text);
    }
}

#[test]
fn what_the_result_says_of_itself_is_noted_wherever_it_stands() {
    let text = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"isError":false}],
        "structuredContent":[1],"\u0069sError":true,"isError":false,"resultType":"complete"}}"#;
    for step in [1, 3, 1000] {
        let walk = walk(text.as_bytes(), step).unwrap();
        let value =
            |key| walk.noted(key).map(|noted| noted.value.as_ref().map(ToString::to_string));
        assert_eq!(value("isError"), Some(Some("true".to_owned())));
        assert_eq!(value("resultType"), Some(Some("\"complete\"".to_owned())));
        assert_eq!(value("structuredContent"), Some(None));
        assert_eq!(walk.noted("structuredContent").map(|noted| noted.first), Some(b'['));
    }
    let bare = walk(br#"{"isError":true,"jsonrpc":"2.0","id":7,"result":{"x":{"isError":1}}}"#, 9);
    assert_eq!(bare.unwrap().noted("isError"), None);
}

#[test]
fn it_is_known_as_soon_as_it_can_be_whom_a_reply_is_for() {
    let known = |text: &str| {
        let mut walk = Walk::new(KEYS);
        walk.push(text.as_bytes()).unwrap();
        walk.answers(7)
    };
    assert!(known(r#"{"jsonrpc":"2.0","id":7,"result":{"#));
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"result":"#,
        r#"{"jsonrpc":"2.0","id":70,"result":{"#,
        r#"{"jsonrpc":"2.0","id":"7","result":{"#,
        r#"{"jsonrpc":"2.0","id":7.0,"result":{"#,
        r#"{"jsonrpc":"1.0","id":7,"result":{"#,
        r#"{"id":7,"result":{"#,
        r#"{"jsonrpc":"2.0","result":{"content":[]"#,
        r#"{"jsonrpc":"2.0","id":7,"more":{"result":{"#,
    ] {
        assert!(!known(text), "{text}");
    }
}

fn whole(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#)
}

#[track_caller]
fn refused(text: &[u8]) {
    for step in [1, 2, 3, 1000] {
        assert!(walk(text, step).is_err(), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn what_is_not_json_is_refused() {
    let results = r#"{ @ {] @ [} @ {"a"} @ {"a":} @ {"a":1,} @ {,} @ {a:1} @ {"a":01} @ {"a":-} @
        {"a":1.} @ {"a":.5} @ {"a":1e} @ {"a":1e+} @ {"a":+1} @ {"a":tru} @ {"a":truee} @
        {"a":nul} @ {"a":"\x"} @ {"a":"\u12g4"} @ {"a":[1,]} @ {"a":[1 2]} @ {"a":1}} @ {} {} @
        {"a":"x} @ {"a":NaN} @ {"a" 1} @ {"a"::1}"#;
    for result in results.split('@') {
        refused(whole(result.trim()).as_bytes());
    }
    refused(whole("{\"a\":\"\n\"}").as_bytes());
    refused(whole(&format!("{{\"a\":{}", "[".repeat(MAX_DEPTH + 1))).as_bytes());
    for bad in [&b"\xff"[..], b"\xc3\x28", b"\xe2\x82", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"] {
        let text = whole("{\"a\":\"@\"}");
        let (before, after) = text.split_once('@').unwrap();
        refused(&[before.as_bytes(), bad, after.as_bytes()].concat());
    }
}

#[test]
fn what_is_no_reply_with_an_object_is_refused() {
    for result in ["[]", "1", "null", "\"x\""] {
        refused(whole(result).as_bytes());
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"\u0069d":8}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"id":7,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{}} x"#,
        "",
    ] {
        refused(text.as_bytes());
    }
}

proptest! {
    #[test]
    fn a_walk_and_a_parser_agree(text in r#"[{}\[\]",:\\0-9.eEtrufalsn é-]{0,24}"#, step in 1_usize..9) {
        let whole = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{text}}}}}"#);
        let parsed = Message::parse(&Bytes::copy_from_slice(whole.as_bytes())).is_ok();
        prop_assert_eq!(walk(whole.as_bytes(), step).is_ok(), parsed, "{}", whole);
    }
}
