//! Connections of clients over HTTP, which stay open.

use capstan_testkit::http::{Head, HttpConnection, message};
use serde_json::Value;

/// A connection to the gateway. It closes when it is dropped.
pub(crate) struct Connection {
    http: HttpConnection,
    address: String,
}

/// True if an answer is a stream of events.
pub(crate) fn is_events(head: &Head) -> bool {
    head.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
}

// === impl Connection ===

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        Self { http: HttpConnection::new(address).await, address: address.to_owned() }
    }

    /// Sends a request with these further lines in its head.
    pub(crate) async fn send(&mut self, line: &str, lines: &str, body: &str) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = message(method, path, body).with("Host", &self.address);
        for line in lines.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            request = request.and(name, value);
        }
        self.http.send(&request.text()).await;
    }

    /// The head of the answer.
    pub(crate) async fn head(&mut self) -> Head {
        self.http.head().await
    }

    /// The body behind a head.
    pub(crate) async fn whole(&mut self, head: &Head) -> String {
        self.http.body(head).await
    }

    /// The data of the next event; `None` if there are no more.
    pub(crate) async fn event(&mut self) -> Option<String> {
        let event = self.http.event().await?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        Some(data.unwrap().to_owned())
    }

    /// All messages that answer a request: one, those of a list, or those of a stream.
    pub(crate) async fn messages(&mut self) -> Vec<Value> {
        let head = self.head().await;
        let mut messages = Vec::new();
        if is_events(&head) {
            while let Some(data) = self.event().await {
                messages.push(serde_json::from_str(&data).unwrap());
            }
            return messages;
        }
        let body = self.whole(&head).await;
        match serde_json::from_str(&body) {
            Ok(Value::Array(list)) => list,
            Ok(message) => vec![message],
            Err(_) => {
                assert_eq!((head.status, body.as_str()), (202, ""));
                Vec::new()
            }
        }
    }
}
