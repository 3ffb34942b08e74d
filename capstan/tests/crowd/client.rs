//! Clients of each transport and revision that has ways of its own.

use capstan_testkit::World;
use futures::future::join;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, modern, with};
use crate::wire::{Connection, is_events};

/// How a client talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 2024-11-05: posts, and reads one long stream.
    Older,
    /// 2025-03-26: sends lists of messages.
    Lists,
    /// 2025-11-25: a session.
    Session,
    /// 2026-07-28: no session.
    Modern,
}

/// A client that is connected.
pub(crate) struct Client {
    kind: Kind,
    connection: Connection,
    /// The long stream of an older client.
    stream: Option<Connection>,
    /// What a request begins with, and the further lines of its head.
    line: String,
    lines: String,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Older, Kind::Lists, Kind::Session, Kind::Modern];

/// A world with these servers and everything allowed, and a gateway in it.
#[track_caller]
pub(crate) fn gateway(servers: &str) -> (World, Gateway, String) {
    let world = with(&format!("{ALL}{servers}"));
    let (gateway, address) = Gateway::listening(&world, "");
    (world, gateway, address)
}

/// A request that calls a tool.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params })
}

// === impl Client ===

impl Client {
    /// Connects, and introduces itself where that is done.
    pub(crate) async fn connect(kind: Kind, address: &str) -> Self {
        let connection = Connection::open(address).await;
        let (line, lines) = ("POST /mcp".to_owned(), String::new());
        let mut client = Self { kind, connection, stream: None, line, lines };
        match kind {
            Kind::Modern => {}
            Kind::Older => {
                let mut stream = Connection::open(address).await;
                stream.send("GET /sse", "", "").await;
                assert!(is_events(&stream.head().await));
                client.line = format!("POST {}", stream.event().await.unwrap());
                client.stream = Some(stream);
                client.introduce("2024-11-05").await;
            }
            Kind::Lists => client.introduce("2025-03-26").await,
            Kind::Session => client.introduce("2025-11-25").await,
        }
        client
    }

    /// Another connection of the same session.
    pub(crate) async fn again(&self, address: &str) -> Self {
        let connection = Connection::open(address).await;
        let (line, lines) = (self.line.clone(), self.lines.clone());
        Self { kind: self.kind, connection, stream: None, line, lines }
    }

    /// Sends requests, as many at once as its way of talking allows, and returns all that comes
    /// back until each has its answer.
    pub(crate) async fn ask(&mut self, requests: Vec<Value>) -> Vec<Value> {
        match self.kind {
            Kind::Older => {
                let Self { connection, stream, line, .. } = self;
                let count = requests.len();
                let post = async {
                    for request in requests {
                        connection.send(line, "", &request.to_string()).await;
                        assert_eq!(connection.messages().await, [Value::Null; 0]);
                    }
                };
                join(post, answers(stream.as_mut().unwrap(), count)).await.1
            }
            Kind::Lists => {
                self.send(&Value::from(requests)).await;
                self.connection.messages().await
            }
            Kind::Session | Kind::Modern => {
                let mut all = Vec::new();
                for request in requests {
                    self.send(&request).await;
                    all.extend(self.connection.messages().await);
                }
                all
            }
        }
    }

    /// Sends a request and waits for nothing.
    pub(crate) async fn begin(&mut self, request: Value) {
        match self.kind {
            Kind::Older => {
                self.connection.send(&self.line, "", &request.to_string()).await;
                assert_eq!(self.connection.messages().await, [Value::Null; 0]);
            }
            Kind::Lists | Kind::Session | Kind::Modern => self.send(&request).await,
        }
    }

    /// What comes back for the request that it has begun.
    pub(crate) async fn finish(&mut self) -> Vec<Value> {
        match &mut self.stream {
            Some(stream) => answers(stream, 1).await,
            None => self.connection.messages().await,
        }
    }

    async fn send(&mut self, request: &Value) {
        if self.kind != Kind::Modern {
            return self.connection.send(&self.line, &self.lines, &request.to_string()).await;
        }
        let method = request["method"].as_str().unwrap();
        let name = request["params"]["name"].as_str().unwrap();
        let lines = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
        );
        let mut request = request.clone();
        let own = request["params"]["_meta"].take();
        let mut params = modern(request["params"].take());
        let meta = own.as_object().into_iter().flatten();
        for (key, value) in meta {
            params["_meta"][key] = value.clone();
        }
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        request["params"] = params;
        self.connection.send(&self.line, &lines, &request.to_string()).await;
    }

    async fn introduce(&mut self, revision: &str) {
        let client = json!({ "name": "crowd", "version": "1" });
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let request =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.connection.send(&self.line, "", &request.to_string()).await;
        let head = self.connection.head().await;
        let body = self.connection.whole(&head).await;
        let answer: Value = match &mut self.stream {
            Some(stream) => serde_json::from_str(&stream.event().await.unwrap()).unwrap(),
            None => serde_json::from_str(&body).unwrap(),
        };
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        if let Some(session) = head.get("mcp-session-id") {
            self.lines = format!("Mcp-Session-Id: {session}\r\n");
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.connection.send(&self.line, &self.lines, &ready.to_string()).await;
        assert_eq!(self.connection.messages().await, [Value::Null; 0]);
        let params = json!({ "level": "debug" });
        let level =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "logging/setLevel", "params": params });
        self.begin(level).await;
        assert_eq!(self.finish().await.len(), 1);
    }
}

/// What comes on a stream until this many requests have their answers.
async fn answers(stream: &mut Connection, mut count: usize) -> Vec<Value> {
    let mut all = Vec::new();
    while count > 0 {
        let message: Value = serde_json::from_str(&stream.event().await.unwrap()).unwrap();
        count -= usize::from(message.get("method").is_none());
        all.push(message);
    }
    all
}
