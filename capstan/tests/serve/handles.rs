//! Whatever a caller holds, in the hands of another it is as good as made up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use capstan_testkit::binary;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, LIMIT, fixture, http, modern, with};

/// Three callers: two people, and one of them with fewer roles.
const CALLERS: &str = "[gateway.auth]\nproviders = [\"bearer\"]\n\
    [gateway.auth.bearer.tokens]\n\
    ann = { subject = \"ann\", roles = [\"dev\"] }\n\
    bob = { subject = \"bob\", roles = [\"dev\"] }\n\
    ann-without = \"ann\"\n\n";

/// A handle of a caller: its name, the handle, a made-up one, and how it is used.
struct Handle<'a> {
    what: &'static str,
    own: String,
    made_up: String,
    use_it: Box<Use<'a>>,
}

/// Uses a handle as the caller with this token: the status and the body.
type Use<'a> = dyn Fn(&str, &str) -> (u16, String) + 'a;

/// What ann holds.
struct Held {
    session: String,
    event: String,
    older: String,
    cursor: String,
    parked: String,
    task: String,
    page: String,
    /// Streams that stay open.
    _open: [TcpStream; 2],
}

fn head(token: &str, line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nAuthorization: Bearer {token}{headers}")
}

/// Sends a modern request of a client that can be asked and knows tasks.
fn ask(address: &str, token: &str, method: &str, params: &Value) -> (u16, String) {
    let name = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
    let named = name.map_or_else(String::new, |name| format!("\r\nMcp-Name: {name}"));
    let mut params = modern(params.clone());
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let headers = format!("\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{named}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    http(address, &head(token, "POST /mcp", &headers), &call.to_string())
}

fn result(answer: &(u16, String)) -> Value {
    let body: Value = serde_json::from_str(&answer.1).unwrap_or_default();
    assert!(body["result"].is_object(), "{answer:?}");
    body["result"].clone()
}

/// Sends a request of a client with a session.
fn in_session(address: &str, token: &str, session: &str, line: &str, body: &str) -> (u16, String) {
    let headers = format!("\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25");
    http(address, &head(token, line, &headers), body)
}

/// Opens a stream and reads it up to this text: what was read, and the stream.
fn stream(address: &str, head: &str, until: &str) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!("{head}\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut read = String::new();
    let mut byte = [0];
    while !read.contains(until) || !read.ends_with('\n') {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{read}");
        read.push(char::from(byte[0]));
    }
    (read, stream)
}

fn after<'t>(text: &'t str, mark: &str) -> &'t str {
    let rest = text.split_once(mark).unwrap().1;
    rest.split(['\r', '\n', '"']).next().unwrap()
}

/// Begins a session: its id.
fn session(address: &str, token: &str) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let request = capstan_testkit::http::post("/mcp", &initialize.to_string());
    let request = request.and("Authorization", &format!("Bearer {token}"));
    let answer = capstan_testkit::http::exchange(address, request);
    let line = answer.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: "));
    line.unwrap().split_once(": ").unwrap().1.to_owned()
}

/// A text of the same shape.
fn other(text: &str) -> String {
    let turned = |c: char| match c {
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from(u8::try_from(c).unwrap() + 1),
        'z' => 'a',
        'Z' => 'A',
        '9' => '0',
        other => other,
    };
    text.chars().map(turned).collect()
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const UNSUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"x:y"}}"#;

fn elicit() -> Value {
    json!({ "name": "f__elicit", "arguments": {} })
}

fn hold(address: &str) -> Held {
    let call = |params: Value| result(&ask(address, "ann", "tools/call", &params));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let session = session(address, "ann");
    let of_stream = format!("\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25");
    let (events, standing) = stream(address, &head("ann", "GET /mcp", &of_stream), "id: ");
    let (endpoint, legacy) = stream(address, &head("ann", "GET /sse", ""), "sessionId=");
    let mut cursor = Value::Null;
    let is_there = || {
        cursor = result(&ask(address, "ann", "tools/list", &json!({})))["nextCursor"].clone();
        cursor.is_string()
    };
    assert!(capstan_testkit::wait_until(is_there, LIMIT), "no second page");
    let confirm = json!({ "name": "t__confirm_delete", "arguments": { "filename": "x" } });
    let large = json!({ "name": "big__big", "arguments": { "bytes": 1_600_000 } });
    Held {
        session,
        event: after(&events, "id: ").to_owned(),
        older: after(&endpoint, "sessionId=").to_owned(),
        cursor: text(&cursor),
        parked: text(&call(elicit())["requestState"]),
        task: text(&call(confirm)["taskId"]),
        page: text(&call(large)["_meta"]["capstan/page"]["next"]),
        _open: [standing, legacy],
    }
}

/// The handles of clients with a session.
fn of_sessions<'a>(address: &'a str, held: &'a Held) -> Vec<Handle<'a>> {
    let in_its_session = |what, line: &'static str, body: &'static str| Handle {
        what,
        own: held.session.clone(),
        made_up: other(&held.session),
        use_it: Box::new(move |token, id| in_session(address, token, id, line, body)),
    };
    vec![
        in_its_session("a session", "POST /mcp", LIST),
        in_its_session("a subscription", "POST /mcp", UNSUBSCRIBE),
        in_its_session("the stream of a session", "GET /mcp", ""),
        in_its_session("the end of a session", "DELETE /mcp", ""),
        Handle {
            what: "a resumable stream",
            own: held.event.clone(),
            made_up: format!("{}9", held.event),
            use_it: Box::new(|token, id| {
                let headers = format!(
                    "\r\nMcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\nLast-Event-ID: {id}",
                    held.session
                );
                http(address, &head(token, "GET /mcp", &headers), "")
            }),
        },
        Handle {
            what: "a session of HTTP+SSE",
            own: held.older.clone(),
            made_up: other(&held.older),
            use_it: Box::new(|token, id| {
                let line = format!("POST /messages?sessionId={id}");
                http(address, &head(token, &line, ""), PING)
            }),
        },
    ]
}

/// The handles in answers to requests.
fn of_requests<'a>(address: &'a str, held: &'a Held) -> Vec<Handle<'a>> {
    let of_task = |what, method: &'static str| Handle {
        what,
        own: held.task.clone(),
        made_up: other(&held.task),
        use_it: Box::new(move |token, id| ask(address, token, method, &json!({ "taskId": id }))),
    };
    vec![
        Handle {
            what: "a cursor",
            own: held.cursor.clone(),
            made_up: other(&held.cursor),
            use_it: Box::new(|token, cursor| {
                ask(address, token, "tools/list", &json!({ "cursor": cursor }))
            }),
        },
        Handle {
            what: "a parked request",
            own: held.parked.clone(),
            made_up: other(&held.parked),
            use_it: Box::new(|token, state| {
                let mut call = elicit();
                call["requestState"] = json!(state);
                call["inputResponses"] =
                    json!({ "capstan-1": { "action": "accept", "content": {} } });
                ask(address, token, "tools/call", &call)
            }),
        },
        of_task("a task", "tasks/get"),
        of_task("the end of a task", "tasks/cancel"),
        Handle {
            what: "a page of a large answer",
            own: held.page.clone(),
            made_up: format!("capstan://answers/{}?page=2", "0".repeat(32)),
            use_it: Box::new(|token, uri| {
                ask(address, token, "resources/read", &json!({ "uri": uri }))
            }),
        },
    ]
}

#[test]
fn the_handle_of_another_caller_gets_the_answer_of_a_made_up_one() {
    let program = json!(binary("capstan-conformance-server").to_str().unwrap());
    let tasks = format!(
        "[servers.t]\ncommand = {program}\nargs = [\"--stdio\", \"--era\", \"modern\"]\n\n"
    );
    let world = with(&format!(
        "{ALL}{CALLERS}[screen]\nmax_tokens = 100000\n\n{tasks}{}{}",
        fixture("f", &["--era", "legacy", "--tools", "1100"]),
        fixture("big", &[])
    ));
    let (_gateway, address) = Gateway::listening(&world, "");
    let address = address.as_str();
    let held = hold(address);
    for Handle { what, own, made_up, use_it } in
        of_sessions(address, &held).into_iter().chain(of_requests(address, &held))
    {
        for token in ["bob", "ann-without"] {
            assert_ne!(own, made_up, "{what}");
            let (status, said) = use_it(token, &own);
            let (expected, of_made_up) = use_it(token, &made_up);
            let (said, of_made_up) = (said.replace(&own, "X"), of_made_up.replace(&made_up, "X"));
            assert_eq!((status, said), (expected, of_made_up), "{what} in the hands of {token}");
        }
    }
    // With a session of their own, the events of another are unknown as well.
    for token in ["bob", "ann-without"] {
        let own = session(address, token);
        let resume = |id: &str| {
            let headers = format!(
                "\r\nMcp-Session-Id: {own}\r\nMCP-Protocol-Version: 2025-11-25\r\nLast-Event-ID: {id}"
            );
            let read = stream(address, &head(token, "GET /mcp", &headers), "\r\n\r\n").0;
            read.lines().next().unwrap().to_owned()
        };
        assert_eq!(resume(&held.event), resume(&format!("{}9", held.event)), "{token}");
    }
    // All of it still works for ann.
    assert_eq!(in_session(address, "ann", &held.session, "POST /mcp", LIST).0, 200);
    let own = |method, params| result(&ask(address, "ann", method, &params));
    own("tools/list", json!({ "cursor": held.cursor }));
    own("tasks/get", json!({ "taskId": held.task }));
    own("resources/read", json!({ "uri": held.page }));
    let line = format!("POST /messages?sessionId={}", held.older);
    assert_eq!(http(address, &head("ann", &line, ""), PING).0, 202);
}
