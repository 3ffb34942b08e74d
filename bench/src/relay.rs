//! Instructions to relay one `tools/call` and its answer: our raw path against rmcp's typed one.
//!
//! Both read the client's line, put the tool's own name and another id in, and write the line for
//! the server; then they read the server's line and write the client's id into it. What a hub does
//! in between, and the pipes, are not counted.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, bail};
use bytes::Bytes;
use capstan_wire::{Message, Reply, compose, object};
use clap::ValueEnum;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage,
};
use serde::Serialize;
use serde_json::json;

use crate::count;

/// Sizes of the answer's text, in bytes.
const SIZES: [usize; 3] = [100, 64 * 1024, 1024 * 1024];

/// What the server calls the tool.
const TOOL: &str = "read_log";

/// What answers are made of: like most text, it has characters that JSON escapes.
const LINE: &str = "2030-01-31 12:00:00 \"GET /index.html\" 200 512\n";

/// How lines are read and written.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Way {
    /// Envelopes around bytes: `capstan-wire`.
    Raw,
    /// A Rust type for every message: rmcp.
    Typed,
}

/// What was counted for one size.
#[derive(Serialize)]
pub(crate) struct Relayed {
    pub(crate) answer_bytes: usize,
    pub(crate) raw_instructions: u64,
    pub(crate) typed_instructions: u64,
    /// How many times the typed path takes what the raw one takes.
    pub(crate) ratio: f64,
}

/// What the two sides sent.
struct Exchange {
    request: Bytes,
    answer: Bytes,
}

/// What the two sides get.
struct Passed {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

/// Relays calls, to be counted from outside.
pub(crate) fn run(way: Way, size: usize, times: u32) -> anyhow::Result<()> {
    let exchange = Exchange::new(size)?;
    for id in 0..times {
        let passed = match way {
            Way::Raw => raw(&exchange, id)?,
            Way::Typed => typed(&exchange, id)?,
        };
        black_box((passed.to_server, passed.to_client));
    }
    Ok(())
}

/// Counts both ways for every size.
pub(crate) fn measure() -> anyhow::Result<Vec<Relayed>> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let relayed = |answer_bytes| {
        let raw = instructions(&program, "raw", answer_bytes)?;
        let typed = instructions(&program, "typed", answer_bytes)?;
        Ok(Relayed::new(answer_bytes, raw, typed))
    };
    SIZES.into_iter().map(relayed).collect()
}

// === impl Relayed ===

impl Relayed {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    fn new(answer_bytes: usize, raw_instructions: u64, typed_instructions: u64) -> Self {
        let ratio = typed_instructions as f64 / raw_instructions as f64;
        Self { answer_bytes, raw_instructions, typed_instructions, ratio }
    }
}

// === impl Exchange ===

impl Exchange {
    fn new(size: usize) -> anyhow::Result<Self> {
        let params = json!({
            "name": format!("web__{TOOL}"),
            "arguments": { "host": "www.example.com", "lines": 20, "errors": true },
            "_meta": { "progressToken": 7 },
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let text: String = LINE.chars().cycle().take(size).collect();
        let content = json!([{ "type": "text", "text": text }]);
        let answer = json!({ "jsonrpc": "2.0", "id": 0, "result": { "content": content } });
        Ok(Self {
            request: serde_json::to_vec(&request)?.into(),
            answer: serde_json::to_vec(&answer)?.into(),
        })
    }
}

fn raw(exchange: &Exchange, id: u32) -> anyhow::Result<Passed> {
    let asked = Message::parse(&exchange.request)?;
    let Message::Request { id: of_client, method, params: Some(params) } = asked else {
        bail!("not a request with params");
    };
    let params = object::with_member(&params, "name", &compose::string(TOOL))?;
    let to_server = compose::request(id.into(), &method, Some(&params));

    let answered = Message::parse(&exchange.answer)?;
    let Message::Reply { reply: Reply::Result(result), .. } = answered else {
        bail!("not a result");
    };
    Ok(Passed { to_server, to_client: compose::reply(&of_client, &result) })
}

fn typed(exchange: &Exchange, id: u32) -> anyhow::Result<Passed> {
    let mut asked: ClientJsonRpcMessage = serde_json::from_slice(&exchange.request)?;
    let JsonRpcMessage::Request(request) = &mut asked else { bail!("not a request") };
    let ClientRequest::CallToolRequest(call) = &mut request.request else { bail!("not a call") };
    call.params.name = TOOL.into();
    let of_client = std::mem::replace(&mut request.id, NumberOrString::Number(id.into()));
    let to_server = serde_json::to_vec(&asked)?;

    let mut answered: ServerJsonRpcMessage = serde_json::from_slice(&exchange.answer)?;
    let JsonRpcMessage::Response(response) = &mut answered else { bail!("not a result") };
    response.id = of_client;
    Ok(Passed { to_server, to_client: serde_json::to_vec(&answered)? })
}

/// Instructions for one call: of two runs of different length, so that starting cancels out.
fn instructions(program: &Path, way: &str, size: usize) -> anyhow::Result<u64> {
    let few = u32::try_from(2 * 1024 * 1024 / size)?.clamp(2, 400);
    let many = 3 * few;
    let words =
        |times: u32| ["relay".to_owned(), way.to_owned(), size.to_string(), times.to_string()];
    let short = count::instructions(program, &words(few))?;
    let long = count::instructions(program, &words(many))?;
    Ok(long.saturating_sub(short) / u64::from(many - few))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn value(line: &[u8]) -> Value {
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn both_ways_pass_on_the_same_messages() {
        let exchange = Exchange::new(5000).unwrap();
        let (raw, typed) = (raw(&exchange, 42).unwrap(), typed(&exchange, 42).unwrap());
        let mut to_server = value(&exchange.request);
        to_server["id"] = 42.into();
        to_server["params"]["name"] = TOOL.into();
        let mut to_client = value(&exchange.answer);
        to_client["id"] = 7.into();
        for passed in [raw, typed] {
            assert_eq!(value(&passed.to_server), to_server);
            assert_eq!(value(&passed.to_client), to_client);
        }
    }

    #[test]
    fn the_answers_text_has_the_size_asked_for() {
        for size in SIZES {
            let answer = value(&Exchange::new(size).unwrap().answer);
            assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), size);
        }
    }
}
