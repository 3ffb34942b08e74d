//! JSON-RPC messages of servers and clients: what is read as a message, and what decisions read in it.
#![no_main]

use bytes::Bytes;
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, Message, Reply, object};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let line = Bytes::copy_from_slice(data);
    let Ok(message) = Message::parse(&line) else { return };
    let body = match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params,
        Message::Reply { reply: Reply::Result(result), .. } => Some(result),
        Message::Reply { reply: Reply::Error(error), .. } => {
            assert!(serde_json::from_str::<serde_json::Value>(error.whole.as_str()).is_ok());
            error.data
        }
    };
    let Some(body) = body else { return };
    // The body is valid JSON, byte for byte from the line.
    assert!(serde_json::from_str::<serde_json::Value>(body.as_str()).is_ok());
    assert!(memchr::memmem::find(data, body.as_bytes()).is_some());
    let protected = ["name", "arguments", "uri", "_meta"];
    if refuse_duplicates(&body, &protected).is_err() || !body.as_str().starts_with('{') {
        return;
    }
    // A member that rules read is the one that every parser reads.
    let read: serde_json::Map<String, serde_json::Value> = body.read().expect("an object");
    for key in protected {
        let ours = object::get(&body, key).map(|json| json.read::<serde_json::Value>().ok());
        assert_eq!(ours, read.get(key).cloned().map(Some), "{key}");
    }
    let set = object::set_member(&body, "name", &Json::parse(r#""x""#.to_owned()).expect("JSON"));
    if let Ok(set) = set {
        assert_eq!(object::get_string(&set, "name").as_deref(), Some("x"));
    }
});
