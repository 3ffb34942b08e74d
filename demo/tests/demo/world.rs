//! A folder to serve, a folder to keep notes in, and a client that speaks either era.

use std::fs;
use std::path::PathBuf;

use capstan_demo::{Demo, Options, run};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct World {
    _home: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) outside: PathBuf,
}

/// What a tool said: its answer, or why not.
pub(crate) type Said = Result<Value, String>;

impl World {
    pub(crate) fn new() -> Self {
        let home = TempDir::new().unwrap();
        let path = home.path().canonicalize().unwrap();
        let (root, data, outside) = (path.join("root"), path.join("data"), path.join("outside"));
        for folder in [&root, &outside] {
            fs::create_dir(folder).unwrap();
        }
        Self { _home: home, root, data, outside }
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&self, which: Demo, input: impl AsRef<[u8]>) -> Vec<Value> {
        let options = Options { root: self.root.clone(), data: self.data.clone() };
        let mut output = Vec::new();
        run(which, options, input.as_ref(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends messages and gives back what came after the handshake.
    pub(crate) fn legacy(&self, which: Demo, messages: &[Value]) -> Vec<Value> {
        let opening = [
            request(
                0,
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {} }),
            ),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        ];
        let mut said = self.raw(which, lines(opening.iter().chain(messages)));
        said.remove(0);
        said
    }

    /// Sends one modern request and gives back the result or the error.
    pub(crate) fn modern(&self, which: Demo, method: &str, params: Value) -> Value {
        let said = self.raw(which, lines([&modern_request(1, method, params)]));
        let [response] = said.as_slice() else { panic!("one response, not {said:?}") };
        response.get("result").unwrap_or(&response["error"]).clone()
    }

    /// Calls a tool and gives back its structured content, or its text.
    pub(crate) fn call(&self, which: Demo, tool: &str, arguments: Value) -> Said {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        let result = self.modern(which, "tools/call", params);
        let text = &result["content"][0]["text"];
        match result["isError"].as_bool() {
            None => panic!("not an answer: {result}"),
            Some(true) => Err(text.as_str().unwrap().to_owned()),
            Some(false) => Ok(result.get("structuredContent").unwrap_or(text).clone()),
        }
    }
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    message["params"] = params;
    message
}

pub(crate) fn modern_request(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, method, params)
}

pub(crate) fn lines<'a>(messages: impl IntoIterator<Item = &'a Value>) -> String {
    let mut text = String::new();
    for message in messages {
        text += &message.to_string();
        text.push('\n');
    }
    text
}

/// Asserts that a tool refused, in words that contain `reason`.
#[track_caller]
pub(crate) fn refused(said: Said, reason: &str) {
    match said {
        Ok(answer) => panic!("was not refused: {answer}"),
        Err(text) => assert!(text.contains(reason), "{text:?} does not say {reason:?}"),
    }
}
