//! A gateway over HTTP, with many servers behind it or others, and a client that calls their tools.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use capstan_testkit::{World, descendants, process};
use serde_json::{Value, json};

use crate::oneshot::built;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A gateway that ends with the measurement.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: String,
}

/// One connection to it.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    /// Further lines of its head, each with its end.
    headers: String,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway with so many servers: `s0`, `s1` and so on.
    pub(crate) fn start(world: &World, servers: usize) -> anyhow::Result<Self> {
        world.write_user_config(&config(servers)?);
        let serve = ["serve", "--http", ":0"];
        Self::spawn(world.program(built("capstan")?, serve).into_command())
    }

    /// Starts a gateway by this command, and waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the gateway")?;
        let mut lines = BufReader::new(child.stderr.take().context("no stderr")?);
        let mut gateway = Self { child, address: String::new() };
        let mut line = String::new();
        while gateway.address.is_empty() {
            line.clear();
            ensure!(lines.read_line(&mut line)? > 0, "the gateway has ended");
            let address = line.trim().strip_prefix("listening on http://");
            if let Some(address) = address.and_then(|rest| rest.strip_suffix("/mcp")) {
                address.clone_into(&mut gateway.address);
            }
        }
        // What else it says is read, so that it never waits for us.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(gateway)
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        self.client_with(String::new())
    }

    /// A client that sends these lines of the head with every request.
    pub(crate) fn client_with(&self, headers: String) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream), address: self.address.clone(), headers })
    }

    /// Lets it end by itself.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let asked =
            process::command("kill").args(["-INT", &self.child.id().to_string()]).status()?;
        ensure!(asked.success(), "the gateway cannot be stopped");
        let status = self.child.wait()?;
        ensure!(status.success(), "the gateway ended with {status}");
        Ok(())
    }

    /// Kills the process of a server, as a machine that is out of memory does.
    pub(crate) fn kill(&self, server: &str) -> anyhow::Result<()> {
        let is_it = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            words.next().is_some_and(|program| program.ends_with(b"capstan-fixture"))
                && words.any(|word| word == server.as_bytes())
        };
        let pid = descendants(self.child.id()).into_iter().find(is_it);
        let pid = pid.with_context(|| format!("`{server}` does not run"))?;
        let killed = process::command("kill").args(["-9", &pid.to_string()]).status()?;
        ensure!(killed.success(), "`{server}` cannot be killed");
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

// === impl Client ===

impl Client {
    /// Calls a tool; the result.
    pub(crate) fn call(&mut self, tool: &str) -> anyhow::Result<Value> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        });
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let method = "tools/call";
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let head = format!(
            "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
             Mcp-Name: {tool}"
        );
        let answer = self.ask(&head, &body.to_string())?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer.get("result").cloned().unwrap_or(Value::Null))
    }

    /// Whether a call of this tool goes well.
    pub(crate) fn works(&mut self, tool: &str) -> anyhow::Result<bool> {
        let result = self.call(tool)?;
        Ok(result.is_object() && result.get("isError") != Some(&Value::Bool(true)))
    }

    /// Whether the gateway says that a server is in this state.
    pub(crate) fn is_in_state(&mut self, server: &str, state: &str) -> anyhow::Result<bool> {
        let metrics = self.ask("GET /metrics HTTP/1.1", "")?;
        let line = format!("capstan_server_state{{server=\"{server}\",state=\"{state}\"}} 1");
        Ok(metrics.contains(&line))
    }

    fn ask(&mut self, head: &str, body: &str) -> anyhow::Result<String> {
        let (address, headers, length) = (&self.address, &self.headers, body.len());
        let text = format!(
            "{head}\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(text.as_bytes())?;
        let (mut line, mut length) = (String::new(), None);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the gateway has hung up");
            let Some((name, value)) = line.trim_end().split_once(':') else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        let mut body = vec![0; length.context("an answer of no known length")?];
        self.stream.read_exact(&mut body)?;
        Ok(String::from_utf8(body)?)
    }
}

fn config(servers: usize) -> anyhow::Result<String> {
    let fixture = built("capstan-fixture")?;
    let program = serde_json::to_string(fixture.to_str().context("a path is not UTF-8")?)?;
    let mut config = "[permissions]\nallow = [\"*\"]\n\n".to_owned();
    for number in 0..servers {
        // Its name is on its command line, so that its process can be found.
        writeln!(
            config,
            "[servers.s{number}]\ncommand = {program}\nargs = [\"--instructions\", \"s{number}\"]\n\
             idle_timeout = \"never\"\n"
        )?;
    }
    Ok(config)
}
