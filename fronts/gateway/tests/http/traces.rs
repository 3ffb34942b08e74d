//! Calls that belong to a trace.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use capstan_hub::trace::{Ending, Side, Span, Step, TraceContext, Tracer};
use capstan_model::ServerName;

use crate::harness::{Harness, call, settings};
use capstan_testkit::http::{HttpRequest, post};

const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TWO: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OURS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";

/// Records each step of a span in a line.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<String>>>);

struct Seen {
    watcher: Watcher,
    line: String,
    ended: bool,
}

// === impl Watcher ===

impl Watcher {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Tracer for Watcher {
    fn begin(&self, step: Step<'_>) -> Box<dyn Span> {
        assert_eq!(step.side, Side::Asked);
        let from = step.context.map_or("nowhere", |context| context.parent.as_str());
        let caller = &step.caller.unwrap().subject;
        let line = format!(
            "{} {} by {caller} in {} from {from}",
            step.kind.method(),
            step.item,
            step.protocol.unwrap(),
        );
        Box::new(Seen { watcher: self.clone(), line, ended: false })
    }
}

// === impl Seen ===

impl Span for Seen {
    fn found(&mut self, server: &ServerName) {
        write!(self.line, " at {server}").unwrap();
    }

    fn context(&self) -> Option<TraceContext> {
        Some(TraceContext { parent: OURS.to_owned(), state: String::new() })
    }

    fn end(mut self: Box<Self>, ending: Ending) {
        self.ended = true;
        write!(self.line, ": {ending:?}").unwrap();
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let given_up = if self.ended { "" } else { ": given up" };
        self.watcher.0.lock().unwrap().push(format!("{}{given_up}", self.line));
    }
}

/// A call in a session, with nothing in `_meta`.
async fn bare(harness: &Harness, tool: &str, meta: &str) -> HttpRequest {
    let session = harness.session("2025-06-18").await;
    let params = format!(r#"{{"name":"{tool}","arguments":{{}}{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    post("/mcp", &body).with("Mcp-Session-Id", &session)
}

fn meta(parent: &str) -> String {
    format!(r#","_meta":{{"traceparent":"{parent}"}}"#)
}

#[tokio::test]
async fn without_a_watcher_a_place_in_a_trace_is_passed_on_as_it_came() {
    let harness = Harness::new().await;
    let cases = [
        ("", None, ""),
        ("", Some(ONE), &*meta(ONE)),
        (&*meta(TWO), Some(ONE), &*meta(TWO)),
        (&*meta(TWO), None, &*meta(TWO)),
        ("", Some("nonsense"), ""),
    ];
    for (meta, header, expected) in cases {
        let mut ask = bare(&harness, "files__say", meta).await;
        if let Some(header) = header {
            ask = ask.with("traceparent", header);
        }
        assert_eq!(harness.ask(&ask).await.head.status, 200);
        let sent = harness.server.sent.lock().unwrap().pop().unwrap();
        assert_eq!(sent, format!(r#"{{"name":"say","arguments":{{}}{expected}}}"#), "{header:?}");
    }
}

#[tokio::test]
async fn a_watcher_sees_every_call_and_servers_are_told_its_place() {
    let watcher = Watcher::default();
    let harness = Harness::watched(settings(), Some(Arc::new(watcher.clone()))).await;
    let by = "by anonymous in 2025-06-18 from";
    let cases = [
        ("files__say", "", format!("{by} nowhere at files: Answered")),
        ("files__say", ONE, format!("{by} {ONE} at files: Answered")),
        (
            "files__none",
            ONE,
            format!("{by} {ONE} at files: Failed {{ code: NotFound, json_rpc: None }}"),
        ),
    ];
    for (tool, header, expected) in cases {
        let ask = bare(&harness, tool, "").await.with("traceparent", header);
        harness.ask(&ask).await;
        assert_eq!(watcher.lines(), [format!("tools/call {tool} {expected}")]);
    }
    let sent = harness.server.sent.lock().unwrap().clone();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|sent| sent.contains(&meta(OURS))), "{sent:?}");
}

#[tokio::test]
async fn a_watcher_sees_that_a_call_was_given_up() {
    let watcher = Watcher::default();
    let harness = Harness::watched(settings(), Some(Arc::new(watcher.clone()))).await;
    let session = harness.session("2025-06-18").await;
    let mut peer = harness.peer().await;
    let wait = post("/mcp", &call(1, "files__wait")).with("Mcp-Session-Id", &session);
    peer.send(&wait.text()).await;
    harness.server.waits(1).await;
    drop(peer);
    harness.server.waits(0).await;
    // The span goes with the call, in the same breath.
    let lines = loop {
        match watcher.lines() {
            lines if lines.is_empty() => tokio::task::yield_now().await,
            lines => break lines,
        }
    };
    assert!(lines[0].ends_with("at files: given up"), "{lines:?}");
}
