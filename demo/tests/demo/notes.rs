//! The `notes` server.

use std::fs;
use std::thread;

use capstan_demo::Demo;
use serde_json::{Value, json};

use crate::world::{Said, World, lines, modern_request, refused, request};

fn call(world: &World, tool: &str, arguments: Value) -> Said {
    world.call(Demo::Notes, tool, arguments)
}

fn add(world: &World, title: &str, text: &str) -> Said {
    call(world, "add_note", json!({ "title": title, "text": text }))
}

fn ids(said: Said) -> Vec<u64> {
    let notes = said.unwrap()["notes"].clone();
    notes.as_array().unwrap().iter().map(|note| note["id"].as_u64().unwrap()).collect()
}

fn call_request(id: u64, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

#[test]
fn notes_outlive_the_process() {
    let world = World::new();
    let added = add(&world, "Milk", "two bottles").unwrap();
    assert_eq!((&added["id"], &added["size"]), (&json!(1), &json!(11)));
    add(&world, "Bread", "").unwrap();
    assert_eq!(ids(call(&world, "list_notes", json!({}))), [1, 2]);
    let text = call(&world, "read_note", json!({ "id": 1 }));
    assert_eq!(text, Ok(json!("# Milk\n\ntwo bottles\n")));
}

#[test]
fn notes_are_found_by_title_and_text_in_any_case() {
    let world = World::new();
    add(&world, "Milk", "two BOTTLES").unwrap();
    add(&world, "Bottle opener", "").unwrap();
    let search = |query: &str| ids(call(&world, "search_notes", json!({ "query": query })));
    assert_eq!(search("bottle"), [1, 2]);
    assert_eq!(search("MILK"), [1]);
    assert_eq!(search("cheese"), [0_u64; 0]);
}

#[test]
fn the_number_of_a_deleted_note_is_not_given_again() {
    let world = World::new();
    add(&world, "one", "").unwrap();
    add(&world, "two", "").unwrap();
    assert_eq!(call(&world, "delete_note", json!({ "id": 2 })).unwrap()["title"], "two");
    assert_eq!(add(&world, "three", "").unwrap()["id"], 3);
    assert_eq!(ids(call(&world, "list_notes", json!({}))), [1, 3]);
}

#[test]
fn only_deleting_is_called_destructive() {
    let world = World::new();
    let listed = world.modern(Demo::Notes, "tools/list", json!({}));
    let hints: Vec<(&str, bool, bool)> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let hint = |key: &str| tool["annotations"][key].as_bool().unwrap_or(false);
            (tool["name"].as_str().unwrap(), hint("readOnlyHint"), hint("destructiveHint"))
        })
        .collect();
    let expected = [
        ("add_note", false, false),
        ("list_notes", true, false),
        ("read_note", true, false),
        ("search_notes", true, false),
        ("delete_note", false, true),
    ];
    assert_eq!(hints, expected);
}

#[test]
fn a_write_that_died_halfway_leaves_the_old_notes() {
    let world = World::new();
    add(&world, "kept", "").unwrap();
    fs::write(world.data.join("notes.json.new"), "{\"next_id\": 9, \"no").unwrap();
    assert_eq!(ids(call(&world, "list_notes", json!({}))), [1]);
    assert_eq!(add(&world, "next", "").unwrap()["id"], 2);
}

#[test]
fn processes_that_share_the_folder_lose_no_notes() {
    let world = World::new();
    thread::scope(|scope| {
        for writer in 0..4 {
            let world = &world;
            scope.spawn(move || {
                for n in 0..5 {
                    add(world, &format!("{writer}.{n}"), "").unwrap();
                }
            });
        }
    });
    let expected: Vec<u64> = (1..=20).collect();
    assert_eq!(ids(call(&world, "list_notes", json!({}))), expected);
}

#[test]
fn a_file_that_does_not_hold_notes_is_left_alone() {
    let world = World::new();
    fs::create_dir(&world.data).unwrap();
    let path = world.data.join("notes.json");
    for content in ["", "[]", "{\"notes\": 3}", "my shopping list"] {
        fs::write(&path, content).unwrap();
        refused(add(&world, "x", ""), "does not hold notes");
        refused(call(&world, "list_notes", json!({})), "does not hold notes");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let error = world.modern(Demo::Notes, "resources/list", json!({}));
    assert_eq!(error["code"], -32603);
}

#[test]
fn a_folder_that_cannot_be_made_is_reported() {
    let mut world = World::new();
    world.write("file", "");
    world.data = world.root.join("file");
    refused(add(&world, "x", ""), "cannot create");
}

#[test]
fn notes_beyond_the_limits_are_refused() {
    let world = World::new();
    refused(add(&world, &"x".repeat(201), ""), "200 characters");
    refused(add(&world, "x", &"y".repeat(32 * 1024 + 1)), "at most 32768");
    for title in ["", "  ", "two\nlines"] {
        refused(add(&world, title, ""), "one line");
    }
    assert!(add(&world, &"ü".repeat(200), &"y".repeat(32 * 1024)).is_ok());
}

#[test]
fn there_is_a_most_number_of_notes() {
    let world = World::new();
    fs::create_dir(&world.data).unwrap();
    let note =
        |id| json!({ "id": id, "title": "t", "text": "", "created": "2026-01-01T00:00:00Z" });
    let notes: Vec<Value> = (1..=500).map(note).collect();
    let full = json!({ "next_id": 501, "notes": notes }).to_string();
    fs::write(world.data.join("notes.json"), full).unwrap();
    refused(add(&world, "x", ""), "500 notes already");
    call(&world, "delete_note", json!({ "id": 7 })).unwrap();
    assert_eq!(add(&world, "x", "").unwrap()["id"], 501);
}

#[test]
fn notes_that_are_not_there_are_refused() {
    let world = World::new();
    for tool in ["read_note", "delete_note"] {
        refused(call(&world, tool, json!({ "id": 1 })), "there is no `note 1`");
        refused(call(&world, tool, json!({ "id": "1" })), "invalid type");
        refused(call(&world, tool, json!({ "id": -1 })), "invalid value");
        refused(call(&world, tool, json!({})), "missing field `id`");
    }
    refused(call(&world, "search_notes", json!({ "query": "" })), "empty");
}

#[test]
fn notes_are_resources() {
    let world = World::new();
    add(&world, "Milk", "two").unwrap();
    let listed = world.modern(Demo::Notes, "resources/list", json!({}));
    let resource =
        json!({ "uri": "note://1", "name": "1", "title": "Milk", "mimeType": "text/markdown" });
    assert_eq!(listed["resources"], json!([resource]));
    let read = world.modern(Demo::Notes, "resources/read", json!({ "uri": "note://1" }));
    assert_eq!(read["contents"][0]["text"], "# Milk\n\ntwo\n");
    for uri in ["note://2", "note://01", "note://+1", "note://", "note://x", "file:///1"] {
        let said =
            world.legacy(Demo::Notes, &[request(1, "resources/read", json!({ "uri": uri }))]);
        assert_eq!(said[0]["error"]["code"], -32002, "{uri}");
        let modern = world.modern(Demo::Notes, "resources/read", json!({ "uri": uri }));
        assert_eq!(modern["code"], -32602, "{uri}");
    }
}

#[test]
fn the_prompt_shows_one_note_and_refuses_the_rest() {
    let world = World::new();
    add(&world, "Milk", "two").unwrap();
    let get = |params| world.modern(Demo::Notes, "prompts/get", params);
    let filled = get(json!({ "name": "summarize", "arguments": { "id": "1" } }));
    assert_eq!(filled["messages"][1]["content"]["resource"]["text"], "# Milk\n\ntwo\n");
    assert_eq!(filled["resultType"], "complete");
    for params in [
        json!({ "name": "summarize" }),
        json!({ "name": "summarize", "arguments": { "id": "2" } }),
        json!({ "name": "summarize", "arguments": { "id": 1 } }),
        json!({ "name": "summarise", "arguments": { "id": "1" } }),
        json!({}),
    ] {
        assert_eq!(get(params.clone())["code"], -32602, "{params}");
    }
}

#[test]
fn a_legacy_client_hears_of_changes_of_the_list_and_of_nothing_else() {
    let world = World::new();
    let said = world.legacy(
        Demo::Notes,
        &[
            call_request(1, "add_note", &json!({ "title": "a", "text": "" })),
            call_request(2, "list_notes", &json!({})),
            call_request(3, "delete_note", &json!({ "id": 9 })),
            call_request(4, "delete_note", &json!({ "id": 1 })),
        ],
    );
    let heard: Vec<Value> = said
        .into_iter()
        .map(|message| message.get("id").or(message.get("method")).cloned().unwrap())
        .collect();
    let changed = json!("notifications/resources/list_changed");
    assert_eq!(heard, [json!(1), changed.clone(), json!(2), json!(3), json!(4), changed]);
}

#[test]
fn a_modern_client_hears_of_changes_while_it_listens() {
    let world = World::new();
    let add = |id| {
        let params = json!({ "name": "add_note", "arguments": { "title": "a", "text": "" } });
        modern_request(id, "tools/call", params)
    };
    let listen = |id, filter: Value| {
        modern_request(id, "subscriptions/listen", json!({ "notifications": filter }))
    };
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    let said = world.raw(
        Demo::Notes,
        lines([
            &add(1),
            &listen(2, json!({ "resourcesListChanged": true, "toolsListChanged": true })),
            &listen(3, json!({ "toolsListChanged": true })),
            &add(4),
            &cancel,
            &add(5),
        ]),
    );
    let meta = |id: u64| json!({ "io.modelcontextprotocol/subscriptionId": id });
    let heard: Vec<&Value> = said.iter().filter(|message| message.get("id").is_none()).collect();
    assert_eq!(heard.len(), 3);
    let accepted = json!({ "_meta": meta(2), "notifications": { "resourcesListChanged": true } });
    assert_eq!(heard[0]["params"], accepted);
    assert_eq!(heard[1]["params"], json!({ "_meta": meta(3), "notifications": {} }));
    assert_eq!(heard[2]["params"], json!({ "_meta": meta(2) }));
    assert_eq!(heard[2]["method"], "notifications/resources/list_changed");
}
