//! A client that speaks its revision plainly and understands no other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Outcome;
use crate::kinds::{ClientKind, FORMS, URLS};
use crate::wire::{Heard, Wire};

/// How long anything may take on a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// What a failure says that has waited for so long.
pub(crate) const SILENCE: &str = "nothing came";

/// How often one call may ask for further input.
const ROUNDS: usize = 10;

const META: &str = "io.modelcontextprotocol";

pub(crate) struct Client {
    pub(crate) kind: &'static ClientKind,
    wire: Wire,
    heard: (Sender<Heard>, Receiver<Heard>),
    /// What stands before the names of tools and prompts.
    prefix: String,
    /// What it was told, in order.
    pub(crate) told: Vec<Value>,
    /// What it was asked, in order.
    pub(crate) asked: Vec<Value>,
    /// Of what servers log, what it wants to hear; modern clients say so with each request.
    level: Option<&'static str>,
    last_id: u64,
}

// === impl Client ===

impl Client {
    /// Makes itself known, in the way of its revision.
    pub(crate) fn connect(
        kind: &'static ClientKind,
        prefix: String,
        open: impl FnOnce(Sender<Heard>) -> Outcome<Wire>,
    ) -> Outcome<Self> {
        let heard = channel();
        let wire = open(heard.0.clone())?;
        let (told, asked) = (Vec::new(), Vec::new());
        let mut client = Self { kind, wire, heard, prefix, told, asked, level: None, last_id: 0 };
        if kind.is_modern() {
            let found = client.ask("server/discover", json!({}))?;
            expect(&found, found["result"]["supportedVersions"][0] == kind.revision)?;
            return Ok(client);
        }
        let hello = json!({
            "protocolVersion": kind.revision,
            "capabilities": client.able(),
            "clientInfo": { "name": kind.name, "version": "1" },
        });
        let hello = client.ask("initialize", hello)?;
        expect(&hello, hello["result"]["protocolVersion"] == kind.revision)?;
        client.tell("notifications/initialized", &json!({}))?;
        client.wire.listen(&client.heard.0)?;
        Ok(client)
    }

    /// What it says that it can be asked.
    fn able(&self) -> Value {
        let mut able = json!({ "sampling": {}, "roots": { "listChanged": true } });
        if self.kind.revision >= URLS {
            able["elicitation"] = json!({ "form": {}, "url": {} });
        } else if self.kind.revision >= FORMS {
            able["elicitation"] = json!({});
        }
        able
    }

    /// Forgets what it was told and asked.
    pub(crate) fn forget(&mut self) {
        self.told.clear();
        self.asked.clear();
    }

    /// A name as the gateway shows it.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Calls a tool, and answers what it is asked meanwhile.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<Value> {
        let params = json!({ "name": self.named(tool), "arguments": arguments });
        self.ask("tools/call", params)
    }

    /// The text of a tool's answer, which must not be a failure.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Value) -> Outcome<String> {
        let answer = self.call(tool, arguments)?;
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.filter(|_| answer["result"]["isError"] != true);
        text.map(str::to_owned).ok_or_else(|| answer.to_string())
    }

    /// Asks for something, and answers what it is asked meanwhile.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Outcome<Value> {
        parse(&self.ask_raw(method, params)?)
    }

    /// The same; the answer as it came.
    pub(crate) fn ask_raw(&mut self, method: &str, mut params: Value) -> Outcome<String> {
        for _ in 0..ROUNDS {
            let line = self.ask_once(method, &params)?;
            let result = &parse(&line)?["result"];
            if result["resultType"] != "input_required" {
                return Ok(line);
            }
            params["inputResponses"] = json!({});
            for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                params["inputResponses"][key] = self.answer(request)?;
            }
            params["requestState"] = result["requestState"].clone();
        }
        Err(format!("asked for input more than {ROUNDS} times"))
    }

    /// Asks once, even if the answer is that there is something to be answered first.
    pub(crate) fn ask_once(&mut self, method: &str, params: &Value) -> Outcome<String> {
        let id = self.start(method, params)?;
        loop {
            if let Some(line) = self.hear(Some(id))? {
                return Ok(line);
            }
        }
    }

    /// Sends a request and does not wait for its answer: its id.
    pub(crate) fn start(&mut self, method: &str, params: &Value) -> Outcome<u64> {
        self.last_id += 1;
        let mut params = params.clone();
        if self.kind.is_modern() {
            params["_meta"][format!("{META}/protocolVersion")] = json!(self.kind.revision);
            params["_meta"][format!("{META}/clientCapabilities")] = self.able();
            params["_meta"][format!("{META}/clientInfo")] =
                json!({ "name": self.kind.name, "version": "1" });
            if let Some(level) = self.level {
                params["_meta"][format!("{META}/logLevel")] = json!(level);
            }
        }
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }),
        )?;
        Ok(self.last_id)
    }

    /// Calls tools without arguments, all in one message: the answers, in any order.
    pub(crate) fn batch(&mut self, tools: &[&str]) -> Outcome<Vec<Value>> {
        let mut calls = Vec::new();
        for tool in tools {
            self.last_id += 1;
            let params = json!({ "name": self.named(tool) });
            let id = self.last_id;
            calls.push(
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }),
            );
        }
        self.send(&json!(calls))?;
        let mut answers = Vec::new();
        while answers.len() < tools.len() {
            let heard = self.heard.1.recv_timeout(LIMIT);
            let line = heard.map_err(|_| format!("not answered, but {answers:?}"))??;
            let answer = parse(&line)?;
            match answer.as_array() {
                Some(several) => answers.extend(several.iter().cloned()),
                None => answers.push(answer),
            }
        }
        Ok(answers)
    }

    /// Says that it no longer wants an answer, in the way of its revision.
    pub(crate) fn cancel(&mut self, id: u64) -> Outcome {
        if self.wire.close(id) {
            return Ok(());
        }
        self.tell("notifications/cancelled", &json!({ "requestId": id }))
    }

    /// Says what it wants to hear of what servers log, in the way of its revision.
    pub(crate) fn set_level(&mut self, level: &'static str) -> Outcome {
        if self.kind.is_modern() {
            self.level = Some(level);
            return Ok(());
        }
        let set = self.ask("logging/setLevel", json!({ "level": level }))?;
        expect(&set, set["result"] == json!({}))
    }

    /// Wants to hear of changes: of all lists, and of a resource. The id of the subscription.
    pub(crate) fn subscribe(&mut self, uri: &str) -> Outcome<Option<u64>> {
        if !self.kind.is_modern() {
            let done = self.ask("resources/subscribe", json!({ "uri": uri }))?;
            expect(&done, done["result"] == json!({}))?;
            return Ok(None);
        }
        let wanted = json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
            "resourceSubscriptions": [uri],
        });
        let id = self.start("subscriptions/listen", &json!({ "notifications": wanted }))?;
        let first = self.wait_for("notifications/subscriptions/acknowledged")?;
        expect(&first, first["params"]["notifications"] == wanted)?;
        Ok(Some(id))
    }

    /// The next notification of that kind that it was not given before.
    pub(crate) fn wait_for(&mut self, method: &str) -> Outcome<Value> {
        loop {
            if let Some(at) = self.told.iter().position(|told| told["method"] == method) {
                return Ok(self.told.remove(at));
            }
            self.hear(None).map_err(|why| format!("no `{method}`: {why}"))?;
        }
    }

    fn tell(&mut self, method: &str, params: &Value) -> Outcome {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn send(&mut self, message: &Value) -> Outcome {
        self.wire.send(message, &self.heard.0)
    }

    /// Takes the next message: the answer to this request, or `None` for anything else.
    fn hear(&mut self, id: Option<u64>) -> Outcome<Option<String>> {
        let waited = self.heard.1.recv_timeout(LIMIT);
        let line = waited.map_err(|_| format!("{SILENCE}, but {:?}", self.told))??;
        let message = parse(&line)?;
        match (message.get("method"), message["id"].as_u64()) {
            (Some(_), _) if message.get("id").is_some() => {
                if self.kind.is_modern() {
                    return Err(format!("a modern client cannot be asked: {line}"));
                }
                let result = self.answer(&message)?;
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
            }
            (Some(_), _) => self.told.push(message),
            (None, answered) if answered == id => return Ok(Some(line)),
            (None, _) => return Err(format!("nobody asked for {line}")),
        }
        Ok(None)
    }

    /// What a person or a language model says to a question.
    fn answer(&mut self, question: &Value) -> Outcome<Value> {
        self.asked.push(question.clone());
        let params = &question["params"];
        Ok(match (question["method"].as_str(), params["mode"].as_str()) {
            (Some("elicitation/create"), Some("url")) => json!({ "action": "accept" }),
            (Some("elicitation/create"), _) => {
                let fields = params["requestedSchema"]["properties"].as_object();
                let fields = fields.into_iter().flat_map(|fields| fields.keys());
                let content: Value = fields.map(|field| (field.clone(), json!("Ada"))).collect();
                json!({ "action": "accept", "content": content })
            }
            (Some("sampling/createMessage"), _) => {
                let said = format!("You said: {}", params["messages"][0]["content"]["text"]);
                let content = json!({ "type": "text", "text": said });
                json!({ "role": "assistant", "content": content, "model": "m" })
            }
            (Some("roots/list"), _) => {
                json!({ "roots": [{ "uri": "file:///matrix", "name": self.kind.name }] })
            }
            _ => return Err(format!("an unknown question: {question}")),
        })
    }
}

/// Fails with what was found, unless it is as it should be.
#[expect(clippy::fn_params_excessive_bools, reason = "a comparison, as in `assert!`")]
pub(crate) fn expect(found: &Value, fine: bool) -> Outcome {
    if fine { Ok(()) } else { Err(found.to_string()) }
}

fn parse(line: &str) -> Outcome<Value> {
    serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))
}
