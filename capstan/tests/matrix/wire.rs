//! How messages go to the gateway and come from it, by each transport.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use serde_json::Value;

use crate::Outcome;
use crate::http::{Response, send};

/// A message as it came, or why there is none.
pub(crate) type Heard = Result<String, String>;

/// The way to the gateway.
pub(crate) enum Wire {
    Stdio(Process),
    /// The page to post to; everything comes by the one stream.
    Sse {
        place: Place,
        stream: TcpStream,
    },
    /// Streamable HTTP with a session, whose id is known after the handshake.
    Session {
        place: Place,
        session: Option<String>,
        revision: &'static str,
    },
    /// Streamable HTTP without one; the requests that are not over, by id.
    Modern {
        place: Place,
        open: HashMap<u64, TcpStream>,
    },
}

/// Where to post to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) path: String,
}

/// A gateway over stdio, ended with its client.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
}

// === impl Wire ===

impl Wire {
    /// Starts a gateway of its own.
    pub(crate) fn stdio(mut command: Command, heard: Sender<Heard>) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(text)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err("no pipes".into()) };
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.map(|line| heard.send(Ok(line))).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Self::Stdio(Process { child, stdin }))
    }

    /// Opens the stream, whose first event says where to post to.
    pub(crate) fn sse(place: Place, heard: Sender<Heard>) -> Outcome<Self> {
        let stream = send(&place.address, &format!("GET {}", place.path), &[], "").map_err(text)?;
        let kept = stream.try_clone().map_err(text)?;
        let (sender, page) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let Ok(response) = Response::read(stream) else { return };
            let read = response.events(|name, data| match name {
                "endpoint" => sender.send(data).is_ok(),
                _ => heard.send(Ok(data)).is_ok(),
            });
            // The stream breaks when its client leaves.
            drop(read);
        });
        let path = page.recv_timeout(crate::client::LIMIT).map_err(text)?;
        Ok(Self::Sse { place: Place { path, ..place }, stream: kept })
    }

    /// Streamable HTTP with a session.
    pub(crate) fn session(place: Place, revision: &'static str) -> Self {
        Self::Session { place, session: None, revision }
    }

    /// Streamable HTTP without one.
    pub(crate) fn modern(place: Place) -> Self {
        Self::Modern { place, open: HashMap::new() }
    }

    /// Sends a message; what it is answered with goes where everything goes that is heard.
    pub(crate) fn send(&mut self, message: &Value, heard: &Sender<Heard>) -> Outcome {
        let body = message.to_string();
        match self {
            Self::Stdio(Process { stdin, .. }) => writeln!(stdin, "{body}").map_err(text),
            Self::Sse { place, .. } => {
                let stream = place.post(&[], &body)?;
                let response = Response::read(stream).map_err(text)?;
                if response.status == 202 { Ok(()) } else { Err(refused(response)) }
            }
            Self::Session { place, session, revision } => {
                let mut headers = vec![("MCP-Protocol-Version", *revision)];
                headers.extend(session.as_deref().map(|id| ("Mcp-Session-Id", id)));
                if message["method"] == "initialize" {
                    headers.clear();
                }
                let stream = place.post(&headers, &body)?;
                if message["method"] == "initialize" {
                    let response = Response::read(stream).map_err(text)?;
                    *session = response.header("mcp-session-id").map(str::to_owned);
                    return pass_on(response, heard);
                }
                let heard = heard.clone();
                let follow = move || follow(stream, &heard);
                let is_request = message.get("id").is_some() && message.get("method").is_some();
                if is_request || message.is_array() {
                    thread::spawn(follow);
                } else {
                    // In order with what is sent next.
                    follow();
                }
                Ok(())
            }
            Self::Modern { place, open } => {
                let headers = mirrored(message);
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let stream = place.post(&headers, &body)?;
                if let Some(id) = message["id"].as_u64() {
                    open.insert(id, stream.try_clone().map_err(text)?);
                }
                let heard = heard.clone();
                thread::spawn(move || follow(stream, &heard));
                Ok(())
            }
        }
    }

    /// After a handshake with a session: opens the stream for what belongs to no request.
    pub(crate) fn listen(&self, heard: &Sender<Heard>) -> Outcome {
        if let Self::Session { place, session: Some(session), revision } = self {
            let headers = [("MCP-Protocol-Version", *revision), ("Mcp-Session-Id", session)];
            let line = format!("GET {}", place.path);
            let stream = send(&place.address, &line, &headers, "").map_err(text)?;
            let response = Response::read(stream).map_err(text)?;
            if response.status != 200 {
                return Err(refused(response));
            }
            let heard = heard.clone();
            thread::spawn(move || drop(pass_on(response, &heard)));
        }
        Ok(())
    }

    /// Closes a request; whether that is how this transport calls one off.
    pub(crate) fn close(&mut self, id: u64) -> bool {
        let Self::Modern { open, .. } = self else { return false };
        if let Some(stream) = open.remove(&id) {
            // One that is over is closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
        true
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        match self {
            Self::Stdio(Process { child, .. }) => {
                drop(child.kill());
                drop(child.wait());
            }
            Self::Sse { stream, .. } => drop(stream.shutdown(Shutdown::Both)),
            Self::Session { place, session, .. } => {
                let id = session.take().unwrap_or_default();
                let line = format!("DELETE {}", place.path);
                let sent = send(&place.address, &line, &[("Mcp-Session-Id", &id)], "");
                drop(sent.and_then(Response::read));
            }
            Self::Modern { open, .. } => {
                for stream in open.values() {
                    drop(stream.shutdown(Shutdown::Both));
                }
            }
        }
    }
}

// === impl Place ===

impl Place {
    fn post(&self, headers: &[(&str, &str)], body: &str) -> Outcome<TcpStream> {
        send(&self.address, &format!("POST {}", self.path), headers, body).map_err(text)
    }
}

/// What a modern request repeats in headers.
fn mirrored(message: &Value) -> Vec<(&'static str, String)> {
    let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
    let mut headers = vec![
        ("MCP-Protocol-Version", crate::kinds::MODERN.to_owned()),
        ("Mcp-Method", method.to_owned()),
    ];
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
    headers
}

/// Reads an answer to its end.
fn follow(stream: TcpStream, heard: &Sender<Heard>) {
    // One that breaks off was called off, or is missed by whoever waits for it.
    let Ok(response) = Response::read(stream) else { return };
    if let Err(why) = pass_on(response, heard) {
        // Whoever has left wants to know nothing more.
        drop(heard.send(Err(why)));
    }
}

fn pass_on(response: Response, heard: &Sender<Heard>) -> Outcome {
    if response.is_events() {
        // A stream that breaks is one that was closed, here or there; what is missing is missed.
        drop(response.events(|_, data| heard.send(Ok(data)).is_ok()));
        return Ok(());
    }
    let status = response.status;
    let body = response.text().map_err(text)?;
    if serde_json::from_str::<Value>(&body)
        .is_ok_and(|body| body.is_array() || body["jsonrpc"] == "2.0")
    {
        drop(heard.send(Ok(body)));
    } else if status != 202 {
        return Err(format!("status {status}: {body}"));
    }
    Ok(())
}

fn refused(response: Response) -> String {
    let status = response.status;
    format!("status {status}: {}", response.text().unwrap_or_default())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
