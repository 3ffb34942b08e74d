//! What the tests play on: a world with fixture servers, and a gateway to talk to.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use capstan_testkit::http::{exchange, message};
use capstan_testkit::{World, binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long anything may take on a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(50);

/// Rules that let everything run.
pub(crate) const ALL: &str = "[permissions]\nallow = [\"*\"]\n\n";

/// A gateway that runs. It ends with the test.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

// === impl Gateway ===

impl Gateway {
    /// Starts `capstan serve` with these further words.
    #[track_caller]
    pub(crate) fn start(world: &World, words: &str) -> Self {
        Self::start_with(world, words, &[])
    }

    /// The same, with these variables in its environment.
    #[track_caller]
    fn start_with(world: &World, words: &str, variables: &[(&str, &str)]) -> Self {
        let words = format!("serve {words}");
        let mut command = world.capstan(words.split_whitespace()).into_command();
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr }
    }

    /// Starts `capstan serve --http` at a port of its own: the gateway and its address.
    #[track_caller]
    pub(crate) fn listening(world: &World, words: &str) -> (Self, String) {
        Self::start(world, &format!("--http :0 {words}")).listens()
    }

    /// The same, with these variables in its environment.
    #[track_caller]
    pub(crate) fn listening_with(world: &World, variables: &[(&str, &str)]) -> (Self, String) {
        Self::start_with(world, "--http :0", variables).listens()
    }

    #[track_caller]
    fn listens(self) -> (Self, String) {
        let gateway = self;
        let line = gateway.says("listening on ");
        let address = line.strip_prefix("listening on http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        (gateway, address)
    }

    #[track_caller]
    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Closes our side.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line on its stdout, which must be a message.
    #[track_caller]
    pub(crate) fn hear(&self) -> Value {
        serde_json::from_str(&self.hear_line()).unwrap()
    }

    /// The next line on its stdout.
    #[track_caller]
    pub(crate) fn hear_line(&self) -> String {
        self.stdout.recv_timeout(LIMIT).unwrap()
    }

    /// Everything else on its stdout, until it ends.
    pub(crate) fn rest(&self) -> Vec<String> {
        self.stdout.iter().collect()
    }

    /// Everything else on its stderr, until it ends.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.stderr.iter().collect()
    }

    /// The lines on its stderr up to one that contains this.
    #[track_caller]
    pub(crate) fn says_all(&self, piece: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.stderr.recv_timeout(LIMIT) {
            let is_it = line.contains(piece);
            lines.push(line);
            if is_it {
                return lines;
            }
        }
        fail(&format!("no {piece:?} in {lines:#?}"))
    }

    /// Waits for a line on its stderr that contains this.
    #[track_caller]
    pub(crate) fn says(&self, piece: &str) -> String {
        let mut before = Vec::new();
        while let Ok(line) = self.stderr.recv_timeout(LIMIT) {
            if line.contains(piece) {
                return line;
            }
            before.push(line);
        }
        fail(&format!("no {piece:?} in {before:#?}"))
    }

    /// The answer to a request that is the only one under way.
    #[track_caller]
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string());
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Introduces a client of this revision.
    #[track_caller]
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let answer = self.ask(0, "initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].clone()
    }

    /// Sends a signal.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end: the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        };
        assert!(wait_until(ended, LIMIT), "it does not end");
        status.and_then(|status| status.code())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A world whose user has this configuration.
#[track_caller]
pub(crate) fn with(config: &str) -> World {
    let world = World::new();
    world.write_user_config(config);
    world
}

/// The entry of a fixture with these options. More keys can follow it.
#[track_caller]
pub(crate) fn fixture(name: &str, options: &[&str]) -> String {
    let command = Value::from(binary("capstan-fixture").to_str().unwrap());
    format!("[servers.{name}]\ncommand = {command}\nargs = {}\n", Value::from(options))
}

/// The params of a modern request.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    params
}

/// The text of an answer to a fixture's `echo`, which repeats its arguments.
#[track_caller]
pub(crate) fn echoed(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let arguments: Value = serde_json::from_str(text).unwrap_or_default();
    let said = arguments["text"].as_str().map(str::to_owned);
    said.unwrap_or_else(|| fail(&format!("no echo: {answer}")))
}

/// The names of the tools in an answer to `tools/list`.
#[track_caller]
pub(crate) fn tool_names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Sends an HTTP request: the status, and the body.
#[track_caller]
pub(crate) fn http(address: &str, head: &str, body: &str) -> (u16, String) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap().split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut request = message(method, path, body);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.and(name, value);
    }
    let answer = exchange(address, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot have what it stands on must fail")]
pub(crate) fn fail(why: &str) -> ! {
    panic!("{why}")
}
