//! OpenAPI documents as servers: found beside their configuration, limited, called.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{column, ends_with, failure, json, ok_json, read, run, says, with};

/// An interface that repeats what it was sent.
struct Echo {
    origin: String,
    sent: Receiver<String>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (sender, sent) = channel();
        // It ends with the test, whose process is its own.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || serve(stream, &sender));
            }
        });
        Self { origin, sent }
    }
}

fn serve(mut stream: TcpStream, sent: &Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        let (mut key, mut length) = (String::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let header = header.trim_end().to_lowercase();
            match header.split_once(": ") {
                Some(("authorization", value)) => value.clone_into(&mut key),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        sent.send(format!("{} {}", line.trim_end(), String::from_utf8(body).unwrap())).unwrap();
        let status = if line.contains("/missing") { "404 Not Found" } else { "200 OK" };
        let answer = json!({ "line": line.trim_end(), "key": key }).to_string();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        let text = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
        stream.write_all(text.as_bytes()).unwrap();
        line.clear();
    }
}

const DOCUMENT: &str = r#"
openapi: 3.0.3
info: { title: Shop, version: "1" }
paths:
  /items/{id}:
    get:
      operationId: getItem
      summary: Get an item
      tags: [items]
      parameters:
        - { name: id, in: path, required: true, schema: { type: string } }
        - { name: limit, in: query, schema: { type: integer } }
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object, properties: { line: { type: string } } } } } } }
    delete:
      operationId: deleteItem
      tags: [items]
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
      responses: { "204": { description: gone } }
  /admin:
    post: { operationId: reset, tags: [admin], responses: { "200": { description: ok } } }
"#;

fn world(echo: &Echo, more: &str) -> World {
    let world = with(&format!(
        "[permissions]\nallow = [\"*\"]\n\n[servers.shop]\nheaders = {{ Authorization = \"Bearer \
         {token}\" }}\n[servers.shop.openapi]\ndocument = \"apis/shop.yaml\"\nbase_url = \
         \"{origin}/v1\"\n{more}",
        token = "sesame-sesame",
        origin = echo.origin,
    ));
    let folder = world.config().join("capstan/apis");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.yaml"), DOCUMENT).unwrap();
    world
}

#[test]
fn operations_are_listed_called_and_written_down_like_tools() {
    let echo = Echo::start();
    let world = world(&echo, "");
    let tools = ok_json(&world, "tools");
    assert_eq!(column(&tools, "id"), ["shop__getItem", "shop__deleteItem", "shop__reset"]);
    let told = ok_json(&world, "call shop__getItem id=a/b limit=3");
    assert_eq!(told["structuredContent"]["line"], "GET /v1/items/a%2Fb?limit=3 HTTP/1.1");
    // What was given to the interface is not given away by it.
    assert_eq!(told["structuredContent"]["key"], "bearer ***");
    assert_eq!(echo.sent.recv().unwrap().trim_end(), "GET /v1/items/a%2Fb?limit=3 HTTP/1.1");
    let failed = ends_with(run(&world, "call shop__getItem id=missing"), 1);
    says(&failed.stdout, "HTTP status 404");
    let log = read(world.state().join("capstan/audit.jsonl"));
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&last["item"], &last["outcome"]), (&json!("getItem"), &json!("tool_error")));
    let row = &ok_json(&world, "list --refresh")[0];
    assert_eq!((&row["transport"], &row["state"]), (&json!("openapi"), &json!("connected")));
    let shown = ends_with(run(&world, "config show"), 0).stdout + &log;
    assert!(!shown.contains("sesame"), "{shown}");
}

#[test]
fn what_does_not_fit_is_never_sent() {
    let echo = Echo::start();
    let world = world(&echo, "");
    for words in ["call shop__getItem id=..", "call shop__getItem", "call shop__getItem id=a x=1"] {
        let ended = run(&world, &format!("{words} --json"));
        assert_ne!(ended.status, Some(0), "{words}");
        assert_eq!(failure(&ended).0, "invalid_input", "{words}: {}", ended.stdout);
    }
    assert!(echo.sent.try_recv().is_err());
}

#[test]
fn operations_are_limited_by_tag_and_pattern() {
    let echo = Echo::start();
    for (more, expected) in [
        ("tags = [\"items\"]", &["shop__getItem", "shop__deleteItem"][..]),
        ("only = [\"GET *\"]", &["shop__getItem"]),
        ("except = [\"* /admin*\", \"deleteItem\"]", &["shop__getItem"]),
    ] {
        let world = world(&echo, more);
        assert_eq!(column(&ok_json(&world, "tools"), "id"), expected, "{more}");
        let ended = ends_with(run(&world, "call shop__reset --json"), 4);
        assert_eq!(json(&ended)["error"]["code"], "not_found");
    }
}
